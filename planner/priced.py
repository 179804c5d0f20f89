"""The waist: a planning problem as arrays of numbers, and the answer as arrays of indices.

Left of this module live names and meaning; right of it (partitioners, bounds, evaluate)
only indices, bytes and seconds. Letters mean the same everywhere: t table, o option of a
table, u unit (the smallest thing placed whole), r rank, h host, p phase, m memory tier.
"""

import enum
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Bools = NDArray[np.bool_]


class Scope(enum.IntEnum):
    """What one unit is placed on."""

    RANK = 0  #: one rank of choice
    HOST = 1  #: one equal piece on every rank of one host of choice
    WORLD = 2  #: one piece, or a replica, on every rank


class Objective(enum.IntEnum):
    """What is minimised."""

    STEP_TIME = 0  #: sum over phases of the slowest rank in that phase
    MAX_RANK_TIME = 1  #: slowest rank's sum over phases


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOptions:
    """Every legal option of every table, priced. Arrays are read-only."""

    objective: Objective
    option_table: Ints  # (O,) owner of each option; options of a table are contiguous
    option_same_host: Bools  # (O,) whether the option's RANK units must share a host
    unit_option: Ints  # (U,) owner of each unit; units of an option are contiguous
    unit_scope: Codes  # (U,) Scope codes
    unit_seconds: Floats  # (U, P) added to every rank that the unit touches
    unit_bytes: Floats  # (U, M) added to every rank that the unit touches
    #: (U, M) over all ranks together; less than ``unit_bytes`` x ranks where the last row block
    #: is shorter than the others. For bounds and proofs: they may not count rows that are not there.
    unit_total_bytes: Floats
    capacity_bytes: Floats  # (R, M) after reservations
    host_of_rank: Ints  # (R,)
    table_rank_allowed: Bools  # (T, R)
    phase_weight: Floats  # (P,) 1 for phases that the objective counts, else 0
    phase_window_seconds: Floats  # (P,) hidden under dense compute
    same_rank: tuple[Ints, ...] = ()  # groups of tables that share one rank
    apart: tuple[Ints, ...] = ()  # groups of tables of which no two share a rank
    #: (O,) memo of where an option came from; opaque to everything right of the waist
    option_source: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        """Check shapes and freeze the arrays."""
        if self.unit_seconds.shape != (self.num_units, self.num_phases):
            raise ValueError("Expected unit_seconds of shape (units, phases).")
        if self.unit_bytes.shape != (self.num_units, self.num_tiers):
            raise ValueError("Expected unit_bytes of shape (units, tiers).")
        if self.unit_total_bytes.shape != self.unit_bytes.shape:
            raise ValueError("Expected unit_total_bytes of the shape of unit_bytes.")
        if self.table_rank_allowed.shape != (self.num_tables, self.num_ranks):
            raise ValueError("Expected table_rank_allowed of shape (tables, ranks).")
        if np.any(np.diff(self.option_table) < 0) or np.any(np.diff(self.unit_option) < 0):
            raise ValueError("Expected options sorted by table and units sorted by option.")
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def num_tables(self) -> int:
        """T."""
        return int(self.table_rank_allowed.shape[0])

    @property
    def num_options(self) -> int:
        """O."""
        return int(self.option_table.shape[0])

    @property
    def num_units(self) -> int:
        """U."""
        return int(self.unit_option.shape[0])

    @property
    def num_ranks(self) -> int:
        """R."""
        return int(self.host_of_rank.shape[0])

    @property
    def num_hosts(self) -> int:
        """H."""
        return int(self.host_of_rank[-1]) + 1

    @property
    def num_phases(self) -> int:
        """P."""
        return int(self.phase_weight.shape[0])

    @property
    def num_tiers(self) -> int:
        """M."""
        return int(self.capacity_bytes.shape[1])

    @property
    def ranks_touched(self) -> Ints:
        """Number of ranks that each unit lands on, (U,)."""
        by_scope = np.array([1, self.num_ranks // self.num_hosts, self.num_ranks], dtype=np.int64)
        touched: Ints = by_scope[self.unit_scope]
        return touched

    @property
    def units_of_option(self) -> tuple[Ints, Ints]:
        """First unit of each option and one past its last, each (O,)."""
        options = np.arange(self.num_options)
        return np.searchsorted(self.unit_option, options), np.searchsorted(self.unit_option, options, side="right")

    @property
    def options_of_table(self) -> tuple[Ints, Ints]:
        """First option of each table and one past its last, each (T,)."""
        tables = np.arange(self.num_tables)
        return np.searchsorted(self.option_table, tables), np.searchsorted(self.option_table, tables, side="right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One option per table and one site per unit."""

    chosen_option: Ints  # (T,)
    unit_site: Ints  # (U,) rank, host or 0 (WORLD); -1 where the unit's option is not chosen

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        self.chosen_option.flags.writeable = False
        self.unit_site.flags.writeable = False


class Reason(enum.StrEnum):
    """Why a search ended, as MathOpt names it."""

    OPTIMAL = "OPTIMAL"  #: no better plan exists, within the tolerance asked for
    FEASIBLE = "FEASIBLE"  #: a plan was found and a limit was reached before a proof
    INFEASIBLE = "INFEASIBLE"  #: proven: no plan exists
    NO_SOLUTION_FOUND = "NO_SOLUTION_FOUND"  #: a limit was reached before any plan was found


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """Why a search ended; a value, never an exception."""

    reason: Reason
    limit: str | None = None  # "time", "deterministic_time", "size", "iterations", "cancelled"
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a partitioner returns."""

    assignment: Assignment | None
    termination: Termination
    #: lower bound that the search itself proved, seconds; 0 where it proved nothing
    bound_seconds: float = 0.0
    partitioner: str = ""

    def __post_init__(self) -> None:
        """An assignment comes with OPTIMAL or FEASIBLE, and only then."""
        solved = self.termination.reason in (Reason.OPTIMAL, Reason.FEASIBLE)
        if solved != (self.assignment is not None):
            raise ValueError("Expected an assignment exactly when the reason is OPTIMAL or FEASIBLE.")
