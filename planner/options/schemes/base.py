"""What a scheme is: a way to cut one table into pieces, each placed whole."""

from dataclasses import dataclass
from typing import Protocol

from cost_models.vocabulary import Scheme
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.solver.problem import Scope

#: Narrowest column piece unless a table's ``min_partition`` says otherwise: below 32 fp32
#: columns a row is less than one 128-byte memory transaction (TorchRec's lookup floor too).
DEFAULT_MIN_PARTITION = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A range of columns of a table, placed whole on a site of its scope.

    RANK: one shard of all rows. HOST: row blocks over the ranks of a host. WORLD: row
    blocks over all ranks, or a full copy on every rank where ``replicated``.
    """

    scope: Scope
    column_offset: int
    num_columns: int
    replicated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """What the pieces of one table look like under one scheme: how many, and where each lands."""

    scope: Scope
    replicated: bool = False
    same_host: bool = False  # whether RANK pieces must land on one host
    min_pieces: int = 1  # column pieces
    max_pieces: int = 1


class SchemeGeometry(Protocol):
    """Says how one scheme cuts tables on a cluster.

    Only geometry is decided here; whether a runtime executes it correctly is the business
    of :mod:`planner.options.runtimes`.
    """

    @property
    def scheme(self) -> Scheme:
        """The scheme."""
        ...

    def geometry(self, table: Table, cluster: Cluster) -> Geometry | None:
        """Return how the table is cut; ``None`` where the scheme does not fit its rows or the cluster."""
        ...
