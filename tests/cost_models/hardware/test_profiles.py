"""The profiles that ship: complete, valid, and equal to the public collection of numbers."""

import json
from typing import Any

import numpy as np
import pytest

from cost_models.errors import UnknownProfile
from cost_models.hardware.laws.shipped import load_law_set
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import InvalidProfile, load_profile, parse_profile, profile_ids
from cost_models.vocabulary import Evidence
from tests.support.paths import SHARED

COLLECTION = SHARED / "hardware.json"

GIGA, MICRO = 1e9, 1e-6
#: section and key of the collection -> our field, scale, whether it is given per host
FIELD_OF: dict[tuple[str, str], tuple[str, float, bool]] = {
    ("device", "hbm_gb"): ("hbm_bytes", GIGA, False),
    ("device", "hbm_peak_gbps"): ("hbm_peak_bytes_per_second", GIGA, False),
    ("device", "hbm_stream_gbps"): ("hbm_stream_bytes_per_second", GIGA, False),
    ("device", "hbm_gather_gbps"): ("hbm_bytes_per_second", GIGA, False),
    ("host", "ddr_gb_per_node"): ("ddr_bytes", GIGA, True),
    ("host", "ddr_peak_gbps_per_node"): ("ddr_peak_bytes_per_second", GIGA, True),
    ("host", "ddr_achieved_gbps_per_node"): ("ddr_stream_bytes_per_second", GIGA, True),
    ("host", "ddr_gather_gbps_per_node"): ("ddr_bytes_per_second", GIGA, True),
    ("host", "pcie_peak_gbps"): ("host_link_peak_bytes_per_second", GIGA, False),
    ("host", "h2d_gbps"): ("host_link_bytes_per_second", GIGA, False),
    ("host", "d2h_gbps"): ("host_link_return_bytes_per_second", GIGA, False),
    ("host", "nvme_gb_per_node"): ("ssd_bytes", GIGA, True),
    ("host", "nvme_read_gbps_per_node"): ("ssd_bytes_per_second", GIGA, True),
    ("intra_node", "link_peak_gbps"): ("intra_host_peak_bytes_per_second", GIGA, False),
    ("intra_node", "link_usable_gbps"): ("intra_host_usable_bytes_per_second", GIGA, False),
    ("intra_node", "p2p_gbps"): ("intra_host_point_to_point_bytes_per_second", GIGA, False),
    ("intra_node", "ici_bidir_gbps_per_chip"): ("intra_host_two_way_bytes_per_second", GIGA, False),
    ("intra_node", "alltoall_gbps"): ("intra_host_bytes_per_second", GIGA, False),
    ("inter_node", "nic_peak_gbps"): ("inter_host_peak_bytes_per_second", GIGA, False),
    ("inter_node", "achieved_p2p_gbps"): ("inter_host_point_to_point_bytes_per_second", GIGA, False),
    ("inter_node", "alltoall_gbps"): ("inter_host_bytes_per_second", GIGA, False),
    ("inter_node", "allreduce_alg_gbps"): ("inter_host_all_reduce_bytes_per_second", GIGA, False),
    ("latency", "intra_collective_us"): ("intra_host_latency_seconds", MICRO, False),
    ("latency", "inter_collective_us"): ("inter_host_latency_seconds", MICRO, False),
    ("latency", "p2p_us"): ("intra_host_point_to_point_latency_seconds", MICRO, False),
    ("latency", "inter_rack_us"): ("inter_host_latency_seconds", MICRO, False),
    ("latency", "network_static_us"): ("network_latency_seconds", MICRO, False),
}
SIZES = {"KiB": 2**10, "MiB": 2**20}
#: Machines whose collectives are measured in public, and whose memory is that of a machine of the collection.
CLOUDS_AND_SUCCESSORS = {
    "aws-p4de": "dgx-a100-80g",
    "aws-p5": "dgx-h100-80g",
    "azure-ndv4-a100-40g": "dgx-a100-80g",
    "dgx-b300-270g": "dgx-b200-180g",
    "gb300-nvl72": "gb200-nvl72",
    "gcp-a3-high": "dgx-h100-80g",
}
#: Numbers of the collection that the product corrects on purpose: estimates of 38 GB/s (0.8 of a card's rate) where
#: pairs of hosts were measured at 46.8 to 49.0, which is the law `h100-infiniband`. H200 hosts have the same cards.
CORRECTED = {
    ("dgx-h100-80g", "inter_host_bytes_per_second"): (47.6e9, "measured"),
    ("dgx-h200-141g", "inter_host_bytes_per_second"): (47.6e9, "estimated"),
    ("dgx-h100-80g", "hbm_bytes_per_second"): (2.57e12, "measured"),
    ("grand-teton-h100-roce", "hbm_bytes_per_second"): (2.57e12, "measured"),
    ("dgx-h200-141g", "hbm_bytes_per_second"): (3.6e12, "measured"),
}
NO_PRICE = {"sparsecores_per_chip"}  # counts, not quantities that a cost model reads


def is_of_dense_compute(name: str) -> bool:
    """Whether a number is of the dense part of a model, of which the collection says nothing."""
    return name.endswith("_flops_per_second") or name in ("dense_efficiency", "step_overhead_seconds")


def whole_collection() -> dict[str, Any]:
    """Read the collection, or skip."""
    if not COLLECTION.is_file():
        pytest.skip("no collection of hardware numbers next to the repository (expected shared/hardware.json)")
    found: dict[str, Any] = json.loads(COLLECTION.read_text())
    return found


def collection() -> list[dict[str, Any]]:
    """The machines of the collection."""
    profiles: list[dict[str, Any]] = whole_collection()["profiles"]
    return profiles


def derived_of_storage(read_bytes_per_second: float) -> dict[str, tuple[float, str]]:
    """What a machine's read rate says of its drives: as many as needed of those that the collection knows.

    A TLC drive on PCIe 4.0 reads 6.8 GB/s, writes 4 GB/s and serves 1 million random reads of 4 KiB. Rounded to
    MB/s and to thousands.
    """
    (drive,) = [tier for tier in whole_collection()["storage_tiers"] if tier["id"] == "nand-tlc-nvme-gen4"]
    num_drives = read_bytes_per_second / (drive["read_gbps"]["v"] * GIGA)
    written = num_drives * drive["write_gbps"]["v"] * GIGA
    return {
        "ssd_write_bytes_per_second": (round(written, -6), "estimated"),
        "ssd_reads_per_second": (round(num_drives * drive["read_kiops"]["v"] * 1000, -3), "estimated"),
        "ssd_block_bytes": (drive["block_bytes"], "estimated"),
    }


def test_every_machine_of_the_collection_is_a_profile() -> None:
    others = {
        "torchrec-default",
        "zionex-a100-40g-scm",
        "mi350x-8x-400g",
        "cpu-xeon-vm",
        "custom",
        *CLOUDS_AND_SUCCESSORS,
    }
    assert {entry["id"] for entry in collection()} | others == set(profile_ids())


#: What GPUs' embedding kernels take: from public measurements, not from the collection.
OF_KERNELS = {
    *("l2_bytes", "l2_bytes_per_second", "lookup_seconds", "repeated_lookup_seconds", "sequence_lookup_seconds"),
    *("bag_seconds", "index_lookup_seconds", "backward_lookup_seconds", "gradient_row_seconds"),
    *("update_bytes_per_second", "update_row_seconds", "update_column_seconds", "moment_row_seconds"),
    *("cache_lookup_seconds", "kernel_launch_seconds", "forward_start_seconds", "backward_start_seconds"),
    *(f"host_link_{use}_bytes_per_second" for use in ("gather", "update", "cache")),
}


def test_every_gpu_states_what_its_kernels_take() -> None:
    """Of GPUs of which kernels were measured some numbers are; of all others every number is an estimate."""
    measured = set()
    for profile in profile_ids():
        machine = load_profile(profile)
        stated = machine.numbers.keys() & OF_KERNELS
        if machine.family != "gpu" or profile == "torchrec-default":
            assert not stated - {"kernel_launch_seconds"}, profile
            continue
        starts = {"forward_start_seconds", "backward_start_seconds"}
        assert starts | {"l2_bytes", "l2_bytes_per_second", "update_bytes_per_second"} <= stated, profile
        for name in stated - {"l2_bytes"}:
            number = machine.numbers[name]
            assert number.relative_error is not None, (profile, name)
            if number.evidence is Evidence.MEASURED:
                assert number.rows is not None, (profile, name)
                measured.add(profile)
            else:
                assert number.evidence is Evidence.ESTIMATED, (profile, name)
    assert measured == {
        *("dgx-h100-80g", "grand-teton-h100-roce", "aws-p5", "gcp-a3-high"),
        *("zionex-a100-40g", "zionex-a100-40g-scm", "azure-ndv4-a100-40g"),
        *("dgx-h200-141g", "mi350x-8x-400g"),
    }


def test_every_number_equals_the_collection() -> None:
    compared = 0
    for entry in collection():
        machine = load_profile(entry["id"])
        assert machine.ranks_per_host == entry["devices_per_node"]
        assert machine.family == entry["family"]
        expected: dict[str, tuple[float, str]] = {}
        for section in ("device", "host", "intra_node", "inter_node", "latency"):
            for key, value in entry.get(section, {}).items():
                if key == "curves" or key in NO_PRICE:
                    continue
                field, scale, per_host = FIELD_OF[section, key]
                number = value["v"] * scale / (entry["devices_per_node"] if per_host else 1)
                if number > 0 or FIELDS[field].may_be_zero:  # a rate of zero means: no such link
                    expected[field] = (number, value["e"])
        for (profile, field), corrected in CORRECTED.items():
            if profile == entry["id"]:
                # else the collection has been corrected itself
                assert expected[field] in ((38e9, "estimated"), (2.68e12, "estimated"), (3.84e12, "estimated"))
                expected[field] = corrected
        # Gathers from host memory run at the stream rate where nothing better is known.
        expected.setdefault("ddr_bytes_per_second", expected["ddr_stream_bytes_per_second"])
        if "ssd_bytes_per_second" in expected:
            expected |= derived_of_storage(expected["ssd_bytes_per_second"][0])
        if entry["id"] == "inference-6card-m2":  # an estimate of ours, which the profile says
            expected["host_link_message_seconds"] = (1e-5, "estimated")
        found_names = {name for name in machine.numbers if not is_of_dense_compute(name)}
        assert found_names - OF_KERNELS == expected.keys(), entry["id"]
        for field, (number, evidence) in expected.items():
            found = machine.numbers[field]
            assert found.value == pytest.approx(number, rel=1e-12), (entry["id"], field)
            assert found.evidence.label == evidence, (entry["id"], field)
            compared += 1
    assert compared > 250


def test_corrected_numbers_are_those_of_the_law_that_shows_them() -> None:
    law = load_law_set("h100-infiniband").hosts_law("all_to_all")
    assert law is not None
    for profile, field in CORRECTED:
        if not field.startswith("inter_host_"):
            continue
        assert load_profile(profile).numbers[field].value == pytest.approx(law.nic_bytes_per_second, rel=0.01)


def test_a_host_with_storage_class_memory_is_another_with_two_sockets_of_it() -> None:
    """Eight ranks share two sockets of the collection's persistent memory, of which every number is an estimate."""
    machine, bare = load_profile("zionex-a100-40g-scm"), load_profile("zionex-a100-40g")
    assert {name: number for name, number in machine.numbers.items() if not name.startswith("scm_")} == bare.numbers
    (memory,) = [tier for tier in whole_collection()["storage_tiers"] if tier["id"] == "optane-pmem-byte-addressable"]
    expected = {
        "scm_bytes": memory["capacity_gb"]["v"] * GIGA * 2 / 8,
        "scm_bytes_per_second": memory["read_gbps"]["v"] * GIGA * 2 / 8,
        "scm_write_bytes_per_second": memory["write_gbps"]["v"] * GIGA * 2 / 8,
        "scm_block_bytes": memory["block_bytes"],
        "scm_latency_seconds": memory["read_latency_us"]["v"] * MICRO,
    }
    found = {name: number for name, number in machine.numbers.items() if name.startswith("scm_")}
    assert {name: number.value for name, number in found.items()} == pytest.approx(expected)
    assert {number.evidence.label for number in found.values()} == {memory["read_gbps"]["e"]} == {"estimated"}
    assert all("recalled" in number.source for number in found.values()) is not memory["read_gbps"]["seen"]


def test_the_virtual_machine_is_measured_for_two_ranks_on_its_host() -> None:
    """Its numbers are one rank's while both work; gloo adds up far slower than it sends."""
    machine = load_profile("cpu-xeon-vm")
    assert machine.ranks_per_host == 2
    assert {number.evidence for name, number in machine.numbers.items() if name != "hbm_bytes"} == {Evidence.MEASURED}
    message = np.array([2.0**24])
    pace = {operation: law.pace(message, 2)[0] for operation, law in machine.domain_laws.items()}
    assert pace["reduce_scatter"] > pace["all_gather"] > pace["all_to_all"]
    for law in machine.domain_laws.values():
        assert (law.basis.ranks, law.basis.evidence) == ((2,), Evidence.MEASURED)


def test_laws_meet_the_curves_of_the_collection() -> None:
    """Bus bandwidths by message size, half precision, of one host each: what laws were fitted to and more."""
    errors = []
    for entry in collection():
        machine = load_profile(entry["id"])
        for name, raw in entry["intra_node"].get("curves", {}).items():
            law = machine.domain_laws[{"alltoall": "all_to_all"}.get(name, name)]
            for size, rate in raw["busbw_gbps_by_message"].items():
                message = np.array([float(size[:-3]) * SIZES[size[-3:]]])
                errors.append(abs(law.bus_bytes_per_second(message, raw["ranks"])[0] / (rate * GIGA) - 1))
    assert len(errors) == 140  # five machines, four collectives, seven sizes
    assert np.mean(errors) < 0.08
    assert np.quantile(errors, 0.9) < 0.2  # NCCL changes with its releases


@pytest.mark.parametrize(("profile", "base"), CLOUDS_AND_SUCCESSORS.items())
def test_clouds_and_successors_differ_from_their_base_in_what_they_say(profile: str, base: str) -> None:
    machine, other = load_profile(profile), load_profile(base)
    assert machine.domain_laws
    changed = {name for name, number in machine.numbers.items() if number != other.numbers.get(name)}
    allowed = ("hbm_", "ddr_bytes", "inter_host_")
    assert changed
    assert all(name.startswith(allowed) or name in OF_KERNELS or is_of_dense_compute(name) for name in changed)
    assert machine.ranks_per_host == other.ranks_per_host


@pytest.mark.parametrize(("profile", "base"), CLOUDS_AND_SUCCESSORS.items())
def test_own_numbers_that_were_recalled_are_estimates(profile: str, base: str) -> None:
    """A data sheet that was not read vouches for nothing."""
    machine, other = load_profile(profile), load_profile(base)
    own = [number for name, number in machine.numbers.items() if number != other.numbers.get(name)]
    recalled = [number for number in own if "recalled" in number.source]
    assert all(number.evidence is Evidence.ESTIMATED for number in recalled)
    assert recalled


@pytest.mark.parametrize("profile", ["dgx-h200-141g", "azure-ndv4-a100-40g"])
def test_laws_of_another_machine_are_estimates_with_wider_intervals(profile: str) -> None:
    machine = load_profile(profile)
    level, borrowed = ("hosts", "h100-infiniband") if machine.hosts_laws else ("domain", "a100-nvswitch")
    laws = machine.hosts_laws if level == "hosts" else machine.domain_laws
    own = {law.operation: law for law in reversed(getattr(load_law_set(borrowed), level))}
    for name, law in laws.items():
        assert law.basis.evidence is Evidence.ESTIMATED
        assert law.intervals.sizes[0].upper == pytest.approx(1.25 * own[name].intervals.sizes[0].upper)


def test_recalled_numbers_say_so() -> None:
    for entry in collection():
        machine = load_profile(entry["id"])
        gather = entry["device"].get("hbm_gather_gbps")
        if gather is not None:
            recalled = not gather["seen"] and gather["s"] != "EST"
            assert ("recalled" in machine.numbers["hbm_bytes_per_second"].source) == recalled, entry["id"]


@pytest.mark.parametrize("profile", profile_ids())
def test_every_profile_loads_and_names_its_sources(profile: str) -> None:
    machine = load_profile(profile)
    assert machine.profile == profile
    assert machine.description
    for name, number in machine.numbers.items():
        assert number.unit == FIELDS[name].unit
        assert len(number.source) > 10  # words, not a key


def test_torchrec_default_by_hand() -> None:
    machine = load_profile("torchrec-default")
    # 897, 600 and 12.5 "GB/s" of TorchRec are GiB/s
    assert machine.numbers["hbm_bytes_per_second"].value == 897 * 1024**3
    assert machine.numbers["intra_host_bytes_per_second"].value == 600 * 1024**3
    assert machine.numbers["inter_host_bytes_per_second"].value == 12.5 * 1024**3
    assert machine.numbers["hbm_bytes"].value == 32 * 1024**3
    assert {number.evidence for number in machine.numbers.values()} == {Evidence.ESTIMATED}
    assert machine.ranks_per_host == 8


def test_custom_has_no_numbers_and_takes_them_all() -> None:
    machine = load_profile("custom")
    assert not machine.numbers
    full = machine.with_overrides(dict.fromkeys(FIELDS, 1.0), {name: entry.unit for name, entry in FIELDS.items()})
    assert full.numbers.keys() == FIELDS.keys()
    assert {number.evidence for number in full.numbers.values()} == {Evidence.GIVEN}


@pytest.mark.parametrize("profile", ["dgx", "", "../hardware", "DGX-H100-80G"])
def test_unknown_profiles_raise_and_name_the_known(profile: str) -> None:
    with pytest.raises(UnknownProfile, match="dgx-h100-80g"):
        load_profile(profile)


def document(**changes: Any) -> dict[str, Any]:
    """Build a small valid profile document with changes."""
    number = {"value": 1e12, "unit": "bytes_per_second", "evidence": "measured", "source": "a test bench"}
    base = {
        "id": "x",
        "family": "gpu",
        "description": "a test machine",
        "ranks_per_host": 8,
        "numbers": {"hbm_bytes_per_second": number},
        "collective_laws": ["h100-nvswitch"],
    }
    return base | changes


NUMBER = document()["numbers"]["hbm_bytes_per_second"]


def test_a_valid_document_is_read() -> None:
    machine = parse_profile(document(), expected_id="x")
    assert machine.numbers["hbm_bytes_per_second"].value == 1e12
    assert machine.domain_laws["all_to_all"].basis.ranks == (2, 4, 8)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "to be an object"),
        (document(id="y"), "Expected id x"),
        (document(colour="red"), "unknown members colour"),
        ({"id": "x"}, "lacks description, family"),
        (document(family="abacus"), "Expected family"),
        (document(ranks_per_host=0), "ranks_per_host"),
        (document(ranks_per_host=True), "ranks_per_host"),
        (document(description=""), "description"),
        (document(devices="NVIDIA H200"), "devices to be a list"),
        (document(devices=[""]), "devices to be a text"),
        (document(numbers=[]), "numbers"),
        (document(numbers={"hbm_megabytes": NUMBER}), "Unknown number hbm_megabytes"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"unit": "bytes"}}), "in bytes_per_second"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"value": "1"}}), "to be a number"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"value": True}}), "to be a number"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"value": -1}}), ">= 0"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"value": 0}}), "rate > 0"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"evidence": "heard"}}), "Expected evidence"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"source": ""}}), "source"),
        (document(numbers={"hbm_bytes_per_second": NUMBER | {"seen": True}}), "unknown members seen"),
        (document(collective_laws=["h100-carrier-pigeon"]), "No collective_laws h100-carrier-pigeon ship"),
        (document(laws_of_kind=[7]), "laws_of_kind to be a text"),
        (document(domain_ranks=12), "multiple of ranks_per_host"),
        (document(intra_host_curves={}), "unknown members intra_host_curves"),
    ],
)
def test_broken_documents_are_refused(broken: object, message: str) -> None:
    with pytest.raises(InvalidProfile, match=message):
        parse_profile(broken, expected_id="x")


def test_a_profile_is_read_once() -> None:
    """Every spec names one, and reading it would take most of the time that a small spec takes."""
    assert load_profile("dgx-h100-80g") is load_profile("dgx-h100-80g")
