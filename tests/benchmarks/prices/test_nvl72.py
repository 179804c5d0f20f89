"""All-to-alls among the ranks of an NVL72 rack, next to public measurements of GB200 and GB300."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from benchmarks.prices.reality.collective_files import MeasuredCollective, read_folder
from cost_models.collectives.collectives import Network
from cost_models.hardware.profiles_loader import load_profile
from tests.support.paths import SHARED

FOLDER = SHARED / "measured_gpu"
PROFILES = {"GB200": "gb200-nvl72", "sm_103": "gb300-nvl72", "GB300": "gb300-nvl72"}
MIB = 2**20
#: Half of all prices from 1 MiB on lie within this; every one from 64 MiB on within the other.
HALF, EVERY = 0.05, 0.15

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no public measurements next to the repository")


@cache
def measured() -> tuple[tuple[str, MeasuredCollective], ...]:
    """Profile and row of every all-to-all that stays in a rack."""
    return tuple(
        (profile, row)
        for row in read_folder(FOLDER)
        for name, profile in PROFILES.items()
        if name in row.platform and row.operation == "all_to_all" and row.is_one_domain and row.num_ranks > 4
    )


def priced(profile: str, num_ranks: int, message_bytes: float) -> float:
    """Seconds in a pod of so many ranks."""
    network = Network(hardware=load_profile(profile), num_ranks=num_ranks, ranks_per_host=4, pod_size=num_ranks)
    return float(network.whole_seconds("all_to_all", "all", np.array([message_bytes])).seconds[0])


def errors(least_bytes: float) -> Iterator[float]:
    """Relative errors of the prices of messages from a size on."""
    for profile, row in measured():
        if row.message_bytes >= least_bytes:
            yield priced(profile, row.num_ranks, row.message_bytes) / row.seconds - 1


def test_every_size_of_a_pod_was_measured() -> None:
    assert {row.num_ranks for _, row in measured()} >= {8, 16, 18, 32, 64}
    assert {profile for profile, _ in measured()} == set(PROFILES.values())


def test_large_messages_are_within_15_percent() -> None:
    found = np.abs(list(errors(64 * MIB)))
    assert len(found) > 80
    assert found.max() < EVERY


def test_half_of_all_messages_are_within_5_percent() -> None:
    found = np.abs(list(errors(MIB)))
    assert np.median(found) < HALF
    assert np.mean(found < EVERY) > 0.8


@pytest.mark.parametrize("num_ranks", [36, 72])
def test_pods_that_were_not_measured_are_like_18_ranks(num_ranks: int) -> None:
    """As far from a power of two: schedules of all-to-alls leave as much idle, and bus bandwidths are alike."""
    rows = [(profile, row) for profile, row in measured() if row.num_ranks == 18 and row.message_bytes >= 256 * MIB]
    assert rows
    for profile, row in rows:
        of_18 = row.message_bytes * (17 / 18) / row.seconds
        size = row.message_bytes
        found = size * (num_ranks - 1) / num_ranks / priced(profile, num_ranks, size)
        assert found == pytest.approx(of_18, rel=EVERY), (profile, size)
