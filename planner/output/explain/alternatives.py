"""What else a table could be: every other listed cut, placed as well as it can be, and what it would cost.

All other tables stay where they are. A change of the objective is therefore what this one table decides
alone; to move others along can only lower it.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.vocabulary import Kernel, Phase, Scheme
from planner.domain.problem.storage import Storage
from planner.options.module_rules import module_rules
from planner.orchestration.placement.listed_plan import ListedPlan
from planner.output.explain.site_choice import PlacedCut, Rest
from planner.solver.evaluate import (
    objective_seconds,
    rank_loads,
    rank_seconds,
    start_seconds,
    touched_ranks,
    used_kinds,
)
from planner.solver.problem import Assignment, Objective, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The best listed cut of one other family, or of the same family in other widths."""

    scheme: Scheme
    storage: Storage
    columns: tuple[int, ...]  # of each piece
    assignment: Assignment  # the whole plan with this cut
    objective_seconds: float
    change_seconds: float  # of the objective; negative if it would be better
    excess_bytes: float  # by which the fullest rank would exceed its memory; 0 if the cut fits
    is_best: bool  # whether no listed cut of the family and no sites are better; else it is not known
    #: the phase that lengthens most, with its seconds before and after; ``None`` if none does
    phase: Phase | None
    phase_seconds: tuple[float, float]
    num_kinds: int = (
        0  # that the plan would use: sharding types in modules, each with starts of its own; 0 without starts
    )
    opened_seconds: float = 0.0  # starts of a kind that the plan does not use now; 0 if it uses all
    closed_seconds: float = 0.0  # starts of a kind that the plan would use no more


class Alternatives:
    """Finds what else the tables of one plan could be."""

    def __init__(self, plan: ListedPlan) -> None:
        self._plan, self._priced = plan, plan.priced
        priced, assignment = plan.priced, plan.assignment
        self.seconds = rank_seconds(priced, assignment)  # (R, P)
        self.objective_seconds = objective_seconds(priced, self.seconds)
        self._table = priced.shape_table[assignment.piece_shape]
        self._touched = touched_ranks(priced, assignment)
        self._rules = module_rules(plan.problem, plan.families).values()

    def of_table(self, table: int) -> tuple[Alternative, ...]:
        """Return one per scheme, kernel and memory: those that fit first, cheapest first; none for a pinned table.

        Of families that differ in how much is cached, and in the type of the weights, the best.
        """
        priced = self._priced
        if priced.table_is_pinned[table]:
            return ()
        rest = self._rest(table)
        mine = self._plan.assignment.piece_shape[self._table == table]
        of_others = priced.shape_family[self._plan.assignment.piece_shape[self._table != table]]
        first, last = (int(ends[table]) for ends in priced.families_of_table)
        possible = (family for family in range(first, last) if self._may_join(family, of_others))
        found = [best for family in possible if (best := self._best_cut(family, rest, mine))]
        found.sort(key=lambda one: (one.excess_bytes, one.change_seconds))
        best_of_kind: dict[tuple[Scheme, Kernel, bool], Alternative] = {}
        for one in found:
            best_of_kind.setdefault((one.scheme, one.storage.kernel, one.storage.in_scm), one)
        return tuple(best_of_kind.values())

    def _may_join(self, family: int, others: Ints) -> bool:
        """Whether no rule of a module forbids a family together with those of the other tables."""
        used = np.append(others, family)
        return not any(np.any(rule.tied[used]) and np.any(rule.not_by_rows[used]) for rule in self._rules)

    def _rest(self, table: int) -> Rest:
        """Return the plan without a table, and where the other tables leave it to go."""
        priced, assignment = self._priced, self._plan.assignment
        others = self._table != table
        loads = rank_loads(
            priced,
            Assignment(piece_shape=assignment.piece_shape[others], piece_site=assignment.piece_site[others]),
        )
        allowed = priced.table_rank_allowed[table].copy()
        for group in priced.same_rank:
            if table in group:
                allowed &= self._touched[group[group != table][0]]
        for group in priced.apart:
            if table in group:
                allowed &= ~np.any(self._touched[group[group != table]], axis=0)
        return Rest(priced=priced, seconds=loads.seconds, bytes=loads.bytes, allowed=allowed)

    def _best_cut(self, family: int, rest: Rest, mine: Ints) -> Alternative | None:
        """Return the best listed cut of a family that is not priced like the plan's own, on whatever sites."""
        priced = self._priced
        first, last = priced.units_of_option
        options = range(int(priced.options_of_family[0][family]), int(priced.options_of_family[1][family]))
        listed = [priced.unit_shape[first[option] : last[option]] for option in options]
        cuts = [shapes for shapes in listed if not _priced_alike(priced, shapes, mine)]
        joined = replace(rest, seconds=rest.seconds + self._starts_with(family, int(priced.family_table[family])))
        best = joined.best_cut(cuts, same_host=bool(priced.family_same_host[family]))
        return None if best is None else self._alternative(family, best)

    def _starts_with(self, family: int, table: int) -> Floats:
        """Return the starts of the kinds in use where a table is of a family, (P,)."""
        priced = self._priced
        if not priced.num_kinds:
            return np.zeros(priced.num_phases)
        others = priced.shape_family[self._plan.assignment.piece_shape[self._table != table]]
        used = np.zeros(priced.num_kinds, dtype=np.bool_)
        used[priced.family_kind[np.append(others, family)]] = True
        return start_seconds(priced, used)

    def _alternative(self, family: int, cut: PlacedCut) -> Alternative:
        """Evaluate the whole plan with a cut: the numbers do not rest on the choice of sites."""
        priced, listed = self._priced, self._plan.families.families[int(self._priced.family_source[family])]
        changed = self._with(int(priced.family_table[family]), cut.shapes, cut.sites)
        seconds = rank_seconds(priced, changed)
        objective = objective_seconds(priced, seconds)
        before, after = _counted(priced, self.seconds), _counted(priced, seconds)
        used_before, used_after = used_kinds(priced, self._plan.assignment), used_kinds(priced, changed)
        weighed = priced.kind_start_seconds @ priced.phase_weight
        longer = np.maximum(after - priced.phase_window_seconds, 0) - np.maximum(
            before - priced.phase_window_seconds, 0
        )
        phase = int(np.argmax(longer))
        return Alternative(
            scheme=listed.scheme,
            storage=listed.storage,
            columns=tuple(priced.shape_columns[cut.shapes].tolist()),
            assignment=changed,
            objective_seconds=objective,
            change_seconds=objective - self.objective_seconds,
            excess_bytes=cut.excess_bytes,
            is_best=cut.is_best,
            phase=Phase(phase) if longer[phase] > 0 else None,
            phase_seconds=(float(before[phase]), float(after[phase])),
            num_kinds=int(np.count_nonzero(used_after)),
            opened_seconds=float(weighed @ (used_after & ~used_before)),
            closed_seconds=float(weighed @ (used_before & ~used_after)),
        )

    def _with(self, table: int, shapes: Ints, sites: Ints) -> Assignment:
        """Return the plan with other pieces of one table."""
        assignment = self._plan.assignment
        start, stop = np.searchsorted(self._table, [table, table + 1])
        parts = ((assignment.piece_shape, shapes), (assignment.piece_site, sites))
        shape, site = (np.concatenate([old[:start], new, old[stop:]]) for old, new in parts)
        return Assignment(piece_shape=shape, piece_site=site)


def _priced_alike(priced: SolverProblem, one: Ints, other: Ints) -> bool:
    """Whether two cuts are the same pieces under two names, such as rows over all ranks and over the only host."""
    if len(one) != len(other) or priced.shape_scope[one[0]] != priced.shape_scope[other[0]]:
        return False
    one, other = (shapes[np.argsort(priced.shape_columns[shapes], kind="stable")] for shapes in (one, other))
    columns = (priced.shape_columns, priced.shape_seconds, priced.shape_bytes)
    return all(np.array_equal(numbers[one], numbers[other]) for numbers in columns)


def _counted(priced: SolverProblem, seconds: Floats) -> Floats:
    """Seconds of every counted phase, shape (P,): of its slowest rank, or for max_rank_time of the slowest rank."""
    if priced.objective is Objective.MAX_RANK_TIME:
        of_slowest: Floats = seconds[int(np.argmax(seconds @ priced.phase_weight))] * priced.phase_weight
        return of_slowest
    slowest: Floats = np.max(seconds, axis=0) * priced.phase_weight
    return slowest
