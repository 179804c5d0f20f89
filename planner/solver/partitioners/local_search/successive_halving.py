"""A race of plans: all settle a little, the better third three times as long, and so on.

What a plan is after a short time predicts well what it will be after a long one (rank correlation 0.7 to 0.9; decision
0012), and first plans end far apart, so that many tried briefly find a better one than few tried long.
"""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator

from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.parallel_chains import ChainThread, ParallelChains

_PART = 3  # of the field, one goes on; it runs as many times longer


def halving_length(count: int, num_parallel: int = 1) -> int:
    """Return how long a race of so many takes, in lengths of its first round."""
    length, times = -(-count // num_parallel), 1
    while count > num_parallel and count >= _PART:
        count, times = _that_go_on(count, num_parallel), times * _PART
        length += times * -(-count // num_parallel)
    return length


def _that_go_on(count: int, num_parallel: int) -> int:
    """Return how many of a field go on: about a third, so that no thread is idle."""
    return min(-(-round(count / _PART) // num_parallel) * num_parallel, count)


def successive_halving(
    entrants: Iterable[Chain], run: Callable[[Chain, int, ChainThread], bool], num_parallel: ParallelChains
) -> list[Chain]:
    """Run entrants in rounds, side by side as threads allow; return all, best first.

    ``run`` runs one for so many times the length of the first round, and answers whether the race goes on.
    """
    field: list[Chain] = []
    over = threading.Event()

    def one(chain: Chain, times: int, thread: ChainThread) -> None:
        if not run(chain, times, thread):
            over.set()

    def entering() -> Iterator[Callable[[ChainThread], None]]:
        for chain in entrants:
            field.append(chain)
            yield functools.partial(one, chain, 1)
            if over.is_set():
                return

    def staying(left: list[Chain], times: int) -> Iterator[Callable[[ChainThread], None]]:
        for chain in left:
            if over.is_set():
                return
            yield functools.partial(one, chain, times)

    num_parallel.each(entering())
    left, times = field, 1
    while not over.is_set() and len(left) > num_parallel.count and len(left) >= _PART:
        left = sorted(left, key=lambda chain: chain.rating)[: _that_go_on(len(left), num_parallel.count)]
        times *= _PART
        num_parallel.each(staying(left, times))
    return sorted(field, key=lambda chain: chain.rating)
