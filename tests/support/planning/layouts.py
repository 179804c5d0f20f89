"""Tables laid out by hand under any scheme, as a checkpoint of another cluster has them."""

from collections.abc import Sequence

from cost_models.vocabulary import Holders, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.table import Table

Cut = tuple[int, int, int, int, int]  # rank, row offset, rows, column offset, columns


def laid_out(
    table: Table,
    scheme: Scheme,
    *,
    widths: Sequence[int] = (),
    num_ranks: int = 4,
    ranks_per_host: int = 2,
    kernel: Kernel = Kernel.FUSED,
    first: int = 0,
) -> TablePlacement:
    """A table in pieces of these widths, left to right, each on the next rank, or host, from the ``first`` on."""
    cuts: list[Cut] = []
    offset = 0
    for number, columns in enumerate(widths or [table.embedding_dim]):
        if scheme.is_replicated:
            cuts += [(rank, 0, table.num_embeddings, 0, columns) for rank in range(num_ranks)]
        elif not scheme.facts.cuts_rows:
            cuts.append(((first + number) % num_ranks, 0, table.num_embeddings, offset, columns))
        else:
            ranks = range(num_ranks)
            if scheme.facts.holders is Holders.HOST:
                host = (first + number) % (num_ranks // ranks_per_host)
                ranks = range(host * ranks_per_host, (host + 1) * ranks_per_host)
            block = -(-table.num_embeddings // len(ranks))
            cuts += [
                (rank, place * block, min(block, table.num_embeddings - place * block), offset, columns)
                for place, rank in enumerate(ranks)
            ]
        offset += columns
    rank, row_offset, num_rows, column_offset, num_columns = zip(*cuts, strict=True)
    return TablePlacement(
        name=table.name,
        sharding_type=scheme,
        compute_kernel=kernel,
        shards=Shards.of_columns(
            rank=rank,
            row_offset=row_offset,
            num_rows=num_rows,
            column_offset=column_offset,
            num_columns=num_columns,
            tier=kernel.tier(Tier.HBM),
        ),
    )


def laid_out_on(num_ranks: int, ranks_per_host: int, *tables: TablePlacement) -> Placement:
    """The plan that has these tables."""
    return Placement(world_size=num_ranks, ranks_per_host=ranks_per_host, tables=tables)
