"""Real TorchRec in sharding groups, trained under plans for them, ends where the unsharded model ends."""

from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from planner.domain.problem.replica_groups import ReplicaGroups
from tests.support.planning.builders import make_cluster
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import MIXED, SEQUENCES
from tests.support.torchrec.harness import LEAST_MOVE, TOLERANCE, Case, compare, outcomes, run_cases
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.service_plans import grouped_plan

pytestmark = pytest.mark.torchrec

#: Averages reach no table with the dense kernel that is sharded, and column pieces on one host have no shape elsewhere.
REPLICATED = tuple(
    table
    for table in MIXED
    if table.scheme == "data_parallel" or (table.kernel == "fused" and table.scheme != "table_column_wise")
)


def on_one_host(tables: tuple[TableSpec, ...]) -> tuple[TableSpec, ...]:
    """Tables that groups of one host, or of one rank per host, can have."""
    return tuple(
        table for table in tables if table.scheme in ("data_parallel", "table_wise", "column_wise", "row_wise")
    )


def ranks_of(groups: dict[str, object]) -> list[list[int]]:
    """The ranks of the job in each group, as ``DMPCollection`` has them."""
    job = make_cluster(
        num_hosts=groups["world_size"] // groups["ranks_per_host"], ranks_per_host=groups["ranks_per_host"]
    )
    size = groups["sharding_group_size"]
    found = ReplicaGroups(job=job, sizes=(size,), use_inter_host_allreduce=groups["use_inter_host_allreduce"])
    return [list(found.ranks_of(size, group)) for group in range(groups["num_groups"])]


@pytest.mark.parametrize(
    ("world_size", "ranks_per_host", "pod_size", "size", "contiguous", "tables"),
    [
        (4, 4, None, 2, False, on_one_host(REPLICATED)),
        pytest.param(4, 2, None, 2, True, on_one_host(SEQUENCES), marks=thorough),
        pytest.param(4, 2, None, 2, False, on_one_host(REPLICATED), marks=thorough),
        pytest.param(8, 4, None, 4, False, REPLICATED, marks=thorough),
        pytest.param(8, 2, None, 4, True, REPLICATED, marks=thorough),
        pytest.param(8, 1, 2, 4, True, REPLICATED, marks=thorough),  # a group of two pods of two hosts
        pytest.param(8, 1, 4, 4, False, REPLICATED, marks=thorough),  # two of each pod of four hosts
    ],
)
def test_groups_train_like_the_unsharded_model(
    world_size: int,
    ranks_per_host: int,
    pod_size: int | None,
    size: int,
    contiguous: bool,
    tables: tuple[TableSpec, ...],
    tmp_path: Path,
) -> None:
    groups = {"sharding_group_size": size, "use_inter_host_allreduce": contiguous}
    plan = grouped_plan(tables, world_size, ranks_per_host, groups, pod_size, "sgd")
    assert plan.get("pod_size") == (None if pod_size is None else 2)
    case = Case(name="groups", tables=tables, plan=plan, optimizer="sgd")
    run_cases([case], world_size=world_size, ranks_per_host=ranks_per_host, folder=tmp_path)
    every = ranks_of(plan["replica_groups"])
    assert sorted(rank for ranks in every for rank in ranks) == list(range(world_size))
    for ranks in every:
        difference = compare(case, ranks, world_size, tmp_path)
        assert difference.misplaced == []
        assert difference.largest < TOLERANCE, difference
        assert min(difference.moves.values()) > LEAST_MOVE, difference.moves


@thorough
@pytest.mark.parametrize("averages", [False, True])
def test_fully_sharded_groups(averages: bool, tmp_path: Path) -> None:
    """Lookups have all weights and a part of their average; without ``sync`` they see no other group's last update."""
    tables = tuple(
        TableSpec(name=f"t_{scheme}", rows=48, columns=32, features=(f"f_{scheme}",), scheme=scheme, kernel="fused")
        for scheme in ("table_wise", "row_wise")
    )
    plan = grouped_plan(tables, 4, 4, {"sharding_group_size": 2}, optimizer="sgd")
    case = Case(name="groups", tables=tables, plan=plan, optimizer="sgd", fully_sharded=True, averages=averages)
    run_cases([case], world_size=4, ranks_per_host=4, folder=tmp_path)
    difference = max(compare(case, ranks, 4, tmp_path).largest for ranks in ranks_of(plan["replica_groups"]))
    assert (difference < TOLERANCE) == averages
    assert averages or difference > LEAST_MOVE
    for held in outcomes("groups", 4, tmp_path):
        at = {moment: sorted((weights, part) for what, weights, part in held if what == moment) for moment, *_ in held}
        assert at["lookup"][0][0] > 0
        assert at["dense"] == [(0, part) for _, part in at["lookup"]]
        assert at["lookup"] == [(weights, weights // 2) for weights, _ in at["update"]]
        assert {part for _, part in at["update"]} == {0}
