"""Sets of constraints that cannot be kept together, found by asking whether subsets can.

Constraints are numbers here, and an oracle says whether a set of them leaves a plan. It need
not be monotone: a short search may miss a plan that it finds under more constraints. What is
returned rests only on answers that the oracle gave.
"""

from collections.abc import Callable, Iterator, Sequence

HasPlan = Callable[[frozenset[int]], bool]


def irreducible_conflict(constraints: Sequence[int], has_plan: HasPlan) -> tuple[int, ...]:
    """Return constraints without a plan of which no single one can be spared; empty where there is no such set.

    QuickXplain narrows the set down with O(k log(n / k)) questions for k of n constraints;
    a deletion filter then asks for each that is left whether it is needed.

    References
    ----------
    U. Junker, "QUICKXPLAIN: Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI 2004.
    J. W. Chinneck, "Feasibility and Infeasibility in Optimization", Springer 2008, section 6.2 (deletion filter).
    """
    if not has_plan(frozenset()) or not constraints:
        return ()
    left = _explain(frozenset(), asks=False, constraints=tuple(constraints), has_plan=has_plan)
    if has_plan(frozenset(left)):
        return ()
    for constraint in left:
        without = tuple(other for other in left if other != constraint)
        if not has_plan(frozenset(without)):
            left = without
    needed = all(has_plan(frozenset(left) - {constraint}) for constraint in left)
    return left if needed else ()


def removals(groups: Sequence[Sequence[int]], has_plan: HasPlan) -> Iterator[tuple[int, ...]]:
    """Yield ever fewer constraints without which there is a plan; of the last ones none can be kept.

    Groups are added to an empty set, the first one first, and in halves where they leave no plan.
    """
    if not has_plan(frozenset()):
        return
    removed = tuple(constraint for group in groups for constraint in group)
    everything = frozenset(removed)
    yield removed
    pending = [tuple(group) for group in reversed(groups) if group]
    while pending:
        part = pending.pop()
        remaining = everything - frozenset(removed) | frozenset(part)
        if has_plan(remaining):
            removed = tuple(constraint for constraint in removed if constraint not in remaining)
            yield removed
        elif len(part) > 1:
            half = len(part) // 2
            pending += [part[half:], part[:half]]


def _explain(
    background: frozenset[int], *, asks: bool, constraints: tuple[int, ...], has_plan: HasPlan
) -> tuple[int, ...]:
    """Return those of ``constraints`` that are in conflict given ``background``; ``asks`` where that may be none."""
    if asks and not has_plan(background):
        return ()
    if len(constraints) == 1:
        return constraints
    first, second = constraints[: len(constraints) // 2], constraints[len(constraints) // 2 :]
    of_second = _explain(background | frozenset(first), asks=True, constraints=second, has_plan=has_plan)
    of_first = _explain(background | frozenset(of_second), asks=bool(of_second), constraints=first, has_plan=has_plan)
    return of_first + of_second
