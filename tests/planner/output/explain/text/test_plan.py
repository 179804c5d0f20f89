"""The text of a plan: right numbers, right glyphs, never wider than a terminal."""

from typing import Any

from planner.output.explain.text.plan import MAX_RANK_ROWS
from tests.support.planning.long_plans import explain_plan, storage_of
from tests.support.planning.plan_documents import GB, document, rank, shard, table


def section(text: str, start: str) -> list[str]:
    """The lines of the section that begins with ``start``."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(start)]
    return found.splitlines()


def test_objective_bound_gap_and_reason() -> None:
    lines = section(explain_plan(document()), "Objective")
    assert lines[1].split() == ["step_time", "5", "ms", "lower", "bound", "4.5", "ms", "gap", "11.11%"]
    assert lines[2].split()[:3] == ["max_rank_time", "4", "ms"]
    assert "FEASIBLE, stopped by time; found by cp_sat in 500 ms, searched for 1.5 s, seed" in lines[3]
    assert lines[5].strip() == "the search was cut"


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
    assert section(text, "Phases")[-1].split()[-3:] == ["not", "counted", "measured"]
    assert "▒" not in "".join(section(text, "Seconds per rank"))


def test_memory_against_capacity() -> None:
    # 2 and 3 GB of 8 GB: 25 % and 38 % (37.5, to even); 36 characters: 9 and 13.5 -> 14
    lines = section(explain_plan(document()), "Bytes per rank in hbm")
    assert lines[1].count("█") == 9
    assert lines[1].endswith("2.0 GB of 8.0 GB    25%")
    assert lines[2].count("█") == 14
    assert lines[2].endswith("3.0 GB of 8.0 GB    38%")
    assert "rank 1 holds in hbm: weights 3.0 GB" in lines[3]
    assert "rank 1 keeps free in hbm: margin 1.0 GB" in lines[4]


def test_lines_of_every_tier_are_distinguished() -> None:
    plan = document()
    plan["ranks"][1]["bytes"]["ddr"] = GB
    plan["ranks"][1]["capacity_bytes"]["ddr"] = 4 * GB
    plan["ranks"][1]["ledger_bytes"]["ddr"] = {"weights": GB, "gradients": 0}
    text = explain_plan(plan)
    assert "1.0 GB of 4.0 GB    25%" in text
    assert "rank 1 holds in hbm: weights 3.0 GB" in text
    assert "rank 1 holds in ddr: weights 1.0 GB" in text
    assert "gradients" not in text


def test_what_a_tier_holds_is_reported_of_its_own_fullest_rank() -> None:
    plan = document()
    first, second = plan["ranks"]
    more = {"bytes": {"hbm": 2 * GB, "ddr": 9 * GB}, "ledger_bytes": {"hbm": {"weights": GB}, "ddr": {"weights": 2}}}
    text = explain_plan(document(ranks=[{**first, **more}, second]))
    assert "rank 1 holds in hbm: weights 3.0 GB" in text
    assert "rank 0 holds in ddr: weights 2 B" in text
    assert "rank 0 holds in hbm" not in text


def test_schemes_and_tables() -> None:
    text = explain_plan(document())
    lines = section(text, "How the 2 tables are cut")
    assert lines[2].split() == ["row_wise", "fused", "1", "2", "4.0", "GB"]
    assert lines[3].split() == ["table_wise", "fused", "1", "1", "1.0", "GB"]
    assert section(text, "The largest 2")[2].split() == ["users", "row_wise", "4.0", "GB", "2", "0,", "1"]


def test_what_was_assumed_is_grouped_by_evidence() -> None:
    lines = section(explain_plan(document()), "What the plan rests on")
    assert lines[0] == "What the plan rests on: 1 measured, 1 default, 1 note"
    assert lines[1].strip() == "measured: hbm 2.0 TB/s"
    assert lines[2].strip() == "default: model.pipeline = none"
    assert lines[3].strip() == "note: 1 table is never looked up: items"


def test_many_ranks_show_the_slowest_only() -> None:
    # rank r takes r microseconds, so the 16 slowest of 100 are 84 to 99
    ranks = [rank(number, (number * 1e-6, 0.0), GB) for number in range(100)]
    lines = section(explain_plan(document(world_size=100, ranks_per_host=4, ranks=ranks)), "Seconds per rank")
    assert len(lines) == 1 + MAX_RANK_ROWS + 1
    assert lines[1].split()[:2] == ["rank", "84"]
    assert lines[-1].strip() == "... and 84 more ranks: 0 s to 83 us"  # ranks 0 to 83


def test_ranks_left_out_are_not_called_faster_where_all_are_tied() -> None:
    # 128 ranks of 3 us and 1 GB each: 16 are shown, 112 are not
    text = explain_plan(document(world_size=128, ranks=[rank(number, (3e-6, 0.0), GB) for number in range(128)]))
    assert section(text, "Seconds per rank")[-1] == "  ... and 112 more ranks: 3 us"
    assert "  ... and 112 more ranks: 1.0 GB" in section(text, "Bytes per rank in hbm")
    assert "faster" not in text
    assert "emptier" not in text


def test_the_rank_with_most_lookups_is_named_where_they_are_uneven() -> None:
    def text(*lookups: float | None) -> str:
        ranks = [{**rank(number, (3e-6, 0.0), GB), "lookups": one} for number, one in enumerate(lookups)]
        return explain_plan(document(world_size=len(ranks), ranks=ranks))

    assert "rank 2 makes 75% of the lookups; an even share is 25.0%" in text(10, 20, 150, 20)
    assert "of the lookups" not in text(40, 50, 60, 50)
    assert "of the lookups" not in text(None, None)  # of earlier versions
    assert "of the lookups" not in text(0, 0)


def test_one_is_not_reported_as_many() -> None:
    shown = MAX_RANK_ROWS + 1
    plan = document(world_size=shown, ranks=[rank(number, (3e-6, 0.0), GB) for number in range(shown)])
    assert section(explain_plan(plan), "Seconds per rank")[-1] == "  ... and 1 more rank: 3 us"
    single = document(world_size=1, ranks_per_host=1, tables=document()["tables"][1:])
    text = explain_plan(single)
    assert "cluster  1 rank, 1 x 1" in text
    assert section(text, "How the table is cut")
    assert section(text, "Where it is")


def test_the_digest_is_reported_short() -> None:
    # sha256: and 12 of 64 digits
    digest = document()["plan_digest"]
    assert f"  digest   {digest[:19]}…\n" in explain_plan(document())


def extreme() -> dict[str, Any]:
    """A plan whose every cell is as wide as such a plan can make it."""
    ranks = [
        {
            **rank(number, (0.0, 0.0), 10**18),
            "seconds": {"backward_compute": 1234.5 + number},
            "capacity_bytes": {"hbm": 1e18, "ddr": 1e18},
            "ledger_bytes": {tier: {f"line_{i}": 1e18 for i in range(5)} for tier in ("hbm", "ddr")},
            "reserved_bytes": {"hbm": {f"line_{i}": 1e18 for i in range(3)}},
        }
        for number in range(4096 - MAX_RANK_ROWS - 1, 4096)
    ]
    long = "t" * 200
    schemes = ("table_column_wise", "data_parallel", "row_wise")
    shards = [shard(4000 + 2 * number, (number, 1), 1023 * GB) for number in range(48)]
    plan = document(
        name=long,
        world_size=4096,
        ranks_per_host=1,
        objective={
            **document()["objective"],
            "seconds": 1234.5,
            "lower_bound_seconds": 1.5e-12,
            "relative_gap": 1e30,
            "max_rank_time_seconds": 1234.5,
        },
        tables=[{**table(long, scheme, shards), "compute_kernel": "fused_uvm_caching"} for scheme in schemes],
        termination={"reason": "NO_SOLUTION_FOUND", "limit": "deterministic_time", "detail": "word " * 60},
        ranks=ranks,
    )
    for phase in plan["phases"]:
        phase.update(name="backward_compute", slowest_rank=4095, seconds=1234.5, mean_seconds=1.5e-12)
        phase.update(hidden_seconds=1234.5, evidence="estimated")
    plan["phases"][1]["counted"] = False
    kinds = ("measured", "given", "datasheet", "estimated", "default", "note")
    plan["provenance"].update(
        hardware_profile=long,
        cost_model=long,
        seed=2**31 - 1,
        solver_seconds=1234.5,
        evidence={
            f"hardware.{'x' * 30}_{kind}_{i}": {"value": "1" * 50, "evidence": kind, "source": ""}
            for kind in kinds
            for i in range(20)
        },
    )
    return plan


def test_no_line_is_wider_than_a_terminal() -> None:
    text = explain_plan(extreme())
    for line in text.splitlines():
        assert len(line) <= 80, line
    assert "x" * 30 in text
    assert "gap over 10000%" in text


def test_the_summary_of_what_a_plan_rests_on_is_wrapped() -> None:
    # "What the plan rests on: 20 measured, 20 given, 20 datasheet, 20 estimated," and two entries more
    lines = section(explain_plan(extreme()), "What the plan rests on")
    assert lines[0] == "What the plan rests on: 20 measured, 20 given, 20 datasheet, 20 estimated,"
    assert lines[1] == "  20 defaults, 20 notes"


def test_a_plan_that_costs_nothing_can_be_reported() -> None:
    plan = document(phases=[], ranks=[rank(0, (0.0, 0.0), 0), rank(1, (0.0, 0.0), 0)])
    assert "rank    0" in explain_plan(plan)


def test_requests_are_reported_and_no_step() -> None:
    serving = {
        "samples_per_request": 168,
        "num_messages": 4,
        "busiest_rank": 1,
        "busy_seconds": 0.004,
        "requests_per_second": 100.0,
        "utilization": 0.4,
        "utilization_limit": 0.8,
        "sustained_requests_per_second": 200.0,
        "p99_limit_seconds": 0.02,
        "p50_seconds": 0.005,
        "p99_seconds": 0.0123,
    }
    steps = {"step_time_seconds": None, "max_rank_time_seconds": None}
    objective = {**document()["objective"], "name": "request_latency", "seconds": 0.004, **steps}
    tier = {
        "name": "ddr",
        "busiest_rank": 1,
        "read_bytes": 1,
        "written_bytes": 0,
        "busy_seconds": 0.1,
        "utilization": 0.5,
    }
    text = explain_plan(document(objective=objective, serving=serving, tiers=[tier]))
    assert "Traffic of one request, on the busiest rank" in text
    assert "request_latency  4 ms" in text
    assert "step_time" not in text
    assert "168 samples each, 4 messages between the host and its cards" in text
    assert "rank 1 is busiest, 4 ms with each" in text
    assert "100 per second keep it busy for 0.4 of its time" in text
    assert "come at random, half are answered within 5 ms, 99 of 100 within 12.3 ms; 20 ms" in text
    assert "at most 200 per second, at a limit of 0.8 and 99 of 100 within 20 ms" in text
    assert "ranks do not wait for others" in text


def test_a_rate_that_was_not_asked_for_is_not_reported() -> None:
    serving = {
        "samples_per_request": 1,
        "num_messages": 0,
        "busiest_rank": 0,
        "busy_seconds": 0.0,
        "requests_per_second": None,
        "utilization": None,
        "utilization_limit": 0.8,
        "sustained_requests_per_second": None,
    }
    assert "per second" not in explain_plan(document(serving=serving))
    assert "Requests" not in explain_plan(document())


def test_the_largest_tables_say_how_their_rows_are_preserved_where_that_is_not_plain() -> None:
    plan = document()
    cached = {"compute_kernel": "fused_uvm_caching", "cache_load_factor": 0.1, "data_type": "fp16"}
    first, *others = plan["tables"]
    text = explain_plan(document(tables=[first | cached, *others]))
    assert "\n    fused_uvm_caching, 0.1 cached, fp16\n" in text
    assert "cached, " not in explain_plan(plan)


def test_a_table_that_is_split_by_access_rate_says_which_share_lies_where() -> None:
    shard = {
        "rank": 0,
        "row_offset": 0,
        "num_rows": 10,
        "column_offset": 0,
        "num_columns": 8,
        "tier": "hbm",
        "bytes": 320,
    }
    cold = shard | {"row_offset": 10, "num_rows": 90, "tier": "ddr", "bytes": 2880}
    split = {"name": "t", "sharding_type": "table_wise", "compute_kernel": "fused_uvm", "shards": [shard, cold]}
    assert storage_of(split) == "fused_uvm, hottest 0.1 in hbm"
    assert storage_of(split | {"shards": [cold, shard]}) == "fused_uvm, hottest 0.1 in hbm"
    assert storage_of(split | {"shards": [cold | {"row_offset": 0}, cold]}) == "fused_uvm"
    assert storage_of(split | {"shards": [cold], "hash_table_mode": "zch"}) == "fused_uvm, zch slots"
