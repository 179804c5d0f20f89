"""The text of a plan: right numbers, right glyphs, never wider than a terminal."""

from planner.explain.plan import MAX_RANK_ROWS, explain_plan
from tests.planner.explain.documents import GIB, document, rank, shard, table


def section(text: str, start: str) -> list[str]:
    """The lines of the section that begins with ``start``."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(start)]
    return found.splitlines()


def test_objective_bound_gap_and_reason() -> None:
    lines = section(explain_plan(document()), "Objective")
    assert lines[1].split() == ["step_time", "5", "ms", "lower", "bound", "4.5", "ms", "gap", "11.11%"]
    assert lines[2].split()[:3] == ["max_rank_time", "4", "ms"]
    assert "FEASIBLE, stopped by time; found by cp_sat in 1.5 s, seed 0" in lines[3]
    assert lines[4].strip() == "the search was cut"


def test_bars_are_to_scale() -> None:
    # rank 1 is the slowest with 4 ms = 54 characters; 3 of 4 ms are 40.5, rounded to 40 (half to even)
    # rank 0: 1 ms = 13.5 -> 14 (to even), its end at 3 ms = 40.5 -> 40
    lines = section(explain_plan(document()), "Seconds per rank")
    assert lines[2].count("█") == 40
    assert lines[2].count("▒") == 14
    assert lines[2].endswith("4 ms")
    assert lines[1].count("█") == 14
    assert lines[1].count("▒") == 26
    assert lines[1].endswith("3 ms")


def test_phases_that_do_not_count_are_marked_and_left_out_of_the_bars() -> None:
    plan = document()
    plan["phases"][1]["counted"] = False
    text = explain_plan(plan)
    assert section(text, "Phases")[-1].endswith("not counted")
    assert "▒" not in "".join(section(text, "Seconds per rank"))


def test_memory_against_capacity() -> None:
    # 2 and 3 GiB of 8 GiB: 25 % and 38 % (37.5, to even); 36 characters: 9 and 13.5 -> 14
    lines = section(explain_plan(document()), "Bytes per rank in hbm")
    assert lines[1].count("█") == 9
    assert lines[1].endswith("2.0 GiB of 8.0 GiB    25%")
    assert lines[2].count("█") == 14
    assert lines[2].endswith("3.0 GiB of 8.0 GiB    38%")
    assert "rank 1 holds: weights 3.0 GiB" in lines[3]
    assert "rank 1 keeps free: margin 1.0 GiB" in lines[4]


def test_schemes_and_tables() -> None:
    text = explain_plan(document())
    lines = section(text, "How the 2 tables are cut")
    assert lines[2].split() == ["row_wise", "fused", "1", "2", "4.0", "GiB"]
    assert lines[3].split() == ["table_wise", "fused", "1", "1", "1.0", "GiB"]
    assert section(text, "The largest 2")[2].split() == ["users", "row_wise", "4.0", "GiB", "2", "0,", "1"]


def test_what_was_assumed_is_grouped_by_evidence() -> None:
    lines = section(explain_plan(document()), "What the plan rests on")
    assert lines[0] == "What the plan rests on: 1 measured, 1 default, 1 note"
    assert lines[1].strip() == "measured: hbm 1.8 TiB/s"  # 2e12 / 1024**4 = 1.82
    assert lines[2].strip() == "default: model.pipeline = none"
    assert lines[3].strip() == "note: 1 table is never looked up: items"


def test_many_ranks_show_the_slowest_only() -> None:
    # rank r takes r microseconds, so the 16 slowest of 100 are 84 to 99
    ranks = [rank(number, (number * 1e-6, 0.0), GIB) for number in range(100)]
    lines = section(explain_plan(document(world_size=100, ranks_per_host=4, ranks=ranks)), "Seconds per rank")
    assert len(lines) == 1 + MAX_RANK_ROWS + 1
    assert lines[1].split()[:2] == ["rank", "84"]
    assert lines[-1].strip() == "... and 84 ranks that are faster"


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "t" * 200
    shards = [shard(2 * number, (number, 1), GIB) for number in range(64)]
    evidence = {f"hardware.{'x' * 30}_{i}": {"value": "1", "evidence": "estimated", "source": ""} for i in range(20)}
    plan = document(
        name=long,
        tables=[table(long, "row_wise", shards)],
        termination={"reason": "FEASIBLE", "limit": "deterministic_time", "detail": "word " * 60},
    )
    plan["provenance"]["evidence"] = evidence
    for line in explain_plan(plan).splitlines():
        assert len(line) <= 80 or line.startswith("  digest"), line
    assert "x" * 30 in explain_plan(plan)


def test_a_plan_that_costs_nothing_can_be_told() -> None:
    plan = document(phases=[], ranks=[rank(0, (0.0, 0.0), 0), rank(1, (0.0, 0.0), 0)])
    assert "rank    0" in explain_plan(plan)
