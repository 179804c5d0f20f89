"""TorchRec's planner at whatever costs it is given: its four proposers and its greedy packing.

A proposal is one option for every table. The default proposers, in order:

1. grid: all combinations, where they are at most 10,000;
2. greedy by largest shard: every table's options by the seconds of their largest shard; start with
   the first of each; again and again the table whose option holds the most bytes in one shard (then
   in all; then the same of the next tier) moves on to its next option, until no table can move;
3. greedy by sum: the same, options by their seconds in all;
4. uniform: for each scheme that all tables have, each table's best option of it.

Every proposal that was not tried before is packed, and the plan with the fastest slowest rank is
kept. Feedback changes no proposal. A proposal is left out if it takes more bytes than all ranks have, or
if its seconds, spread evenly, are no less than those of the best plan: that changes what the search
costs, and not what it finds.

References
----------
TorchRec 1.8.0, ``planner/proposers.py`` and ``planner/planners.py`` (``EmbeddingShardingPlanner``
with default settings); described, not copied.
"""

import heapq
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.orchestration.baselines.torchrec_options import Cluster, Option
from planner.orchestration.baselines.torchrec_packing import PreparedOption, Ranks, SortBy, max_rank_seconds, pack

MAX_GRID_PROPOSALS = 10_000  # TorchRec 1.8.0, MAX_PROPOSALS

_ROUNDING = 1e-9  # relative, of sums of seconds

Tables = Sequence[Sequence[PreparedOption]]


class Proposal(NamedTuple):
    """One option for every table, and what all of them take together."""

    options: tuple[int, ...]  # of each table
    bytes: tuple[int, ...]  # by tier
    seconds: float

    @classmethod
    def of(cls, tables: Tables, options: tuple[int, ...]) -> "Proposal":
        """Return a proposal with its sums."""
        chosen = [of_table[index] for of_table, index in zip(tables, options, strict=True)]
        sums = zip(*(option.sum_bytes for option in chosen), strict=True)
        return cls(options, tuple(map(sum, sums)), sum(option.sum_seconds for option in chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyResult:
    """The best plan found, and the effort."""

    max_rank_seconds: float  # inf without a plan
    chosen_option: tuple[int, ...]  # of each table; empty without a plan
    shard_ranks: tuple[Ranks, ...]  # ranks of the shards of each table; empty without a plan
    proposer: str  # that found it; empty without a plan
    num_proposals: int  # packed or not, none twice
    num_packed: int
    wall_seconds: float
    is_cut: bool  # by a limit, before all proposals were considered


def search(
    tables: Sequence[Sequence[Option]],
    cluster: Cluster,
    *,
    sort_by: SortBy = "bytes",
    time_limit_seconds: float = math.inf,
    max_placed_tables: float = math.inf,
    packs_all: bool = False,
) -> GreedyResult:
    """Plan as ``EmbeddingShardingPlanner`` does with its defaults.

    Parameters
    ----------
    tables
        The options of each table, in the order of TorchRec's enumeration, which settles ties.
    max_placed_tables
        Tables of all packed proposals together: a limit that does not depend on the machine.
    packs_all
        Whether proposals are packed that cannot be the best, as TorchRec does.
    """
    started = time.monotonic()
    prepared = [[PreparedOption(option) for option in options] for options in tables]
    capacity = cluster.capacity_bytes.sum(axis=0).tolist()
    seen: set[tuple[int, ...]] = set()
    best_seconds, best_proposer = math.inf, ""
    best_options: tuple[int, ...] = ()
    best_ranks: list[Ranks] = []
    num_packed, num_placed, is_cut = 0, 0, False
    for name, proposals in proposers(prepared):
        for proposal in proposals:
            if time.monotonic() - started > time_limit_seconds or num_placed >= max_placed_tables:
                is_cut = True
                break
            if proposal.options in seen:
                continue
            seen.add(proposal.options)
            if not packs_all and (
                any(taken > held for taken, held in zip(proposal.bytes, capacity, strict=True))
                or proposal.seconds * (1 - _ROUNDING) >= best_seconds * cluster.num_ranks
            ):
                continue
            chosen = [options[index] for options, index in zip(prepared, proposal.options, strict=True)]
            num_placed += len(chosen)
            ranks = pack(chosen, cluster, sort_by=sort_by)
            if ranks is None:
                continue
            num_packed += 1
            seconds = max_rank_seconds(chosen, ranks, cluster.num_ranks)
            if seconds < best_seconds:
                best_seconds, best_options, best_ranks, best_proposer = seconds, proposal.options, ranks, name
    return GreedyResult(
        max_rank_seconds=best_seconds,
        chosen_option=best_options,
        shard_ranks=tuple(best_ranks),
        proposer=best_proposer,
        num_proposals=len(seen),
        num_packed=num_packed,
        wall_seconds=time.monotonic() - started,
        is_cut=is_cut,
    )


def proposers(tables: Tables) -> list[tuple[str, Iterator[Proposal]]]:
    """Return the default proposers by name, in the order in which they are asked."""
    return [
        ("grid", grid(tables)),
        ("greedy_largest_shard", greedy_walk(tables, by_largest_shard=True)),
        ("greedy_sum", greedy_walk(tables, by_largest_shard=False)),
        ("uniform", uniform(tables)),
    ]


def grid(tables: Tables) -> Iterator[Proposal]:
    """Yield all combinations, or nothing where they are too many."""
    if math.prod(len(options) for options in tables) > MAX_GRID_PROPOSALS:
        return
    orders = [np.array(_by_seconds(options, by_largest_shard=True)) for options in tables]
    combined = np.stack([one.ravel() for one in np.meshgrid(*orders, indexing="ij")], axis=1)
    taken = sum(
        np.array([option.sum_bytes for option in options])[combined[:, table]] for table, options in enumerate(tables)
    )
    seconds = sum(
        np.array([option.sum_seconds for option in options])[combined[:, table]] for table, options in enumerate(tables)
    )
    for options, of_tiers, total in zip(combined.tolist(), taken.tolist(), seconds.tolist(), strict=True):
        yield Proposal(tuple(options), tuple(of_tiers), total)


def greedy_walk(tables: Tables, *, by_largest_shard: bool) -> Iterator[Proposal]:
    """Yield from the fastest option of each table to ones of fewer bytes, one table a step."""
    orders = [_by_seconds(options, by_largest_shard=by_largest_shard) for options in tables]
    position = [0] * len(tables)
    # The table with the most bytes comes first, and of equal ones the first table.
    heap: list[tuple[tuple[int, ...], int]] = []

    def queue(table: int) -> None:
        held = _held(tables[table][orders[table][position[table]]])
        if position[table] + 1 < len(orders[table]) and any(held):
            heapq.heappush(heap, (tuple(-size for size in held), table))

    for table in range(len(tables)):
        queue(table)
    current = [order[0] for order in orders]
    proposal = Proposal.of(tables, tuple(current))
    yield proposal
    while heap:
        _, table = heapq.heappop(heap)
        before = tables[table][current[table]]
        position[table] += 1
        current[table] = orders[table][position[table]]
        after = tables[table][current[table]]
        queue(table)
        proposal = Proposal(
            tuple(current),
            tuple(
                taken - less + more
                for taken, less, more in zip(proposal.bytes, before.sum_bytes, after.sum_bytes, strict=True)
            ),
            proposal.seconds - before.sum_seconds + after.sum_seconds,
        )
        yield proposal


def uniform(tables: Tables) -> Iterator[Proposal]:
    """Yield one proposal for each scheme that every table has, in order of first appearance."""
    schemes = dict.fromkeys(option.option.scheme for options in tables for option in options)
    for scheme in schemes:
        best = [
            next(
                (
                    index
                    for index in _by_seconds(options, by_largest_shard=True)
                    if options[index].option.scheme == scheme
                ),
                None,
            )
            for options in tables
        ]
        found = tuple(index for index in best if index is not None)
        if len(found) == len(tables):
            yield Proposal.of(tables, found)


def _by_seconds(options: Sequence[PreparedOption], *, by_largest_shard: bool) -> list[int]:
    if by_largest_shard:
        return sorted(range(len(options)), key=lambda index: options[index].total_seconds.max())
    return sorted(range(len(options)), key=lambda index: options[index].sum_seconds)


def _held(option: PreparedOption) -> tuple[int, ...]:
    """Bytes of the largest shard and of all, tier by tier."""
    largest = option.bytes.max(axis=0).tolist()
    return tuple(itertools.chain.from_iterable(zip(largest, option.sum_bytes, strict=True)))
