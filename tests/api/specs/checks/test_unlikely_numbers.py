"""Another unit than the one that is asked for: told before anything is solved, and no error."""

import pytest

from api.specs.parse import parse_spec
from planner.errors import Issue
from tests.support.service.specs import raw, tiny


def warned(profile: str = "dgx-h100-80g", **numbers: float) -> list[Issue]:
    hardware = {"profile": profile, "num_hosts": 1, "ranks_per_host": 2, "overrides": numbers}
    return [one for one in parse_spec(raw(tiny(hardware=hardware))).warnings if one.code == "unlikely-number"]


@pytest.mark.parametrize(
    ("name", "value", "usual", "unit"),
    [
        ("hbm_bytes", 80e12, "8e+10", "bytes"),
        ("hbm_bytes_per_second", 3.35e6, "2.57e+12", "bytes per second"),
        ("ddr_bytes", 2e16, "", "bytes"),
        ("intra_host_latency_seconds", 10.6, "1.06e-05", "seconds"),
    ],
)
def test_what_no_such_hardware_has_is_reported(name: str, value: float, usual: str, unit: str) -> None:
    (found,) = warned(**{name: value})
    assert (found.severity, found.pointer) == ("warning", f"/hardware/overrides/{name}")
    assert f"{name} is {value:g}, and the profile dgx-h100-80g has {usual}" in found.message
    assert found.hint.startswith(f"give it in {unit}, or ")


def test_other_hardware_of_the_kind_is_likely() -> None:
    assert warned(hbm_bytes=2e9, hbm_bytes_per_second=8e12, ddr_bytes=0) == []


def test_a_profile_of_ones_own_is_compared_with_nothing() -> None:
    rates = dict.fromkeys(("hbm_bytes_per_second", "intra_host_bytes_per_second", "host_link_bytes_per_second"), 1.0)
    assert warned("custom", hbm_bytes=1e15, **rates) == []
