"""Rules of thumb for models larger than the accelerators' memory: whole tables, one key, one treatment for all.

Every table goes whole to the rank with the least of a key (bytes, lookups, or their product, largest first), as
RecShard (arXiv 2201.10095) and NeuroShard (arXiv 2305.01868) describe what is done by hand, and is kept in one of two
ways: all tables behind caches of the same share, the largest that fits, or the tables that come first in the
accelerators' memory until it is full and the others in host memory.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.protocol import CostModel
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.pricing.memory.ledger import capacity_bytes
from planner.verification.evaluate_placement import bytes_by_tier, score

#: How a table is kept: kernel and cached share.
Preserved = tuple[Kernel, float | None]

SHARES = (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)


def best_rule(problem: Problem, cost_model: CostModel) -> tuple[str, float] | None:
    """Return the best rule that gives a plan within memory, and the plan's objective; ``None`` where none does."""
    found = [
        (score(problem, placement, cost_model).objective_seconds, name)
        for name, placement in _plans(problem)
        if np.all(bytes_by_tier(problem, placement) <= capacity_bytes(problem))
    ]
    return None if not found else (min(found)[1], min(found)[0])


def _plans(problem: Problem) -> Iterator[tuple[str, Placement]]:
    """Yield the plans of all rules; of equal caches, that of the largest share that fits."""
    size = np.array([table.weight_bytes for table in problem.tables])
    lookups = np.array([table.ids_per_sample for table in problem.tables])
    for name, key in (("size", size), ("lookup", lookups), ("size-lookup", size * lookups)):
        for share in SHARES:
            placement = _packed(problem, key, [(Kernel.FUSED_UVM_CACHING, share)] * len(size))
            if placement is not None:
                yield f"{name}, all cached {share:g}", placement
                break
        for density in (key, key / size):
            placement = _filled(problem, key, np.argsort(-density, kind="stable"))
            if placement is not None:
                yield f"{name}, first tables in hbm", placement


def _packed(problem: Problem, key: Floats, preserved: list[Preserved]) -> Placement | None:
    """Put the tables with the largest key first on the rank with the least of it that has room."""
    needed = _bytes_of_tables(problem, preserved)
    left = capacity_bytes(problem)
    load, rank = np.zeros(problem.world_size), np.zeros(len(key), dtype=np.int64)
    for table in np.argsort(-key, kind="stable"):
        fits = np.flatnonzero(np.all(left >= needed[table], axis=1))
        if not len(fits):
            return None
        chosen = int(fits[np.argmin(load[fits])])
        rank[table] = chosen
        load[chosen] += key[table]
        left[chosen] -= needed[table]
    return _placement(problem, rank, preserved)


def _filled(problem: Problem, key: Floats, order: Ints) -> Placement | None:
    """Keep the first tables in the accelerators' memory, as many as a tenth less than all of it holds."""
    in_hbm = _bytes_of_tables(problem, [(Kernel.FUSED, None)] * len(key))[:, Tier.HBM]
    room = 0.9 * float(capacity_bytes(problem)[:, Tier.HBM].sum())
    near = np.zeros(len(key), dtype=np.bool_)
    near[order[np.cumsum(in_hbm[order]) <= room]] = True
    return _packed(problem, key, [(Kernel.FUSED, None) if one else (Kernel.FUSED_UVM, None) for one in near.tolist()])


def _bytes_of_tables(problem: Problem, preserved: list[Preserved]) -> Floats:
    """Bytes of each whole table by tier, (tables, tiers): each alone on a rank, as many at once as there are ranks."""
    needed = []
    for start in range(0, len(preserved), problem.world_size):
        part = range(start, min(start + problem.world_size, len(preserved)))
        rank = np.array([place - start for place in part])
        needed.append(bytes_by_tier(problem, _placement(problem, rank, preserved, start))[: len(part)])
    return np.concatenate(needed)


def _placement(problem: Problem, rank: Ints, preserved: list[Preserved], first: int = 0) -> Placement:
    placed = []
    for table, place, (kernel, share) in zip(problem.tables[first:], rank.tolist(), preserved[first:], strict=False):
        shards = Shards.of_columns(
            rank=place,
            row_offset=0,
            num_rows=table.num_embeddings,
            column_offset=0,
            num_columns=table.embedding_dim,
            tier=kernel.tier(Tier.HBM),
        )
        placed.append(
            TablePlacement(
                name=table.name,
                sharding_type=Scheme.TABLE_WISE,
                compute_kernel=kernel,
                cache_load_factor=share,
                shards=shards,
            )
        )
    return Placement(world_size=problem.world_size, ranks_per_host=problem.cluster.ranks_per_host, tables=tuple(placed))
