"""The runtime without rules of its own."""

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.generic import Generic
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table


def test_it_runs_what_torchrec_does_not() -> None:
    """Means of partial bags, sequences by host, wide shards."""
    tables = [make_table("mean", pooling="mean"), make_table("sequence", pooling="none"), make_table("wide", dim=2048)]
    cluster = make_cluster(2, 2)
    listed = {
        name: {
            (one.table, one.scheme)
            for one in enumerate_families(make_problem(*tables, cluster=cluster, runtime=name)).families
        }
        for name in ("torchrec", "generic")
    }
    more = listed["generic"] - listed["torchrec"]
    assert {(0, Scheme.GRID_SHARD), (1, Scheme.TABLE_ROW_WISE), (2, Scheme.TABLE_WISE)} <= more
    assert listed["torchrec"] <= listed["generic"]


def test_kernels_are_those_offered() -> None:
    table, offered = make_table(), frozenset({Kernel.DENSE, Kernel.FUSED_UVM})
    assert Generic().kernels(table, Scheme.DATA_PARALLEL, offered) == (Kernel.DENSE,)
    assert Generic().kernels(table, Scheme.ROW_WISE, offered) == (Kernel.FUSED_UVM,)


def test_what_no_kernel_does_is_rejected() -> None:
    """Caches without a share, shares without a cache, ``dense`` next to replicas alone, ``key_value`` with Adam."""
    table = make_table(optimizer="adam")
    problem = make_problem(table, runtime="generic")

    def faults(kernel: Kernel, share: float | None, tier: Tier) -> set[str]:
        shards = Shards.of_columns(rank=0, row_offset=0, num_rows=1000, column_offset=0, num_columns=64, tier=tier)
        placed = TablePlacement(
            name="t", sharding_type=Scheme.TABLE_WISE, compute_kernel=kernel, cache_load_factor=share, shards=shards
        )
        return {issue.code for issue in verify(problem, Placement(world_size=4, ranks_per_host=4, tables=(placed,)))}

    assert faults(Kernel.FUSED, None, Tier.HBM) == set()
    assert faults(Kernel.FUSED_UVM_CACHING, 1.0, Tier.DDR) == set()
    for share in (None, 0.0, -1.0, 5.0):
        assert faults(Kernel.FUSED_UVM_CACHING, share, Tier.DDR) == {"cache"}
    assert faults(Kernel.FUSED_UVM, 0.5, Tier.DDR) == {"cache"}
    assert faults(Kernel.DENSE, None, Tier.HBM) == {"kernel"}
    assert "kernel" in faults(Kernel.KEY_VALUE, 0.5, Tier.SSD)
