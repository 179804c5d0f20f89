"""The text of an answer without a plan."""

from dataclasses import replace

from planner.domain.plan.diagnosis import Conflict, ConflictingConstraint, Diagnosis, Fix, SpecChange, VerifiedPlan
from planner.domain.plan.plan import PlanResult, Shortfall
from planner.output.explain.text.infeasible import MAX_CHANGES, MAX_CONSTRAINTS, MAX_SHORTFALLS, explain_no_plan

GB = 10**9


def shortfall(**changes: object) -> Shortfall:
    values: dict[str, object] = {
        "resource": "hbm",
        "required_bytes": 12.0 * GB,
        "available_bytes": 8.0 * GB,
        "scope": "cluster",
        "message": "the tables need more memory than all ranks have",
        "hint": "use 2 hosts",
    }
    return Shortfall(**{**values, **changes})  # type: ignore[arg-type]


def result(*shortfalls: Shortfall) -> PlanResult:
    return PlanResult(
        plan=None, reason="INFEASIBLE", limit=None, detail="proven", lower_bound_seconds=0.0, shortfalls=shortfalls
    )


def test_what_is_short_by_how_much_and_the_way_out() -> None:
    text = explain_no_plan(result(shortfall()), name="big")
    assert text.splitlines() == [
        "No plan of big: INFEASIBLE",
        "  proven",
        "",
        "  4.0 GB of hbm short for the cluster",  # 12 - 8
        "    the tables need more memory than all ranks have",
        "    way out: use 2 hosts",
    ]


def test_no_sentence_is_printed_twice() -> None:
    # the pipeline repeats the first shortfall's message as the detail, with what it did not try after it
    short = shortfall()
    for detail, next_to in ((short.message, []), (f"{short.message}; some cuts were not tried", ["  some cuts"])):
        found = PlanResult(
            plan=None, reason="INFEASIBLE", limit=None, detail=detail, lower_bound_seconds=0.0, shortfalls=(short,)
        )
        text = explain_no_plan(found, name="big")
        assert text.count(short.message) == 1
        assert text.splitlines()[1] == (f"{next_to[0]} were not tried" if next_to else "")


def test_a_table_is_named_and_missing_options_need_no_bytes() -> None:
    options = shortfall(resource="options", scope="table", table="users", required_bytes=0.0, available_bytes=0.0)
    text = explain_no_plan(result(options), name="big")
    assert '  options of table "users"' in text.splitlines()
    assert "GB" not in text


def test_long_lists_and_lines_are_cut() -> None:
    many = [shortfall(table="t" * 200, scope="table", message="word " * 40) for _ in range(MAX_SHORTFALLS + 3)]
    text = explain_no_plan(result(*many), name="n" * 200)
    assert "... and 3 more shortfalls" in text
    one_more = explain_no_plan(result(*many[: MAX_SHORTFALLS + 1]), name="big")
    assert one_more.splitlines()[-1] == "  ... and 1 more shortfall"
    assert max(map(len, text.splitlines())) <= 80


def test_a_search_that_was_cut_names_its_limit() -> None:
    cut = PlanResult(plan=None, reason="NO_SOLUTION_FOUND", limit="time", detail="", lower_bound_seconds=0.0)
    assert explain_no_plan(cut, name="big").splitlines()[0] == "No plan of big: NO_SOLUTION_FOUND (stopped by time)"


PLAN = VerifiedPlan(used_bytes=6.0 * GB, capacity_bytes=8.0 * GB, fullest_rank_fraction=0.9)
SCHEME = ConflictingConstraint(
    pointer="/model/tables/0/constraints/sharding_types", message='table "a" may only use table_wise'
)
MEMORY = Fix(
    kind="memory",
    message="1.0 GB more hbm on every rank (3.0 GB in all)",
    changes=(SpecChange(pointer="/hardware/overrides/hbm_bytes", value=3 * GB),),
    plan=PLAN,
)
NOTHING = Diagnosis(conflict=None, has_plan_without_constraints=None, fixes=(), num_solves=3, limit=None)


def reported(**changes: object) -> list[str]:
    """The lines of a diagnosis, after those of the shortfalls."""
    diagnosis = replace(NOTHING, **changes)  # type: ignore[arg-type]
    return explain_no_plan(replace(result(), diagnosis=diagnosis), name="big").splitlines()[2:]


def test_who_is_to_blame_and_what_helps() -> None:
    conflict = Conflict(constraints=(SCHEME,), is_irreducible=True, is_proven=True)
    assert reported(conflict=conflict, has_plan_without_constraints=True, fixes=(MEMORY,)) == [
        "",
        "  this constraint leaves no plan, whatever else is asked for:",
        '    table "a" may only use table_wise',
        "      /model/tables/0/constraints/sharding_types",
        "",
        "  fixes, each solved and its plan verified, those that change least first:",
        "    1. 1.0 GB more hbm on every rank (3.0 GB in all)",
        "       /hardware/overrides/hbm_bytes: 3000000000",
        "       its plan takes 6.0 GB of the ranks' own 8.0 GB, 90.0% of the fullest",
    ]


def test_what_is_not_proven_is_not_reported_as_if_it_were() -> None:
    two = (SCHEME, SCHEME)
    proven = Conflict(constraints=two, is_irreducible=True, is_proven=True)
    assert "leave no plan together" in " ".join(reported(conflict=proven))
    for constraints in (two, (SCHEME,)):
        text = " ".join(reported(conflict=Conflict(constraints=constraints, is_irreducible=True, is_proven=False)))
        assert "leave" not in text
        assert "no plan was found" in text


def test_no_constraint_is_blamed_where_none_is_to_blame() -> None:
    assert reported(has_plan_without_constraints=False)[1].startswith("  no constraint of the spec is to blame")
    assert reported(has_plan_without_constraints=None) == []
    assert reported(has_plan_without_constraints=True)[1].startswith(
        "  without any constraint of the spec there is a plan"
    )


def test_a_conflict_that_was_not_narrowed_down_says_so() -> None:
    for is_proven in (False, True):
        conflict = Conflict(constraints=(SCHEME, SCHEME), is_irreducible=False, is_proven=is_proven)
        text = " ".join(line.strip() for line in reported(conflict=conflict))
        assert "which of them are needed for that was not settled" in text
        assert "without any one" not in text


def test_what_was_cut_short_says_so() -> None:
    assert "3 solves took what may be spent" in " ".join(reported(limit="deterministic_time"))


def test_long_conflicts_and_fixes_are_cut() -> None:
    many = Conflict(constraints=(SCHEME,) * (MAX_CONSTRAINTS + 1), is_irreducible=True, is_proven=True)
    values = (SpecChange(pointer="/p/" + "x" * 100, value=tuple(range(500))), SpecChange(pointer="/q", value=None))
    fix = replace(MEMORY, changes=values * MAX_CHANGES, message="word " * 60)
    lines = reported(conflict=many, fixes=(fix,), limit="time")
    assert "    ... and 1 more constraint" in lines
    assert f"       ... and {MAX_CHANGES} more changes" in lines
    assert "       /q: leave out" in lines
    assert max(map(len, lines)) <= 80
