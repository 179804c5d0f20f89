"""Caches of plans from elsewhere: what TorchRec would make of them."""

import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.table import TableConstraints
from planner.verification.verify import verify
from tests.support.planning.builders import SSD, make_cluster, make_problem, make_table

HBM_BYTES = 1e9


def found(kernel: Kernel, ranks: tuple[int, ...], reserved: float | None = None) -> list[tuple[str, str]]:
    """Return codes and pointers of what is wrong with a table cut into a piece for each of these ranks."""
    width = 64 // len(ranks)
    any_kernel = TableConstraints(compute_kernels=frozenset(Kernel))
    cluster = make_cluster(1, 4, hbm_bytes=HBM_BYTES, **{"ddr_bytes": 1e12, **SSD})
    problem = make_problem(
        make_table("t", 1000, 64, optimizer="rowwise_adagrad", constraints=any_kernel), cluster=cluster
    )
    placed = TablePlacement(
        name="t",
        sharding_type=Scheme.COLUMN_WISE,
        compute_kernel=kernel,
        cache_load_factor=0.1,
        cache_reserved_bytes=reserved,
        shards=Shards.of(
            Shard(
                rank=rank,
                row_offset=0,
                num_rows=1000,
                column_offset=index * width,
                num_columns=width,
                tier=kernel.tier(Tier.HBM),
            )
            for index, rank in enumerate(ranks)
        ),
    )
    placement = Placement(world_size=4, ranks_per_host=4, tables=(placed,))
    return [(issue.code, issue.pointer) for issue in verify(problem, placement) if issue.code != "memory"]


def test_column_pieces_of_a_table_on_a_drive_need_a_rank_each() -> None:
    assert found(Kernel.KEY_VALUE, (0, 1)) == []
    assert found(Kernel.KEY_VALUE, (0, 0)) == [("key-value-pieces", "/tables/0")]
    assert found(Kernel.FUSED_UVM_CACHING, (0, 0)) == []


@pytest.mark.parametrize("kernel", [Kernel.KEY_VALUE, Kernel.FUSED_UVM_CACHING])
def test_reserved_bytes_are_less_than_an_accelerator_has(kernel: Kernel) -> None:
    assert found(kernel, (0, 1), 0.5) == []
    assert found(kernel, (0, 1), HBM_BYTES - 1) == []
    for absurd in (HBM_BYTES, 1e300):
        assert found(kernel, (0, 1), absurd) == [("cache-reserved", "/tables/0/cache_reserved_bytes")]
