"""What every reader of a plan in another form takes, and what it returns: a document of ours."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.schemas.table import TableSpec
from planner.domain.problem.table import Table
from planner.errors import Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """What a plan in another form lacks: the tables of the model, of a problem or a spec, and the cluster."""

    tables: Sequence[Table | TableSpec]
    world_size: int
    ranks_per_host: int


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
