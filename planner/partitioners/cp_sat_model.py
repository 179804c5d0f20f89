"""The integer program of :mod:`planner.partitioners.cp_sat`: variables, constraints, hints, read-back.

Numbers in comments are the constraints of that module's docstring.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.evaluate import rank_loads
from planner.priced import Assignment, Objective, PricedOptions, Scope

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Handles of the model's variables."""

    option: list[cp_model.IntVar]
    site: dict[tuple[int, int], cp_model.IntVar]  # (unit, site)
    slowest: list[cp_model.IntVar]  # (P,)
    exposed: list[cp_model.IntVar]  # (P,)


def build(
    model: cp_model.CpModel, priced: PricedOptions, ticks: Ints, tick_seconds: float, bound_seconds: float
) -> Variables:
    option = [model.new_bool_var(f"x{o}") for o in range(priced.num_options)]
    first, last = priced.options_of_table
    for table in range(priced.num_tables):  # (1)
        model.add_exactly_one(option[first[table] : last[table]])
    site: dict[tuple[int, int], cp_model.IntVar] = {}
    for unit in range(priced.num_units):  # (2)
        owner = option[priced.unit_option[unit]]
        sites = _sites(priced, unit)
        if sites is not None:
            for s in sites:
                site[unit, s] = model.new_bool_var(f"y{unit}_{s}")
            model.add(sum(site[unit, s] for s in sites) == owner)
        elif not priced.table_rank_allowed[priced.option_table[priced.unit_option[unit]]].all():
            model.add(owner == 0)
    on_rank = _terms_of_rank(priced, option, site)
    slowest = _add_loads(model, priced, ticks, on_rank)  # (3)
    _add_memory(model, priced, on_rank)  # (4)
    exposed = _add_windows(model, priced, slowest, tick_seconds)  # (5)
    variables = Variables(option=option, site=site, slowest=slowest, exposed=exposed)
    _add_groups(model, priced, variables)  # (6)
    # A plan loses less than one tick per unit and phase by rounding, and one per phase by its window.
    slack = (int(np.max(np.bincount(priced.unit_option))) * priced.num_tables + 1) * ticks.shape[1]
    floor = int(bound_seconds / tick_seconds) - slack
    if floor > 0:
        model.add(sum(exposed) >= floor)
    model.minimize(sum(exposed))
    return variables


def _sites(priced: PricedOptions, unit: int) -> list[int] | None:
    """Sites that a unit may use, ``None`` for one that goes everywhere."""
    allowed = priced.table_rank_allowed[priced.option_table[priced.unit_option[unit]]]
    fits = allowed & np.all(priced.unit_bytes[unit] <= priced.capacity_bytes, axis=1)
    if priced.unit_scope[unit] == Scope.RANK:
        return [int(r) for r in np.flatnonzero(fits)]
    if priced.unit_scope[unit] == Scope.HOST:
        return [int(h) for h in np.flatnonzero(fits.reshape(priced.num_hosts, -1).all(axis=1))]
    return None


Terms = list[tuple[int, cp_model.IntVar]]


def _terms_of_rank(
    priced: PricedOptions, option: list[cp_model.IntVar], site: dict[tuple[int, int], cp_model.IntVar]
) -> list[Terms]:
    """By rank: the units that may land on it, with the variable that says whether they do."""
    local = priced.num_ranks // priced.num_hosts
    on_rank: list[Terms] = [[] for _ in range(priced.num_ranks)]
    for (unit, s), variable in site.items():
        touched = [s] if priced.unit_scope[unit] == Scope.RANK else range(s * local, (s + 1) * local)
        for rank in touched:
            on_rank[rank].append((unit, variable))
    for unit in np.flatnonzero(priced.unit_scope == Scope.WORLD).tolist():
        for rank in range(priced.num_ranks):
            on_rank[rank].append((unit, option[priced.unit_option[unit]]))
    return on_rank


def _add_loads(
    model: cp_model.CpModel, priced: PricedOptions, ticks: Ints, on_rank: list[Terms]
) -> list[cp_model.IntVar]:
    most = _most_ticks(priced, ticks)
    slowest = [model.new_int_var(0, most, f"z{p}") for p in range(ticks.shape[1])]
    for rank in range(priced.num_ranks):
        for p, z in enumerate(slowest):
            terms = [(unit, v) for unit, v in on_rank[rank] if ticks[unit, p]]
            if terms:
                model.add(
                    cp_model.LinearExpr.weighted_sum([v for _, v in terms], [int(ticks[u, p]) for u, _ in terms]) <= z
                )
    return slowest


def _most_ticks(priced: PricedOptions, ticks: Ints) -> int:
    """What one rank could carry at most: every unit of every table's dearest option."""
    by_option = np.zeros(priced.num_options, dtype=np.int64)
    np.add.at(by_option, priced.unit_option, ticks.max(axis=1))
    by_table = np.zeros(priced.num_tables, dtype=np.int64)
    np.maximum.at(by_table, priced.option_table, by_option)
    return int(by_table.sum())


def _add_memory(model: cp_model.CpModel, priced: PricedOptions, on_rank: list[Terms]) -> None:
    bytes_ = np.ceil(priced.unit_bytes).astype(np.int64)
    # More memory than all options together take is never used up; it would only overflow.
    capacity = np.minimum(priced.capacity_bytes, float(bytes_.sum()))
    for rank in range(priced.num_ranks):
        for tier in range(priced.num_tiers):
            terms = [(unit, v) for unit, v in on_rank[rank] if bytes_[unit, tier]]
            if terms:
                total = cp_model.LinearExpr.weighted_sum(
                    [v for _, v in terms], [int(bytes_[u, tier]) for u, _ in terms]
                )
                model.add(total <= int(capacity[rank, tier]))


def _add_groups(model: cp_model.CpModel, priced: PricedOptions, variables: Variables) -> None:
    local = priced.num_ranks // priced.num_hosts
    for o in np.flatnonzero(priced.option_same_host):
        units = np.flatnonzero(priced.unit_option == o)
        for host in range(priced.num_hosts):
            here = [
                sum(v for (u, s), v in variables.site.items() if u == unit and s // local == host) for unit in units
            ]
            for other in here[1:]:
                model.add(here[0] == other)
    uses = {}
    for group in (*priced.same_rank, *priced.apart):
        for table in group:
            uses[int(table)] = _table_uses(model, priced, variables, int(table))
    for group in priced.same_rank:
        for rank in range(priced.num_ranks):
            for table in group[1:]:
                model.add(uses[int(group[0])][rank] == uses[int(table)][rank])
    for group in priced.apart:
        for rank in range(priced.num_ranks):
            model.add_at_most_one([uses[int(table)][rank] for table in group])


def _table_uses(
    model: cp_model.CpModel, priced: PricedOptions, variables: Variables, table: int
) -> list[cp_model.IntVar]:
    """By rank: a variable that is 1 exactly when the table has a shard there."""
    local = priced.num_ranks // priced.num_hosts
    uses = [model.new_bool_var(f"uses{table}_{rank}") for rank in range(priced.num_ranks)]
    causes: list[list[cp_model.IntVar]] = [[] for _ in range(priced.num_ranks)]
    for (unit, s), v in variables.site.items():
        if priced.option_table[priced.unit_option[unit]] == table:
            touched = [s] if priced.unit_scope[unit] == Scope.RANK else range(s * local, (s + 1) * local)
            for rank in touched:
                causes[rank].append(v)
    for unit in np.flatnonzero(priced.unit_scope == Scope.WORLD).tolist():
        if priced.option_table[priced.unit_option[unit]] == table:
            for rank in range(priced.num_ranks):
                causes[rank].append(variables.option[priced.unit_option[unit]])
    for rank in range(priced.num_ranks):
        model.add_max_equality(uses[rank], causes[rank] or [model.new_constant(0)])
    return uses


def _add_windows(
    model: cp_model.CpModel, priced: PricedOptions, slowest: list[cp_model.IntVar], tick_seconds: float
) -> list[cp_model.IntVar]:
    if priced.objective is Objective.MAX_RANK_TIME or not np.any(priced.phase_window_seconds):
        return slowest
    exposed = []
    for p, z in enumerate(slowest):
        window = _window_ticks(priced, p, tick_seconds)
        e = model.new_int_var(0, 2**40, f"e{p}")
        model.add(e >= z - window)
        exposed.append(e)
    return exposed


def _window_ticks(priced: PricedOptions, p: int, tick_seconds: float) -> int:
    """Hidden ticks of a phase, rounded up so that the bound stays one."""
    return int(np.ceil(min(priced.phase_window_seconds[p] / tick_seconds, float(2**40))))


def hint(
    model: cp_model.CpModel,
    priced: PricedOptions,
    variables: Variables,
    start: Assignment,
    ticks: Ints,
    tick_seconds: float,
) -> None:
    """Hint a whole solution, loads included: a partial hint costs the solver a search of its own."""
    chosen = set(start.chosen_option.tolist())
    for o, v in enumerate(variables.option):
        model.add_hint(v, o in chosen)
    for (unit, s), v in variables.site.items():
        model.add_hint(v, bool(start.unit_site[unit] == s))
    in_ticks = replace(
        priced,
        unit_seconds=ticks.astype(np.float64),
        phase_weight=np.ones(ticks.shape[1]),
        phase_window_seconds=np.zeros(ticks.shape[1]),
    )
    slowest = rank_loads(in_ticks, start).seconds.max(axis=0)
    for p, v in enumerate(variables.slowest):
        model.add_hint(v, round(slowest[p]))
    if variables.exposed is not variables.slowest:
        for p, v in enumerate(variables.exposed):
            model.add_hint(v, max(0, round(slowest[p]) - _window_ticks(priced, p, tick_seconds)))


def read(priced: PricedOptions, variables: Variables, value: Callable[[cp_model.IntVar], bool]) -> Assignment:
    chosen = np.array([o for o, v in enumerate(variables.option) if value(v)], dtype=np.int64)
    unit_site = np.full(priced.num_units, -1, dtype=np.int64)
    for (unit, s), v in variables.site.items():
        if value(v):
            unit_site[unit] = s
    everywhere = (priced.unit_scope == Scope.WORLD) & np.isin(priced.unit_option, chosen)
    unit_site[everywhere] = 0
    return Assignment(chosen_option=chosen, unit_site=unit_site)
