"""Subsets of the user's constraints: which of them leave a plan, which are to blame, and fixes that ask for less."""

import contextlib
from collections.abc import Sequence

from planner.diagnosis.conflicts import irreducible_conflict, removals
from planner.diagnosis.constraints import CHECKPOINT_PLAN, RESERVATION, Constraint, constraints_of, with_only
from planner.diagnosis.fixes.constraints import left_out, relaxed
from planner.diagnosis.trial_solves import Attempts, OutOfWork
from planner.domain.plan.diagnosis import Conflict, ConflictingConstraint, Fix, VerifiedPlan
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem

_MOST_RELAXED = 6  # constraints of a conflict of which fixes are looked for
_FEW = 6  # constraints: reported even if it is not known which of them are in conflict
_MOST_OF_A_FIELD = 2  # fixes: the others are the same for other tables


def constraint_fixes(
    problem: Problem, conflict: Sequence[Constraint], subsets: "Subsets", attempts: Attempts
) -> list[Fix]:
    """Return one fix per constraint of the conflict that suffices alone, else one that leaves several out.

    Less of the reservation is a fix of its own. If the conflict may have fewer constraints, one rarely suffices.
    """
    requested = [constraint for constraint in conflict if constraint.field != RESERVATION]
    fixes: list[Fix] = []
    fixed: list[str] = []
    with contextlib.suppress(OutOfWork):
        for constraint in requested[:_MOST_RELAXED] if subsets.is_irreducible(conflict) else ():
            if fixed.count(constraint.field) < _MOST_OF_A_FIELD and (fix := relaxed(problem, constraint, attempts)):
                fixes.append(fix)
                fixed.append(constraint.field)
    return fixes or (subsets.removals(conflict) if requested else [])


def is_one_kind(fixes: Sequence[Fix]) -> bool:
    """Whether one of the fixes changes constraints of one kind alone."""
    return any(
        fix.kind == "constraint" and len({_kind_of(change.pointer) for change in fix.changes}) == 1 for fix in fixes
    )


def _kind_of(pointer: str) -> str:
    """What is changed, wherever in the spec that is: a pointer without its numbers."""
    return "/".join(part for part in pointer.split("/") if not part.isdecimal())


class Subsets:
    """Subsets of the user's constraints, each solved once, and not where another one has the answer.

    A plan is one for fewer constraints, too, and a proof that there is none holds for more.
    """

    def __init__(self, problem: Problem, attempts: Attempts, *, is_proven: bool) -> None:
        self._problem, self._attempts = problem, attempts
        self._constraints = constraints_of(problem)
        everything = frozenset(range(len(self._constraints)))
        self._plans: dict[frozenset[int], VerifiedPlan | None] = {everything: None}  # by kept constraints
        self._proven = {everything} if is_proven else set[frozenset[int]]()

    @property
    def has_plan_without_any(self) -> bool | None:
        """Whether there is a plan without constraints; ``None`` where that was not asked."""
        return self._known(frozenset())

    def conflict(self, shortfalls: Sequence[Shortfall]) -> tuple[Constraint, ...]:
        """Return a conflict: an irreducible one, or where the work runs out the smallest one until then; else nothing.

        The constraints of a table that is short are suspects: where they alone leave no plan, the
        others are not looked at. Fields are narrowed down before the constraints in them, because there are few.
        """
        everything = tuple(range(len(self._constraints)))
        names = [shortfall.table for shortfall in shortfalls if shortfall.table is not None]
        try:
            if spared := self._concerned(names):  # settles most of it where there is work for little else
                self.has_plan(frozenset(everything) - frozenset(spared))
            suspects = self._concerned(names[:1], shared=True)
            if suspects and len(suspects) < len(everything) and not self.has_plan(frozenset(suspects)):
                everything = suspects
            found = irreducible_conflict(self._fields_in_conflict(everything), self.has_plan)
        except OutOfWork:
            found = self._least_without_plan()
        return tuple(self._constraints[index] for index in found)

    def _least_without_plan(self) -> tuple[int, ...]:
        """Return the smallest set that is known to leave no plan, if it says more than that all of many do."""
        least = min((subset for subset, plan in self._plans.items() if plan is None), key=len)
        is_informative = len(least) < len(self._constraints) or len(least) <= _FEW
        return tuple(sorted(least)) if self.has_plan_without_any and is_informative else ()

    def _fields_in_conflict(self, constraints: Sequence[int]) -> tuple[int, ...]:
        """Return those of the constraints whose fields are needed for a conflict."""
        members: dict[str, list[int]] = {}
        for index in constraints:
            members.setdefault(self._constraints[index].field, []).append(index)
        fields = tuple(members.values())

        def has_plan(subset: frozenset[int]) -> bool:
            return self.has_plan(frozenset(index for field in subset for index in fields[field]))

        needed = irreducible_conflict(range(len(fields)), has_plan)
        return tuple(sorted(index for field in needed for index in fields[field]))

    def removals(self, conflict: Sequence[Constraint]) -> list[Fix]:
        """Return fixes that leave out one constraint, else as few as the work allows: of one field, else of several."""
        blamed = self._indices(conflict)
        everything = frozenset(range(len(self._constraints)))
        fixes: list[Fix] = []
        with contextlib.suppress(OutOfWork):
            for index in sorted(blamed) if len(blamed) <= _MOST_RELAXED else ():  # one of many rarely suffices
                if self._constraints[index].field != RESERVATION and self.has_plan(everything - {index}):
                    return self._left_out(everything - {index})
            fields = dict.fromkeys(self._constraints[index].field for index in sorted(blamed))
            for field in fields:
                of_field = frozenset(index for index in everything if self._constraints[index].field == field)
                if field != RESERVATION and self.has_plan(everything - of_field):
                    fixes += self._fewest(blamed, of_field)
        return fixes or self._fewest(blamed, everything)

    def _fewest(self, blamed: frozenset[int], among: frozenset[int]) -> list[Fix]:
        """Leave out as few of some constraints as the work allows, rather blamed ones than others.

        The reservation is kept before all: less of it is a fix of its own.
        """
        fixed_ids = frozenset(range(len(self._constraints))) - among
        reserved = {index for index in among if self._constraints[index].field == RESERVATION}
        groups = [sorted(reserved), sorted(among - blamed - reserved), sorted(blamed & among - reserved)]
        found: tuple[int, ...] = ()
        with contextlib.suppress(OutOfWork):
            for fewer in removals(groups, lambda subset: self.has_plan(subset | fixed_ids)):
                found = fewer
        return self._left_out(fixed_ids | (among - frozenset(found))) if found else []

    def _left_out(self, subset: frozenset[int]) -> list[Fix]:
        """Return the fix that leaves out all constraints but these, or fewer of them, as far as plans are known."""
        plans = [(more, plan) for more, plan in self._plans.items() if plan is not None and more >= subset]
        if not plans:
            return []
        subset, plan = max(plans, key=lambda one: len(one[0]))
        gone = [one for index, one in enumerate(self._constraints) if index not in subset]
        return [left_out(self._problem, gone, plan)]

    def is_irreducible(self, conflict: Sequence[Constraint]) -> bool:
        """Whether there is a plan without any one constraint of a conflict."""
        subset = self._indices(conflict)
        return all(self._known(subset - {index}) for index in subset)

    def described(self, conflict: Sequence[Constraint]) -> Conflict | None:
        """Return a conflict in words, ``None`` for no constraints."""
        if not conflict:
            return None
        return Conflict(
            constraints=tuple(ConflictingConstraint(pointer=one.pointer, message=one.message) for one in conflict),
            is_irreducible=self.is_irreducible(conflict),
            is_proven=any(proven <= self._indices(conflict) for proven in self._proven),
        )

    def has_plan(self, subset: frozenset[int]) -> bool:
        """Whether a plan was found for the problem with only these constraints."""
        known = self._known(subset)
        if known is None:
            attempt = self._attempts.solve(with_only(self._problem, [self._constraints[index] for index in subset]))
            self._plans[subset] = attempt.plan
            if attempt.is_infeasible:
                self._proven.add(subset)
            known = attempt.plan is not None
        return known

    def _known(self, subset: frozenset[int]) -> bool | None:
        """Whether there is a plan with these constraints, as far as earlier answers say."""
        if subset in self._plans:
            return self._plans[subset] is not None
        if any(plan is not None and subset <= more for more, plan in self._plans.items()):
            return True
        return False if any(fewer <= subset for fewer in self._proven) else None

    def _indices(self, constraints: Sequence[Constraint]) -> frozenset[int]:
        wanted = set(constraints)
        return frozenset(index for index, constraint in enumerate(self._constraints) if constraint in wanted)

    def _concerned(self, names: Sequence[str], *, shared: bool = False) -> tuple[int, ...]:
        """Return the constraints on tables of these names, with ``shared`` also the reservation that concerns all."""
        wanted = set(names)
        tables = {index for index, table in enumerate(self._problem.tables) if table.name in wanted}
        groups = {"same_rank": self._problem.same_rank, "apart": self._problem.apart}

        def concerns(constraint: Constraint) -> bool:
            if constraint.field in groups:
                return not tables.isdisjoint(groups[constraint.field][constraint.index])
            if constraint.field == RESERVATION:
                return shared and bool(tables)
            if constraint.field == CHECKPOINT_PLAN:
                return bool(tables)
            return constraint.index in tables

        return tuple(index for index, constraint in enumerate(self._constraints) if concerns(constraint))
