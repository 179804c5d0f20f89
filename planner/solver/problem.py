"""The solver problem: what a planner decides as arrays of numbers, and the answer as arrays of indices.

Left of this module live names and meaning; right of it (partitioners, bounds, evaluate)
only indices, bytes and seconds. Letters mean the same everywhere: t table, f family,
s shape, o option, u unit, r rank, h host, p phase, m memory tier.

A family is one way (scheme and kernel) to shard one table. A shape is a piece that a family
can be cut into: a number of columns with its seconds and bytes. A partitioner that wants a cut of a
family picks shapes whose columns add up to the table's; equal pieces are one shape, so that
every price exists once. Options are the cuts that are listed for partitioners that choose
from a list; a search may make any other cut of the shapes.
"""

import enum
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cost_models.arrays import Bools, Codes, Floats, Ints, freeze
from planner.solver.segments import ranges_of


class Scope(enum.IntEnum):
    """What one piece is placed on.

    A host is here, and in all of the solver, a group of ranks that row cuts go over: the ranks of a pod where the
    cluster has pods of hosts.
    """

    RANK = 0  #: one rank of choice
    HOST = 1  #: one equal part on every rank of one host of choice
    WORLD = 2  #: one part, or a replica, on every rank


class Objective(enum.IntEnum):
    """What is minimised."""

    STEP_TIME = 0  #: sum over phases of the slowest rank in that phase
    MAX_RANK_TIME = 1  #: slowest rank's sum over phases


def no_ints() -> Ints:
    """Return an empty index array."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class MovePrice:
    """Where the cells of tables lie now, and what it costs to plan them elsewhere. Arrays are read-only.

    What a rank holds after the move and did not hold before is moved to it: every shard of a
    new plan costs the bytes of its cells outside the shards that its rank has now.
    """

    seconds_per_byte: float  # added to the objective of one step for every byte that moves
    any_seconds: float  # added once, where anything moves at all
    max_bytes: float  # that may move; infinite where all may
    cell_bytes: Floats  # (T,) 0 for tables of which nothing is there yet
    table_rows: Ints  # (T,)
    # Shards as they are, sorted by table and there by rank; ranks may be beyond those of the new cluster.
    shard_table: Ints  # (K,)
    shard_rank: Ints  # (K,)
    shard_rows: Ints  # (K, 2) first row and one past the last
    shard_columns: Ints  # (K, 2)
    family_replicated: Bools  # (F,) whether every rank holds all rows
    family_in_use: Bools  # (F,) families that tables are cut by now, which are worth keeping
    family_moved_cells: Floats  # (F,) of families that lie on all ranks, for which there is only one way to do it
    # Pieces as they are, of the tables that may stay as they are: by table, left to right.
    home_shape: Ints = field(default_factory=no_ints)  # (K',)
    home_site: Ints = field(default_factory=no_ints)  # (K',)

    def __post_init__(self) -> None:
        """Check the numbers and freeze the arrays."""
        if not (self.seconds_per_byte >= 0 and self.any_seconds >= 0 and self.max_bytes >= 0):
            raise ValueError("Expected prices and a budget of 0 or more.")
        if np.any(np.diff(self.shard_table) < 0):
            raise ValueError("Expected shards in the order of their tables.")
        freeze(self)

    def of_families(self, keep: Bools) -> "MovePrice":
        """Return the same prices with some of the families, shape (F,)."""
        return replace(
            self,
            family_replicated=self.family_replicated[keep],
            family_in_use=self.family_in_use[keep],
            family_moved_cells=self.family_moved_cells[keep],
        )


@dataclass(frozen=True, kw_only=True)
class OwnStep:
    """What of a plan's seconds is its own step, for no longer than which tiers may be busy. Arrays are read-only."""

    phase_weight: Floats  # (P,) 1 for phases that a step has, else 0
    phase_window_seconds: Floats  # (P,) hidden under dense compute
    rest_seconds: float  # of a step, in addition to its phases

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze(self)


@dataclass(frozen=True, kw_only=True)
class SolverProblem:
    """Every legal way to cut every table, priced. Arrays are read-only."""

    objective: Objective
    table_columns: Ints  # (T,) columns that the pieces of a table add up to
    # Families of a table are contiguous.
    family_table: Ints  # (F,)
    family_scope: Codes  # (F,) Scope codes
    family_same_host: Bools  # (F,) whether the RANK pieces must share a host
    family_min_pieces: Ints  # (F,)
    family_max_pieces: Ints  # (F,)
    # Shapes of a family are contiguous, narrowest first.
    shape_family: Ints  # (S,)
    shape_columns: Ints  # (S,)
    shape_seconds: Floats  # (S, P) added to every rank that a piece touches, at relative speed 1
    shape_bytes: Floats  # (S, M) added to every rank that a piece touches
    #: (S, M) over all ranks together; less than ``shape_bytes`` x ranks where the last row block
    #: is shorter than the others. For bounds and proofs: they may not count rows that are not there.
    shape_total_bytes: Floats
    # Listed options: those of a family are contiguous, as are the units of an option.
    option_family: Ints  # (O,)
    unit_option: Ints  # (U,)
    unit_shape: Ints  # (U,)
    capacity_bytes: Floats  # (R, M) after reservations
    host_of_rank: Ints  # (R,)
    rank_slowdown: Floats  # (R, P) factor on the seconds of a piece; 1 where all ranks are equal
    table_rank_allowed: Bools  # (T, R)
    phase_weight: Floats  # (P,) 1 for phases that the objective counts, else 0
    phase_window_seconds: Floats  # (P,) hidden under dense compute
    same_rank: tuple[Ints, ...] = ()  # groups of tables that share one rank
    apart: tuple[Ints, ...] = ()  # groups of tables of which no two share a rank
    # Pieces that the user fixed, in the order of their tables; all pieces of a table or none.
    pinned_shape: Ints = field(default_factory=no_ints)  # (K,)
    pinned_site: Ints = field(default_factory=no_ints)  # (K,)
    # Tables whose cut is fixed while its sites are free: columns of each piece, left to right, in the order of tables.
    fixed_cut_table: Ints = field(default_factory=no_ints)  # (J,)
    fixed_cut_columns: Ints = field(default_factory=no_ints)  # (J,)
    #: (F,) memo of where a family came from; opaque to partitioners and bounds
    family_source: Ints = field(default_factory=no_ints)
    #: what it costs to move away from a plan that runs already; ``None`` where there is none
    move: MovePrice | None = None
    #: (S, K) seconds for which a piece keeps each slower tier of every rank that it touches busy in one step; no price;
    #: ``None`` where no piece reads one
    shape_busy_seconds: Floats | None = None
    #: ``None`` where plans may keep these tiers busy for longer than their own step
    own_step: OwnStep | None = None
    # Kinds of families. A plan that uses a kind pays its starts once, on every rank; K is 0 where nothing is started.
    family_kind: Ints = field(default_factory=no_ints)  # (F,), or empty
    kind_start_seconds: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (K, P)
    #: (K,) kinds whose starts searches and bounds charge to every plan, used or not; others they leave out
    charged_kinds: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        if self.shape_seconds.shape != (self.num_shapes, self.num_phases):
            raise ValueError("Expected shape_seconds of shape (shapes, phases).")
        if self.shape_bytes.shape != (self.num_shapes, self.num_tiers):
            raise ValueError("Expected shape_bytes of shape (shapes, tiers).")
        if self.shape_total_bytes.shape != self.shape_bytes.shape:
            raise ValueError("Expected shape_total_bytes of the shape of shape_bytes.")
        if self.table_rank_allowed.shape != (self.num_tables, self.num_ranks):
            raise ValueError("Expected table_rank_allowed of shape (tables, ranks).")
        if self.rank_slowdown.shape != (self.num_ranks, self.num_phases):
            raise ValueError("Expected rank_slowdown of shape (ranks, phases).")
        if self.num_kinds and (
            self.family_kind.shape != self.family_table.shape
            or self.kind_start_seconds.shape[1] != self.num_phases
            or self.charged_kinds.shape != (self.num_kinds,)
        ):
            raise ValueError(
                "Expected family_kind, kind_start_seconds and charged_kinds of families, kinds and phases."
            )
        for name in ("family_table", "shape_family", "option_family", "unit_option"):
            if np.any(np.diff(getattr(self, name)) < 0):
                raise ValueError(f"Expected {name} to be sorted.")
        freeze(self)

    @property
    def num_tables(self) -> int:
        """T."""
        return int(self.table_columns.shape[0])

    @property
    def num_families(self) -> int:
        """F."""
        return int(self.family_table.shape[0])

    @property
    def num_shapes(self) -> int:
        """S."""
        return int(self.shape_family.shape[0])

    @property
    def num_options(self) -> int:
        """O."""
        return int(self.option_family.shape[0])

    @property
    def num_ranks(self) -> int:
        """R."""
        return int(self.host_of_rank.shape[0])

    @property
    def num_hosts(self) -> int:
        """H."""
        return int(self.host_of_rank[-1]) + 1

    @property
    def ranks_per_host(self) -> int:
        """R / H."""
        return self.num_ranks // self.num_hosts

    @property
    def num_phases(self) -> int:
        """P."""
        return int(self.phase_weight.shape[0])

    @property
    def num_tiers(self) -> int:
        """M."""
        return int(self.capacity_bytes.shape[1])

    @property
    def num_kinds(self) -> int:
        """K."""
        return int(self.kind_start_seconds.shape[0])

    @cached_property
    def charged_seconds(self) -> Floats:
        """Starts that searches and bounds charge to every plan, (P,)."""
        if not self.num_kinds:
            return np.zeros(self.num_phases)
        charged: Floats = self.charged_kinds @ self.kind_start_seconds
        return charged

    @cached_property
    def window_seconds(self) -> Floats:
        """What is hidden of each phase, less the starts that are charged, (Q,): negative where these are longer.

        For max_rank_time Q is 1: of the sum over phases nothing is hidden.
        """
        if self.objective is Objective.MAX_RANK_TIME:
            return np.array([-float(self.phase_weight @ self.charged_seconds)])
        window: Floats = self.phase_window_seconds - self.charged_seconds
        return window

    @cached_property
    def option_table(self) -> Ints:
        """Table of each option, (O,)."""
        return self.family_table[self.option_family]

    @cached_property
    def shape_table(self) -> Ints:
        """Table of each shape, (S,)."""
        return self.family_table[self.shape_family]

    @cached_property
    def shape_scope(self) -> Codes:
        """Scope code of each shape, (S,)."""
        return self.family_scope[self.shape_family]

    @cached_property
    def unit_scope(self) -> Codes:
        """Scope code of each unit, (U,)."""
        return self.shape_scope[self.unit_shape]

    @cached_property
    def shape_ranks(self) -> Ints:
        """Number of ranks that a piece of each shape lands on, (S,)."""
        by_scope = np.array([1, self.ranks_per_host, self.num_ranks], dtype=np.int64)
        touched: Ints = by_scope[self.shape_scope]
        return touched

    @cached_property
    def units_of_option(self) -> tuple[Ints, Ints]:
        """First unit of each option and one past its last, each (O,)."""
        return ranges_of(self.unit_option, self.num_options)

    @cached_property
    def options_of_family(self) -> tuple[Ints, Ints]:
        """First option of each family and one past its last, each (F,)."""
        return ranges_of(self.option_family, self.num_families)

    @cached_property
    def shapes_of_family(self) -> tuple[Ints, Ints]:
        """First shape of each family and one past its last, each (F,)."""
        return ranges_of(self.shape_family, self.num_families)

    @cached_property
    def families_of_table(self) -> tuple[Ints, Ints]:
        """First family of each table and one past its last, each (T,)."""
        return ranges_of(self.family_table, self.num_tables)

    @cached_property
    def table_is_pinned(self) -> Bools:
        """Whether the user fixed a table's pieces, (T,)."""
        pinned = np.zeros(self.num_tables, dtype=np.bool_)
        pinned[self.shape_table[self.pinned_shape]] = True
        return pinned

    @cached_property
    def table_has_fixed_cut(self) -> Bools:
        """Whether the pieces of a table have given widths, in a given order, (T,)."""
        fixed = np.zeros(self.num_tables, dtype=np.bool_)
        fixed[self.fixed_cut_table] = True
        return fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The pieces of every table, each on a site; those of a table contiguous, left to right."""

    piece_shape: Ints  # (N,)
    piece_site: Ints  # (N,) rank, host or 0 (WORLD)

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        if self.piece_shape.shape != self.piece_site.shape:
            raise ValueError("Expected one site per piece.")
        freeze(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxationHint:
    """What a relaxation says about good plans: a hint for searches, never a constraint."""

    option: Ints  # (T,) listed options that it takes most of, rounded in the way that promises most
    second_option: Ints  # (T,) the same, rounded in another way
    slowest_seconds: Floats  # (Q,) slowest rank per phase (one phase for max_rank_time)
    memory_price: Floats  # (M,) seconds per byte of the whole cluster


class Reason(enum.StrEnum):
    """Why a search ended, as MathOpt names it."""

    OPTIMAL = "OPTIMAL"  #: no better plan exists, within the tolerance asked for
    FEASIBLE = "FEASIBLE"  #: a plan was found and a limit was reached before a proof
    INFEASIBLE = "INFEASIBLE"  #: proven: no plan exists
    NO_SOLUTION_FOUND = "NO_SOLUTION_FOUND"  #: a limit was reached before any plan was found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a partitioner returns: a plan or none, and why the search ended; a value, never an exception."""

    assignment: Assignment | None
    reason: Reason
    limit: str | None = (
        None  # "time", "deterministic_time", "no_improvement", "size", "iterations", "cutoff", "cancelled"
    )
    detail: str = ""
    #: lower bound over the listed options that the search itself proved, seconds; 0 where it proved nothing
    bound_seconds: float = 0.0
    partitioner: str = ""
    #: when the assignment was found, monotonic clock; ``None`` where the search says no more than its end
    found_at_seconds: float | None = None

    def __post_init__(self) -> None:
        """An assignment comes with OPTIMAL or FEASIBLE, and only then."""
        solved = self.reason in (Reason.OPTIMAL, Reason.FEASIBLE)
        if solved != (self.assignment is not None):
            raise ValueError("Expected an assignment exactly when the reason is OPTIMAL or FEASIBLE.")

    @classmethod
    def without_plan(
        cls, partitioner: str, limit: str | None, detail: str = "", bound_seconds: float = 0.0
    ) -> "Outcome":
        """Return the outcome of a search that a limit ended before any plan was found."""
        return cls(
            assignment=None,
            reason=Reason.NO_SOLUTION_FOUND,
            limit=limit,
            detail=detail,
            bound_seconds=bound_seconds,
            partitioner=partitioner,
        )
