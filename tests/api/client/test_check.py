"""Structural checks of a plan before use."""

from collections.abc import Callable

import pytest

from api.client import PlanRejected, check_plan, plan_digest
from tests.support.client.plans import tiny_plan


def test_a_good_plan_passes() -> None:
    plan = tiny_plan()
    assert check_plan(plan, world_size=2, ranks_per_host=2) == plan


def test_a_changed_plan_is_noticed() -> None:
    plan = tiny_plan()
    plan["tables"][0]["shards"][0]["rank"] = 0
    with pytest.raises(PlanRejected, match="its content has the digest") as caught:
        check_plan(plan, world_size=2, ranks_per_host=2)
    assert plan_digest(plan) in str(caught.value)
    assert caught.value.verdict == "refuse"


def test_every_difference_to_the_job_is_listed() -> None:
    with pytest.raises(PlanRejected) as caught:
        check_plan(tiny_plan(), world_size=16, ranks_per_host=8)
    assert caught.value.reasons == (
        "the plan is for a world size of 2, the job has 16",
        "the plan is for 2 ranks per host, the job has 8 (LOCAL_WORLD_SIZE)",
    )
    assert caught.value.verdict == "replan"


def _set(table: int, shard: int, **values: object) -> Callable[[dict], None]:
    return lambda plan: plan["tables"][table]["shards"][shard].update(values)


def _copies(ranks: tuple[int, ...], rows: tuple[int, ...]) -> Callable[[dict], None]:
    def change(plan: dict) -> None:
        table = plan["tables"][0]
        table["sharding_type"] = "data_parallel"
        first = table["shards"][0]
        table["shards"] = [{**first, "rank": r, "num_rows": n} for r, n in zip(ranks, rows, strict=True)]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(0, 0, rank=2), r'table "whole": rank 2 is not one of 2'),
        (_set(0, 0, row_offset=1), "rows 0..7 of columns 0..8 are not covered exactly once"),
        (_set(0, 0, num_columns=0), "a shard is empty"),
        (_set(1, 1, row_offset=2), "rows 0..5 of columns 0..4 are not covered"),  # overlaps row 2, ends at row 4
        (_set(1, 1, num_rows=1), "rows 0..5 of columns 0..4 are not covered"),  # 4 of 5 rows
        (_set(1, 3, column_offset=9), "columns 0..13 are not covered exactly once"),
        (lambda plan: plan["tables"][1]["shards"].pop(), "rows 0..5 of columns 4..8"),
        (lambda plan: plan["tables"][1].update(name="whole"), 'table "whole" stands twice'),
        (_copies((0,), (6,)), "one copy on each of 2 ranks"),
        (_copies((1, 0), (6, 6)), "one copy on each of 2 ranks, in order"),
        (_copies((0, 1), (6, 5)), "every copy to be the whole table"),
    ],
)
def test_tables_that_are_not_covered_exactly_once(change: Callable[[dict], None], message: str) -> None:
    plan = tiny_plan()
    change(plan)
    plan["plan_digest"] = plan_digest(plan)
    with pytest.raises(PlanRejected, match=message):
        check_plan(plan, world_size=2, ranks_per_host=2)


def test_whole_copies_on_every_rank_pass() -> None:
    plan = tiny_plan()
    _copies((0, 1), (6, 6))(plan)
    plan["plan_digest"] = plan_digest(plan)
    assert check_plan(plan, world_size=2, ranks_per_host=2)["tables"][0]["sharding_type"] == "data_parallel"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan.update(schema_version=2), "schema_version 2"),
        (lambda plan: plan.pop("spec_digest"), "has no spec_digest"),
        (lambda plan: plan.update(world_size=True), "world_size is not a positive whole number"),
        (lambda plan: plan.update(tables=[]), "at least one table"),
        (lambda plan: plan.update(tables=[3]), "table 0 is not an object"),
        (lambda plan: plan["tables"][0].pop("compute_kernel"), "table 0 has no compute_kernel"),
        (lambda plan: plan["tables"][0].update(shards=[]), "table 0 has no shards"),
        (_set(0, 0, rank=-1), "table 0 has a shard without rank"),
        (_set(0, 0, num_rows=6.0), "table 0 has a shard without rank"),
    ],
)
def test_documents_that_are_no_plans(change: Callable[[dict], object], message: str) -> None:
    plan = tiny_plan()
    change(plan)
    with pytest.raises(PlanRejected, match=message):
        check_plan(plan, world_size=2, ranks_per_host=2)
