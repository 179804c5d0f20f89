"""What changed between two plans."""

from typing import Any

import pytest

from planner.output.explain.text.difference import MAX_TABLE_ROWS
from tests.support.planning.long_plans import compare_plans, difference
from tests.support.planning.plan_documents import GB, document, rank, shard, table


def moved() -> dict[str, object]:
    """``items`` moves from rank 1 to rank 0, and the plan gets slower: 5 to 6 ms."""
    plan = document()
    tables = [plan["tables"][0], table("items", "table_wise", [shard(0, (0, 100), GB)])]
    objective = {**plan["objective"], "seconds": 0.006, "step_time_seconds": 0.006}
    return document(tables=tables, objective=objective)


def with_limits(forward: float, comm: float, sharding_type: str = "row_wise", **changes: Any) -> dict[str, Any]:
    """A plan of two phases, known to a factor of 2 and to 25%."""
    plan = document(**changes)
    phases = [
        {**plan["phases"][0], "name": name, "seconds": seconds, "hidden_seconds": 0.0, "counted": True}
        | {"lower_seconds": seconds / error, "upper_seconds": seconds * error}
        for name, seconds, error in (("forward_compute", forward, 2.0), ("forward_comm", comm, 1.25))
    ]
    tables = [{**table, "sharding_type": sharding_type} for table in plan["tables"]]
    objective = {**plan["objective"], "seconds": forward + comm, "step_time_seconds": forward + comm}
    return {**plan, "phases": phases, "objective": objective, "tables": tables, "plan_digest": str(forward + comm)}


def test_a_difference_inside_the_interval_has_a_warning() -> None:
    a, b = with_limits(0.010, 0.010), with_limits(0.008, 0.011)
    found = difference(a, b)
    assert found.changes["step_time"] == pytest.approx((-0.004 + 0.0008, -0.001 + 0.00125))
    assert "step_time" in found.doubtful
    text = " ".join(compare_plans(a, b).split())
    assert "step_time differs by less than the cost model knows: B may take 3.2 ms less or 250 us more." in text
    assert max(map(len, compare_plans(a, b).splitlines())) <= 80
    numbers = found.to_document()["objectives"]["step_time"]  # type: ignore[index]
    assert numbers["within_interval"] is True
    assert numbers["lower_change_seconds"] == found.changes["step_time"][0]


def test_a_difference_beyond_the_interval_has_none() -> None:
    a, b = with_limits(0.010, 0.010), with_limits(0.009, 0.010)
    assert difference(a, b).changes["step_time"] == pytest.approx((-0.002, -0.0005))
    assert "step_time" not in difference(a, b).doubtful
    assert difference(a, b).to_document()["objectives"]["step_time"]["within_interval"] is False  # type: ignore[index]


def test_other_sharding_types_share_no_errors_of_communication() -> None:
    a, b = with_limits(0.010, 0.010), with_limits(0.010, 0.009, "table_wise")
    assert "step_time" in difference(a, b).doubtful


def test_plans_without_limits_or_of_other_prices_have_no_limits_of_their_difference() -> None:
    assert difference(document(), moved()).changes == {}
    other = with_limits(0.008, 0.011, provenance={**document()["provenance"], "cost_model": "torchrec@1"})
    assert difference(with_limits(0.010, 0.010), other).changes == {}


def test_equal_plans() -> None:
    found = difference(document(), document())
    assert found.same_plan
    assert (found.changed, found.new, found.gone, found.moved_bytes) == ((), (), (), 0)
    assert "The same plan" in compare_plans(document(), document())


def test_a_moved_table() -> None:
    found = difference(document(), moved())
    assert not found.same_plan
    assert found.changed == ("items",)
    assert found.unchanged == 1
    assert found.moved_bytes == GB
    text = compare_plans(document(), moved())
    assert "items  table_wise [1]  table_wise [0]" in text
    assert "+20.00%" in text  # 6 / 5 - 1


def test_latencies_of_requests_are_compared() -> None:
    def served(seconds: float) -> dict[str, object]:
        steps = {"step_time_seconds": None, "max_rank_time_seconds": None}
        return document(objective={**document()["objective"], "name": "request_latency", "seconds": seconds, **steps})

    found = difference(served(0.004), served(0.005))
    assert found.objectives.keys() == {"request_latency"}
    assert found.objectives["request_latency"].relative_change == 0.25


def test_only_rectangles_that_were_not_there_count_as_moved() -> None:
    # users was cut in halves of 2 GB; now rank 0 keeps its half and rank 1's goes to rank 0
    plan = document()
    cut = table("users", "row_wise", [shard(0, (0, 500), 2 * GB), shard(0, (500, 500), 2 * GB)])
    assert difference(plan, document(tables=[cut, plan["tables"][1]])).moved_bytes == 2 * GB


def test_new_and_gone_tables() -> None:
    plan = document()
    other = document(tables=[plan["tables"][0], table("ads", "table_wise", [shard(0, (0, 10), GB)])])
    found = difference(plan, other)
    assert (found.new, found.gone, found.changed) == (("ads",), ("items",), ())
    text = compare_plans(plan, other)
    assert "1 new, 1 gone" in text


def test_plans_of_other_specs_and_prices_say_so() -> None:
    plan = document()
    provenance = {**plan["provenance"], "cost_model": "torchrec@1.8.0"}
    other = document(spec_digest="sha256:" + "1" * 64, provenance=provenance)
    text = compare_plans(plan, other)
    assert "The specs differ" in text
    assert "cannot be compared" in " ".join(text.split())


def test_documents() -> None:
    found = difference(document(), moved()).to_document()
    unknown = dict.fromkeys(("lower_change_seconds", "upper_change_seconds", "within_interval"))
    assert found["objectives"] == {
        "step_time": {"a": 0.005, "b": 0.006, "relative_change": 0.006 / 0.005 - 1, **unknown},
        "max_rank_time": {"a": 0.004, "b": 0.004, "relative_change": 0.0, **unknown},
    }


def test_the_fullest_rank_is_reported_by_tier() -> None:
    """Rank 1 is fullest in one tier and rank 0 in the other; 3 GB and 4 GB are no 7 GB of anything."""
    first, second = (rank(number, (0.001, 0.001), num_bytes * GB) for number, num_bytes in ((0, 1), (1, 3)))
    first["bytes"]["ddr"] = 4 * GB
    found = difference(document(), document(ranks=[first, second])).to_document()["fullest_rank_bytes"]
    assert found == {
        "hbm": {"a": 3 * GB, "b": 3 * GB, "relative_change": 0.0},
        "ddr": {"a": 0.0, "b": 4 * GB, "relative_change": None},
    }
    text = compare_plans(document(), document(ranks=[first, second]))
    assert "fullest rank, hbm  3.0 GB  3.0 GB" in text
    assert "fullest rank, ddr     0 B  4.0 GB" in text


def test_no_line_is_wider_than_a_terminal() -> None:
    shards = [shard(2 * number, (number, 1), 1023 * GB) for number in range(64)]
    first, second = (
        document(
            name="n" * 200,
            world_size=4096,
            tables=[table("t" * 200, scheme, shards), table("gone", scheme, shards)][: index + 1],
            objective={**document()["objective"], "seconds": seconds, "step_time_seconds": seconds},
            provenance={**document()["provenance"], "cost_model": f"{'m' * 60}@{index}"},
        )
        for index, (scheme, seconds) in enumerate((("table_column_wise", 1e-12), ("table_row_wise", 1234.5)))
    )
    text = compare_plans(first, second)
    assert max(map(len, text.splitlines())) <= 80
    assert f"A  {first['plan_digest'][: len('sha256:') + 12]}…" in text
    # 1,234.5 s over 1e-12 s: a factor, not a percentage of fourteen digits
    assert "x 1.23e+15" in text


def test_a_table_that_grew_under_the_same_cut_shows_its_sizes() -> None:
    def sized(rows: int) -> dict[str, object]:
        return document(tables=[document()["tables"][0], table("items", "table_wise", [shard(1, (0, rows), GB)])])

    text = compare_plans(sized(1000), sized(2000))
    assert "  items  table_wise [1]  table_wise [1]\n    1,000 x 64 in A, 2,000 x 64 in B\n" in text
    assert " in A, " not in compare_plans(sized(100), document())


def test_one_is_not_reported_as_many() -> None:
    names = [f"t{number}" for number in range(MAX_TABLE_ROWS + 1)]
    plan = document(world_size=1, tables=[table(name, "table_wise", [shard(0, (0, 9), GB)]) for name in names])
    text = compare_plans(document(world_size=1, tables=[]), plan)
    assert "two-tables, 1 rank\n" in text
    assert text.splitlines()[-1] == "  ... and 1 more table"


def test_what_is_preserved_otherwise_is_a_change_and_reported_within_a_terminal() -> None:
    def preserved(**changes: object) -> dict[str, object]:
        items = table("items", "table_wise", [shard(1, (0, 100), GB)]) | changes
        return document(tables=[document()["tables"][0], items])

    cached = {"compute_kernel": "fused_uvm_caching", "cache_load_factor": 0.2, "data_type": "fp16"}
    plain = preserved(data_type="fp32")
    for changes, reported in (
        (cached, "    A: fused, fp32\n    B: fused_uvm_caching, 0.2 cached, fp16\n"),
        ({"data_type": "fp16"}, "    A: fused, fp32\n    B: fp16\n"),
    ):
        assert difference(plain, preserved(**changes)).changed == ("items",)
        text = compare_plans(plain, preserved(**changes))
        assert reported in text
        assert max(map(len, text.splitlines())) <= 80
    other = cached | {"cache_load_factor": 0.4}
    assert difference(preserved(**cached), preserved(**other)).changed == ("items",)
    longest = compare_plans(preserved(**cached), preserved(**other))
    assert max(map(len, longest.splitlines())) <= 80
