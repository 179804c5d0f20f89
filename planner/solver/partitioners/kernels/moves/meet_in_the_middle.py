"""Sets of pieces that a rank may take: those whose loads and bytes lie between bounds, found by meeting in the middle.

Of 18 pieces there are 262,144 sets, but 512 of either half. The sums of one half are sorted by the tightest phase; for
each sum of the other half only those are looked at that stay between the bounds there (Horowitz and Sahni, Computing
partitions with applications to the knapsack problem, 1974, in several dimensions). Most sets are never seen.
"""

from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.compiled import compiled

_ROW_LOOKS = 1.5  # what a sum of one half costs to make, sort and match, in sets that are priced


class Terms(NamedTuple):
    """What loads cost: the sum over phases of price * e^((load - reference) / tau), each of shape (Q,)."""

    price: Floats
    reference: Floats
    tau: Floats


class Wanted(NamedTuple):
    """What a rank is to take. Rows are Q phases, then M tiers, of which bytes have bounds but no cost."""

    lowest: Floats  # (Q + M,) of what is taken
    highest: Floats  # (Q + M,)
    base: Floats  # (Q + M,) what the rank carries anyhow
    total: Floats  # (Q + M,) what it and its sharers carry together, all pieces placed
    sharers: int  # ranks that carry what this one leaves


@compiled
def sum_sets(pieces: Floats, chosen: Ints, sums: Floats) -> None:
    """Write the sums of all sets of the chosen pieces, shape (2^chosen, D); bit i of the row number is piece i."""
    sums[0, :] = 0.0
    for i in range(chosen.shape[0]):
        size = 1 << i
        for s in range(size):
            for d in range(pieces.shape[1]):
                sums[size + s, d] = sums[s, d] + pieces[chosen[i], d]


@compiled
def tightest(pieces: Floats, chosen: Ints, wanted: Wanted, phases: int) -> int:
    """Return the phase whose bounds are narrowest, measured by how far sets of these pieces differ in it."""
    best, narrowest = 0, np.inf
    for q in range(phases):
        spread = 0.0
        for i in range(chosen.shape[0]):
            spread += pieces[chosen[i], q] ** 2
        width = (wanted.highest[q] - wanted.lowest[q]) / max(np.sqrt(spread), 1e-30)
        if width < narrowest:
            best, narrowest = q, width
    return best


@compiled
def least_cost(terms: Terms, wanted: Wanted, taken: Floats, more: Floats) -> float:
    """Return what the rank costs with two sums on top, and its sharers if what is left could be shared out evenly."""
    total = 0.0
    for q in range(terms.tau.shape[0]):
        load = wanted.base[q] + taken[q] + more[q]
        left = (wanted.total[q] - load) / wanted.sharers
        own = np.exp((load - terms.reference[q]) / terms.tau[q])
        theirs = np.exp((left - terms.reference[q]) / terms.tau[q])
        total += terms.price[q] * (own + wanted.sharers * theirs)
    return total


@compiled
def find_cheap_sets(
    pieces: Floats,
    chosen: Ints,
    wanted: Wanted,
    terms: Terms,
    budget: float,
    most: int,
    halves: Floats,
    sets: Ints,
    costs: Floats,
    looked: Floats,
) -> int:
    """Find sets of the chosen pieces, shape (n,), that cost less than the budget; return how many are kept.

    ``sets`` and ``costs``, shape (K,), keep the best, least cost first: bit i is piece ``chosen[i]``, the cost is
    ``least_cost``. The search ends after ``most`` sets between the bounds: where so many are, the bounds say little.
    ``halves``, shape (2, 2^((n + 1) // 2), D), is room to work in. ``looked``, shape (1,), counts the sets that were
    priced, and the sums of halves as so many sets as they cost.
    """
    for d in range(pieces.shape[1]):
        if wanted.lowest[d] > wanted.highest[d]:
            return 0
    first = chosen.shape[0] // 2
    one, other = halves[0], halves[1]
    sum_sets(pieces, chosen[:first], one)
    sum_sets(pieces, chosen[first:], other)
    key = tightest(pieces, chosen, wanted, terms.tau.shape[0])
    count = 1 << (chosen.shape[0] - first)
    order = np.argsort(other[:count, key])
    keys = other[:count, key][order]
    num_found, seen = 0, 0
    looked[0] += _ROW_LOOKS * (count + (1 << first))
    for a in range(1 << first):
        place = np.searchsorted(keys, wanted.lowest[key] - one[a, key])
        while place < count and keys[place] <= wanted.highest[key] - one[a, key]:
            b = order[place]
            place += 1
            lies_within = True
            for d in range(pieces.shape[1]):
                taken = one[a, d] + other[b, d]
                lies_within = lies_within and wanted.lowest[d] <= taken <= wanted.highest[d]
            if not lies_within:
                continue
            seen += 1
            looked[0] += 1.0
            if seen > most:
                return num_found
            value = least_cost(terms, wanted, one[a], other[b])
            if value >= budget or (num_found == sets.shape[0] and value >= costs[num_found - 1]):
                continue
            at = min(num_found, sets.shape[0] - 1)
            num_found = at + 1
            while at > 0 and costs[at - 1] > value:
                costs[at], sets[at] = costs[at - 1], sets[at - 1]
                at -= 1
            costs[at], sets[at] = value, a | b << first
    return num_found
