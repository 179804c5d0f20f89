"""A spec whose hardware lacks a number is refused before it is solved, with every number named."""

import pytest

from api.specs.checks.hardware_numbers import check_hardware_numbers, cost_model_issue
from api.specs.issues import IssueCollector
from api.specs.parse import parse_evaluation, parse_spec
from cost_models.errors import MissingHardwareNumber, UnsupportedWork
from planner.errors import InvalidProblem
from planner.pipeline import plan
from tests.support.service.specs import raw, tiny

RATES = {"hbm_bytes_per_second": 1e12, "intra_host_bytes_per_second": 1e11, "inter_host_bytes_per_second": 1e10}


def custom(*names: str, num_hosts: int = 2, ranks_per_host: int = 2, **changes: object) -> dict[str, object]:
    """A spec on a custom machine that has some of the rates."""
    overrides = {"hbm_bytes": 8e10, **{name: RATES[name] for name in names}}
    hardware = {"profile": "custom", "num_hosts": num_hosts, "ranks_per_host": ranks_per_host, "overrides": overrides}
    return tiny(hardware=hardware, **changes)


def missing(spec: dict[str, object]) -> set[str]:
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    assert {issue.code for issue in caught.value.issues} == {"missing-hardware-number"}
    assert all(issue.hint for issue in caught.value.issues)
    return {issue.pointer.removeprefix("/hardware/overrides/") for issue in caught.value.issues}


@pytest.mark.parametrize("cost_model", ["roofline", "torchrec"])
def test_every_missing_number_is_named_at_once(cost_model: str) -> None:
    assert missing(custom(cost_model=cost_model)) == set(RATES)
    assert missing(custom("inter_host_bytes_per_second", cost_model=cost_model)) == {
        "hbm_bytes_per_second",
        "intra_host_bytes_per_second",
    }


@pytest.mark.parametrize("cost_model", ["roofline", "torchrec"])
def test_what_passes_has_every_number_that_its_solve_needs(cost_model: str) -> None:
    request = parse_spec(raw(custom(*RATES, cost_model=cost_model)))
    options = {"cost_model": request.cost_model, "partitioner": request.partitioner, "limits": request.limits}
    assert plan(request.problem, **options).plan is not None


def test_numbers_that_no_option_needs_may_be_missing() -> None:
    # One rank sends nothing; one host sends nothing to others.
    parse_spec(raw(custom("hbm_bytes_per_second", num_hosts=1, ranks_per_host=1)))
    parse_spec(raw(custom("hbm_bytes_per_second", "intra_host_bytes_per_second", num_hosts=1)))


def test_every_kind_of_table_is_looked_at() -> None:
    # The first table stays on host 0; only the second one may be cut over all ranks.
    spec = custom(
        "hbm_bytes_per_second",
        "intra_host_bytes_per_second",
        cost_model="torchrec",
        model__tables__0__constraints={"sharding_types": ["data_parallel"]},
        model__tables__1__constraints={"sharding_types": ["row_wise"]},
    )
    assert missing(spec) == {"inter_host_bytes_per_second"}


def test_the_least_constrained_table_of_a_kind_speaks_for_it() -> None:
    # The large table may not be cut over all ranks, the small one of the same kind may.
    pinned = {"ranks": [0]}
    narrow = parse_spec(raw(custom(*RATES, model__tables__0__constraints=pinned))).problem
    seen: list[set[int]] = []

    class Recorder:
        name, version, ledger = "recorder", "1", "exact"

        def __init__(self, model: object) -> None:
            self._model = model
            self.counted_phases = model.counted_phases

        def predict(self, work: object, hardware: object) -> object:
            seen.append(set(work.table_rows.tolist()))
            return self._model.predict(work, hardware)

    model = parse_spec(raw(custom(*RATES))).cost_model
    check_hardware_numbers(narrow, Recorder(model), IssueCollector())
    assert seen == [{500}]  # table b, priced once


def test_a_thousand_tables_are_priced_as_one() -> None:
    table = {"num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 1.0}
    spec = custom(*RATES, model__tables=[{"name": f"t{index}", **table} for index in range(1000)])
    request = parse_spec(raw(spec))
    priced: list[int] = []

    class Counter:
        name, version, ledger = "counter", "1", "exact"
        counted_phases = request.cost_model.counted_phases

        def predict(self, work: object, hardware: object) -> object:
            priced.append(work.num_shards)
            return request.cost_model.predict(work, hardware)

    check_hardware_numbers(request.problem, Counter(), IssueCollector())
    assert len(priced) == 1
    assert priced[0] < 100


def test_a_table_without_any_option_is_left_to_the_solve() -> None:
    # A sequence table cannot be table_row_wise: INFEASIBLE is an answer of the solve.
    spec = custom(model__tables__0__pooling="none", model__tables__1__pooling="none")
    for table in spec["model"]["tables"]:
        table["constraints"] = {"sharding_types": ["table_row_wise"]}
    assert parse_spec(raw(spec)).name == "tiny"


def test_groups_keep_their_meaning() -> None:
    # Tables that share a rank are not cut; apart ones are not cut over all ranks.
    parse_spec(raw(custom(*RATES, constraints={"same_rank": [["a", "b"]]})))
    parse_spec(raw(custom(*RATES, constraints={"apart": [["a", "b"]]})))


def test_an_evaluation_points_below_spec() -> None:
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 8}
    table = {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    body = {"spec": custom(), "plan": {"world_size": 4, "ranks_per_host": 2, "tables": [table]}}
    with pytest.raises(InvalidProblem) as caught:
        parse_evaluation(raw(body))
    assert "/spec/hardware/overrides/hbm_bytes_per_second" in {issue.pointer for issue in caught.value.issues}


def test_what_a_cost_model_refuses_has_a_place_and_a_way_out() -> None:
    lacking = cost_model_issue(MissingHardwareNumber("custom", "hbm_bytes_per_second", "gathers"), "/spec")
    assert (lacking.code, lacking.pointer) == (
        "missing-hardware-number",
        "/spec/hardware/overrides/hbm_bytes_per_second",
    )
    unknown = cost_model_issue(UnsupportedWork("roofline", "kernel fused_uvm"), "")
    assert (unknown.code, unknown.pointer) == ("unsupported-work", "/cost_model")
    assert unknown.hint


SCM = {"scm_bytes": 1e11, "scm_bytes_per_second": 1e10, "scm_write_bytes_per_second": 3e9}


def refused(overrides: dict[str, float], **changes: object) -> dict[str, str]:
    """Where a spec is refused, and why."""
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(tiny(hardware__overrides=overrides, **changes)))
    assert all(issue.hint for issue in caught.value.issues)
    return {issue.pointer: issue.message for issue in caught.value.issues}


@pytest.mark.parametrize("runtime", ["torchrec", "generic"])
@pytest.mark.parametrize("name", ["scm_bytes_per_second", "scm_write_bytes_per_second"])
def test_storage_class_memory_says_how_fast_it_is(runtime: str, name: str) -> None:
    """Whether or not a table may lie there: 1e11 B of which nobody knows what they cost are a mistake."""
    without = {other: value for other, value in SCM.items() if other != name}
    (reported,) = refused(without, runtime=runtime).items()
    assert reported[0] == f"/hardware/overrides/{name}"
    assert "every rank has 100.0 GB of scm" in reported[1]
    (where,) = refused(SCM | {name: 0.0}, runtime=runtime)
    assert where == f"/hardware/overrides/{name}"
    parse_spec(raw(tiny(hardware__overrides={**without, "scm_bytes": 0}, runtime=runtime)))


def test_a_cost_model_without_a_price_of_storage_class_memory_is_refused_where_rows_may_lie_there() -> None:
    found = refused(SCM, runtime="generic", cost_model="torchrec")
    assert list(found) == ["/cost_model"]
    assert "no price of rows in scm" in found["/cost_model"]
    parse_spec(raw(tiny(hardware__overrides=SCM, cost_model="torchrec")))
    parse_spec(raw(tiny(hardware__overrides=SCM, runtime="generic")))


def test_a_table_counts_storage_class_memory_among_what_it_may_use() -> None:
    """512e9 B on two ranks of 80e9 B of HBM and 150e9 of DDR: 460e9 B are too little, and 30e9 of scm make up."""
    large = {"model__tables__0__num_embeddings": 10**9, "model__tables__0__embedding_dim": 128}
    overrides = {"hbm_bytes": 80e9, "ddr_bytes": 150e9, **SCM, "scm_bytes": 30e9}
    assert list(refused(overrides, **large)) == ["/model/tables/0"]
    parse_spec(raw(tiny(hardware__overrides=overrides, runtime="generic", **large)))
