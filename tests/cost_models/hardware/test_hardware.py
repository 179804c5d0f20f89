"""Hardware values: read-only, checked, overridable, never guessing."""

import pytest

from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Quantity
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence
from tests.support.cost_models.laws import domain_law, laws
from tests.support.cost_models.shard_work import hardware


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (-1.0, "bytes"),
        (float("inf"), "bytes"),
        (float("nan"), "bytes"),
        (0.0, "bytes_per_second"),  # would price everything at infinity
    ],
)
def test_numbers_that_no_hardware_has_are_rejected(value: float, unit: str) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Quantity(value=value, unit=unit, evidence=Evidence.GIVEN, source="a test")


def test_zero_bytes_and_zero_latency_are_facts() -> None:
    assert hardware(hbm_bytes=0.0, intra_host_latency_seconds=0.0).has("hbm_bytes")


def test_a_missing_number_says_which_and_what_for() -> None:
    with pytest.raises(MissingHardwareNumber, match='profile "test" has no ddr_bytes, needed for a test') as raised:
        hardware().quantity("ddr_bytes", needed_for="a test")
    assert "hardware.overrides.ddr_bytes" in raised.value.hint


def test_a_collecting_copy_names_every_missing_number_instead_of_raising() -> None:
    original = hardware(hbm_bytes=1e9)
    copy, missing = original.collecting_missing()
    for name in ("ddr_bytes", "hbm_bytes", "ssd_bytes", "ddr_bytes"):
        copy.quantity(name, needed_for=f"what {name} is for")
    assert list(missing) == ["ddr_bytes", "ssd_bytes"]
    assert "needed for what ssd_bytes is for" in str(missing["ssd_bytes"])
    assert not copy.has("ddr_bytes")
    assert copy == original
    with pytest.raises(MissingHardwareNumber):
        original.quantity("ddr_bytes", needed_for="a test")


def test_given_numbers_replace_the_profiles() -> None:
    machine = load_profile("dgx-h100-80g")
    changed = machine.with_overrides({"hbm_bytes": 1e9}, {"hbm_bytes": "bytes"})
    assert changed.numbers["hbm_bytes"].value == 1e9
    assert changed.numbers["hbm_bytes"].evidence is Evidence.GIVEN
    assert machine.numbers["hbm_bytes"].value == 80e9
    assert (changed.domain_laws, changed.hosts_laws) == (machine.domain_laws, machine.hosts_laws)


@pytest.mark.parametrize(
    ("name", "replaced", "left"),
    [
        ("intra_host_bytes_per_second", "domain_laws", "hosts_laws"),
        ("inter_host_bytes_per_second", "hosts_laws", "domain_laws"),
    ],
)
def test_a_given_bandwidth_replaces_the_laws_of_its_links(name: str, replaced: str, left: str) -> None:
    machine = load_profile("dgx-h100-80g")
    changed = machine.with_overrides({name: 1e11}, {name: "bytes_per_second"})
    assert getattr(machine, replaced)
    assert not getattr(changed, replaced)
    assert getattr(changed, left) == getattr(machine, left)


def test_laws_are_shown_as_bus_bandwidths() -> None:
    machine = hardware(laws=laws(domain_law()))
    curve = machine.intra_host_curves["alltoall"]
    assert (curve.num_ranks, curve.evidence) == (8, Evidence.ESTIMATED)  # 1 GiB is more than the 1 GB measured
    size = curve.message_bytes[-1]
    assert curve.bus_bytes_per_second[-1] == pytest.approx(size * 7 / 8 / (37e-6 + size * 7 / 8 * 1e-11))


def test_numbers_cannot_be_changed_in_place() -> None:
    with pytest.raises(TypeError):
        load_profile("custom").numbers["hbm_bytes"] = None  # type: ignore[index]


def test_a_recorded_copy_reports_which_numbers_were_read() -> None:
    original = load_profile("dgx-h100-80g")
    copy, read = original.recorded()
    assert copy.has("hbm_bytes")
    assert read == set()
    assert copy.quantity("hbm_bytes", needed_for="a test") == original.numbers["hbm_bytes"]
    assert copy.domain_laws["all_to_all"] == original.domain_laws["all_to_all"]
    assert copy.hosts_laws["all_gather"] == original.hosts_laws["all_gather"]
    assert copy.numbers.get("no_such_number") is None
    assert read == {"hbm_bytes", "all_to_all_law", "all_gather_hosts_law"}
