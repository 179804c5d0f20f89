"""What happens to ids around their exchange: hand-computed."""

import numpy as np
import pytest

from cost_models.analytic.id_kernels import add_id_kernels
from cost_models.analytic.tally import Tally
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.learned.ranks.analytic import analytic_seconds
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Evidence, Phase, Scheme
from tests.support.cost_models.shard_work import gpu_hardware, hardware, shard_work

BUCKETIZE, INDEX = 2e-8, 4e-11


def seconds(work: ShardWork, machine: Hardware) -> Floats:
    tally = Tally(work.num_shards)
    add_id_kernels(tally, work, machine)
    return tally.result().seconds[:, Phase.INPUT_COMM]


def on_processor(**numbers: float) -> Hardware:
    return hardware(family="cpu", ddr_bytes_per_second=1e10, bucketize_lookup_seconds=BUCKETIZE, **numbers)


def test_each_rank_finds_the_ranks_of_its_own_ids_where_rows_are_cut() -> None:
    work = shard_work(
        scheme=np.array([Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.TABLE_WISE, Scheme.DATA_PARALLEL]),
        row_shards=np.array([8, 8, 1, 1]),
        batch_ids=1000.0,
        lookups=np.array([5000.0, 1000.0, 8000.0, 1000.0]),  # not what counts: ids of the batch, wherever they go
    )
    assert seconds(work, on_processor()) == pytest.approx([1000 * BUCKETIZE, 1000 * BUCKETIZE, 0, 0])


def test_column_ranges_of_a_grid_are_bucketized_apart() -> None:
    grid = shard_work(scheme=Scheme.GRID_SHARD, row_shards=8, shard_columns=np.array([64, 64]), batch_ids=1000.0)
    assert seconds(grid, on_processor()).sum() == pytest.approx(2 * 1000 * BUCKETIZE)


def test_one_rank_bucketizes_nothing() -> None:
    alone = shard_work(num_ranks=1, ranks_per_host=1, scheme=Scheme.ROW_WISE, batch_ids=1000.0)
    assert not seconds(alone, on_processor()).any()


def test_hardware_without_the_number_adds_nothing() -> None:
    work = shard_work(scheme=Scheme.ROW_WISE, row_shards=8)
    assert not seconds(work, hardware(family="cpu", ddr_bytes_per_second=1e10)).any()


def test_a_gpu_checks_and_permutes_ids_that_arrive() -> None:
    work = shard_work(scheme=np.array([Scheme.TABLE_WISE, Scheme.DATA_PARALLEL]), lookups=1000.0)
    assert seconds(work, gpu_hardware()) == pytest.approx([1000 * INDEX, 0])


def test_measured_lookups_leave_the_ids_to_this_law() -> None:
    """A learned model prices lookups and exchanges, which begin after and end before what happens here."""
    work = shard_work(scheme=Scheme.ROW_WISE, row_shards=8, batch_ids=1000.0)
    learned = np.zeros(1, dtype=np.bool_)
    found = analytic_seconds(work, on_processor(), learned, ())
    assert found.seconds[0, Phase.INPUT_COMM] == pytest.approx(1000 * BUCKETIZE)
    assert found.evidence[0, Phase.INPUT_COMM] == Evidence.GIVEN
    assert np.count_nonzero(found.seconds) == 1


def test_the_number_is_measured_where_a_profile_has_it() -> None:
    stated = {profile for profile in profile_ids() if load_profile(profile).has("bucketize_lookup_seconds")}
    assert stated == {"cpu-xeon-vm"}
    [number] = [load_profile(profile).numbers["bucketize_lookup_seconds"] for profile in stated]
    assert number.evidence is Evidence.MEASURED
