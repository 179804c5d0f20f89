r"""NeuroShard's search, at whatever costs it is given.

Data: tables with the cost of each piece that repeated halving of columns can make; equal ranks.

Outer search: a beam over sequences of halvings. From each kept state every candidate piece is
halved once: the ``num_candidates`` largest pieces by bytes and as many by compute seconds. Each
new state is placed and costed; the ``beam_width`` cheapest are kept. The best state of all
depths is the answer.

Inner placement: pieces by compute seconds, dearest first, each to the rank with the least
compute seconds so far (fewest bytes where equal) among those where its bytes fit and the sum of
widths stays within ``scale`` times the mean over ranks. This is tried for scales from 1 to 1.5; the
cheapest placement by the full cost is the state's.

Full cost, of :math:`L_{rp}` seconds of rank r in phase p: :math:`\max_r \sum_p L_{rp}`
(``max_rank_time``, NeuroShard's own), or :math:`\sum_p \max_r L_{rp}` (``step_time``).

What is NeuroShard's and stays: a state in which nothing fits is kept with infinite cost, and among
such states the first ones go on; nothing steers halvings towards what fits. What differs: costs are
sums over pieces, where NeuroShard asks a network for each set of pieces; ties among the largest
pieces go to the later piece.

References
----------
Zha et al., "Pre-train and Search: Efficient Embedding Table Sharding with Pre-trained Neural Cost
Models" (MLSys 2023). Parameters and order of steps: daochenzha/neuroshard (MIT) at 06aaa2b,
``neuroshard/neurosharder.py`` (described, not copied).
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.piece_costs import PieceCosts

Objective = Literal["max_rank_time", "step_time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuroShardParams:
    """Parameters of the search; defaults are those of ``NeurSharder`` at 06aaa2b."""

    beam_width: int = 3  # shard(k=3)
    num_candidates: int = 10  # shard(n=10)
    max_halvings: int = 10  # shard(max_length=10)
    num_scales: int = 11  # shard(search_steps=11)
    least_scale: float = 1.0  # _table_wise_shard(threshold_start=1.0)
    greatest_scale: float = 1.5  # _table_wise_shard(threshold_end=1.5)

    def scales(self) -> NDArray[np.float64]:
        """Return the limits on the sum of widths, over their mean, shape (num_scales,)."""
        step = (self.greatest_scale - self.least_scale) / max(1, self.num_scales - 1)
        return self.least_scale + step * np.arange(self.num_scales, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuroShardResult:
    """Pieces of the best state and where they are; without a plan, the uncut tables and no ranks."""

    cost_seconds: float  # inf where no state could be placed
    piece_table: NDArray[np.int64]  # (num_pieces,)
    piece_level: NDArray[np.int64]  # (num_pieces,) halvings that made the piece
    piece_column: NDArray[np.int64]  # (num_pieces,) first column
    piece_rank: NDArray[np.int64]  # (num_pieces,), empty without a plan
    num_halvings: int
    num_states: int  # states placed


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    table: NDArray[np.int64]
    level: NDArray[np.int64]
    column: NDArray[np.int64]
    cost_seconds: float = np.inf
    rank: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def search(
    costs: PieceCosts, *, objective: Objective = "max_rank_time", params: NeuroShardParams | None = None
) -> NeuroShardResult:
    """Search for the cheapest pieces and places. Deterministic."""
    params = params or NeuroShardParams()
    num_tables = len(costs.widths)
    start = _State(
        table=np.arange(num_tables),
        level=np.zeros(num_tables, dtype=np.int64),
        column=np.zeros(num_tables, dtype=np.int64),
    )
    beam = _placed(costs, [start], objective, params)
    best, num_states = beam[0], 1
    for _ in range(params.max_halvings):
        grown = [
            _halved(costs, state, piece) for state in beam for piece in _candidates(costs, state, params.num_candidates)
        ]
        if not grown:
            break
        placed = _placed(costs, grown, objective, params)
        num_states += len(placed)
        beam = sorted(placed, key=lambda state: state.cost_seconds)[: params.beam_width]
        if beam[0].cost_seconds < best.cost_seconds:
            best = beam[0]
    return NeuroShardResult(
        cost_seconds=best.cost_seconds,
        piece_table=best.table,
        piece_level=best.level,
        piece_column=best.column,
        piece_rank=best.rank,
        num_halvings=len(best.table) - num_tables,
        num_states=num_states,
    )


def _candidates(costs: PieceCosts, state: _State, count: int) -> list[int]:
    """Return the pieces worth halving, in order, that can be halved."""
    compute = costs.seconds[state.table, state.level] @ costs.is_compute
    if count > len(state.table):
        chosen = np.arange(len(state.table))
    else:
        by_bytes = np.argsort(costs.bytes[state.table, state.level], kind="stable")[-count:]
        chosen = np.union1d(by_bytes, np.argsort(compute, kind="stable")[-count:])
    deeper = state.level[chosen] + 1
    exists = deeper < costs.widths.shape[1]
    legal = exists & (costs.widths[state.table[chosen], np.where(exists, deeper, 0)] > 0)
    return [int(piece) for piece in chosen[legal]]


def _halved(costs: PieceCosts, state: _State, piece: int) -> _State:
    """Cut one piece in two: the left half keeps its number, the right half comes last."""
    level = np.append(state.level, state.level[piece] + 1)
    level[piece] += 1
    width = costs.widths[state.table[piece], level[piece]]
    return _State(
        table=np.append(state.table, state.table[piece]),
        level=level,
        column=np.append(state.column, state.column[piece] + width),
    )


def _placed(costs: PieceCosts, states: list[_State], objective: Objective, params: NeuroShardParams) -> list[_State]:
    """Place states of equally many pieces, all scales of all states at once."""
    table, level = np.stack([s.table for s in states]), np.stack([s.level for s in states])
    scales, capacity = params.scales(), costs.capacity_bytes
    seconds, size, width = costs.seconds[table, level], costs.bytes[table, level], costs.widths[table, level]
    compute = seconds @ costs.is_compute  # (states, pieces)
    most_width = scales[:, None] * (width.sum(axis=1) / costs.num_ranks)[:, None, None]  # (states, scales, 1)
    shape = (len(states), len(scales), costs.num_ranks)
    compute_sum, size_sum = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    width_sum = np.zeros(shape, dtype=np.int64)
    load = np.zeros((*shape, seconds.shape[2]))
    rank_of = np.full((*shape[:2], table.shape[1]), -1, dtype=np.int64)
    alive = np.ones(shape[:2], dtype=bool)
    of_state, of_scale = np.ogrid[: shape[0], : shape[1]]
    costliest_first = np.argsort(compute, axis=1, kind="stable")[:, ::-1]
    for turn in range(table.shape[1]):
        piece = (np.arange(shape[0]), costliest_first[:, turn])
        fits = (size_sum + size[piece][:, None, None] <= capacity) & (
            width_sum + width[piece][:, None, None] <= most_width
        )
        least = np.where(fits, compute_sum, np.inf)
        tied = fits & (least == least.min(axis=2, keepdims=True))
        rank = np.where(tied, size_sum, np.iinfo(np.int64).max).argmin(axis=2)  # (states, scales)
        alive &= fits.any(axis=2)
        here = (of_state, of_scale, rank)
        compute_sum[here] += compute[piece][:, None]
        size_sum[here] += size[piece][:, None]
        width_sum[here] += width[piece][:, None]
        load[here] += seconds[piece][:, None, :]
        rank_of[of_state, of_scale, piece[1][:, None]] = rank
    by_rank = load.sum(axis=3).max(axis=2) if objective == "max_rank_time" else load.max(axis=2).sum(axis=2)
    cost = np.where(alive, by_rank, np.inf)
    best = cost.argmin(axis=1)
    return [
        _State(
            table=state.table,
            level=state.level,
            column=state.column,
            cost_seconds=float(cost[index, best[index]]),
            rank=rank_of[index, best[index]] if alive[index, best[index]] else np.empty(0, dtype=np.int64),
        )
        for index, state in enumerate(states)
    ]
