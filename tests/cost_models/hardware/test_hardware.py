"""Hardware values: read-only, checked, overridable, never guessing."""

import pytest

from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Curve, Quantity
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence
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


@pytest.mark.parametrize(
    ("sizes", "rates", "num_ranks"),
    [
        ((), (), 8),  # no point
        ((1.0, 2.0), (1.0,), 8),  # a rate short
        ((2.0, 1.0), (1.0, 1.0), 8),  # falling sizes
        ((0.0, 1.0), (1.0, 1.0), 8),  # an empty message
        ((1.0, float("inf")), (1.0, 1.0), 8),
        ((1.0, 2.0), (1.0, float("nan")), 8),
        ((1.0, 2.0), (1.0, 0.0), 8),
        ((1.0,), (1.0,), 1),  # nobody to talk to
    ],
)
def test_broken_curves_are_rejected(sizes: tuple[float, ...], rates: tuple[float, ...], num_ranks: int) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Curve(
            message_bytes=sizes,
            bus_bytes_per_second=rates,
            num_ranks=num_ranks,
            evidence=Evidence.MEASURED,
            source="a test",
        )


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
    assert changed.intra_host_curves == machine.intra_host_curves


def test_a_given_bandwidth_replaces_the_measured_curves() -> None:
    machine = load_profile("dgx-h100-80g")
    name = "intra_host_bytes_per_second"
    assert machine.intra_host_curves
    assert not machine.with_overrides({name: 1e11}, {name: "bytes_per_second"}).intra_host_curves


def test_numbers_cannot_be_changed_in_place() -> None:
    with pytest.raises(TypeError):
        load_profile("custom").numbers["hbm_bytes"] = None  # type: ignore[index]


def test_a_recorded_copy_reports_which_numbers_were_read() -> None:
    original = load_profile("dgx-h100-80g")
    copy, read = original.recorded()
    assert copy.has("hbm_bytes")
    assert read == set()
    assert copy.quantity("hbm_bytes", needed_for="a test") == original.numbers["hbm_bytes"]
    assert copy.intra_host_curves["alltoall"] == original.intra_host_curves["alltoall"]
    assert copy.numbers.get("no_such_number") is None
    assert read == {"hbm_bytes", "alltoall_curve"}
