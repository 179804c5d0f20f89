"""What a training runtime executes correctly: the legality of options and of finished plans."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import MAX_COLUMNS, Table
from planner.errors import Issue

#: Code and message of the first rule that a table breaks.
TableIssue = tuple[str, str]


class OperatorIssue(NamedTuple):
    """What a table differs in from another one that the runtime holds with it."""

    where: str  # pointer of the table
    name: str
    field: str  # of the table, of a spec
    message: str  # goes on behind the name
    hint: str


class Runtime(ABC):
    """The rule set of one runtime; what a subclass leaves as it is here asks for nothing special.

    ``kernels``, ``scheme_issue`` and ``needs_row_wise_module`` shape the options;
    ``check`` looks at the geometry of a finished placement alone and shares no code with
    the options, so that an error on one side is caught by the other. Every runtime but
    ``generic`` lists the schemes that it has, and rejects new ones until it lists them.
    """

    #: The name used in specs.
    name: str
    #: Widest shard that the kernels are known to read right.
    max_columns: int = MAX_COLUMNS
    #: Schemes that count as "cut by rows" for ``needs_row_wise_module``.
    row_schemes: frozenset[Scheme] = frozenset()
    #: Whether a table's most used rows may lie in another tier than the rest, once rows are numbered by use.
    splits_off_hot_rows: bool = False
    #: Whether row blocks are dealt out row by row, so that neighbours lie on different ranks; else they are ranges.
    has_modulo_rows: bool = False
    #: Whether kernels that read the host's memory can read storage-class memory.
    supports_scm: bool = False
    #: Modes of hash tables that it has (:mod:`planner.domain.problem.hash_table`).
    hash_table_modes: frozenset[str] = frozenset()
    #: Bytes of the id that it stores with every row.
    row_key_bytes: float = 0.0
    #: Whether tables of one rank share FBGEMM operators, and caches with them
    #: (:mod:`planner.pricing.memory.operators`).
    shares_operators: bool = False
    #: Whether a step runs the tables of a module sharding type by sharding type, each with collectives of its own.
    runs_sharding_types_apart: bool = False
    #: Whether a plan can keep tables in operators of their own.
    keeps_caches_apart: bool = False
    #: Types of weights that its kernels look up.
    data_types: Collection[str] = DATA_TYPES.keys()
    #: Those of them that it can hold in training, whatever the optimizer.
    trained_data_types: Collection[str] = DATA_TYPES.keys()
    #: Optimizers that fused kernels have on hosts without accelerators; ``None`` for all.
    host_optimizers: frozenset[str] | None = None
    #: Largest cached share of a ``key_value`` table.
    max_key_value_share: float = 1.0
    #: Whether its ranks can be configured so that several hosts are one pod, so that groups of its schemes are pods.
    has_pods: bool = False
    #: Families of hardware profiles that it runs on; ``None`` for any.
    device_families: frozenset[str] | None = None
    #: Whether groups of ranks can be replicas of each other, each with all tables.
    has_replica_groups: bool = False
    #: Whether a job can leave out repeated ids of sequences before they are exchanged (``use_index_dedup``).
    has_index_dedup: bool = False
    #: Whether an export says more where the spec of the plan is at hand.
    export_reads_spec: bool = False

    @abstractmethod
    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """Return the kernels that run a scheme of a table, among those offered, fastest first."""

    def types_of_weights(self, *, is_trained: bool) -> tuple[str, ...]:
        """Return the types that weights may have in training, or in serving, widest first."""
        return tuple(
            name
            for name in DATA_TYPES
            if name in self.data_types and (not is_trained or name in self.trained_data_types)
        )

    def needs_equal_pieces(self, problem: Problem) -> bool:
        """Return whether a cached table must be cut into pieces of one width: those on one rank share a cache.

        TorchRec keeps shards of different widths apart while rows are fetched ahead (``group_tables``).
        """
        return self.shares_operators and problem.pipeline != PREFETCH_PIPELINE

    def widths_share_caches(self, problem: Problem) -> bool:
        """Return whether tables of different widths get one cache, whatever a plan states."""
        return self.needs_equal_pieces(problem) and not self.keeps_caches_apart

    def cache_reserved_bytes(self, index: int, storage: Storage, columns: int) -> float | None:
        """Return what a table's ``cache_reserved_bytes`` are in a plan, so that only its likes share its cache.

        ``index`` is its place in the plan, ``columns`` those of its widest piece.
        """
        return None

    def load_factors(self, table: Table) -> tuple[float, ...] | None:
        """Return the cached shares of a table's rows that are options, or ``None`` for those of all tables."""
        return None

    def has_one_share(self, table: Table) -> bool:
        """Whether a spec may name one cached share of a table's rows at most."""
        return False

    def operator_issues(self, tables: Mapping[str, Table]) -> Iterator[OperatorIssue]:
        """Yield what tables, by pointer, must not differ in because the runtime holds them in one operator."""
        return iter(())

    def name_issue(self, name: str) -> str | None:
        """Return why no table of the runtime can have this name, or ``None``."""
        return None

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why the runtime would reject a scheme of a table or train it wrongly, or ``None``."""
        return None

    def hash_table_issue(self, table: Table, cluster: Cluster) -> tuple[str, str] | None:
        """Return why it cannot hold a table's hash table on a cluster, whatever the scheme, and the way out."""
        return None

    def pod_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a scheme that the runtime has otherwise does not run over pods of several hosts, or ``None``."""
        return None

    def scheme_issue_on(self, cluster: Cluster, table: Table, scheme: Scheme) -> str | None:
        """Return why the runtime would reject a scheme of a table on a cluster or train it wrongly, or ``None``."""
        spans_hosts = cluster.ranks_per_group > cluster.ranks_per_host
        return self.scheme_issue(table, scheme) or (self.pod_issue(table, scheme) if spans_hosts else None)

    def replica_issue(self, table: Table, scheme: Scheme, kernel: Kernel) -> str | None:
        """Return why a table would not be the same in several groups that are replicas; ``None`` if it would."""
        del table, scheme, kernel
        return f"{self.name} has no replica groups"

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Return whether the scheme is right only if every table of the module is cut by rows."""
        return False

    def table_issue(self, table: Table, placed: TablePlacement, placement: Placement) -> TableIssue | None:
        """Return the first thing about a placed table that the runtime would not train correctly."""
        return None

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Return everything in a placement that the runtime would not train correctly: an issue per table at most.

        Tables that the problem lacks are reported by ``planner.verification.verify``.
        """
        tables = {table.name: table for table in problem.tables}
        return [
            Issue(code=issue[0], pointer=f"/tables/{index}", message=f'table "{placed.name}": {issue[1]}')
            for index, placed in enumerate(placement.tables)
            if placed.name in tables and (issue := self.table_issue(tables[placed.name], placed, placement))
        ]
