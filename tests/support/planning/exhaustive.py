"""All plans of small priced instances, and the best of them: no code is shared with searches or bounds."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.solver.evaluate import busy_seconds, objective_of, rank_loads, touched_ranks, used_kinds
from planner.solver.movement import moved_bytes
from planner.solver.problem import Assignment, Objective, SolverProblem

_ROUNDING = 1e-12
_AT_ONCE = 10_000  # plans

Pieces = tuple[tuple[int, int], ...]  # (shape, site) of one table, widest piece first


def cuts(priced: SolverProblem, family: int) -> Iterator[tuple[int, ...]]:
    """Every legal cut of a family: shapes whose columns add up, widest first."""
    first, last = (int(ends[family]) for ends in priced.shapes_of_family)
    least, most = int(priced.family_min_pieces[family]), int(priced.family_max_pieces[family])
    table = int(priced.family_table[family])
    if priced.table_has_fixed_cut[table]:
        given = priced.fixed_cut_columns[priced.fixed_cut_table == table]
        yield tuple((first + np.searchsorted(priced.shape_columns[first:last], given)).tolist())
        return

    def extend(shapes: tuple[int, ...], widest: int, columns: int) -> Iterator[tuple[int, ...]]:
        if columns == 0:
            if len(shapes) >= least:
                yield shapes
            return
        if len(shapes) < most:
            for shape in range(widest, first - 1, -1):
                if priced.shape_columns[shape] <= columns:
                    yield from extend((*shapes, shape), shape, columns - int(priced.shape_columns[shape]))

    yield from extend((), last - 1, int(priced.table_columns[priced.family_table[family]]))


def listed_cuts(priced: SolverProblem, family: int) -> Iterator[tuple[int, ...]]:
    """The cuts of a family that are listed as options."""
    first, last = priced.units_of_option
    for option in np.flatnonzero(priced.option_family == family):
        yield tuple(priced.unit_shape[first[option] : last[option]].tolist())


def placements(priced: SolverProblem, table: int, *, listed: bool = False) -> Iterator[Pieces]:
    """Every cut of a table on every combination of sites; equal pieces may change places for nothing."""
    sites = np.array([priced.num_ranks, priced.num_hosts, 1])
    for family in np.flatnonzero(priced.family_table == table).tolist():
        num_sites = int(sites[priced.family_scope[family]])
        for cut in listed_cuts(priced, family) if listed else cuts(priced, family):
            groups = [(shape, len(list(equal))) for shape, equal in itertools.groupby(cut)]
            alike = (itertools.combinations_with_replacement(range(num_sites), count) for _, count in groups)
            for chosen in itertools.product(*alike):
                yield tuple(zip(cut, itertools.chain.from_iterable(chosen), strict=True))


def all_assignments(priced: SolverProblem, *, listed: bool = False) -> Iterator[Assignment]:
    """Every combination of cuts and sites, legal or not; ``listed``: of listed cuts only."""
    tables = (list(placements(priced, table, listed=listed)) for table in range(priced.num_tables))
    for chosen in itertools.product(*tables):
        yield _assignment(chosen)


def num_placements(priced: SolverProblem, most: int) -> list[int]:
    """How many placements each table has, legal or not; more than ``most`` are not counted to the end."""
    return [sum(1 for _ in itertools.islice(placements(priced, table), most + 1)) for table in range(priced.num_tables)]


def brute_force(priced: SolverProblem, *, listed: bool = False) -> float | None:
    """The best objective over all legal assignments, or None where there is none."""
    best = best_assignment(priced, listed=listed)
    return None if best is None else objective_of(priced, best)


def best_assignment(priced: SolverProblem, *, listed: bool = False) -> Assignment | None:
    """A legal assignment with the best objective."""
    return next((assignment for _, assignment in assignments_in_order(priced, listed=listed)), None)


def assignments_in_order(priced: SolverProblem, *, listed: bool = False) -> Iterator[tuple[float, Assignment]]:
    """All legal assignments and their objectives, best first: those of all tables added up, array by array.

    Where a cell may lie in several ways at one price, only the way that moves least is there.
    """
    alone = [_OneTable(priced, table, listed=listed) for table in range(priced.num_tables)]
    if not all(one.pieces for one in alone):
        return
    combinations = np.indices([len(one.pieces) for one in alone]).reshape(len(alone), -1)
    num_parts = -(-combinations.shape[1] // _AT_ONCE)
    parts = [_legal_of(priced, alone, part) for part in np.array_split(combinations, num_parts, axis=1)]
    values = np.concatenate([values for values, _ in parts])
    chosen = np.concatenate([legal for _, legal in parts], axis=1)
    for at in np.argsort(values, kind="stable").tolist():
        picked = zip(alone, chosen[:, at], strict=True)
        yield float(values[at]), _assignment(tuple(one.pieces[c] for one, c in picked))


def _legal_of(priced: SolverProblem, alone: list["_OneTable"], chosen: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Objectives of the legal ones of some combinations, (plans,), and these combinations, (T, plans)."""
    held = sum(one.bytes[c] for one, c in zip(alone, chosen, strict=True))
    fits = np.all(held <= priced.capacity_bytes, axis=(1, 2))
    moved = sum(one.moved[c] for one, c in zip(alone, chosen, strict=True))
    if priced.move is not None:
        fits &= moved <= priced.move.max_bytes
    for group in priced.same_rank:
        fits &= np.count_nonzero(sum(alone[t].ranks[chosen[t]] for t in group), axis=1) == 1
    for group in priced.apart:
        fits &= np.all(sum(alone[t].ranks[chosen[t]] for t in group) <= 1, axis=1)
    chosen, moved = chosen[:, fits], moved[fits]
    loads = np.asarray(sum(one.seconds[c] for one, c in zip(alone, chosen, strict=True)))
    if priced.num_kinds:
        used = np.any([one.kinds[c] for one, c in zip(alone, chosen, strict=True)], axis=0)
        loads = loads + (used @ priced.kind_start_seconds)[:, None, :]
    values = _objectives(priced, loads)
    if priced.move is not None:
        values = values + moved * priced.move.seconds_per_byte + np.where(moved > 0, priced.move.any_seconds, 0.0)
    if priced.own_step is not None:
        slowest = np.maximum(np.max(loads, axis=1) - priced.own_step.phase_window_seconds, 0.0)
        steps = slowest @ priced.own_step.phase_weight + priced.own_step.rest_seconds
        busy = np.max(sum(one.busy[c] for one, c in zip(alone, chosen, strict=True)), axis=(1, 2), initial=0.0)
        keeps = busy <= steps * (1 + _ROUNDING)
        chosen, values = chosen[:, keeps], values[keeps]
    return values, chosen


class _OneTable:
    """The legal placements of one table, and what each puts on the ranks."""

    def __init__(self, priced: SolverProblem, table: int, *, listed: bool) -> None:
        pinned = np.flatnonzero(priced.shape_table[priced.pinned_shape] == table)
        fixed = [(int(priced.pinned_shape[k]), int(priced.pinned_site[k])) for k in pinned]
        self.pieces: list[Pieces] = []
        seconds, sizes, ranks, moved, kinds, busy = [], [], [], [], [], []
        for pieces in [tuple(fixed)] if fixed else placements(priced, table, listed=listed):
            # Which columns a piece has is free, so that those are taken that move least.
            orders = itertools.permutations(pieces) if priced.move is not None and not fixed else (pieces,)
            pieces = min(orders, key=lambda order: moved_bytes(priced, _assignment((order,))))
            alone = _assignment((pieces,))
            touched = touched_ranks(priced, alone)[table]
            hosts = set(priced.host_of_rank[touched].tolist())
            one_host = bool(priced.family_same_host[priced.shape_family[pieces[0][0]]])
            if np.any(touched & ~priced.table_rank_allowed[table]) or (one_host and len(hosts) > 1):
                continue
            loads = rank_loads(priced, alone)
            self.pieces.append(pieces)
            seconds.append(loads.seconds)
            sizes.append(loads.bytes)
            moved.append(moved_bytes(priced, alone))
            kinds.append(used_kinds(priced, alone))
            busy.append(busy_seconds(priced, alone))
            ranks.append(touched.astype(np.int64))
        self.moved, self.kinds, self.busy = np.array(moved), np.array(kinds), np.array(busy)
        self.seconds, self.bytes, self.ranks = np.array(seconds), np.array(sizes), np.array(ranks)


def _objectives(priced: SolverProblem, loads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Objectives of rank loads, shape (plans, R, P)."""
    if priced.objective is Objective.MAX_RANK_TIME:
        slowest: NDArray[np.float64] = np.max(loads @ priced.phase_weight, axis=1)
        return slowest
    exposed = np.maximum(np.max(loads, axis=1) - priced.phase_window_seconds, 0.0)
    result: NDArray[np.float64] = exposed @ priced.phase_weight
    return result


def _assignment(tables: tuple[Pieces, ...]) -> Assignment:
    shape, site = zip(*itertools.chain.from_iterable(tables), strict=True)
    return Assignment(piece_shape=np.array(shape), piece_site=np.array(site))
