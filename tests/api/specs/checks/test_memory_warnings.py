"""Models larger than the accelerators' memory: what will happen is said before anything is solved."""

from api.specs.parse import parse_spec
from planner.errors import Issue
from tests.support.planning.builders import SCM
from tests.support.service.specs import raw, tiny

#: Two ranks of 1 MB and a host that nobody described.
CUSTOM = {
    "profile": "custom",
    "num_hosts": 1,
    "ranks_per_host": 2,
    "overrides": {
        "hbm_bytes": 1e6,
        "hbm_bytes_per_second": 2e12,
        "intra_host_bytes_per_second": 3e11,
        "host_link_bytes_per_second": 3e10,
    },
}


def warned(
    *,
    constraints: object = None,
    cost_model: str = "roofline",
    access: object = None,
    runtime: str = "torchrec",
    **numbers: float,
) -> Issue:
    """The warning about a table of 50,000 rows of 8 columns: 1.8 MB with state, where 1.7 MB are free."""
    hardware = {**CUSTOM, "overrides": CUSTOM["overrides"] | numbers}  # type: ignore[operator]
    table = {"name": "a", "num_embeddings": 50_000, "embedding_dim": 8, "pooling_factor": 1.0}
    table |= {} if constraints is None else {"constraints": constraints}  # type: ignore[dict-item]
    table |= {} if access is None else {"access": access}  # type: ignore[dict-item]
    spec = tiny(model__tables=[table], hardware=hardware, cost_model=cost_model, runtime=runtime)
    found = [one for one in parse_spec(raw(spec)).warnings if one.code == "larger-than-memory"]
    return found[0] if found else Issue(code="", pointer="", message="")


def test_host_memory_that_will_be_considered_is_named() -> None:
    found = warned(ddr_bytes=1e9, ddr_bytes_per_second=5e10)
    assert (found.severity, found.pointer) == ("warning", "/model/tables")
    assert "at least 1.8 MB, and all ranks together have 1.7 MB of hbm" in found.message
    assert "fused_uvm and fused_uvm_caching will be considered" in found.message


def test_storage_class_memory_counts_where_the_runtime_can_use_it() -> None:
    """60 kB of host memory on two ranks do not make up for the missing 100 kB; 2 GB of storage-class memory do."""
    numbers = {"ddr_bytes": 3e4, "ddr_bytes_per_second": 5e10, **SCM, "scm_bytes": 1e9}
    found = warned(runtime="generic", **numbers).message
    assert "no plan" not in found
    assert found.endswith("of ddr and 2.0 GB of scm")
    assert warned(runtime="torchrec", **numbers).message.endswith("of ddr: there will be no plan")


def test_accesses_are_asked_for_where_they_are_not_known() -> None:
    host = {"ddr_bytes": 1e9, "ddr_bytes_per_second": 5e10}
    assert warned(**host).hint.startswith("say how these tables are looked up (access)")
    known = warned(access={"zipf_alpha": 1.05}, **host)
    assert known.code
    assert "access" not in known.hint


def test_what_cannot_have_a_plan_is_stated_to_have_none() -> None:
    assert "there will be no plan" in warned().message
    assert "972 B of ddr: there will be no plan" in warned(ddr_bytes=512, ddr_bytes_per_second=5e10).message
    fused = {"compute_kernels": ["fused"]}
    stays = warned(ddr_bytes=1e9, ddr_bytes_per_second=5e10, constraints=fused)
    assert "there will be no plan" in stays.message
    assert "ddr" not in stays.message


def test_the_rate_that_host_memory_lacks_is_named_with_its_place() -> None:
    assert warned(ddr_bytes=1e9).hint.endswith("give /hardware/overrides/ddr_bytes_per_second")


def test_what_fits_or_may_lie_elsewhere_is_no_reason_to_warn() -> None:
    assert not warned(hbm_bytes=2e6).code
    assert not warned(constraints={"data_types": ["fp32", "fp16"]}).code
    on_host = {"compute_kernels": ["fused_uvm"]}
    assert not warned(ddr_bytes=1e9, ddr_bytes_per_second=5e10, constraints=on_host).code
    # Nobody trains int8 with an optimizer that has state
    int8 = {"data_types": ["fp32", "int8"]}
    assert warned(ddr_bytes=1e9, ddr_bytes_per_second=5e10, constraints=int8).code
    # TorchRec counts other state than there is; its plans are held to the real one
    rates = {"inter_host_bytes_per_second": 4e10, "ddr_bytes_per_second": 5e10}
    assert warned(cost_model="torchrec", **rates).code
