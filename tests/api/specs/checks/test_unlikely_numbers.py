"""Another unit than the one that is asked for: told before anything is solved, and no error."""

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.hardware.usual_numbers import is_unlikely, usual_range
from planner.errors import Issue
from tests.support.service.specs import raw, tiny


def warned(profile: str = "dgx-h100-80g", **numbers: object) -> list[Issue]:
    hardware = {"profile": profile, "num_hosts": 1, "ranks_per_host": 2, "overrides": numbers}
    return [one for one in parse_spec(raw(tiny(hardware=hardware))).warnings if one.code == "unlikely-number"]


@pytest.mark.parametrize(
    ("name", "value", "usual", "hint"),
    [
        ("hbm_bytes", 80, "80.0 GB", "if 80.0 GB is meant, write 80000000000: the unit is bytes"),
        ("hbm_bytes", 80e12, "80.0 GB", "if 80.0 GB is meant, write 80000000000: the unit is bytes"),
        (
            "hbm_bytes_per_second",
            3.35,
            "2.6 TB/s",
            "if 3.4 TB/s is meant, write 3350000000000: the unit is bytes per second",
        ),
        ("intra_host_latency_seconds", 10.6, "10.6 us", "if 10.6 us is meant, write 1.06e-05: the unit is seconds"),
        ("ssd_reads_per_second", 1, "919000", "if 1e+06 operations per second is meant, write 1000000: the unit"),
        ("ddr_bytes", 1e18, "250.0 GB", "if 1.0 TB is meant, write 1000000000000: the unit is bytes"),
    ],
)
def test_what_no_such_hardware_has_is_reported_with_what_was_probably_meant(
    name: str, value: float, usual: str, hint: str
) -> None:
    (found,) = warned(**{name: value})
    assert (found.severity, found.pointer) == ("warning", f"/hardware/overrides/{name}")
    assert found.message.startswith(f"{name} is {value:g} ")
    assert f"and the profile dgx-h100-80g has {usual}" in found.message
    assert found.hint.startswith(hint)


def test_memory_of_single_ranks_is_compared_like_that_of_all() -> None:
    (found,) = warned(hbm_bytes_by_rank=[80e9, 80.0])
    assert found.pointer == "/hardware/overrides/hbm_bytes_by_rank"
    assert found.message.startswith("hbm_bytes_by_rank is 80 bytes, and ")


def test_other_hardware_of_the_kind_is_likely() -> None:
    assert warned(hbm_bytes=2e9, hbm_bytes_per_second=8e12, ddr_bytes=0) == []


def test_a_number_that_a_profile_lacks_is_compared_with_all_profiles() -> None:
    names = ("intra_host_bytes_per_second", "host_link_bytes_per_second", "ddr_bytes_per_second", "ddr_bytes")
    rates = dict.fromkeys(names, 5e10)
    assert warned("custom", hbm_bytes=16e9, hbm_bytes_per_second=1e12, **rates) == []
    slips = warned("custom", hbm_bytes=80, hbm_bytes_per_second=3350, **rates)
    assert [one.hint.partition(", ")[0] for one in slips] == ["if 80.0 GB is meant", "if 3.4 TB/s is meant"]
    assert "hbm_bytes is 80 bytes, and all profiles have 16.0 GB to 288.0 GB" in slips[0].message
    (slip,) = warned("cpu-xeon-vm", ddr_bytes=0, hbm_bytes_per_second=1e12, hbm_bytes=80e15)
    assert slip.pointer == "/hardware/overrides/hbm_bytes"


def test_no_number_of_a_profile_is_unlikely_for_another_one() -> None:
    for name in ("hbm_bytes", "ddr_bytes", "hbm_bytes_per_second", "intra_host_bytes_per_second"):
        usual = usual_range("custom", name)
        assert usual is not None
        values = [load_profile(one).numbers[name].value for one in profile_ids() if name in load_profile(one).numbers]
        assert len(values) > 10
        assert not any(is_unlikely(value, usual) for value in values)


def test_memory_that_no_table_fits_is_the_issue_and_not_each_table() -> None:
    table = {"name": "a", "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 1}
    hardware = {"profile": "dgx-h100-80g", "ranks_per_host": 2, "overrides": {"hbm_bytes": 80, "ddr_bytes": 0}}
    model = {"batch_size_per_rank": 8, "tables": [table, {**table, "name": "b"}]}
    with pytest.raises(RejectedDocument) as error:
        parse_spec(raw({"model": model, "hardware": hardware}))
    (issue,) = error.value.issues
    assert (issue.code, issue.pointer) == ("table-too-large", "/hardware/overrides/hbm_bytes")
    assert issue.message == (
        'hbm_bytes is 80 bytes, and the profile dgx-h100-80g has 80.0 GB; table "a" has 32.0 kB of weights and the'
        " whole cluster has 160 B of hbm and ddr"
    )
    assert issue.hint == "if 80.0 GB is meant, write 80000000000: the unit is bytes"


def test_a_number_that_no_unit_explains_has_no_other_unit() -> None:
    (found,) = warned(intra_host_latency_seconds=5e-324)
    assert found.hint == "give the number in seconds, or leave intra_host_latency_seconds out"
