"""Tables that lie whole on one rank each, as plans place them."""

from dataclasses import replace

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table


def whole_table(table: Table, *, rank: int = 0, kernel: Kernel = Kernel.FUSED, **changes: object) -> TablePlacement:
    """One table on one rank of accelerators, in the tier of its kernel; ``changes`` are fields of the placement."""
    shards = Shards.of_columns(
        rank=[rank],
        row_offset=0,
        num_rows=table.num_embeddings,
        column_offset=0,
        num_columns=table.embedding_dim,
        tier=kernel.tier(Tier.HBM),
    )
    placed = TablePlacement(name=table.name, sharding_type=Scheme.TABLE_WISE, compute_kernel=kernel, shards=shards)
    return replace(placed, **changes)  # type: ignore[arg-type]


def on_ranks(problem: Problem, *ranks: int) -> Placement:
    """Every table of a problem whole, each on one rank, with the kernel ``fused``."""
    return Placement(
        world_size=problem.world_size,
        ranks_per_host=problem.cluster.ranks_per_host,
        tables=tuple(whole_table(table, rank=rank) for table, rank in zip(problem.tables, ranks, strict=True)),
    )
