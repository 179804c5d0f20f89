"""Sizes of hash tables over the life of a job: what each takes on a rank, and where memory ends.

A table of dynamicemb doubles whenever half of its index is in use, up to its slots; without eviction it goes on [1].
While it doubles, the size before lies beside the new one (:mod:`planner.pricing.hash_tables.dynamicemb`). A dynamic
table of HugeCTR gets a map, and nothing is copied (:mod:`planner.pricing.hash_tables.hugectr`). The plan reserves the
last size that the expected ids need; tables that evict nothing may grow further, as far as the memory goes that
their fullest rank has left.

References
----------
.. [1] NVIDIA recsys-examples 43465ae, ``key_value_table.py``: ``_expand_tables_impl``, ``max_load_factor``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cost_models.analytic.hash_tables import value_bytes
from cost_models.analytic.sizes import distinct_rows
from cost_models.arrays import Floats
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Tier
from planner.domain.plan.growth import GrowthStep, TableGrowth
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.pricing.hash_tables.dynamicemb import (
    DEVICE_PAGE_BYTES,
    HOST_PAGE_BYTES,
    NO_EVICTION_FACTOR,
    aligned,
    hash_columns,
    index_bytes,
    main_slots,
)
from planner.pricing.hash_tables.dynamicemb import MODE as DYNAMICEMB
from planner.pricing.hash_tables.hugectr import (
    COUNTER_BYTES,
    KEY_BYTES,
    MOST_MAPS,
    WEIGHT_BYTES,
    map_slots,
    room_of_maps,
    slots_of_maps,
)
from planner.pricing.hash_tables.hugectr import MODE as HUGECTR
from planner.pricing.memory.ledger import capacity_bytes
from planner.pricing.placed_work import PlacedWork

MAX_LOAD_FACTOR = 0.5
#: No table is followed further than this; memory ends before.
_MOST_SIZES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    ids: float  # of a rank, up to which the table has this size
    slots: float
    device_bytes: float
    host_bytes: float
    moment_bytes: float  # on the device, while the table comes to this size
    is_enough: bool  # for all that the plan reserves


def table_growth(problem: Problem, placed: PlacedWork, held_bytes: Floats) -> tuple[TableGrowth, ...]:
    """Return the growth of every table that grows; ``held_bytes`` are those of each rank, (num_ranks, NUM_TIERS)."""
    growing = [index for index, table in enumerate(problem.tables) if _grows(table)]
    if not growing:
        return ()
    free = np.maximum(capacity_bytes(problem) - held_bytes, 0.0)
    device, found = problem.cluster.device_tier, []
    for index in growing:
        kinds = np.flatnonzero(placed.table == index)
        if not len(kinds):
            continue
        fullest = int(kinds[np.argmax(placed.stored_rows[kinds])])
        work, rows = placed.work.take(np.array([fullest])), int(placed.stored_rows[fullest])
        ranks = placed.rank[np.isin(placed.kind, kinds)]
        sizes = _sizes(problem, index, work, rows)
        planned: list[_Size] = []
        for size in sizes:
            planned.append(size)
            if size.is_enough:
                break
        last, evicts = planned[-1], problem.tables[index].hash_table.evicts  # type: ignore[union-attr]
        most_device = last.device_bytes + last.moment_bytes + float(free[ranks, device].min())
        most_host = last.host_bytes + float(free[ranks, Tier.DDR].min())
        fits = last.ids
        for size in sizes if not evicts else ():
            if size.device_bytes + size.moment_bytes > most_device or size.host_bytes > most_host:
                break
            fits = size.ids
        parts = int(work.row_shards[0])
        found.append(
            TableGrowth(
                table=problem.tables[index].name,
                steps=tuple(_step(size, parts) for size in planned),
                fits_ids=None if evicts else int(fits) * parts,
            )
        )
    return tuple(found)


def _grows(table: Table) -> bool:
    found = table.hash_table
    if found is None:
        return False
    return found.mode == HUGECTR or (
        found.mode == DYNAMICEMB and (found.initial_capacity_per_rank is not None or not found.evicts)
    )


def _step(size: _Size, parts: int) -> GrowthStep:
    return GrowthStep(
        ids=int(size.ids) * parts,
        slots_per_rank=int(size.slots),
        device_bytes=size.device_bytes,
        host_bytes=size.host_bytes,
        peak_device_bytes=size.device_bytes + size.moment_bytes,
    )


def _sizes(problem: Problem, index: int, work: ShardWork, rows: int) -> Iterator[_Size]:
    """Yield the sizes of a table on one rank, the smallest first."""
    mode = problem.tables[index].hash_table_mode
    return _maps(work, rows) if mode == HUGECTR else _doublings(problem, index, work)


def _doublings(problem: Problem, index: int, work: ShardWork) -> Iterator[_Size]:
    columns, kernel = hash_columns(problem), Kernel(int(work.kernel[0]))
    bucket, words = int(columns.bucket_size[index]), int(columns.score_words[index])
    evicts, value = int(columns.index_factor[index]) == 1, float(value_bytes(work)[0])
    asked = float(main_slots(work, columns.bucket_size[[index]])[0])
    most = float(aligned(asked, bucket))
    size = start = min(float(aligned(columns.initial_slots[index], bucket)), most)
    before_keys = before_values = 0.0
    for number in range(_MOST_SIZES):
        keys, values = size, size
        if not evicts:
            values = NO_EVICTION_FACTOR * size - start if number else min(size, asked)
            keys = NO_EVICTION_FACTOR * size if number else float(aligned(NO_EVICTION_FACTOR * values, bucket))
        held = float(aligned(values * value, DEVICE_PAGE_BYTES if kernel is Kernel.HASH else HOST_PAGE_BYTES))
        index_held = float(index_bytes(keys, bucket, words))
        copied = before_values * value if evicts else 0.0
        is_last = size >= most
        yield _Size(
            ids=size if evicts and is_last else math.floor(MAX_LOAD_FACTOR * keys),
            slots=values,
            device_bytes=index_held + (held if kernel is Kernel.HASH else 0.0),
            host_bytes=0.0 if kernel is Kernel.HASH else held,
            moment_bytes=float(index_bytes(before_keys, bucket, words)) + copied if number else 0.0,
            is_enough=is_last,
        )
        if evicts and is_last:
            return
        before_keys, before_values = keys, values
        size = min(2 * size, most) if evicts else 2 * size


def _maps(work: ShardWork, rows: int) -> Iterator[_Size]:
    state_numbers = float(work.optimizer_element_bytes[0]) / WEIGHT_BYTES
    lookups, distinct = math.ceil(work.lookups[0]), math.ceil(distinct_rows(work)[0])
    row, before = float(work.shard_columns[0]) * WEIGHT_BYTES, 0
    for number in range(1, MOST_MAPS + 1):
        ids, slots = max(math.floor(room_of_maps(number)) - lookups, 0), slots_of_maps(number)
        expected = ids if before >= rows else min(ids, rows)
        state = float(map_slots(np.array([float(expected + distinct)]))[0]) if state_numbers else 0.0
        yield _Size(
            ids=ids,
            slots=slots,
            device_bytes=slots * (row + KEY_BYTES) + state * (row * state_numbers + KEY_BYTES) + 2 * COUNTER_BYTES,
            host_bytes=0.0,
            moment_bytes=0.0,
            is_enough=ids >= rows,
        )
        before = ids
