"""Tables that TorchRec does not keep alike in all sharding groups are neither planned nor accepted."""

import pytest

from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.host_memory_fallback import allow_host_memory
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table


def grouped(table: Table, size: int = 2, **changes: object) -> Problem:
    groups = ReplicaGroups(job=make_cluster(1, 4), sizes=(size,))
    return make_problem(table, cluster=groups.cluster_of(size), replica_groups=groups, **changes)


def placed(table: Table, scheme: Scheme, kernel: Kernel, tier: Tier = Tier.HBM, **cache: float) -> Placement:
    """A whole table on rank 0, or copies on both ranks."""
    ranks = (0, 1) if scheme.is_replicated else (0,)
    shards = Shards.of(
        Shard(rank=rank, row_offset=0, num_rows=1000, column_offset=0, num_columns=64, tier=tier) for rank in ranks
    )
    found = TablePlacement(name=table.name, sharding_type=scheme, compute_kernel=kernel, shards=shards, **cache)
    return Placement(world_size=2, ranks_per_host=2, tables=(found,))


def codes(problem: Problem, placement: Placement) -> dict[str, str]:
    return {issue.code: issue.pointer for issue in verify(problem, placement)}


def test_fused_tables_and_copies_are_accepted() -> None:
    table = make_table()
    assert codes(grouped(table), placed(table, Scheme.TABLE_WISE, Kernel.FUSED)) == {}
    assert codes(grouped(table), placed(table, Scheme.DATA_PARALLEL, Kernel.DENSE)) == {}


@pytest.mark.parametrize(
    ("kernel", "tier", "cache"),
    [
        (Kernel.DENSE, Tier.HBM, {}),
        (Kernel.FUSED_UVM, Tier.DDR, {}),
        (Kernel.FUSED_UVM_CACHING, Tier.DDR, {"cache_load_factor": 0.2}),
    ],
)
def test_other_kernels_are_rejected_where_there_are_several_groups(
    kernel: Kernel, tier: Tier, cache: dict[str, float]
) -> None:
    table = make_table(constraints=TableConstraints(compute_kernels=frozenset({kernel})))
    problem, placement = grouped(table), placed(table, Scheme.TABLE_WISE, kernel, tier, **cache)
    assert codes(problem, placement) == {"replica-kernel": "/tables/0/compute_kernel"}
    families = enumerate_families(problem)
    assert not [family for family in families.families if not family.scheme.is_replicated]
    if not families.families:
        reasons = dict(families.scheme_issues[0])
        assert (
            reasons[Scheme.TABLE_WISE] == f"sharding groups average tables of the kernel fused, not of {kernel.label}"
        )
    alone = make_problem(table, cluster=make_cluster(1, 2))
    assert codes(alone, placement) == {}
    assert enumerate_families(alone).families


def test_an_optimizer_whose_state_has_another_name() -> None:
    table = make_table(optimizer="adam")
    problem = grouped(table)
    assert codes(problem, placed(table, Scheme.TABLE_WISE, Kernel.FUSED)) == {"replica-optimizer": "/tables/0"}
    assert {family.scheme for family in enumerate_families(problem).families} == {Scheme.DATA_PARALLEL}
    only_sharded = make_table(
        optimizer="adam", constraints=TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    )
    ((_, why),) = [
        one for one in enumerate_families(grouped(only_sharded)).scheme_issues[0] if one[0] is Scheme.TABLE_WISE
    ]
    assert why == "sharding groups average no state of the optimizer adam"


def test_column_pieces_on_one_host_are_not_for_groups() -> None:
    """DMPCollection raises on a rank without a piece: it knows no shape of the whole table there."""
    table = make_table(dim=128, constraints=TableConstraints(sharding_types=frozenset({Scheme.TABLE_COLUMN_WISE})))
    problem = grouped(table)
    assert not enumerate_families(problem).families
    assert "DMPCollection has no shape" in dict(enumerate_families(problem).scheme_issues[0])[Scheme.TABLE_COLUMN_WISE]
    assert enumerate_families(make_problem(table, cluster=make_cluster(1, 2))).families
    shards = Shards.of(
        Shard(rank=rank, row_offset=0, num_rows=1000, column_offset=64 * rank, num_columns=64, tier=Tier.HBM)
        for rank in (0, 1)
    )
    pieces = TablePlacement(
        name="t", sharding_type=Scheme.TABLE_COLUMN_WISE, compute_kernel=Kernel.FUSED, shards=shards
    )
    placement = Placement(world_size=2, ranks_per_host=2, tables=(pieces,))
    assert codes(problem, placement) == {"replica-scheme": "/tables/0/sharding_type"}


def test_host_memory_is_no_way_out_in_groups() -> None:
    table = make_table()
    assert allow_host_memory(grouped(table)) is None
    one_group = allow_host_memory(grouped(table, size=4))
    assert one_group is not None
    assert one_group.kernels == HOST_KERNELS


def test_a_plan_for_groups_of_another_size() -> None:
    table = make_table()
    (issue,) = verify(grouped(table, size=4), placed(table, Scheme.TABLE_WISE, Kernel.FUSED))
    assert issue.code == "cluster-mismatch"
    assert issue.message == "the plan is for 2 ranks, 2 per host; a sharding group has 4, 4 per host"
