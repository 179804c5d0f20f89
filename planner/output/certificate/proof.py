"""The dual data of a bound: the tree of boxes of :mod:`planner.solver.bounds.boxes`, as a checker can work it out
again.

A node is a leaf with prices of the relaxation, or a split with two children: by a rule of a module, by the seconds of
a phase, or by a choice of a table. A child is ``None`` where a table has no choice left there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools
from planner.options.module_rules import ModuleRule
from planner.orchestration.family_sets.branch_kinds import RankedSets, RelaxedSet, rank_sets
from planner.output.certificate.statement import Axes, digits
from planner.pricing.price_options import drop_unusable, prune, restrict
from planner.solver.bounds.boxes import Node, branch
from planner.solver.bounds.chain import priced_memory
from planner.solver.bounds.dual import Prices, memory_prices
from planner.solver.bounds.packing import PackingRow, with_rows
from planner.solver.bounds.relaxation import Relaxation, rank_weights, relaxations
from planner.solver.problem import SolverProblem

JsonNode = dict[str, object]

#: Undecided modules up to this number are split; of more, the bound is one over both their states.
_MAX_SPLIT_RULES = 3
_MOST_SPLITS = 2**12  # by kinds; a split gives half of those that are left to each of its halves
_BELOW = 1 - 1e-11  # prices, so that the rounding of their sums never takes them above what phases are worth
_CLEARLY = 2.0  # times the known plan: a bound that ends a box
_ROUNDED_BYTES, _ROUNDED_PARTS = 1.0, 1e-6  # of a table, and of a rank: excess that may be rounding
_MORE = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a proof is made for."""

    axes: Axes
    rules: Sequence[ModuleRule]
    replaced: Bools  # (F,) families that the certificate says are replaced, which the checker leaves out
    max_boxes: int
    known_seconds: float  # of the plan, without what every plan takes in addition to its shards
    way: int = 0  # number of the relaxation


def proofs_of(priced: SolverProblem, wanted: Wanted) -> Iterator[JsonNode]:
    """Yield a proof for each way to add up ranks of unequal speed: their weights, and nodes, the root first."""
    order = _split_rules(priced, wanted.rules)
    boxes = wanted.max_boxes // 2 ** sum(_is_undecided(priced, wanted.rules[number]) for number in order)
    weights = [None] if wanted.axes.is_step else [digits(way) for way in rank_weights(priced)]
    for way, of_ranks in enumerate(weights):
        nodes: list[JsonNode] = []
        everything = np.ones(priced.num_families, dtype=np.bool_)
        _grow(priced, replace(wanted, max_boxes=boxes, way=way), everything, order, nodes)
        yield {"rank_weights": of_ranks, "nodes": nodes}


def _split_rules(priced: SolverProblem, rules: Sequence[ModuleRule]) -> list[int]:
    """Return the rules that are split, those first that leave one side alone."""
    undecided = [number for number, rule in enumerate(rules) if _is_undecided(priced, rule)]
    decided = [number for number in range(len(rules)) if number not in undecided]
    return decided + (undecided if len(undecided) <= _MAX_SPLIT_RULES else [])


def _is_undecided(priced: SolverProblem, rule: ModuleRule) -> bool:
    return all(_has_all_tables(priced, ~side) for side in (rule.tied, rule.not_by_rows))


def _has_all_tables(priced: SolverProblem, keep: Bools) -> bool:
    return len(np.unique(priced.family_table[keep])) == priced.num_tables


def _grow(priced: SolverProblem, wanted: Wanted, keep: Bools, order: list[int], nodes: list[JsonNode]) -> int | None:
    """Add the nodes of the families that are kept, and return the first one's number; ``None`` where no plan is."""
    if not _has_all_tables(priced, keep):
        return None
    if order:
        rule, number = wanted.rules[order[0]], len(nodes)
        node: JsonNode = {"rule": order[0]}
        nodes.append(node)
        halves = (keep & ~rule.tied, keep & ~rule.not_by_rows)
        node["children"] = [_grow(priced, wanted, half, order[1:], nodes) for half in halves]
        return number
    some = restrict(priced, keep)
    # A part may hold more that is replaced, and the checker does not know of it.
    usable = drop_unusable(restrict(priced, keep & ~wanted.replaced))
    if priced.num_kinds and len(np.unique(usable.family_table)) == usable.num_tables:
        return _grow_kinds(some, usable, wanted, nodes)
    return _grow_boxes(some, wanted, nodes)


def _grow_boxes(some: SolverProblem, wanted: Wanted, nodes: list[JsonNode]) -> int:
    """Add the boxes of a problem, and return the first one's number."""
    mode = prune(some)
    if len(np.unique(mode.family_table)) < mode.num_tables:
        mode = some  # what is left of a table fits nowhere, which a bound on its options need not know
    start = len(nodes)
    nodes.extend(_boxes(mode, wanted, start))
    return start


def _grow_kinds(some: SolverProblem, usable: SolverProblem, wanted: Wanted, nodes: list[JsonNode]) -> int | None:
    """Add the nodes that split a problem by kinds, with the boxes of their leaves, and return the first one's number.

    ``usable`` are the families that the splits are chosen for, ``some`` all that there are.
    """
    ranked = rank_sets(usable, max_boxes=wanted.max_boxes, known_seconds=wanted.known_seconds)
    if ranked is None or ranked.whole.bound.prices[wanted.way] is None:
        return _grow_boxes(some, wanted, nodes)
    everything, nothing = np.ones(some.num_kinds, dtype=np.bool_), np.zeros(some.num_kinds, dtype=np.bool_)
    return _Kinds(some, wanted, ranked, nodes).grow(everything, nothing, _MOST_SPLITS)


class _Kinds:
    """Splits by kinds until prices of some set prove as much of a node as is proven of all sets."""

    def __init__(self, some: SolverProblem, wanted: Wanted, ranked: RankedSets, nodes: list[JsonNode]) -> None:
        self._some, self._wanted, self._ranked, self._nodes = some, wanted, ranked, nodes
        self._enough_seconds = min(ranked.bound_seconds, wanted.known_seconds) * _BELOW

    def grow(self, allowed: Bools, required: Bools, most_splits: int) -> int | None:
        """Add the plans that use all required kinds, and others only that are allowed."""
        sets, is_open = self._ranked.sets, allowed & ~required
        proven_seconds, prices = sets.best_prices(allowed, required, self._wanted.way)
        if self._enough_seconds <= proven_seconds < np.inf:
            return self._leaf(prices)
        if not sets.has_sets(allowed, required):
            return self._unplanned(allowed)
        only = sets.only_set(allowed, required)
        relaxed = None if only is None else self._ranked.relaxed.get(only.tobytes())
        if relaxed is not None:
            missing = np.flatnonzero(relaxed.kinds.required & ~required)
            if len(missing):
                return self._halves(int(missing[0]), allowed, required, most_splits)
            return self._boxes_of(relaxed)
        if not np.any(is_open) or not most_splits:
            return self._leaf(prices)
        kind = max(np.flatnonzero(is_open).tolist(), key=self._merit(allowed, required))
        return self._halves(kind, allowed, required, most_splits // 2)

    def _halves(self, kind: int, allowed: Bools, required: Bools, most_splits: int) -> int:
        (without, _), (_, with_it) = _without_and_with(allowed, required, kind)
        number = len(self._nodes)
        node: JsonNode = {"kind": kind}
        self._nodes.append(node)
        node["children"] = [self.grow(without, required, most_splits), self.grow(allowed, with_it, most_splits)]
        return number

    def _merit(self, allowed: Bools, required: Bools) -> Callable[[int], tuple[int, float]]:
        """Return what a split by a kind is worth: how many halves end there, and what prices prove of both."""

        def merit(kind: int) -> tuple[int, float]:
            halves = _without_and_with(allowed, required, kind)
            proven = [self._ranked.sets.best_prices(*half, self._wanted.way)[0] for half in halves]
            enough = self._enough_seconds
            return sum(one >= enough for one in proven), sum(min(one, enough) for one in proven)

        return merit

    def _leaf(self, prices: Prices) -> int:
        self._nodes.append({"prices": _prices(prices, (), self._wanted.axes)})
        return len(self._nodes) - 1

    def _boxes_of(self, relaxed: RelaxedSet) -> int:
        start = len(self._nodes)
        wanted = replace(self._wanted, max_boxes=relaxed.boxes)
        self._nodes.extend(_boxes(relaxed.kinds.priced, wanted, start))
        return start

    def _unplanned(self, allowed: Bools) -> int | None:
        """Add the plans of some kinds of which no listed cut fits for a table."""
        some = self._some
        if not np.all(allowed[some.family_kind[some.shape_family[some.pinned_shape]]]):
            return None
        rest = restrict(some, allowed[some.family_kind])
        if not _has_all_tables(rest, np.ones(rest.num_families, dtype=np.bool_)):
            return None
        return _grow_boxes(rest, replace(self._wanted, max_boxes=1), self._nodes)


def _without_and_with(allowed: Bools, required: Bools, kind: int) -> tuple[tuple[Bools, Bools], tuple[Bools, Bools]]:
    """Return the allowed and the required kinds of a set's plans without an open kind, and of those with it."""
    without, with_it = allowed.copy(), required.copy()
    without[kind], with_it[kind] = False, True
    return (without, required), (allowed, with_it)


def _boxes(mode: SolverProblem, wanted: Wanted, start: int) -> Iterator[JsonNode]:
    """Yield the nodes of the tree of boxes of one mode; ``start`` is the number of its root."""
    model = relaxations(mode)[wanted.way]
    cheap = priced_memory(model)
    tree = branch(model, max_boxes=max(wanted.max_boxes, 1), known_seconds=wanted.known_seconds, start=cheap).nodes
    choices = {0: np.ones(len(model.choice_table), dtype=np.bool_)}
    above: dict[int, tuple[Prices, Sequence[PackingRow]]] = {0: (cheap, ())}  # of the node that a node was split from
    for number, node in enumerate(tree):
        left = choices.pop(number)
        prices, rows = above.pop(number) if node.prices is None else (node.prices, node.rows)
        if node.split is None or node.children is None:
            if node.prices is None and (found := _without_room(model, node.rows, left, wanted.known_seconds)):
                prices, rows = found, node.rows
            yield {"prices": _prices(prices, rows, wanted.axes)}
            continue
        lower, upper = node.children
        yield {**_split(mode, model, node, wanted.axes), "children": [start + lower, start + upper]}
        choices[lower], choices[upper] = _halves(model, node, left)
        above |= {lower: (prices, rows), upper: (prices, rows)}


def _split(mode: SolverProblem, model: Relaxation, node: Node, axes: Axes) -> JsonNode:
    assert node.split is not None
    if node.split.choice < 0:
        of = "room_seconds" if node.split.is_of_rank else "at_seconds"
        return {"phase": axes.phase_of_bound(node.split.phase), of: node.split.at_seconds}
    family, fewest = int(model.family[node.split.choice]), int(model.pieces[node.split.choice])
    further = model.pieces[(model.family == family) & (model.pieces > fewest)]
    most = int(further.min()) - 1 if len(further) else int(mode.family_max_pieces[family])
    return {"family": int(mode.family_source[family]), "pieces": [fewest, most]}


def _halves(model: Relaxation, node: Node, left: Bools) -> tuple[Bools, Bools]:
    """Return the choices of both children, as the bound splits them."""
    assert node.split is not None
    if node.split.choice < 0:
        return left & (model.big[:, node.split.phase] <= node.split.at_seconds), left
    chosen = np.arange(len(left)) == node.split.choice
    return left & ~chosen, left & (chosen | (model.choice_table != model.choice_table[node.split.choice]))


def _without_room(model: Relaxation, rows: Sequence[PackingRow], left: Bools, known_seconds: float) -> Prices | None:
    """Return prices of bytes or rows alone, at which choices that need too much cost more than a known plan."""
    packed, num_tiers = with_rows(model, rows), len(model.cluster_bytes)
    least = np.full((model.num_tables, len(packed.cluster_bytes)), np.inf)
    np.minimum.at(least, model.choice_table[left], packed.total_bytes[left])
    needed = np.sum(least, axis=0)
    excess = np.where(np.isfinite(needed), needed - packed.cluster_bytes * _MORE, 0.0)
    excess -= np.where(np.arange(len(excess)) < num_tiers, _ROUNDED_BYTES * model.num_tables, _ROUNDED_PARTS)
    tier = int(np.argmax(excess / np.maximum(packed.cluster_bytes, 1.0)))
    if excess[tier] <= 0:
        return None
    memory = np.zeros(len(packed.cluster_bytes))
    memory[tier] = _CLEARLY * known_seconds / excess[tier]
    return memory_prices(packed, memory)


def _prices(prices: Prices, rows: Sequence[PackingRow], axes: Axes) -> JsonNode:
    """Return prices as a leaf states them; those of rows of packing are the last ones of bytes."""
    table, phase = np.nonzero(prices.largest)
    of_rows = prices.memory[len(prices.memory) - len(rows) :]
    return {
        "average": digits(prices.average[axes.bound_phases] * _BELOW),
        "memory": digits(prices.memory[axes.tiers]),
        "largest": [
            [int(t), axes.phase_of_bound(int(q)), price]
            for t, q, price in zip(table, phase, digits(prices.largest[table, phase] * _BELOW), strict=True)
        ],
        "floor": digits(prices.floor[axes.bound_phases] * _BELOW),
        "packing": [
            [axes.phase_of_bound(row.phase), row.room_seconds, row.parts, row.least_seconds, price]
            for row, price in zip(rows, digits(of_rows), strict=True)
            if price > 0
        ],
    }
