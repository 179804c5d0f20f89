"""A plan under construction: loads of every rank, and where the next item would hurt least.

What is placed at once is an item: one unit, the pieces of an option that must share a host,
or the tables of a same-rank group. Sites are compared by a smooth stand-in for the
objective,

.. math:: E = \\sum_p w_p z_p \\sum_r (L_{rp} / z_p)^8,

with L the load of rank r in phase p and z a target per phase. The eighth power looks at the
slowest ranks first, as the objective does, but still tells two sites apart where neither
is the slowest yet.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.priced import Assignment, Objective, PricedOptions, Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """A problem with phases weighted, or collapsed into one for max_rank_time."""

    priced: PricedOptions
    seconds: Floats  # (U, P')
    first_unit: Ints  # (O,)
    last_unit: Ints  # (O,)
    first_option: Ints  # (T,)
    last_option: Ints  # (T,)
    touched: Ints  # (U,) ranks that the unit lands on
    total: Floats  # (O, P') seconds over all ranks
    big: Floats  # (O,) seconds of the largest unit, phases added
    largest_seconds: Floats  # (O, P') of the largest unit in each phase
    total_bytes: Floats  # (O, M)
    largest_bytes: Floats  # (O, M) of the largest unit
    group_of_table: Ints  # (T,) same-rank group, -1 for none
    apart_of_table: tuple[tuple[int, ...], ...]  # (T,) apart groups


def search_view(priced: PricedOptions) -> SearchView:
    """Add up options once for all constructions."""
    weighted = priced.unit_seconds * priced.phase_weight
    seconds = weighted.sum(axis=1, keepdims=True) if priced.objective is Objective.MAX_RANK_TIME else weighted
    total = np.zeros((priced.num_options, seconds.shape[1]))
    total_bytes = np.zeros((priced.num_options, priced.num_tiers))
    largest_bytes = np.zeros_like(total_bytes)
    big = np.zeros(priced.num_options)
    largest_seconds = np.zeros_like(total)
    np.add.at(total, priced.unit_option, seconds * priced.ranks_touched[:, None])
    np.add.at(total_bytes, priced.unit_option, priced.unit_total_bytes)
    np.maximum.at(largest_bytes, priced.unit_option, priced.unit_bytes)
    np.maximum.at(largest_seconds, priced.unit_option, seconds)
    np.maximum.at(big, priced.unit_option, seconds.sum(axis=1))
    group = np.full(priced.num_tables, -1, dtype=np.int64)
    for index, members in enumerate(priced.same_rank):
        group[members] = index
    apart = tuple(tuple(i for i, members in enumerate(priced.apart) if t in members) for t in range(priced.num_tables))
    first_unit, last_unit = priced.units_of_option
    first_option, last_option = priced.options_of_table
    return SearchView(
        priced=priced,
        seconds=seconds,
        first_unit=first_unit,
        last_unit=last_unit,
        first_option=first_option,
        last_option=last_option,
        touched=priced.ranks_touched,
        total=total,
        big=big,
        largest_seconds=largest_seconds,
        total_bytes=total_bytes,
        largest_bytes=largest_bytes,
        group_of_table=group,
        apart_of_table=apart,
    )


class Builder:
    """Loads, bytes and sites of the items placed so far; items can be taken off again."""

    def __init__(self, view: SearchView, target: Floats) -> None:
        priced = view.priced
        self._view = view
        self._scale = 1.0 / np.maximum(target, 1e-30)
        self._worth = target
        self.loads: Floats = np.zeros((priced.num_ranks, view.seconds.shape[1]))
        self.bytes: Floats = np.zeros((priced.num_ranks, priced.num_tiers))
        self.unit_site: Ints = np.full(priced.num_units, -1, dtype=np.int64)
        self.chosen: Ints = np.full(priced.num_tables, -1, dtype=np.int64)
        self._taken: Bools = np.zeros((len(priced.apart), priced.num_ranks), dtype=np.bool_)

    def assignment(self) -> Assignment:
        """Return a copy of what has been placed."""
        return Assignment(chosen_option=self.chosen.copy(), unit_site=self.unit_site.copy())

    def energy(self) -> float:
        """The smooth stand-in for the objective, for the loads as they are."""
        return float(np.sum(_eighth(self.loads * self._scale) @ self._worth))

    def allowed(self, table: int) -> Bools:
        """Ranks that a table may use now, shape (R,)."""
        free: Bools = self._view.priced.table_rank_allowed[table]
        for group in self._view.apart_of_table[table]:
            free = free & ~self._taken[group]
        return free

    def place(self, tables: list[int], options: list[int]) -> bool:
        """Place whole tables with given options where they hurt least; ``False`` if they do not fit.

        Several tables are a same-rank group: their single units land on one rank.
        """
        if len(tables) > 1:
            units = [int(self._view.first_unit[o]) for o in options]
            allowed = np.logical_and.reduce([self.allowed(t) for t in tables])
            placed = self._place_on_rank(units, allowed)
        else:
            placed = self._place_option(options[0], self.allowed(tables[0]))
        if placed:
            for table, option in zip(tables, options, strict=True):
                self.chosen[table] = option
                self._mark(table, option, present=True)
        return placed

    def remove(self, table: int) -> None:
        """Take a table off again."""
        option = int(self.chosen[table])
        self._mark(table, option, present=False)
        for unit in range(int(self._view.first_unit[option]), int(self._view.last_unit[option])):
            self._shift(unit, -1.0)
            self.unit_site[unit] = -1
        self.chosen[table] = -1

    def restore(self, table: int, option: int, sites: Ints) -> None:
        """Put a table back where it was."""
        units = range(int(self._view.first_unit[option]), int(self._view.last_unit[option]))
        for unit, site in zip(units, sites, strict=True):
            self.unit_site[unit] = site
            self._shift(unit, 1.0)
        self.chosen[table] = option
        self._mark(table, option, present=True)

    def _mark(self, table: int, option: int, *, present: bool) -> None:
        """Note on which ranks an apart table has shards; tables of one group never share any."""
        for group in self._view.apart_of_table[table]:
            for unit in range(int(self._view.first_unit[option]), int(self._view.last_unit[option])):
                self._taken[group, self._ranks(unit)] = present

    def _place_option(self, option: int, allowed: Bools) -> bool:
        units = list(range(int(self._view.first_unit[option]), int(self._view.last_unit[option])))
        if self._view.priced.option_same_host[option]:
            return self._place_on_one_host(units, allowed)
        units.sort(key=lambda unit: (-float(self._view.seconds[unit].sum()), unit))
        for done, unit in enumerate(units):
            scope = self._view.priced.unit_scope[unit]
            if scope == Scope.RANK:
                placed = self._place_on_rank([unit], allowed)
            elif scope == Scope.HOST:
                placed = self._place_on_host(unit, allowed)
            else:
                placed = self._place_everywhere(unit, allowed)
            if not placed:
                self._undo(units[:done])
                return False
        return True

    def _undo(self, units: list[int]) -> None:
        for unit in units:
            self._shift(unit, -1.0)
            self.unit_site[unit] = -1

    def _place_on_rank(self, units: list[int], allowed: Bools) -> bool:
        seconds = self._view.seconds[units].sum(axis=0)
        bytes_ = self._view.priced.unit_bytes[units].sum(axis=0)
        fits = allowed & np.all(self.bytes + bytes_ <= self._view.priced.capacity_bytes, axis=1)
        if not fits.any():
            return False
        site = int(np.argmin(np.where(fits, self._increase(seconds), np.inf)))
        for unit in units:
            self.unit_site[unit] = site
            self._shift(unit, 1.0)
        return True

    def _place_on_host(self, unit: int, allowed: Bools) -> bool:
        priced = self._view.priced
        by_host = (priced.num_hosts, priced.num_ranks // priced.num_hosts)
        fits = allowed & np.all(self.bytes + priced.unit_bytes[unit] <= priced.capacity_bytes, axis=1)
        fits_host = fits.reshape(by_host).all(axis=1)
        if not fits_host.any():
            return False
        increase = self._increase(self._view.seconds[unit]).reshape(by_host).sum(axis=1)
        self.unit_site[unit] = int(np.argmin(np.where(fits_host, increase, np.inf)))
        self._shift(unit, 1.0)
        return True

    def _place_everywhere(self, unit: int, allowed: Bools) -> bool:
        priced = self._view.priced
        if not allowed.all() or np.any(self.bytes + priced.unit_bytes[unit] > priced.capacity_bytes):
            return False
        self.unit_site[unit] = 0
        self._shift(unit, 1.0)
        return True

    def _place_on_one_host(self, units: list[int], allowed: Bools) -> bool:
        """Try every host for pieces that must share one, keep the host with the least energy."""
        best: tuple[float, list[int]] | None = None
        for host in range(self._view.priced.num_hosts):
            inside = allowed & (self._view.priced.host_of_rank == host)
            done: list[int] = []
            while len(done) < len(units) and self._place_on_rank([units[len(done)]], inside):
                done.append(units[len(done)])
            if len(done) == len(units):
                energy = self.energy()
                if best is None or energy < best[0]:
                    best = (energy, [int(self.unit_site[unit]) for unit in units])
            self._undo(done)
        if best is None:
            return False
        for unit, site in zip(units, best[1], strict=True):
            self.unit_site[unit] = site
            self._shift(unit, 1.0)
        return True

    def _increase(self, seconds: Floats) -> Floats:
        """Energy that a unit would add on each rank, shape (R,)."""
        before = self.loads * self._scale
        after = before + seconds * self._scale
        increase: Floats = (_eighth(after) - _eighth(before)) @ self._worth
        return increase

    def _ranks(self, unit: int) -> slice:
        site, scope = int(self.unit_site[unit]), self._view.priced.unit_scope[unit]
        if scope == Scope.RANK:
            return slice(site, site + 1)
        if scope == Scope.HOST:
            local = self._view.priced.num_ranks // self._view.priced.num_hosts
            return slice(site * local, (site + 1) * local)
        return slice(None)

    def _shift(self, unit: int, sign: float) -> None:
        ranks = self._ranks(unit)
        self.loads[ranks] += sign * self._view.seconds[unit]
        self.bytes[ranks] += sign * self._view.priced.unit_bytes[unit]


def _eighth(values: Floats) -> Floats:
    squared = values * values
    fourth = squared * squared
    result: Floats = fourth * fourth
    return result
