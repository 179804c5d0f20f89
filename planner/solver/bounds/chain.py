"""The best of the bounds, cheapest first, and what the best one says about good plans."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.bounds.boxes import Box, branch, never
from planner.solver.bounds.dual import Prices, average_prices, dual_value
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.problem import RelaxationHint, SolverProblem

ROUNDING = 1e-9  # relative; float sums of up to 1e5 terms err by far less
_ROOMY, _TAKEN = 1.001, 1e-6  # of the room of a piece, and of a choice: what counts as room, and as taken
_MEMORY_STEPS = 40  # halvings of the price of bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Seconds that no plan can beat, whatever its cuts, and what a plan that comes close looks like."""

    seconds: float
    hint: RelaxationHint | None
    relaxed_seconds: float = 0.0  # the bound of the first relaxation, before any split
    is_final: bool = False  # whether more boxes would prove no more
    #: of every relaxation before any split, which bound the plans of other families, too; ``None`` where it has no plan
    prices: tuple[Prices | None, ...] = ()


def lower_bound(
    priced: SolverProblem,
    *,
    max_boxes: int = 1,
    known_seconds: float = np.inf,
    is_over: Callable[[], bool] = never,
) -> Bound:
    """Return the best bound of the chain; 0 where nothing better is known.

    ``max_boxes`` limits the branching of :mod:`planner.solver.bounds.boxes`; ``known_seconds`` is the objective
    of a plan that is known, which no box worse than it can improve on; ``is_over`` says that boxes are split no more.
    """
    best, is_final, relaxed, prices = Bound(seconds=0.0, hint=None), True, 0.0, []
    for model in relaxations(priced):
        cheap = priced_memory(model)
        branched = branch(model, max_boxes=max_boxes, known_seconds=known_seconds, start=cheap, is_over=is_over)
        is_final &= branched.is_final
        prices.append(_without_rows(model, branched.nodes[0].prices))
        simple = max(dual_value(model, cheap), largest_piece(model))
        relaxed, value = max(relaxed, simple, branched.root_seconds), max(simple, branched.bound_seconds)
        if value > best.seconds or best.hint is None:
            box = branched.box
            hint = _guide(priced, model, box) if box is not None and box.relaxed.is_solved else None
            best = Bound(seconds=max(value, best.seconds), hint=hint)
    return replace(
        best,
        seconds=best.seconds * (1 - ROUNDING),
        relaxed_seconds=relaxed * (1 - ROUNDING),
        is_final=is_final,
        prices=tuple(prices),
    )


def _without_rows(model: Relaxation, prices: Prices | None) -> Prices | None:
    """Return prices that hold outside a box, too: without those of its rows."""
    return None if prices is None else replace(prices, memory=prices.memory[: len(model.cluster_bytes)])


def quick_bound(priced: SolverProblem) -> float:
    """Return what needs no program: the average rank and the largest piece, seconds."""
    best = 0.0
    for model in relaxations(priced):
        best = max(best, dual_value(model, average_prices(model)), largest_piece(model))
    return best * (1 - ROUNDING)


def _guide(priced: SolverProblem, model: Relaxation, box: Box) -> RelaxationHint:
    """Round the relaxation's mixed choices to listed options in two ways; the one that promises more comes first.

    Of every table the choice that is taken most, and of those alone whose largest piece has room on the slowest rank:
    the program may take half of a piece that has none, and the whole of that piece makes all other ranks wait.
    """
    share, big = box.relaxed.share, model.big[box.choices]
    has_room = np.all(big <= box.relaxed.room * _ROOMY, axis=1) & (share > _TAKEN)
    ways = sorted((_most(model, box, merit) for merit in (share, share + has_room)), key=lambda way: _least(model, way))
    return RelaxationHint(
        option=_listed(priced, model, ways[0]),
        second_option=_listed(priced, model, ways[1]),
        slowest_seconds=box.relaxed.slowest,
        memory_price=box.relaxed.prices.memory[: len(model.cluster_bytes)],
    )


def _most(model: Relaxation, box: Box, merit: Floats) -> Ints:
    """Return of every table the choice of a box with the most merit, (T,)."""
    table = model.choice_table[box.choices]
    order = np.lexsort((-merit, table))
    most: Ints = np.flatnonzero(box.choices)[order[np.searchsorted(table[order], np.arange(model.num_tables))]]
    return most


def _least(model: Relaxation, way: Ints) -> float:
    """Return what plans of these choices take at least: the average rank, and the largest piece on top of all ranks."""
    on_top = np.sum(model.world[way], axis=0) + np.max(model.big[way], axis=0)
    slowest = np.maximum(np.sum(model.total[way], axis=0), on_top)
    return float(model.weight @ np.maximum(slowest - model.window, 0.0))


def _listed(priced: SolverProblem, model: Relaxation, way: Ints) -> Ints:
    """Return the listed options nearest to choices, (T,)."""
    first, last = priced.options_of_family
    unit_first, unit_last = priced.units_of_option
    num_units = unit_last - unit_first
    option = np.zeros(model.num_tables, dtype=np.int64)
    for t, choice in enumerate(way):
        low, high = first[model.family[choice]], last[model.family[choice]]
        option[t] = low + np.argmin(np.abs(num_units[low:high] - model.pieces[choice]))
    return option


def largest_piece(model: Relaxation) -> float:
    """Return what the slowest rank needs at least for the largest piece of some table.

    Admissible because some rank holds every table's largest piece, in whichever way the table is cut.
    """
    exposed = np.sum(model.weight * np.maximum(model.big + model.world - model.window, 0.0), axis=1)
    least = np.full(model.num_tables, np.inf)
    np.minimum.at(least, model.choice_table, exposed)
    return float(np.max(least, initial=0.0))


def priced_memory(model: Relaxation) -> Prices:
    """Price the average rank, and bytes by bisection until the cheapest choices just fit.

    The dual value is concave in the price of each tier: it rises while the cheapest choices
    need more bytes than there are.
    """
    memory = np.zeros(model.cluster_bytes.shape[0])
    prices = average_prices(model, memory)
    seconds = model.total @ prices.average
    for tier in np.flatnonzero(model.cluster_bytes > 0).tolist():
        if _needed(model, seconds, memory, tier) <= model.cluster_bytes[tier]:
            continue
        worth = float(np.sum(seconds)) / model.cluster_bytes[tier]
        low, high = 0.0, worth * 1e6
        for _ in range(_MEMORY_STEPS):
            middle = np.sqrt(max(low, high * 1e-13) * high)
            memory[tier] = middle
            if _needed(model, seconds, memory, tier) > model.cluster_bytes[tier]:
                low = middle
            else:
                high = middle
        memory[tier] = max((low, high), key=lambda price: _value_at(model, memory, tier, price))
        prices = average_prices(model, memory)
    return prices


def _value_at(model: Relaxation, memory: Floats, tier: int, price: float) -> float:
    memory = memory.copy()
    memory[tier] = price
    return dual_value(model, average_prices(model, memory))


def _needed(model: Relaxation, seconds: Floats, memory: Floats, tier: int) -> float:
    """Bytes of the choices that are cheapest at these prices of bytes, where they take so many seconds, shape (C,)."""
    cost = seconds + model.total_bytes @ memory
    first = np.searchsorted(model.choice_table, np.arange(model.num_tables))
    cheapest = cost == np.minimum.reduceat(cost, first)[model.choice_table]
    fewest = np.minimum.reduceat(np.where(cheapest, model.total_bytes[:, tier], np.inf), first)
    return float(np.sum(fewest))
