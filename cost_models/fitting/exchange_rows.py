"""Measured rows of collectives, gathered into whole exchanges: one row per rank becomes arrays over ranks."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, take_rows
from cost_models.learned.document.exchange import DIRECTIONS
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import held_bytes
from cost_models.measurements.schema import COLLECTIVES, Measurements


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Exchanges among equally many ranks; arrays of shape (num_exchanges, num_ranks), ``task`` (num_exchanges,)."""

    num_ranks: int
    held_bytes: Floats
    start_seconds: Floats  # 0 where not known
    seconds: Floats
    task: NDArray[np.str_]


def exchanges(rows: Measurements) -> Mapping[CollectiveKind, tuple[Part, ...]]:
    """Group the collectives of ``rows`` by their kind, and those of a kind by increasing number of ranks.

    Ranks of one exchange share ``launch``, operation and direction. One row of rank -1 stands for ranks that all did
    the same. Exchanges of one rank, and of no bytes, say nothing and are left out.

    Raises
    ------
    ValueError
        A row or an exchange makes no sense; the text names it by its launch.
    """
    rows = rows.take(np.flatnonzero((rows.text("kind") == "collective") & (rows.counts("num_ranks") > 1)))
    operation, direction = rows.text("operation"), rows.text("direction")
    launch, rank, num_ranks = rows.counts("launch"), rows.counts("rank"), rows.counts("num_ranks")
    seconds = rows.numbers("seconds")
    bad = ~np.isin(operation, COLLECTIVES) | ~np.isin(direction, DIRECTIONS) | ~(seconds > 0)
    bad |= ~(np.isfinite(seconds) & np.isfinite(rows.numbers("sent_bytes")))
    if np.any(bad):
        raise ValueError(
            f"launch {launch[bad][0]}: expected a collective of {', '.join(COLLECTIVES)}, a direction forward, "
            "backward or none, known sent_bytes and seconds > 0"
        )
    sent = rows.numbers("sent_bytes")
    received = np.where(np.isnan(rows.numbers("received_bytes")), sent, rows.numbers("received_bytes"))
    spans = num_ranks > rows.counts("ranks_per_host")
    kinds: dict[CollectiveKind, tuple[Part, ...]] = {}
    for key in sorted(set(zip(operation.tolist(), direction.tolist(), spans.tolist(), strict=True))):
        kind = CollectiveKind(*key)
        of_kind = (operation == kind.operation) & (direction == kind.direction) & (spans == kind.spans_hosts)
        held = held_bytes(kind, sent, received)
        parts = []
        for n in np.unique(num_ranks[of_kind]):
            here = np.flatnonzero(of_kind & (num_ranks == n))
            parts.append(_part(int(n), rows.take(here), held[here], rank[here], launch[here]))
        parts = [part for part in parts if len(part.task)]
        if parts:
            kinds[kind] = tuple(parts)
    return kinds


def _part(num_ranks: int, rows: Measurements, held: Floats, rank: NDArray[np.int64], launch: NDArray[np.int64]) -> Part:
    """Exchanges among ``num_ranks`` ranks."""
    seconds = rows.numbers("seconds")
    starts = np.nan_to_num(rows.numbers("start_seconds"), nan=0.0)
    tasks = rows.text("task")
    alone = rank < 0
    order = np.lexsort((rank, launch))
    order = order[~alone[order]]
    first = np.searchsorted(launch[order], launch[order], side="left")
    sizes = np.searchsorted(launch[order], launch[order], side="right") - first
    wrong = (sizes != num_ranks) | (rank[order] != np.arange(len(order)) - first)
    if np.any(wrong):
        raise ValueError(
            f"launch {launch[order][wrong][0]}: expected one row for each of its {num_ranks} ranks, or one row "
            "without a rank"
        )

    def by_rank(column: Floats) -> Floats:
        together = np.repeat(column[alone][:, None], num_ranks, axis=1)
        return np.concatenate([column[order].reshape(-1, num_ranks), together])

    task = np.concatenate([tasks[order][::num_ranks], tasks[alone]])
    part = Part(
        num_ranks=num_ranks,
        held_bytes=by_rank(held),
        start_seconds=by_rank(starts),
        seconds=by_rank(seconds),
        task=task,
    )
    return take_rows(part, part.held_bytes.sum(axis=1) > 0)
