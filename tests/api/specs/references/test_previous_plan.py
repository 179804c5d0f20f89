"""The previous plan of a spec: what is accepted, what is refused and where, and how it is normalised."""

import json
from typing import Any

import pytest

from api.specs.parse import parse_spec, parse_stored_spec
from api.specs.references.resolve import Library
from planner.domain.formats.canonical_json import plan_digest
from planner.domain.formats.compaction import compact_document
from planner.errors import InvalidProblem
from tests.support.service.specs import raw, tiny

SHARD = {"row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 8}


def a_plan(**changes: Any) -> dict[str, Any]:
    """A plan of the tiny spec: one table on each rank."""
    tables = [
        {
            "name": "a",
            "sharding_type": "table_wise",
            "compute_kernel": "fused",
            "shards": [{"rank": 0, **SHARD, "bytes": 7}],
        },
        {
            "name": "b",
            "sharding_type": "table_wise",
            "compute_kernel": "fused",
            "shards": [{"rank": 1, **SHARD, "num_rows": 500, "num_columns": 16}],
        },
    ]
    document = {
        "schema_version": 1,
        "spec_digest": "sha256:" + 64 * "1",
        "world_size": 2,
        "ranks_per_host": 2,
        "tables": tables,
        **changes,
    }
    return {"plan_digest": plan_digest(document), **document}


def issues(**previous: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(tiny(previous_plan=previous)))
    return [(issue.pointer, issue.code) for issue in refused.value.issues]


def test_a_plan_is_read_with_its_settings() -> None:
    previous = {"plan": a_plan(), "remaining_steps": 50, "max_moved_bytes": 1000, "min_relative_gain": 0.2}
    request = parse_spec(raw(tiny(previous_plan=previous)))
    found = request.previous
    assert found is not None
    assert [table.name for table in found.placement.tables] == ["a", "b"]
    assert (found.remaining_steps, found.max_moved_bytes, found.min_relative_gain) == (50, 1000, 0.2)
    assert found.digest == a_plan()["plan_digest"]
    assert request.warnings == ()


def test_a_plan_by_its_digest_is_the_same_as_the_plan() -> None:
    plan = a_plan()
    asked: list[str] = []

    def find(digest: str) -> bytes | None:
        asked.append(digest)
        return raw(plan)

    by_digest = parse_spec(raw(tiny(previous_plan={"digest": plan["plan_digest"]})), Library(find_plan=find))
    inline = parse_spec(raw(tiny(previous_plan={"plan": plan})))
    assert asked == [plan["plan_digest"]]
    assert by_digest.spec == inline.spec
    again = parse_spec(raw(inline.spec))
    assert (again.spec, again.previous) == (inline.spec, inline.previous)


def test_many_shards_are_refused_over_http_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compact_document(a_plan())
    monkeypatch.setattr("api.specs.parse.MAX_SHARDS_OF_BODY", 1)
    service = Library(find_plan=lambda _: raw(plan))
    by_digest = raw(tiny(previous_plan={"digest": plan["plan_digest"]}))
    inline = raw(tiny(previous_plan={"plan": plan}))
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(inline, service)
    assert [issue.pointer for issue in refused.value.issues] == ["/previous_plan/plan"]
    stored = parse_spec(by_digest, service).spec
    assert stored == parse_spec(inline).spec  # on the command line
    assert parse_stored_spec(raw(stored), service).previous is not None


def test_it_is_no_part_of_what_determines_the_problem() -> None:
    without, with_plan = (parse_spec(raw(tiny(**more))) for more in ({}, {"previous_plan": {"plan": a_plan()}}))
    assert without.spec_digest == with_plan.spec_digest
    assert without.previous is None
    assert "previous_plan" not in without.spec


def test_defaults_are_assumptions() -> None:
    request = parse_spec(raw(tiny(previous_plan={"plan": a_plan(), "remaining_steps": 7})))
    reported = {item.subject: item.value for item in request.assumptions if item.subject.startswith("previous_plan")}
    assert reported == {"previous_plan.min_relative_gain": "0.01"}


def test_a_number_that_is_not_finite_is_an_issue_of_the_plan() -> None:
    spec = raw(tiny(previous_plan={"plan": a_plan(note=1)})).replace(b'"note": 1', b'"note": 1e999')
    with pytest.raises(InvalidProblem) as rejected:
        parse_spec(spec)
    assert [issue.pointer for issue in rejected.value.issues] == ["/previous_plan/plan"]


def test_a_digest_that_no_one_knows() -> None:
    digest = a_plan()["plan_digest"]
    assert issues(digest=digest) == [("/previous_plan/digest", "unknown-plan")]
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(tiny(previous_plan={"digest": digest})), Library(find_plan=lambda _: None))
    assert refused.value.issues[0].pointer == "/previous_plan/digest"


def test_either_a_plan_or_a_digest() -> None:
    assert issues() == [("/previous_plan", "invalid-value")]
    assert issues(plan=a_plan(), digest=a_plan()["plan_digest"]) == [("/previous_plan", "invalid-value")]


def test_no_plan_at_all() -> None:
    assert ("/previous_plan/plan/tables", "missing-field") in issues(plan={"schema_version": 1})


def test_a_plan_that_was_changed_after_it_was_made() -> None:
    assert issues(plan={**a_plan(), "world_size": 3}) == [("/previous_plan/plan/plan_digest", "digest-mismatch")]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"num_rows": 400}, "/tables/1"),
        ({"rank": 2}, "/tables/1"),
        ({"num_rows": 0}, "/tables/1"),
    ],
    ids=str,
)
def test_shards_that_are_no_table(change: dict[str, int], where: str) -> None:
    plan = json.loads(json.dumps(a_plan()))
    first = plan["tables"][1]["shards"][0]
    plan["tables"][1]["shards"] = [first, {**first, "row_offset": 500, **change}]
    if "num_rows" in change:
        plan["tables"][1]["shards"][1]["row_offset"] = 450
    del plan["plan_digest"]
    assert issues(plan=plan) == [(f"/previous_plan/plan{where}", "invalid-value")]


def test_a_table_that_stands_twice() -> None:
    tables = a_plan()["tables"]
    found = issues(plan=a_plan(tables=[*tables, tables[0]]))
    assert found == [
        ("/previous_plan/plan/tables/0/name", "invalid-value"),
        ("/previous_plan/plan/tables/2/name", "invalid-value"),
    ]


def test_a_plan_of_another_cluster_or_another_model_is_warned_of() -> None:
    request = parse_spec(raw(tiny(previous_plan={"plan": a_plan(world_size=4, ranks_per_host=4)})))
    assert [warning.code for warning in request.warnings] == ["other-cluster"]
    others = [{**table, "name": f"other_{table['name']}"} for table in a_plan()["tables"]]
    request = parse_spec(raw(tiny(previous_plan={"plan": a_plan(tables=others)})))
    assert [warning.code for warning in request.warnings] == ["no-common-table"]
