"""TorchRec's planner at whatever costs it is given: its four proposers and its greedy packing.

    python benchmarks/peers/torchrec_greedy.py DUMP.options.json.gz ...

A proposal is one option for every table. The default proposers, in order:

1. grid: all combinations, where they are at most 10,000;
2. greedy by largest shard: every table's options by the seconds of their largest shard; start with
   the first of each; again and again the table whose option holds the most bytes in one shard (then
   in all; then the same of the next tier) moves on to its next option, until no table can move;
3. greedy by sum: the same, options by their seconds in all;
4. uniform: for each scheme that all tables have, each table's best option of it.

Every proposal that was not tried before is packed, and the plan with the fastest slowest rank is
kept. Feedback changes no proposal. The time limit is looked at between proposals, and ends each
proposer that is left.

References
----------
TorchRec 1.8.0, ``planner/proposers.py`` and ``planner/planners.py`` (``EmbeddingShardingPlanner``
with default settings); described, not copied.
"""

import argparse
import heapq
import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from benchmarks.peers.torchrec_options import MILLISECONDS_PER_SECOND, Cluster, Option, read_dump
from benchmarks.peers.torchrec_packing import PreparedOption, Ranks, SortBy, max_rank_seconds, pack

MAX_GRID_PROPOSALS = 10_000  # TorchRec 1.8.0, MAX_PROPOSALS

Proposal = tuple[int, ...]  # option of each table
Tables = Sequence[Sequence[PreparedOption]]


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
    timed_out: bool


def search(
    tables: Sequence[Sequence[Option]],
    cluster: Cluster,
    *,
    sort_by: SortBy = "bytes",
    time_limit_seconds: float | None = None,
) -> GreedyResult:
    """Plan as ``EmbeddingShardingPlanner`` does with its defaults.

    ``tables``: the options of each table, in the order of TorchRec's enumeration, which settles ties.
    """
    started = time.monotonic()
    prepared = [[PreparedOption(option) for option in options] for options in tables]
    seen: set[bytes] = set()
    best_seconds, best_proposer = math.inf, ""
    best_proposal: Proposal = ()
    best_ranks: list[Ranks] = []
    num_packed, timed_out = 0, False
    for name, proposals in proposers(prepared):
        for proposal in proposals:
            if time_limit_seconds is not None and time.monotonic() - started > time_limit_seconds:
                timed_out = True
                break
            key = blake2b(np.array(proposal, dtype=np.int32).tobytes(), digest_size=16).digest()
            if key in seen:
                continue
            seen.add(key)
            chosen = [options[index] for options, index in zip(prepared, proposal, strict=True)]
            ranks = pack(chosen, cluster, sort_by=sort_by)
            if ranks is None:
                continue
            num_packed += 1
            seconds = max_rank_seconds(chosen, ranks, cluster.num_ranks)
            if seconds < best_seconds:
                best_seconds, best_proposal, best_ranks, best_proposer = seconds, proposal, ranks, name
    return GreedyResult(
        max_rank_seconds=best_seconds,
        chosen_option=best_proposal,
        shard_ranks=tuple(best_ranks),
        proposer=best_proposer,
        num_proposals=len(seen),
        num_packed=num_packed,
        wall_seconds=time.monotonic() - started,
        timed_out=timed_out,
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
    if math.prod(len(options) for options in tables) <= MAX_GRID_PROPOSALS:
        yield from itertools.product(*(_by_seconds(options, by_largest_shard=True) for options in tables))


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
    yield tuple(current)
    while heap:
        _, table = heapq.heappop(heap)
        position[table] += 1
        current[table] = orders[table][position[table]]
        queue(table)
        yield tuple(current)


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
            yield found


def _by_seconds(options: Sequence[PreparedOption], *, by_largest_shard: bool) -> list[int]:
    if by_largest_shard:
        return sorted(range(len(options)), key=lambda index: options[index].total_seconds.max())
    return sorted(range(len(options)), key=lambda index: options[index].sum_seconds)


def _held(option: PreparedOption) -> tuple[int, ...]:
    """Bytes of the largest shard and of all, tier by tier."""
    largest = option.bytes.max(axis=0).tolist()
    return tuple(itertools.chain.from_iterable(zip(largest, option.sum_bytes, strict=True)))


def main(arguments: list[str] | None = None) -> int:
    """Plan dumps of TorchRec's enumerated options; print one line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dumps", type=Path, nargs="+", help="NAME.options.json.gz")
    parser.add_argument("--sort-by", choices=("bytes", "seconds"), default="bytes")
    given = parser.parse_args(arguments)
    for path in given.dumps:
        result = search(*read_dump(path), sort_by=given.sort_by)
        print(
            f"{path.name.split('.')[0]:<16} {result.max_rank_seconds * MILLISECONDS_PER_SECOND:9.4f} ms  "
            f"{result.proposer:<20} {result.num_packed} of {result.num_proposals} proposals packed, "
            f"{result.wall_seconds:.1f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
