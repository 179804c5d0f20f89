"""The warm start of a spec: read like any plan that a spec refers to, and no part of what determines the problem."""

from typing import Any

import pytest

from api.services.solves.service import request_digest
from api.specs.parse import parse_spec, parse_stored_spec
from api.specs.references.cost_model import OneModel
from api.specs.references.learned_model import load_model
from api.specs.references.resolve import Library
from planner.domain.formats.canonical_json import of_members
from planner.domain.formats.compaction import compact_document
from planner.errors import InvalidProblem
from tests.api.specs.references.test_previous_plan import a_plan
from tests.support.service.measured import model_bytes
from tests.support.service.specs import raw, tiny


def issues(spec: dict[str, Any], library: Library | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(spec), library or Library())
    return [(issue.pointer, issue.code) for issue in refused.value.issues]


def test_a_plan_by_its_digest_is_the_same_as_the_plan() -> None:
    plan = a_plan()
    library = Library(find_plan=lambda _: raw(plan))
    by_digest = parse_spec(raw(tiny(solver__warm_start={"digest": plan["plan_digest"]})), library)
    inline = parse_spec(raw(tiny(solver__warm_start={"plan": plan})))
    assert by_digest.spec == inline.spec
    assert inline.warm_start is not None
    assert [table.name for table in inline.warm_start.tables] == ["a", "b"]
    again = parse_spec(raw(inline.spec))
    assert (again.spec, again.warm_start) == (inline.spec, inline.warm_start)
    assert parse_stored_spec(raw(inline.spec)).warm_start == inline.warm_start


def test_it_is_a_part_of_the_request_and_not_of_the_problem() -> None:
    without, begun = (parse_spec(raw(tiny(**more))) for more in ({}, {"solver__warm_start": {"plan": a_plan()}}))
    assert without.spec_digest == begun.spec_digest
    assert without.warm_start is None
    solver = without.spec["solver"]
    assert isinstance(solver, dict)
    assert {"warm_start", "cutoff_seconds"}.isdisjoint(solver)  # old requests keep their bytes
    digests = {request_digest(one, of_members(one.members)) for one in (without, begun)}
    assert len(digests) == 2


def test_the_answer_says_where_the_search_began() -> None:
    request = parse_spec(raw(tiny(solver__warm_start={"plan": a_plan(tables=a_plan()["tables"][:1])})))
    (noted,) = [one for one in request.assumptions if one.subject == "solver.warm_start"]
    assert noted.evidence == "note"
    assert noted.value.endswith("of 2 ranks, which has 1 of 2 tables")
    assert request.warnings == ()


def test_a_plan_of_other_tables_is_warned_of() -> None:
    others = [{**table, "name": f"other_{table['name']}"} for table in a_plan()["tables"]]
    request = parse_spec(raw(tiny(solver__warm_start={"plan": a_plan(tables=others)})))
    assert [(one.code, one.pointer) for one in request.warnings] == [("no-common-table", "/solver/warm_start")]


def test_what_is_wrong_with_the_plan_stands_below_it() -> None:
    where = "/solver/warm_start"
    assert issues(tiny(solver__warm_start={})) == [(where, "invalid-value")]
    assert issues(tiny(solver__warm_start={"plan": {**a_plan(), "world_size": 3}})) == [
        (f"{where}/plan/plan_digest", "digest-mismatch")
    ]
    digest = "sha256:" + 64 * "0"
    spec = tiny(solver__warm_start={"digest": digest})
    assert issues(spec) == issues(spec, Library(find_plan=lambda _: None)) == [(f"{where}/digest", "unknown-plan")]
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(spec))
    assert "--warm-start PLAN.json" in refused.value.issues[0].hint


def test_many_shards_are_refused_over_http_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compact_document(a_plan())
    monkeypatch.setattr("api.specs.parse.MAX_SHARDS_OF_BODY", 1)
    spec = tiny(solver__warm_start={"plan": plan})
    assert issues(spec, Library(find_plan=lambda _: raw(plan))) == [("/solver/warm_start/plan", "invalid-value")]
    assert parse_spec(raw(spec)).warm_start is not None


def test_a_previous_plan_says_already_where_the_search_begins() -> None:
    plan = {"plan": a_plan()}
    assert issues(tiny(solver__warm_start=plan, previous_plan=plan)) == [("/solver/warm_start", "invalid-value")]


def test_a_cutoff_needs_a_bound_on_one_objective() -> None:
    assert parse_spec(raw(tiny(solver__cutoff_seconds=0.5))).limits.cutoff_seconds == 0.5
    ordered = {"objectives": [{"name": "step_time"}, {"name": "fullest_rank", "tolerance": 0.1}]}
    library = Library(find_model=OneModel(model_bytes()))
    for more in (ordered, {"cost_model": f"learned:{load_model(model_bytes()).digest}"}):
        spec = tiny(solver__cutoff_seconds=0.5, **more)
        assert issues(spec, library) == [("/solver/cutoff_seconds", "invalid-value")]
    for seconds in (0, -1, 1e7):
        assert issues(tiny(solver__cutoff_seconds=seconds)) == [("/solver/cutoff_seconds", "invalid-value")]
