"""Priced instances of a few units, small enough to add up by hand."""

from dataclasses import dataclass

import numpy as np

from planner.partitioners.builder import SearchView, search_view
from planner.priced import Objective, PricedOptions, Scope


@dataclass(frozen=True, slots=True)
class Unit:
    """Where a unit goes, and what it adds to every rank that it touches."""

    scope: Scope
    seconds: tuple[float, ...]
    num_bytes: float = 1.0


@dataclass(frozen=True, slots=True)
class Option:
    """A table's option."""

    table: int
    units: tuple[Unit, ...]
    same_host: bool = False


def hand_priced(
    *options: Option,
    capacity: float = 100.0,
    num_hosts: int = 2,
    ranks_per_host: int = 2,
    objective: Objective = Objective.STEP_TIME,
    weight: tuple[float, ...] = (),
    window: tuple[float, ...] = (),
    same_rank: tuple[tuple[int, ...], ...] = (),
    apart: tuple[tuple[int, ...], ...] = (),
    forbidden: tuple[tuple[int, int], ...] = (),
) -> PricedOptions:
    """Options in order of their tables; ``forbidden`` are (table, rank)."""
    units = [(index, unit) for index, option in enumerate(options) for unit in option.units]
    num_tables, num_ranks = options[-1].table + 1, num_hosts * ranks_per_host
    num_phases = len(units[0][1].seconds)
    allowed = np.ones((num_tables, num_ranks), dtype=np.bool_)
    for table, rank in forbidden:
        allowed[table, rank] = False
    scope = np.array([unit.scope for _, unit in units], dtype=np.int8)
    sizes = np.array([[unit.num_bytes] for _, unit in units])
    return PricedOptions(
        objective=objective,
        option_table=np.array([option.table for option in options]),
        option_same_host=np.array([option.same_host for option in options]),
        unit_option=np.array([index for index, _ in units]),
        unit_scope=scope,
        unit_seconds=np.array([unit.seconds for _, unit in units], dtype=np.float64),
        unit_bytes=sizes,
        unit_total_bytes=sizes * np.array([1, ranks_per_host, num_ranks])[scope][:, None],
        capacity_bytes=np.full((num_ranks, 1), capacity),
        host_of_rank=np.arange(num_ranks) // ranks_per_host,
        table_rank_allowed=allowed,
        phase_weight=np.array(weight or (1.0,) * num_phases),
        phase_window_seconds=np.array(window or (0.0,) * num_phases),
        same_rank=tuple(np.array(group) for group in same_rank),
        apart=tuple(np.array(group) for group in apart),
        option_source=np.arange(len(options)),
    )


def on_rank(*seconds: float, num_bytes: float = 1.0) -> Unit:
    """A unit for one rank."""
    return Unit(Scope.RANK, seconds, num_bytes)


def on_host(*seconds: float, num_bytes: float = 1.0) -> Unit:
    """A unit for one host."""
    return Unit(Scope.HOST, seconds, num_bytes)


def everywhere(*seconds: float, num_bytes: float = 1.0) -> Unit:
    """A unit for all ranks."""
    return Unit(Scope.WORLD, seconds, num_bytes)


def view_of(*options: Option, **settings: object) -> SearchView:
    """The search view of a hand-made instance."""
    return search_view(hand_priced(*options, **settings))  # type: ignore[arg-type]
