"""Which kinds of sharding a plan uses at all: sets of kinds, each with a bound on the plans that use just these.

A kind that a plan uses is paid once per step (:mod:`planner.pricing.starts`). Of a fixed set of kinds that is a
constant, so that the rest is the additive problem of the set's families, and starts only shorten what is hidden of
each phase (``SolverProblem.window_seconds``). Sets are branched on: **either** a plan does not use a kind, **or** it
pays the kind's starts. A node leaves some kinds open; its bound charges the starts of those that are decided, and for
tables that none of these has, the least that a kind of theirs starts, phase by phase:

.. math:: S_p \\ge \\sum_{k \\in R} s_{kp} + \\sum_c \\max_{t \\in c} \\min_{k \\in A_t} s_{kp}

with the kinds R that are decided, the kinds A_t that table t may use, over the tables that have no family of a kind in
R; c are groups of tables that share no kind with another group, such as modules. Every plan lies in one leaf, and the
least bound of the leaves is a bound on all plans.
"""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.options.dominance import dominated_families, replaced_kinds
from planner.orchestration.family_sets.deadline import Deadline
from planner.pricing.price_options import restrict
from planner.solver.bounds.chain import Bound, lower_bound
from planner.solver.problem import Objective, SolverProblem

#: Part of the work that first plans of sets of kinds may take, nominal seconds of one and of a table on a rank, and
#: how many there are at most.
_FIRST_PART, _FIRST_SECONDS, _FIRST_LOOK_SECONDS, _MOST_FIRST = 0.1, 0.02, 2e-5, 16
#: Sets of kinds that bounds and proofs look at, at most.
MOST_SETS = 96
_SPLIT_UNTIL = 0.5  # part of the time to a deadline after which no set is split any more
_BELOW = 1 - 1e-9  # of what is added to a bound


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KindNode:
    """A set of a tree of sets."""

    kinds: KindSet
    split: int = -1  # the kind that it is split by
    #: numbers of the sets without the kind and with it, ``None`` for one without a plan; ``None`` of a leaf
    children: tuple[int | None, int | None] | None = None


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


def kind_tree(
    priced: SolverProblem,
    *,
    max_sets: int,
    known_seconds: float,
    charges_others: bool = True,
    deadline: Deadline | None = None,
) -> list[KindNode]:
    """Return sets that are split by kinds, the set of all plans first; the leaves hold every plan in one of them.

    The set with the least bound is split, until that one is decided, no better than a known plan, or ``max_sets`` were
    looked at. Sets charge the least start of open kinds only if ``charges_others``. After a part of the time to the
    deadline no set is split any more.
    """
    split = (deadline or Deadline()).after(_SPLIT_UNTIL)
    root = _set_of(priced, *_all_open(priced), charges_others=charges_others)
    if root is None:
        return []
    root.bound = lower_bound(root.priced, known_seconds=known_seconds)
    nodes = [KindNode(kinds=root)]
    heap = [(root.bound.seconds, 0)]
    while heap and len(nodes) < max_sets:
        bound, number = heapq.heappop(heap)
        one = nodes[number].kinds
        if one.is_decided or bound >= known_seconds:
            continue
        if split.is_over():
            break
        kind, children = _open_kind(one), []
        for allowed, required in halves_of(one.allowed, one.required, kind):
            half = _set_of(priced, allowed, required, charges_others=charges_others)
            children.append(None if half is None else len(nodes))
            if half is not None:
                half.bound = _bound_of_half(one, half, known_seconds)
                heapq.heappush(heap, (half.bound.seconds, len(nodes)))
                nodes.append(KindNode(kinds=half))
        nodes[number] = KindNode(kinds=one, split=kind, children=(children[0], children[1]))
    return nodes


def _bound_of_half(one: KindSet, half: KindSet, known_seconds: float) -> Bound:
    """Return the bound of a half of a set.

    Where the half has the same families and is charged more, and nothing of the phases that are charged more is hidden
    in the set any more, every plan costs just as much more, and so does the bound.
    """
    more = half.priced.charged_seconds - one.priced.charged_seconds
    if half.priced.num_families == one.priced.num_families and one.bound.hint is not None:
        is_shown = half.priced.objective is Objective.MAX_RANK_TIME or np.all(
            (one.priced.window_seconds <= 0)[more != 0]
        )
        if is_shown and np.all(more >= 0):
            return replace(one.bound, seconds=one.bound.seconds + float(more @ half.priced.phase_weight) * _BELOW)
    found = lower_bound(half.priced, known_seconds=known_seconds)
    return replace(found, seconds=max(found.seconds, one.bound.seconds))


def _all_open(priced: SolverProblem) -> tuple[Bools, Bools]:
    """Return that all kinds are allowed, and none is required, (K,) each."""
    return np.ones(priced.num_kinds, dtype=np.bool_), np.zeros(priced.num_kinds, dtype=np.bool_)


def halves_of(allowed: Bools, required: Bools, kind: int) -> tuple[tuple[Bools, Bools], tuple[Bools, Bools]]:
    """Return the allowed and the required kinds of a set's plans without an open kind, and of those with it."""
    without, with_it = allowed.copy(), required.copy()
    without[kind], with_it[kind] = False, True
    return (without, required), (allowed, with_it)


def _open_kind(one: KindSet) -> int:
    """Return the open kind with the longest start of those that the bound stands on, else of all."""
    priced, is_open = one.priced, one.allowed & ~one.required
    starts = np.sum(priced.kind_start_seconds[: len(is_open)], axis=1)
    taken = np.zeros(len(is_open), dtype=np.bool_)
    if one.bound.hint is not None:
        taken[priced.family_kind[priced.option_family[one.bound.hint.option]]] = True
    among = is_open & taken if np.any(is_open & taken) else is_open
    return int(np.argmax(np.where(among, starts, -1.0)))


def _set_of(priced: SolverProblem, allowed: Bools, required: Bools, *, charges_others: bool = True) -> KindSet | None:
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
    if charges_others and np.any(least > 0):
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
    groups = _groups_of_kinds(has)
    for group in np.unique(groups):
        tables = bare & has[:, groups == group].any(axis=1)
        if np.any(tables):
            of_tables = np.where(has[tables][:, :, None], starts[None], np.inf).min(axis=1)
            total += of_tables.max(axis=0)
    return total


def _groups_of_kinds(has: Bools) -> Ints:
    """Return a number for each kind, equal for kinds that tables join, directly or by way of others, (K,)."""
    group = np.arange(has.shape[1])
    for kinds in np.unique(has, axis=0):
        group[np.isin(group, group[kinds])] = group[kinds].min()
    return group
