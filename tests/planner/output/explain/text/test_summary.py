"""The summary of a plan: one screen, the figures of the plan, whatever the plan has."""

from typing import Any

from planner.output.explain.text.summary import MAX_LINES, summarise_plan
from tests.support.planning.long_plans import compact
from tests.support.planning.plan_documents import GB, document, rank, shard, table


def summary(plan: Any) -> str:
    return summarise_plan(compact(plan))


def test_it_has_the_figures_of_the_plan() -> None:
    words = " ".join(summary(document()).split())
    assert "step_time 5 ms lower bound 4.5 ms gap 11.11%" in words
    assert "FEASIBLE, stopped by time; found after 500 ms, searched 1.5 s" in words
    assert "slowest rank 1, 4 ms; mean of all 3.5 ms" in words
    assert "fullest in hbm rank 1, 3.0 GB of 8.0 GB (38%)" in words


def test_phases_that_do_not_count_are_left_out() -> None:
    plan = document()
    name = plan["phases"][1]["name"]
    assert name in summary(plan)
    plan["phases"][1]["counted"] = False
    assert name not in summary(plan)


def test_it_fits_a_screen_whatever_the_plan_has() -> None:
    plan = document(ranks=[rank(number, (3e-6, 1e-6), GB) for number in range(128)], world_size=128, name="n" * 300)
    first = plan["phases"][0]
    plan["phases"] = [first | {"name": f"phase_{number}"} for number in range(9)]
    plan["tables"] = [
        table(f"t{number}", f"a_long_name_of_a_scheme_{number}", [shard(0, (0, 10), GB)]) | {"compute_kernel": "k" * 20}
        for number in range(9)
    ]
    plan["provenance"]["evidence"] = {
        f"subject {number}": {"value": "v" * 100, "evidence": kind, "source": ""}
        for number, kind in enumerate(("measured", "given", "datasheet", "estimated", "default", "note", "note"))
    }
    plan["whole_step"] = {"seconds": 1.0, "samples_per_second": 1e9}
    shares = {"learned": 0.0, "measured": 0.6, "analytic": 0.4}
    plan["prediction"] = {"lower_seconds": 1.0, "upper_seconds": 2.0, "shares": shares}
    plan["movement"] = {"moved_bytes": GB, "kept_bytes": GB, "new_bytes": 0}
    plan["baselines"] = [
        {"name": name, "state": "legal", "objective_seconds": 9.0, "ratio": 1234.5, "issue": None, "detail": None}
        for name in ("torchrec_greedy", "table_wise_by_size", "previous_plan")
    ]
    for one in plan["ranks"]:
        for tier in ("ddr", "ssd"):
            one["bytes"][tier] = one["capacity_bytes"][tier] = GB
    lines = summary(plan).splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    assert "... and 8 more phases" in summary(plan)  # the verdict takes their lines
    assert "7 otherwise" in summary(plan)
