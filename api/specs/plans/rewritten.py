"""What readers of plans in other forms share: what they take, and the document of ours that they return."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from api.schemas.table import TableSpec
from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.table import Table
from planner.errors import Issue

#: Rank, row offset, rows, column offset, columns of a shard.
Piece = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What a plan in another form lacks: the tables of the model, of a problem or a spec, and the cluster."""

    tables: Sequence[Table | TableSpec]
    world_size: int
    ranks_per_host: int
    device_tier: Tier  # where kernels of the device keep rows
    pod_size: int | None = None  # ranks of a pod, where groups of ranks are pods

    @property
    def ranks_per_group(self) -> int:
        """Ranks of a pod, or else of a host."""
        return self.pod_size or self.ranks_per_host


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMemory:
    """The memory of every rank as a planner printed it, without the dense part and the ids of a batch."""

    hbm_bytes: tuple[float, ...]  # by rank
    rounding_bytes: float  # how far the printed digits may be from what was meant
    #: Whether the planner counted an output row for an empty bag; None: both releases that do and do not print so.
    counts_empty_bags: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenPlan:
    """A plan in another form as a document of ours."""

    document: dict[str, object]
    pointers: tuple[str, ...] = ()  # where each of its tables stands in the other form
    warnings: tuple[Issue, ...] = ()  # what had to be assumed; pointers are into the other form
    printed_memory: PrintedMemory | None = None


def table_document(
    table: Table | TableSpec, *, module_path: str, sharding_type: str, kernel: Kernel, pieces: Iterable[Piece]
) -> dict[str, object]:
    """Return a table of a plan document, whose shards lie where the kernel keeps rows: no tier is written."""
    return {
        "name": table.name,
        "module_path": module_path,
        "sharding_type": sharding_type,
        "compute_kernel": kernel.label,
        "shards": [
            {
                "rank": rank,
                "row_offset": row_offset,
                "num_rows": num_rows,
                "column_offset": column_offset,
                "num_columns": num_columns,
            }
            for rank, row_offset, num_rows, column_offset, num_columns in pieces
        ],
    }
