"""What a scheme is: a way to cut one table into pieces, each placed whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from cost_models.vocabulary import Scheme
from planner.domain.cluster import Cluster
from planner.domain.table import Table
from planner.priced import Scope

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
class Cut:
    """One way to cut a table: pieces from left to right."""

    pieces: tuple[Piece, ...]
    same_host: bool = False  # whether RANK pieces must land on one host


class SchemeCuts(Protocol):
    """Lists every cut of a table that one scheme offers on a cluster.

    Only geometry is decided here; whether a runtime executes it correctly is the business
    of :mod:`planner.runtimes`.
    """

    @property
    def scheme(self) -> Scheme:
        """The scheme."""
        ...

    def cuts(self, table: Table, cluster: Cluster) -> Iterator[Cut]:
        """Yield cuts, coarsest first; nothing where the scheme does not fit the table."""
        ...


def whole_table(table: Table, scope: Scope, *, replicated: bool = False) -> Cut:
    """Return the cut that keeps all columns together."""
    piece = Piece(scope=scope, column_offset=0, num_columns=table.embedding_dim, replicated=replicated)
    return Cut(pieces=(piece,))
