"""Real TorchRec, trained under plans, ends where the unsharded model ends."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from cost_models.vocabulary import Scheme
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import LONELY, MIXED, SEQUENCES, hand_plan
from tests.support.torchrec.harness import LEAST_MOVE, TOLERANCE, Case, Difference, run_cases
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.service_plans import forced_plan, free_plan

pytestmark = pytest.mark.torchrec

CLUSTERS = ((2, 2), (4, 4), (4, 2))  # ranks, ranks per host
#: name, tables, where the plan comes from, optimizer
TRAININGS = (
    ("mixed", MIXED, hand_plan, "sgd"),
    ("mixed", MIXED, hand_plan, "rowwise_adagrad"),
    ("lonely", LONELY, hand_plan, "sgd"),
    ("lonely", LONELY, hand_plan, "rowwise_adagrad"),
    ("sequences", SEQUENCES, hand_plan, "sgd"),
    ("sequences", SEQUENCES, hand_plan, "rowwise_adagrad"),
    ("forced_sequences", SEQUENCES, forced_plan, "rowwise_adagrad"),
    ("forced", MIXED, forced_plan, "sgd"),
    ("forced", MIXED, forced_plan, "rowwise_adagrad"),
    ("free", MIXED, free_plan, "rowwise_adagrad"),
)

#: Schemes whose pieces stay on a host, or in a pod.
HOST_SCHEMES = {"table_row_wise", "table_column_wise", "grid_shard"}
GRID = next(table for table in MIXED if table.scheme == "grid_shard")


def test_the_mixed_model_has_every_scheme() -> None:
    assert {table.scheme for table in MIXED} == set(Scheme.labels())


@pytest.mark.parametrize(
    ("world_size", "ranks_per_host"), [CLUSTERS[0], *(pytest.param(*shape, marks=thorough) for shape in CLUSTERS[1:])]
)
def test_plans_train_like_the_unsharded_model(world_size: int, ranks_per_host: int, tmp_path: Path) -> None:
    cases = [
        Case(
            name=f"{name}-{optimizer}",
            tables=tables,
            plan=make_plan(tables, world_size, ranks_per_host),
            optimizer=optimizer,
        )
        for name, tables, make_plan, optimizer in TRAININGS
    ]
    differences = run_cases(cases, world_size=world_size, ranks_per_host=ranks_per_host, folder=tmp_path)
    assert list(differences) == [case.name for case in cases]
    for name, difference in differences.items():
        assert_equal_training(name, difference)


@pytest.mark.parametrize(
    ("world_size", "ranks_per_host", "pod_size"),
    [pytest.param(*shape, marks=thorough) for shape in ((4, 1, 2), (4, 2, 4), (8, 2, 4))],
)
def test_plans_for_pods_train_like_the_unsharded_model(
    world_size: int, ranks_per_host: int, pod_size: int, tmp_path: Path
) -> None:
    """Two pods of two hosts, and one: rows and columns are cut over the ranks of several hosts."""
    shape = (world_size, ranks_per_host, pod_size)
    every = [table for table in MIXED if world_size < 8 or table.name != "weighted_rows"]  # 41 rows: 8 x 6 are too many
    no_grid = [table for table in every if table.scheme != "grid_shard"]
    cases = [
        Case(name="hand-sgd", tables=every, plan=hand_plan(every, *shape), optimizer="sgd"),
        Case(name="hand-rows", tables=no_grid, plan=hand_plan(no_grid, *shape), optimizer="rowwise_adagrad"),
        Case(name="forced-sgd", tables=every, plan=forced_plan(every, *shape, "sgd"), optimizer="sgd"),
        Case(name="forced-rows", tables=no_grid, plan=forced_plan(no_grid, *shape), optimizer="rowwise_adagrad"),
        Case(name="free-rows", tables=every, plan=free_plan(every, *shape), optimizer="rowwise_adagrad"),
    ]
    for case in cases[:-1]:
        schemes = {table.scheme for table in case.tables} & HOST_SCHEMES
        if case.name.startswith("forced"):  # the planner may find one host enough for column pieces
            schemes -= {"table_column_wise"}
        assert spans_hosts(case.plan, ranks_per_host) >= schemes, case.name
    differences = run_cases(
        cases, world_size=world_size, ranks_per_host=ranks_per_host, pod_size=pod_size, folder=tmp_path
    )
    for name, difference in differences.items():
        assert_equal_training(name, difference)


@thorough
def test_a_grid_over_a_pod_cannot_be_built_with_state_for_each_row(tmp_path: Path) -> None:
    """Why no such plan is made: once TorchRec builds it, this test fails and the rule can go."""
    plan = hand_plan([GRID], 4, 1, 2)
    case = Case(name="grid", tables=[GRID], plan=plan, optimizer="rowwise_adagrad", unchecked=True)
    with pytest.raises(AssertionError, match="Total volume of shards: 153 does not match tensor volume: 306"):
        run_cases([case], world_size=4, ranks_per_host=1, pod_size=2, folder=tmp_path)


@thorough
def test_a_plan_for_pods_in_a_job_without_pods_ends_in_the_middle(tmp_path: Path) -> None:
    """Some rank has no shard where the plan has one: the client's check of pods names the variable instead."""
    table = TableSpec(name="t", rows=33, columns=20, features=("a",), scheme="table_row_wise")
    case = Case(name="lost", tables=[table], plan=hand_plan([table], 4, 1, 2), optimizer="sgd", unchecked=True)
    with pytest.raises(AssertionError, match=r"Number of local shards \(0\) does not match"):
        run_cases([case], world_size=4, ranks_per_host=1, folder=tmp_path)


def spans_hosts(plan: Mapping[str, Any], ranks_per_host: int) -> set[str]:
    """The schemes of a plan of which some table lies on the ranks of several hosts."""
    hosts = {table["name"]: {one["rank"] // ranks_per_host for one in table["shards"]} for table in plan["tables"]}
    return {table["sharding_type"] for table in plan["tables"] if len(hosts[table["name"]]) > 1}


def assert_equal_training(name: str, difference: Difference) -> None:
    """Every shard where the plan says, every weight equal, and every table moved."""
    print(name, f"loss {difference.losses:.1e} dense {difference.dense:.1e}", max(difference.tables.values()))
    assert difference.misplaced == [], name
    assert difference.largest < TOLERANCE, (name, difference)
    assert min(difference.moves.values()) > LEAST_MOVE, (name, difference.moves)
