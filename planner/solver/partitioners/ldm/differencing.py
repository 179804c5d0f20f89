r"""The largest differencing method for load vectors: which pieces go together onto which of m equal ranks.

Every piece begins as a partition of its own: one part that holds it and m - 1 empty ones. The two partitions
that are spread widest are put together part by part, heavy parts of one with light parts of the other, so
that only the difference of the two remains to be evened out; so on until one partition is left.
What lies on the ranks already is a partition too, whose parts are the ranks.

With one coordinate heavy meets light in sorted order, which is Karmarkar and Karp's method for m parts. With several
no order is right for all of them; a matching of the parts a of one partition with the parts b of the other
then lowers, by exchanges of two,

.. math:: \sum_q \tau_q \frac{\sum_i e^{(a_{iq} + b_{\pi(i)q}) / \tau_q}}{\sum_i e^{(a_{iq} + b_{iq}) / \tau_q}},

which looks at the heaviest parts of every coordinate q; tau is the wider spread of the two in q over the sharpness.

References
----------
N. Karmarkar and R. M. Karp, The differencing method of set partitioning, UCB/CSD 82/113, 1982.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.compiled import compiled

_PASSES = 8  # over all pairs of parts
_LEAST_GAIN = 1e-12  # of what is lowered: less is rounding
_NOTHING = 1e-300


def difference(pieces: Floats, fixed: Floats, sharpness: float) -> Ints:
    """Return the rank of every piece, shape (N,).

    Parameters
    ----------
    pieces
        What each piece adds to a rank, all in one unit, shape (N, Q).
    fixed
        What every rank carries whatever becomes of the pieces, shape (m, Q).
    sharpness
        Above 0 and at most 500: the larger, the more the heaviest parts alone count when several
        coordinates are matched.
    """
    num_pieces, num_ranks = len(pieces), len(fixed)
    # A part is known by its rank, or else by one of its pieces. The rest of the part hangs on that in a chain.
    loads = np.ascontiguousarray(np.concatenate([pieces, fixed]))
    following = np.full(num_pieces + num_ranks, -1)
    last = np.arange(num_pieces + num_ranks)
    partitions = [np.array([piece]) for piece in range(num_pieces)]
    partitions.append(np.arange(num_pieces, num_pieces + num_ranks))
    widest = [(-spread(loads, parts, num_ranks), index) for index, parts in enumerate(partitions)]
    heapq.heapify(widest)
    while len(widest) > 1:
        one, other = heapq.heappop(widest)[1], heapq.heappop(widest)[1]
        if len(partitions[one]) < len(partitions[other]):
            one, other = other, one
        long, short = partitions[one], partitions[other]
        if len(long) + len(short) > num_ranks:
            if len(short) == 1:
                met, partner = np.array([lightest(loads, long, short[0], sharpness)]), np.array([0])
            else:
                met, partner = _pairings(loads, long, short, num_ranks, sharpness)
            # Ranks come after pieces, so that a part with a rank in it stays known by that.
            into, out = np.maximum(long[met], short[partner]), np.minimum(long[met], short[partner])
            loads[into] += loads[out]
            following[last[into]] = out
            last[into] = last[out]
            long[met] = into
            short = np.delete(short, partner)
        partitions[one] = np.concatenate([long, short])
        heapq.heappush(widest, (-spread(loads, partitions[one], num_ranks), one))
    rank_of = np.full(num_pieces, -1)
    for rank in range(num_ranks):
        piece = following[num_pieces + rank]
        while piece >= 0:
            rank_of[piece] = rank
            piece = following[piece]
    return rank_of


def _pairings(loads: Floats, long: Ints, short: Ints, num_ranks: int, sharpness: float) -> tuple[Ints, Ints]:
    """Return which parts of the longer partition are put together with which of the shorter one, as indices."""
    # Both with their empty parts at the end, light before heavy against heavy before light.
    here, there = np.zeros((num_ranks, loads.shape[1])), np.zeros((num_ranks, loads.shape[1]))
    here[: len(long)], there[: len(short)] = loads[long], loads[short]
    left = np.argsort(here.sum(axis=1), kind="stable")
    right = np.argsort(-there.sum(axis=1), kind="stable")
    if loads.shape[1] > 1:
        here, there = here[left], there[right]
        tau = np.maximum(np.maximum(np.ptp(here, axis=0), np.ptp(there, axis=0)), _NOTHING) / sharpness
        here = np.exp((here - here.max(axis=0)) / tau)
        there = np.exp((there - there.max(axis=0)) / tau)
        here *= tau / np.sum(here * there, axis=0)
        right = right[match(here, there, right < len(short), _LEAST_GAIN * float(np.sum(tau)))]
    both = (left < len(long)) & (right < len(short))
    return left[both], right[both]


@compiled
def spread(loads: Floats, parts: Ints, num_ranks: int) -> float:
    """Return how much the heaviest part exceeds the lightest, in the coordinate where that is most."""
    widest = 0.0
    for q in range(loads.shape[1]):
        light, heavy = np.inf if len(parts) == num_ranks else 0.0, 0.0
        for part in parts:
            light, heavy = min(light, loads[part, q]), max(heavy, loads[part, q])
        widest = max(widest, heavy - light)
    return widest


@compiled
def lightest(loads: Floats, parts: Ints, piece: int, sharpness: float) -> int:
    """Return the index of the part of a full partition where one piece adds least to the heaviest parts."""
    cost = np.zeros(len(parts))
    for q in range(loads.shape[1]):
        light, heavy = np.inf, 0.0
        for part in parts:
            light, heavy = min(light, loads[part, q]), max(heavy, loads[part, q])
        tau = max(heavy - light, loads[piece, q], _NOTHING) / sharpness
        total = 0.0
        for part in parts:
            total += np.exp((loads[part, q] - heavy) / tau)
        growth = tau * np.expm1(loads[piece, q] / tau) / total
        for i in range(len(parts)):
            cost[i] += growth * np.exp((loads[parts[i], q] - heavy) / tau)
    return int(np.argmin(cost))


@compiled
def match(here: Floats, there: Floats, counts: NDArray[np.bool_], least_gain: float) -> Ints:
    """Exchange rows of ``there`` while that lowers the sum of its products with ``here``; return their new order.

    Rows that do not count are all alike: no two of them are exchanged.
    """
    order = np.arange(here.shape[0])
    for _ in range(_PASSES):
        changed = False
        for i in range(here.shape[0]):
            if not counts[order[i]]:
                continue
            for j in range(here.shape[0]):
                one, other = order[i], order[j]
                gain = 0.0
                for q in range(here.shape[1]):
                    gain += (here[i, q] - here[j, q]) * (there[one, q] - there[other, q])
                if gain > least_gain:
                    order[i], order[j] = other, one
                    changed = True
        if not changed:
            break
    return order
