"""Which kinds of sharding a plan uses at all: sets of kinds, each with a bound on the plans that use just these.

A kind that a plan uses is paid once per step (:mod:`planner.pricing.step.starts`). Of a fixed set of kinds that is a
constant, so that the rest is the additive problem of the set's families, and starts only shorten what is hidden of
each phase (``SolverProblem.window_seconds``). A set may leave some kinds open; it charges the starts of those that all
its plans use, and for tables that none of these has, the least that a kind of theirs starts, phase by phase:

.. math:: S_p \\ge \\sum_{k \\in R} s_{kp} + \\sum_c \\max_{t \\in c} \\min_{k \\in A_t} s_{kp}

with the kinds R that all plans use, the kinds A_t that table t may use, over the tables that have no family of a kind
in R; c are groups of tables that share no kind with another group, such as modules.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.options.dominance import dominated_families, replaced_kinds
from planner.pricing.price_options import restrict
from planner.solver.bounds.chain import Bound
from planner.solver.problem import SolverProblem

#: Part of the work that first plans of sets of kinds may take, nominal seconds of one and of a table on a rank, and
#: how many there are at most.
_FIRST_PART, _FIRST_SECONDS, _FIRST_LOOK_SECONDS, _MOST_FIRST = 0.1, 0.02, 2e-5, 16


@dataclass(eq=False, slots=True, kw_only=True)
class KindSet:
    """Plans that use all kinds that are required, and of the others only some that are allowed."""

    #: families of allowed kinds that none dominates; charged is what plans of the set pay at least
    priced: SolverProblem
    allowed: Bools  # (K,)
    required: Bools  # (K,)
    bound: Bound
    elsewhere: frozenset[bytes] = frozenset()  # kinds, (K,) each, whose plans are in other sets
    promising: Bools | None = None  # (K,) of all kinds that plans of the set may use, those that seem best

    def holds(self, used: Bools) -> bool:
        """Whether the plans that use some kinds, (K,), are in the set."""
        is_allowed = not np.any(used & ~self.allowed) and not np.any(self.required & ~used)
        return is_allowed and used.tobytes() not in self.elsewhere

    @property
    def is_decided(self) -> bool:
        """Whether all plans of the set use the same kinds."""
        return np.array_equal(self.allowed, self.required)


def whole_set(priced: SolverProblem) -> KindSet | None:
    """Return the set of all plans of a problem, without a bound; ``None`` where a table has no family.

    Here and below a problem has no family that fits nowhere.
    """
    return _set_of(priced, *_all_open(priced))


def set_of_just(priced: SolverProblem, kinds: Bools) -> KindSet | None:
    """Return the set of the plans that use just these kinds, (K,), without a bound; ``None`` where it holds none."""
    return _set_of(priced, kinds, kinds)


def kinds_of_options(priced: SolverProblem, options: Ints) -> Bools:
    """Return which kinds options are of, (K,)."""
    used = np.zeros(priced.num_kinds, dtype=np.bool_)
    used[priced.family_kind[priced.option_family[options]]] = True
    return used


def without_replaced_kinds(priced: SolverProblem) -> SolverProblem:
    """Return a problem without the kinds that another one replaces at no cost: the same ranks under another name."""
    return restrict(priced, (replaced_kinds(priced) < 0)[priced.family_kind])


def first_sets(priced: SolverProblem, kind_scheme: Ints) -> Iterator[KindSet]:
    """Yield sets of one or two schemes in all modules, those that start least first; all their kinds are charged.

    ``kind_scheme`` is the scheme of each kind, (K,). A table that has neither scheme adds its kind of the least start.
    """
    schemes, has = np.unique(kind_scheme).tolist(), kinds_of_tables(priced)
    starts = np.sum(priced.kind_start_seconds, axis=1)
    groups = {}
    for size in (1, 2):
        for some in itertools.combinations(schemes, size):
            group = np.isin(kind_scheme, some) & has.any(axis=0)
            for table in np.flatnonzero(~np.any(has & group, axis=1)).tolist():
                group[np.argmin(np.where(has[table], starts, np.inf))] = True
            groups[group.tobytes()] = group
    cheapest = sorted(groups.values(), key=lambda group: float(starts @ group))
    found = (_set_of(priced, group, group) for group in cheapest)
    return (one for one in found if one is not None)


def most_first_sets(priced: SolverProblem, work_seconds: float) -> int:
    """Return how many sets first plans are made of: by size and work, not by the clock, so that plans repeat."""
    plan_seconds = _FIRST_SECONDS + _FIRST_LOOK_SECONDS * priced.num_tables * priced.num_ranks
    return int(np.clip(_FIRST_PART * work_seconds / plan_seconds, 2, _MOST_FIRST))


def without_one(priced: SolverProblem, used: Bools) -> Iterator[KindSet]:
    """Yield the sets of the kinds in use less one of them, the longest start first."""
    longest_first = np.argsort(-np.sum(priced.kind_start_seconds, axis=1), kind="stable")
    for kind in longest_first[used[longest_first]].tolist():
        fewer = used.copy()
        fewer[kind] = False
        found = _set_of(priced, fewer, fewer)
        if found is not None:
            yield found


def _all_open(priced: SolverProblem) -> tuple[Bools, Bools]:
    """Return that all kinds are allowed, and none is required, (K,) each."""
    return np.ones(priced.num_kinds, dtype=np.bool_), np.zeros(priced.num_kinds, dtype=np.bool_)


def _set_of(priced: SolverProblem, allowed: Bools, required: Bools) -> KindSet | None:
    """Return the set of some kinds, where it holds a plan at all; what tables leave no choice of is required.

    ``priced`` has no family that fits nowhere. That a family is dominated by one of another kind says nothing of
    starts: kinds are counted before such families are dropped.
    """
    if not np.all(allowed[priced.family_kind[priced.shape_family[priced.pinned_shape]]]):
        return None
    some = restrict(priced, allowed[priced.family_kind])
    has = kinds_of_tables(some)
    used: Bools = np.any(has, axis=0)
    if not np.all(np.any(has, axis=1)) or np.any(required & ~used):
        return None
    required = required | has[has.sum(axis=1) == 1].any(axis=0)
    chosen = replace(restrict(some, ~dominated_families(some)), charged_kinds=required)
    least = _least_others(priced.kind_start_seconds, has, required)
    if np.any(least > 0):
        # As a kind that no family is of: charged, and never used.
        starts, charged = np.vstack([chosen.kind_start_seconds, least]), np.append(required, True)
        chosen = replace(chosen, kind_start_seconds=starts, charged_kinds=charged)
    return KindSet(priced=chosen, allowed=used, required=required, bound=Bound(seconds=0.0, hint=None))


def kinds_of_tables(priced: SolverProblem) -> Bools:
    """Return which kinds the families of each table are of, (T, K)."""
    has = np.zeros((priced.num_tables, priced.num_kinds), dtype=np.bool_)
    has[priced.family_table, priced.family_kind] = True
    return has


def _least_others(starts: Floats, has: Bools, required: Bools) -> Floats:
    """Return what plans start at least besides the required kinds, (P,)."""
    bare = ~np.any(has & required, axis=1)
    total = np.zeros(starts.shape[1])
    groups = groups_of_kinds(has)
    for group in np.unique(groups):
        tables = bare & has[:, groups == group].any(axis=1)
        if np.any(tables):
            of_tables = np.where(has[tables][:, :, None], starts[None], np.inf).min(axis=1)
            total += of_tables.max(axis=0)
    return total


def groups_of_kinds(has: Bools) -> Ints:
    """Return a number for each kind, equal for kinds that tables join, directly or by way of others, (K,)."""
    group = np.arange(has.shape[1])
    for kinds in np.unique(has, axis=0):
        group[np.isin(group, group[kinds])] = group[kinds].min()
    return group
