"""Plans as TorchRec writes them, wherever a plan is accepted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.services.plans.reports import certificate_of, evaluation_of, explain_given
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_plan, parse_spec
from planner.errors import InvalidProblem, UnsupportedRequest
from planner.pipeline import plan as solved
from planner.verification.plan_from_placement import plan_of_placement
from tests.support.planning.exports import exporter
from tests.support.planning.long_plans import to_document
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import raw, tiny

export_plan = exporter("torchrec")

_FACTS = {"sharding_type": "table_wise", "compute_kernel": "fused"}


def sharded(*shards: tuple[str, list[int], list[int]], **changes: object) -> dict[str, Any]:
    """A table of TorchRec's: placements, offsets, sizes."""
    listed = [{"placement": place, "shard_offsets": at, "shard_sizes": sizes} for place, at, sizes in shards]
    return {**_FACTS, "ranks": [0], "shards": listed, **changes}


A = sharded(("rank:0/cuda:0", [0, 0], [1000, 8]))
B = sharded(("rank:1/cuda:1", [0, 0], [500, 16]), ranks=[1])


def theirs(path: str = "", **tables: object) -> dict[str, Any]:
    """A plan of the tiny spec, one table on each rank, or with other tables."""
    return {"plan": {path: {"a": A, "b": B, **tables}}}


def evaluated(plan: object, **spec: object) -> Any:
    return evaluation_of(*parse_evaluation(raw({"spec": tiny(**spec), "plan": plan})))


def refused(plan: object, **spec: object) -> list[tuple[str, str]]:
    with pytest.raises(RejectedDocument) as error:
        evaluated(plan, **spec)
    return [(issue.pointer, issue.code) for issue in error.value.issues]


def test_a_plan_of_torchrec_is_rated_as_the_same_plan_of_ours() -> None:
    shard = {"row_offset": 0, "column_offset": 0}
    tables = [
        {"name": "a", **_FACTS, "shards": [{"rank": 0, "num_rows": 1000, "num_columns": 8, **shard}]},
        {"name": "b", **_FACTS, "shards": [{"rank": 1, "num_rows": 500, "num_columns": 16, **shard}]},
    ]
    ours = {"schema_version": 1, "world_size": 2, "ranks_per_host": 2, "tables": tables}
    assert evaluated(theirs()) == evaluated(ours)
    assert evaluated(theirs()).valid


def test_what_is_exported_is_read_back_as_it_was(examples: Path) -> None:
    spec = json.loads((examples / "dlrm_dcnv2_2x8.json").read_text())
    spec["solver"] = {"partitioner": "greedy", "time_limit_seconds": 100, "work_limit_seconds": 5}
    request = parse_spec(json.dumps(spec).encode())
    found = solved(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    ).plan
    facts = {"name": "x", "spec_digest": request.spec_digest, "hardware_profile": request.hardware_profile}
    document = to_document(found, **facts)
    assert {table["sharding_type"] for table in document["tables"]} >= {
        "data_parallel",
        "column_wise",
        "table_row_wise",
    }
    given = parse_plan(json.dumps(export_plan(document)).encode(), request.problem)
    assert given.warnings == ()
    again = to_document(plan_of_placement(request.problem, given.placement, request.cost_model), **facts)
    assert again["plan_digest"] == document["plan_digest"]
    assert again["objective"]["seconds"] == document["objective"]["seconds"]
    assert (again["objective"]["lower_bound_seconds"], again["objective"]["relative_gap"]) == (0.0, None)


def test_copies_of_data_parallel_tables_are_those_that_torchrec_makes() -> None:
    copies = {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1]}
    request = parse_spec(raw(tiny()))
    for table in (copies, {**copies, "ranks": None}, {**copies, "ranks": []}):
        placed = parse_plan(raw(theirs(a=table)), request.problem).placement.tables[0]
        assert placed.shards.rank.tolist() == [0, 1]
        assert placed.shards.num_rows.tolist() == [1000, 1000]
    one = evaluated(theirs(a={**copies, "ranks": [1]}))
    assert [(issue.code, issue.pointer) for issue in one.violations] == [("cover", "/plan/plan//a")]


def test_a_cache_that_torchrec_does_not_report_is_assumed_and_reported() -> None:
    cached = {**A, "compute_kernel": "fused_uvm_caching"}
    request = parse_spec(raw(tiny()))
    for factor, expected in ((None, 0.2), (0.5, 0.5), (0.0, 0.0)):
        table = cached if factor is None else {**cached, "cache_params": {"load_factor": factor}}
        given = parse_plan(raw(theirs(a=table)), request.problem)
        assert given.placement.tables[0].cache_load_factor == expected
        assert given.placement.tables[0].shards.tier.tolist() == [1]
        codes = [warning.code for warning in given.warnings]
        assert codes == (["load-factor-assumed"] if factor is None else [])
    (warning,) = [one for one in evaluated(theirs(a=cached)).warnings if one.code == "load-factor-assumed"]
    assert warning.pointer == "/plan/plan//a/cache_params"


def test_violations_stand_where_the_table_stands_in_the_plan_of_torchrec() -> None:
    half = sharded(("rank:0/cuda:0", [0, 0], [500, 8]))
    found = evaluated(theirs("model.ebc", a=half))
    assert [issue.pointer for issue in found.violations] == ["/plan/plan/model.ebc/a"]


def test_what_is_not_explained_or_certified_stands_there_too() -> None:
    def asked(a: object) -> Iterator[str]:
        request, plan = parse_evaluation(raw({"spec": tiny(), "plan": theirs("model.ebc", a=a)}))
        for ask in (
            lambda: explain_given(request, plan, spec_digest=request.spec_digest, max_tables=1),
            lambda: certificate_of(request, plan),
        ):
            with pytest.raises((InvalidProblem, UnsupportedRequest)) as error:
                ask()
            issue = error.value.issues[0] if isinstance(error.value, InvalidProblem) else error.value.issue
            yield f"{issue.code} {issue.pointer}"

    half = sharded(("rank:0/cuda:0", [0, 0], [500, 8]))
    assert [*asked(half)] == ["gap /plan/model.ebc/a"] * 2
    in_one_piece = {**A, "sharding_type": "column_wise"}
    assert [*asked(in_one_piece)] == ["unlisted-cut /plan/model.ebc/a"] * 2


def test_paths_of_modules_are_compared_where_the_spec_has_them() -> None:
    spec = {f"model__tables__{index}__module_path": "model.ebc" for index in (0, 1)}
    assert evaluated(theirs("model.ebc"), **spec).valid
    wrong = evaluated(theirs("ebc"), **spec)
    assert {issue.code for issue in wrong.violations} == {"model-mismatch"}
    assert evaluated(theirs("ebc")).valid  # a spec without paths is for any module


def test_tables_that_the_model_lacks_or_the_plan_lacks_are_named() -> None:
    assert refused(theirs(c=A)) == [("/plan/plan//c", "unknown-table")]
    lacking = evaluated({"plan": {"": {"a": A}}})
    assert [issue.code for issue in lacking.violations] == ["missing-table"]
    twice = evaluated({"plan": {"x": {"a": A, "b": B}, "y": {"b": B}}})
    assert [issue.code for issue in twice.violations] == ["table-twice"]


def test_plans_for_other_hosts_are_reported_from_their_devices() -> None:
    elsewhere = sharded(("rank:1/cuda:0", [0, 0], [1000, 8]))
    assert refused(theirs(a=elsewhere)) == [("/plan/plan//a/shards/0/placement", "cluster-mismatch")]
    assert evaluated(theirs(a=sharded(("rank:1/cpu", [0, 0], [1000, 8])))).valid
    stated = evaluated({**theirs(), "world_size": 4, "local_world_size": 2})
    assert "cluster-mismatch" in [issue.code for issue in stated.violations]


@pytest.mark.parametrize(
    ("table", "pointer", "code"),
    [
        ({**_FACTS, "ranks": [0]}, "/shards", "missing-field"),
        ({**A, "compute_kernel": "magic"}, "/compute_kernel", "invalid-value"),
        ({**A, "sharding_type": "diagonal"}, "/sharding_type", "invalid-value"),
        ({**A, "padding": 1}, "/padding", "unknown-field"),
        (sharded(("rank:x", [0, 0], [1000, 8])), "/shards/0/placement", "invalid-value"),
        (sharded(("rank:0/cuda:0", [0], [1000, 8])), "/shards/0/shard_offsets", "invalid-value"),
        (sharded(("rank:0/cuda:0", [0, 0], [-1, 8])), "/shards/0/shard_sizes/0", "invalid-value"),
        (sharded(("rank:2/cuda:0", [0, 0], [1000, 8])), "/shards/0/placement", "rank-out-of-range"),
        (sharded(("rank:999999", [0, 0], [1000, 8])), "/shards/0/placement", "rank-out-of-range"),
    ],
)
def test_what_is_no_plan_of_torchrec(table: dict[str, object], pointer: str, code: str) -> None:
    assert refused(theirs(a=table)) == [(f"/plan/plan//a{pointer}", code)]


def test_it_may_be_the_plan_to_move_away_from() -> None:
    previous = {"plan": theirs(), "remaining_steps": 50}
    request = parse_spec(raw(tiny(previous_plan=previous)))
    assert [table.name for table in request.previous.placement.tables] == ["a", "b"]
    inline = request.spec["previous_plan"]["plan"]
    assert [table["shards"][0]["ranks"] for table in inline["tables"]] == ["0", "1"]
    cached = theirs(a={**A, "compute_kernel": "fused_uvm_caching"})
    warned = parse_spec(raw(tiny(previous_plan={"plan": cached})))
    assert [one.pointer for one in warned.warnings if one.code == "load-factor-assumed"] == [
        "/previous_plan/plan/plan//a/cache_params"
    ]
    with pytest.raises(InvalidProblem) as error:
        parse_spec(raw(tiny(previous_plan={"plan": theirs(c=A)})))
    assert [issue.pointer for issue in error.value.issues] == ["/previous_plan/plan/plan//c"]


def test_the_service_takes_it_where_it_takes_a_plan(tmp_path: Path) -> None:
    with Live.of(tmp_path) as live:
        body = {"spec": tiny(), "plan": theirs()}
        assert live.post("/v1/plans:evaluate", body).json()["valid"]
        assert live.post("/v1/plans:certify", body).status_code == 200
        wrong = live.post("/v1/plans:evaluate", {"spec": tiny(), "plan": theirs(c=A)})
        (found,) = assert_problem(wrong, 422, "invalid-problem")["errors"]
        assert found["pointer"] == "/plan/plan//c"
        solve = live.solve(tiny(previous_plan={"plan": theirs(), "remaining_steps": 10**12}))
        assert solve["state"] == "succeeded"
