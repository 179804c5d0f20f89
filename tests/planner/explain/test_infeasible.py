"""The text of an answer without a plan."""

from planner.domain.plan import PlanResult, Shortfall
from planner.explain.infeasible import MAX_SHORTFALLS, explain_no_plan

GIB = 1024**3


def shortfall(**changes: object) -> Shortfall:
    values: dict[str, object] = {
        "resource": "hbm",
        "required_bytes": 12.0 * GIB,
        "available_bytes": 8.0 * GIB,
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
        "  4.0 GiB of hbm short for the cluster",  # 12 - 8
        "    the tables need more memory than all ranks have",
        "    way out: use 2 hosts",
    ]


def test_no_sentence_is_printed_twice() -> None:
    # the pipeline repeats the first shortfall's message as the detail, with what it did not try after it
    short = shortfall()
    for detail, beside in ((short.message, []), (f"{short.message}; some cuts were not tried", ["  some cuts"])):
        found = PlanResult(
            plan=None, reason="INFEASIBLE", limit=None, detail=detail, lower_bound_seconds=0.0, shortfalls=(short,)
        )
        text = explain_no_plan(found, name="big")
        assert text.count(short.message) == 1
        assert text.splitlines()[1] == (f"{beside[0]} were not tried" if beside else "")


def test_a_table_is_named_and_missing_options_need_no_bytes() -> None:
    options = shortfall(resource="options", scope="table", table="users", required_bytes=0.0, available_bytes=0.0)
    text = explain_no_plan(result(options), name="big")
    assert '  options of table "users"' in text.splitlines()
    assert "GiB" not in text


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
