"""Which tables of a placement are stashed: as many as ranks need, each whole, on all of its ranks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from cost_models.vocabulary import Kernel
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.pricing.memory.ledger import sparse_capacity_bytes
from planner.pricing.memory.stash import Copies
from planner.pricing.placed_work import PlacedWork
from planner.solver.segments import by_owner


class NoStash(Exception):
    """No set of whole tables makes the room that a placement counts on within the wait that is allowed."""

    def __init__(self, bound_seconds: float = 0.0) -> None:
        super().__init__("no set of whole tables makes the room that the placement counts on")
        self.bound_seconds = bound_seconds  # on the objective of all plans


def with_stash(problem: Problem, placement: Placement) -> Placement:
    """Return the placement with the tables marked that are stashed: some that fit, until all ranks fit.

    Raises
    ------
    NoStash
        If they do not.
    """
    copies = Copies.of(problem)
    if copies is None:
        return placement
    placed, device = PlacedWork.of(problem, placement), problem.cluster.device_tier
    used = placed.ledger(problem).by_tier()[:, device]
    free = sparse_capacity_bytes(problem) - used
    needed, most = copies.needed_bytes(free), copies.most_bytes(free)
    if not needed.any():
        return placement
    stashed = _choose(_may_be_stashed(problem, placement), placement, placed.weight_bytes(problem), needed, most)
    if stashed is None:
        raise NoStash
    tables = (
        replace(one, stash_weights=True) if is_stashed else one
        for one, is_stashed in zip(placement.tables, stashed.tolist(), strict=True)
    )
    return replace(placement, tables=tuple(tables))


def _may_be_stashed(problem: Problem, placement: Placement) -> Bools:
    """Mark the tables whose kernel can stash and that the spec allows, shape (num_tables,)."""
    allowed = None if problem.stash is None else problem.stash.tables
    return np.array(
        [one.compute_kernel is Kernel.FUSED and (allowed is None or one.name in allowed) for one in placement.tables]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table that may be stashed: its index, its ranks, and its weights on each."""

    index: int
    ranks: Ints
    bytes: Floats  # (len(ranks),)

    @property
    def most_bytes(self) -> float:
        return float(self.bytes.max())


#: Orders in which tables are tried, one after the other until all ranks have enough.
_ORDERS: tuple[Callable[[_Table], tuple[float, ...]], ...] = (
    lambda one: (-one.most_bytes, one.index),
    lambda one: (-len(one.ranks), -one.most_bytes, one.index),
    lambda one: (len(one.ranks), -one.most_bytes, one.index),
    lambda one: (one.most_bytes, one.index),
)


def _choose(allowed: Bools, placement: Placement, shard_bytes: Floats, needed: Floats, most: Floats) -> Bools | None:
    """Mark the stashed tables; ``None`` if those that fit are not enough in any order.

    ``shard_bytes`` are the weights of every shard, (num_shards,); ``needed`` and ``most`` are of ranks, (num_ranks,).
    """
    rank, of = placement.all_shards().rank, placement.table_of_shards()
    tables = []
    for index, some in by_owner(of, np.flatnonzero(allowed[of])):
        ranks, where = np.unique(rank[some], return_inverse=True)
        held = np.zeros(len(ranks))
        np.add.at(held, where, shard_bytes[some])
        tables.append(_Table(index=index, ranks=ranks, bytes=held))
    for order in _ORDERS:
        chosen = _in_order(sorted(tables, key=order), needed, most)
        if chosen is not None:
            stashed = np.zeros(len(placement.tables), dtype=np.bool_)
            stashed[[one.index for one in chosen]] = True
            return stashed
    return None


def _in_order(tables: Sequence[_Table], needed: Floats, most: Floats) -> list[_Table] | None:
    """Take each table that helps a rank and fits on all of its ranks; leave out what was not needed after all."""
    have, taken = np.zeros_like(needed), []
    for one in tables:
        helps = np.any(have[one.ranks] < needed[one.ranks])
        if helps and np.all(have[one.ranks] + one.bytes <= most[one.ranks]):
            have[one.ranks] += one.bytes
            taken.append(one)
    if np.any(have < needed):
        return None
    chosen = []
    for one in sorted(taken, key=_ORDERS[0]):
        if np.all(have[one.ranks] - one.bytes >= needed[one.ranks]):
            have[one.ranks] -= one.bytes
        else:
            chosen.append(one)
    return chosen
