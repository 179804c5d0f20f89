"""What moves if a job goes from a plan for some hosts to a plan for more or fewer.

The ranks of lost hosts are gone with what they held: what no other rank has is read from a checkpoint. The others keep
what they hold, under the numbers that the launcher gives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cost_models.arrays import Ints
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.verification.movement import transfer, transfer_seconds

ANY, LAST, IN_ORDER = "any", "last", "in_order"
#: The last host, any, or the number of one; how launchers number the others.
Lost = Literal["last", "any"] | int
Numbering = Literal["in_order", "fill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Bytes of weights and optimizer state, and the seconds of those that travel between ranks."""

    moved_bytes: float  # from rank to rank
    checkpoint_bytes: float  # held by lost hosts alone, and read from a checkpoint
    kept_bytes: float
    seconds: float | None  # of the busiest rank; None if no link speed is known
    most_read_bytes: float  # of the host that reads most from the checkpoint
    lost_host: int | None  # the first of the lost hosts; None if none is lost

    @property
    def total_bytes(self) -> float:
        """Bytes that come to a rank, from wherever."""
        return self.moved_bytes + self.checkpoint_bytes


def worst_move(
    tables: tuple[Table, ...],
    cluster: Cluster,
    before: Placement,
    after: Placement,
    *,
    lost: Lost,
    numbering: Numbering,
) -> Move:
    """Return what moves; of all hosts that may be lost, if the question is of any, of those whose loss moves most.

    Of several hosts that are lost together, the numbers follow one another. ``cluster`` is that of ``after``.
    """
    per_host = before.ranks_per_host
    num_before, num_after = before.world_size // per_host, after.world_size // per_host
    num_lost = max(num_before - num_after, 0)
    if num_lost == 0:
        return _move(tables, cluster, before, after, lost_host=None)
    moves = [
        _move(tables, cluster, renumbered(before, numbers_after(num_before, num_lost, first, numbering)), after, first)
        for first in first_lost_hosts(num_before, num_lost, lost)
    ]
    return max(moves, key=lambda one: one.total_bytes)


def replaced_move(tables: tuple[Table, ...], cluster: Cluster, placement: Placement, *, lost: Lost) -> Move:
    """Return what a host reads that takes the place, and the number, of one that is lost under the same plan."""
    num_hosts = placement.world_size // placement.ranks_per_host
    moves = []
    for first in first_lost_hosts(num_hosts, 1, lost):
        numbers = np.arange(num_hosts)
        numbers[first] = num_hosts
        larger = replace(placement, world_size=placement.world_size + placement.ranks_per_host)
        moves.append(_move(tables, cluster, renumbered(larger, np.append(numbers, first)), placement, first))
    return max(moves, key=lambda one: one.total_bytes)


def first_lost_hosts(num_hosts: int, num_lost: int, lost: Lost) -> Sequence[int]:
    """Return which hosts may be the first of those that are lost."""
    last = num_hosts - num_lost
    if lost == ANY:
        return range(last + 1)
    return [last if lost == LAST else min(int(lost), last)]


def numbers_after(num_hosts: int, num_lost: int, first_lost: int, numbering: Numbering) -> Ints:
    """Return the new number of each host, shape (num_hosts,); lost hosts have those after all others.

    In order, the others close up. To fill gaps, those that would have too large a number take those of lost hosts.
    """
    hosts = np.arange(num_hosts)
    is_lost = (hosts >= first_lost) & (hosts < first_lost + num_lost)
    numbers = np.empty(num_hosts, dtype=np.int64)
    num_left = num_hosts - num_lost
    if numbering == IN_ORDER:
        numbers[~is_lost] = np.arange(num_left)
    else:
        stays = ~is_lost & (hosts < num_left)
        numbers[stays] = hosts[stays]
        numbers[~is_lost & ~stays] = hosts[is_lost & (hosts < num_left)]
    numbers[is_lost] = num_left + np.arange(num_lost)
    return numbers


def renumbered(placement: Placement, numbers: Ints) -> Placement:
    """Return a placement with the hosts under other numbers, shape (num_hosts,)."""
    ranks = np.arange(placement.world_size)
    per_host = placement.ranks_per_host
    rank_after = numbers[ranks // per_host] * per_host + ranks % per_host
    return replace(placement, tables=tuple(_with_ranks(table, rank_after) for table in placement.tables))


def _with_ranks(table: TablePlacement, rank_after: Ints) -> TablePlacement:
    columns = table.shards.columns.copy()
    columns[0] = rank_after[columns[0]]
    return replace(table, shards=Shards(columns))


def _move(
    tables: tuple[Table, ...], cluster: Cluster, before: Placement, after: Placement, lost_host: int | None
) -> Move:
    found = transfer(tables, before, after)
    between = tuple(pair for pair in found.pairs if pair.source < after.world_size)
    read = np.zeros(after.world_size // after.ranks_per_host)
    for pair in found.pairs:
        if pair.source >= after.world_size:
            read[pair.target // after.ranks_per_host] += pair.bytes
    return Move(
        moved_bytes=sum(pair.bytes for pair in between),
        checkpoint_bytes=float(read.sum()),
        kept_bytes=found.unmoved_bytes,
        seconds=transfer_seconds(between, cluster),
        most_read_bytes=float(read.max()),
        lost_host=lost_host,
    )
