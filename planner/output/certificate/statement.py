"""What a certificate states: ranks, tables, every option with its price, rules, and the plan as choices among them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.options.dominance import dominated_within_kinds, replaced_kinds
from planner.options.module_rules import ModuleRule
from planner.output.certificate.check import Problem as Checked
from planner.pricing.price_options import drop_unusable, prune, restrict
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from planner.solver.segments import side_by_side

Document = dict[str, Any]

_TABLES = 1000  # whose families are compared at once
_DIGITS = ".12g"  # of seconds and prices: a relative error of 5e-13, far below what costs are known to


def digits(values: Floats) -> list[float]:
    """Return numbers with twelve digits, which take half the room of seventeen."""
    return [float(format(value, _DIGITS)) for value in values.tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Phases and tiers that a certificate has: those that count, and those that anything lies in."""

    phases: Ints
    tiers: Ints
    is_step: bool

    @classmethod
    def of(cls, priced: SolverProblem) -> "Axes":
        return cls(
            phases=np.flatnonzero(priced.phase_weight > 0),
            tiers=np.flatnonzero(np.any(priced.capacity_bytes > 0, axis=0) | np.any(priced.shape_bytes > 0, axis=0)),
            is_step=priced.objective is Objective.STEP_TIME,
        )

    @property
    def bound_phases(self) -> Ints:
        """Phases of bounds: one if ranks are compared by their sums."""
        return self.phases if self.is_step else np.zeros(1, dtype=np.int64)

    def phase_of_bound(self, phase: int) -> int:
        """Return the certificate's number of a phase of the bound."""
        return int(np.searchsorted(self.bound_phases, phase))


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the numbers are called, and what else a plan document says of them."""

    objective: str
    phases: Sequence[str]  # of all phases of the solver problem
    tiers: Sequence[str]
    tables: Sequence[Mapping[str, object]]  # name and rows
    families: Iterable[Mapping[str, object]]  # scheme, kernel, share, rows and tiers of shards


def statement(
    priced: SolverProblem, rules: Sequence[ModuleRule], names: Names, rest_seconds: float
) -> tuple[Document, Checked]:
    """Return a problem as a certificate states it, with all that a plan could use, and as the checker reads it."""
    axes = Axes.of(priced)
    block_of_family, prices = _blocks(priced, axes)
    families = [
        {
            **of_family,
            "table": int(priced.family_table[family]),
            "scope": Scope(int(priced.family_scope[family])).name.lower(),
            "same_host": bool(priced.family_same_host[family]),
            "pieces": [int(priced.family_min_pieces[family]), int(priced.family_max_pieces[family])],
            "prices": block_of_family[family],
            "dominated_by": None,
            **({"kind": int(priced.family_kind[family])} if priced.num_kinds else {}),
        }
        for family, of_family in enumerate(names.families)
    ]
    slowdown = priced.rank_slowdown[:, axes.phases]
    everywhere = np.all(priced.table_rank_allowed, axis=1).tolist()
    document = {
        "objective": names.objective,
        "num_ranks": priced.num_ranks,
        "ranks_per_host": priced.ranks_per_host,  # of a pod, where hosts are joined into pods
        "phases": [names.phases[phase] for phase in axes.phases],
        "phase_weight": priced.phase_weight[axes.phases].tolist(),
        "window_seconds": priced.phase_window_seconds[axes.phases].tolist(),
        "beside_seconds": rest_seconds,
        "starts": [digits(row) for row in priced.kind_start_seconds[:, axes.phases]] if priced.num_kinds else [],
        "tiers": [names.tiers[tier] for tier in axes.tiers],
        "capacity_bytes": _exact(priced.capacity_bytes[:, axes.tiers]),
        "slowdown": None if np.all(slowdown == 1) else slowdown.tolist(),
        "tables": [
            {
                **names.tables[table],
                "columns": int(priced.table_columns[table]),
                "ranks": None if everywhere[table] else np.flatnonzero(priced.table_rank_allowed[table]).tolist(),
            }
            for table in range(priced.num_tables)
        ],
        "families": families,
        "prices": prices,
        "rules": [[np.flatnonzero(side).tolist() for side in (rule.tied, rule.not_by_rows)] for rule in rules],
        "same_rank": [group.tolist() for group in priced.same_rank],
        "apart": [group.tolist() for group in priced.apart],
        "pinned": _pinned(priced),
    }
    return document, _name_dominators(document, priced)


def choices_of(priced: SolverProblem, assignment: Assignment) -> list[Document]:
    """Return the plan as a family and pieces (columns, site) of every table."""
    shape = assignment.piece_shape
    first = np.searchsorted(priced.shape_table[shape], np.arange(priced.num_tables + 1))
    family = priced.shape_family[shape[first[:-1]]].tolist()
    pieces = np.stack([priced.shape_columns[shape], assignment.piece_site], axis=1).tolist()
    return [
        {"family": chosen, "pieces": pieces[start:end]}
        for chosen, start, end in zip(family, first[:-1].tolist(), first[1:].tolist(), strict=True)
    ]


def _blocks(priced: SolverProblem, axes: Axes) -> tuple[list[int], list[Document]]:
    """Return the number of the prices of each family, and all prices; families with equal ones share them."""
    of_family: list[int] = []
    found: dict[bytes, int] = {}
    prices: list[Document] = []
    seconds = priced.shape_seconds[:, axes.phases]
    full, total = (sizes[:, axes.tiers] for sizes in (priced.shape_bytes, priced.shape_total_bytes))
    on_last = np.clip(total - full * (priced.shape_ranks[:, None] - 1), 0.0, full)
    is_even = np.all(full == on_last, axis=1)
    columns = priced.shape_columns, seconds, full, on_last
    for first, last in zip(*(ends.tolist() for ends in priced.shapes_of_family), strict=True):
        shapes = slice(first, last)
        key = b"".join([column[shapes].tobytes() for column in columns])
        if key not in found:
            found[key] = len(prices)
            prices.append(
                {
                    "widths": priced.shape_columns[shapes].tolist(),
                    "seconds": _rows(digits(seconds[shapes].ravel()), len(axes.phases)),
                    "bytes": _exact(full[shapes]),
                    "last_bytes": None if is_even[shapes].all() else _exact(on_last[shapes]),
                }
            )
        of_family.append(found[key])
    return of_family, prices


def _rows(values: list[float], size: int) -> list[list[float]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def _exact(sizes: Floats) -> list[list[float]]:
    """Return bytes as they are, whole ones without a point."""
    return [[int(value) if value.is_integer() else value for value in row] for row in sizes.tolist()]


def _pinned(priced: SolverProblem) -> list[list[object]]:
    """Return table and pieces of every table that the user fixed."""
    table = priced.shape_table[priced.pinned_shape]
    pieces = np.stack([priced.shape_columns[priced.pinned_shape], priced.pinned_site], axis=1)
    return [[int(one), pieces[table == one].tolist()] for one in np.unique(table)]


def _name_dominators(document: Document, priced: SolverProblem) -> Checked:
    """Say of families that no plan needs which other one replaces them, by the checker's own rule; return what it made.

    Without it, a bound would have to distinguish families that differ in nothing. Where plans pay starts, a family is
    replaced by one of its own kind, or all families of a kind are replaced by those of another one.
    """
    checked = Checked(document)
    is_left = np.isin(np.arange(priced.num_families), undominated(priced).family_source)
    kind, target = priced.family_kind, np.zeros(priced.num_families, dtype=np.int64)
    if priced.num_kinds:
        by = replaced_kinds(drop_unusable(priced))
        target = np.where(by >= 0, by, np.arange(len(by)))[kind]
    by_table = priced.families_of_table
    for start in range(0, priced.num_tables, _TABLES):
        better, worse = _pairs(is_left, *(ends[start : start + _TABLES] for ends in by_table))
        if priced.num_kinds:
            may = kind[better] == target[worse]
            better, worse = better[may], worse[may]
        replaced = checked.replaces(better, worse)
        first = np.unique(worse[replaced], return_index=True)  # of the families that replace one
        for family, one in zip(first[0].tolist(), better[replaced][first[1]].tolist(), strict=True):
            document["families"][family]["dominated_by"] = one
    if priced.num_kinds:
        _keep_whole_kinds(document, kind, target, (np.diff(checked.end) > 0).tolist())
    checked.check_dominators()
    return checked


def _pairs(is_left: Bools, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of a family that is left, and one of the same table that is not; of each, in order."""
    table = np.repeat(np.arange(len(first)), last - first)
    family = np.arange(first[0], last[-1])
    better, worse = family[is_left[family]], family[~is_left[family]]
    of_better, of_worse = table[is_left[family]], table[~is_left[family]]
    begin = np.searchsorted(of_better, of_worse)
    pair, place = side_by_side(begin, np.searchsorted(of_better, of_worse, side="right") - begin)
    return better[place], worse[pair]


def _keep_whole_kinds(document: Document, kind: Ints, target: Ints, fits: Sequence[bool]) -> None:
    """Let a kind stay of which a family that fits somewhere has no replacement, since plans may use it."""
    families = document["families"]
    for number in np.unique(kind[target != kind]).tolist():
        mine = np.flatnonzero(kind == number).tolist()
        if any(fits[family] and families[family]["dominated_by"] is None for family in mine):
            for family in mine:
                families[family]["dominated_by"] = None


def replaced_in(stated: Document) -> Bools:
    """Return which families of a stated problem another one replaces, (F,)."""
    return np.array([family["dominated_by"] is not None for family in stated["families"]], dtype=np.bool_)


def undominated(priced: SolverProblem) -> SolverProblem:
    """Return the problem without families that no plan needs, whatever plans start."""
    if not priced.num_kinds:
        return prune(priced)
    usable = drop_unusable(priced)
    return restrict(usable, ~dominated_within_kinds(usable))
