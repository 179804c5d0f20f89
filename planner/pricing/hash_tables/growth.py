"""Sizes of hash tables over the life of a job: what each takes on a rank, and where memory ends.

A table of dynamicemb doubles whenever half of its index is in use, up to its slots; without eviction it goes on [1].
While it doubles, the size before lies next to the new one (:mod:`planner.pricing.hash_tables.dynamicemb`). A dynamic
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
from cost_models.arrays import Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Tier
from planner.domain.plan.growth import GrowthStep, TableGrowth
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.pricing.hash_tables.dynamicemb import (
    DEVICE_PAGE_BYTES,
    HOST_PAGE_BYTES,
    NO_EVICTION_FACTOR,
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
    grows = np.array([_grows(table) for table in problem.tables])
    if not grows.any():
        return ()
    by_rows = np.lexsort((placed.stored_rows, placed.table))
    is_last = np.append(np.diff(placed.table[by_rows]) != 0, True)
    kinds = by_rows[is_last]  # of each table the one with most rows
    kinds = kinds[grows[placed.table[kinds]]]
    free = np.maximum(capacity_bytes(problem) - held_bytes, 0.0)
    least = np.full((len(problem.tables), free.shape[1]), math.inf)  # of the ranks that hold part of a table
    np.minimum.at(least, placed.table[placed.kind], free[placed.rank])
    tables, work = placed.table[kinds], placed.work.take(kinds)
    shards = _Shards.of(problem, work, tables, placed.stored_rows[kinds])
    return tuple(
        _growth_of(
            problem.tables[table],
            int(work.row_shards[number]),
            shards.sizes(problem, table, number),
            free_device=float(least[table, problem.cluster.device_tier]),
            free_host=float(least[table, Tier.DDR]),
        )
        for number, table in enumerate(tables.tolist())
    )


def _grows(table: Table) -> bool:
    found = table.hash_table
    if found is None:
        return False
    return found.mode == HUGECTR or (
        found.mode == DYNAMICEMB and (found.initial_capacity_per_rank is not None or not found.evicts)
    )


def _growth_of(
    table: Table, parts: int, sizes: Iterator[_Size], *, free_device: float, free_host: float
) -> TableGrowth:
    planned: list[_Size] = []
    for size in sizes:
        planned.append(size)
        if size.is_enough:
            break
    last = planned[-1]
    most_device, most_host = last.device_bytes + last.moment_bytes + free_device, last.host_bytes + free_host
    fits = last.ids
    for size in sizes:
        if size.device_bytes + size.moment_bytes > most_device or size.host_bytes > most_host:
            break
        fits = size.ids
    evicts = table.hash_table is not None and table.hash_table.evicts
    return TableGrowth(
        table=table.name,
        steps=tuple(
            GrowthStep(
                ids=int(size.ids) * parts,
                slots_per_rank=int(size.slots),
                device_bytes=size.device_bytes,
                host_bytes=size.host_bytes,
                peak_device_bytes=size.device_bytes + size.moment_bytes,
            )
            for size in planned
        ),
        fits_ids=None if evicts else int(fits) * parts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shards:
    """A shard of each table that grows, by place; lists, since sizes follow one another."""

    kernel: list[int]
    rows: list[int]
    bucket: list[int]
    words: list[int]
    initial: list[float]
    asked: list[float]
    value_bytes: list[float]
    row_bytes: list[float]  # of weights
    state_numbers: list[float]
    lookups: list[int]
    distinct: list[int]

    @classmethod
    def of(cls, problem: Problem, work: ShardWork, table: Ints, rows: Ints) -> "_Shards":
        columns = hash_columns(problem)
        bucket = columns.bucket_size[table]
        return cls(
            kernel=work.kernel.tolist(),
            rows=rows.tolist(),
            bucket=bucket.tolist(),
            words=columns.score_words[table].tolist(),
            initial=columns.initial_slots[table].tolist(),
            asked=main_slots(work, bucket).tolist(),
            value_bytes=value_bytes(work).tolist(),
            row_bytes=(work.shard_columns * WEIGHT_BYTES).tolist(),
            state_numbers=(work.optimizer_element_bytes / WEIGHT_BYTES).tolist(),
            lookups=np.ceil(work.lookups).astype(np.int64).tolist(),
            distinct=np.ceil(distinct_rows(work)).astype(np.int64).tolist(),
        )

    def sizes(self, problem: Problem, table: int, place: int) -> Iterator[_Size]:
        """Yield the sizes of a table on one rank, the smallest first."""
        found = problem.tables[table].hash_table
        assert found is not None
        return self._maps(place) if found.mode == HUGECTR else self._doublings(place, evicts=found.evicts)

    def _doublings(self, place: int, *, evicts: bool) -> Iterator[_Size]:
        bucket, words, value, asked = (one[place] for one in (self.bucket, self.words, self.value_bytes, self.asked))
        on_device = self.kernel[place] == Kernel.HASH
        page = DEVICE_PAGE_BYTES if on_device else HOST_PAGE_BYTES
        most = _up_to(asked, bucket)
        size = start = most if self.initial[place] == math.inf else min(_up_to(self.initial[place], bucket), most)
        before_keys = before_values = 0.0
        for number in range(_MOST_SIZES):
            keys, values = size, size
            if not evicts:
                values = NO_EVICTION_FACTOR * size - start if number else min(size, asked)
                keys = NO_EVICTION_FACTOR * size if number else _up_to(NO_EVICTION_FACTOR * values, bucket)
            held, is_last = _up_to(values * value, page), size >= most
            index = index_bytes(keys, bucket, words)
            moment = index_bytes(before_keys, bucket, words) + (before_values * value if evicts else 0.0)
            yield _Size(
                ids=size if evicts and is_last else math.floor(MAX_LOAD_FACTOR * keys),
                slots=values,
                device_bytes=index + (held if on_device else 0.0),
                host_bytes=0.0 if on_device else held,
                moment_bytes=moment,
                is_enough=is_last,
            )
            if evicts and is_last:
                return
            before_keys, before_values = keys, values
            size = min(2 * size, most) if evicts else 2 * size

    def _maps(self, place: int) -> Iterator[_Size]:
        rows, row, state_numbers = self.rows[place], self.row_bytes[place], self.state_numbers[place]
        before = 0
        for number in range(1, MOST_MAPS + 1):
            ids, slots = max(math.floor(room_of_maps(number)) - self.lookups[place], 0), slots_of_maps(number)
            expected = float((ids if before >= rows else min(ids, rows)) + self.distinct[place])
            state = float(map_slots(np.array([expected]))[0]) if state_numbers else 0.0
            of_state = state * (row * state_numbers + KEY_BYTES)
            yield _Size(
                ids=ids,
                slots=slots,
                device_bytes=slots * (row + KEY_BYTES) + of_state + 2 * COUNTER_BYTES,
                host_bytes=0.0,
                moment_bytes=0.0,
                is_enough=ids >= rows,
            )
            before = ids


def _up_to(amount: float, step: float) -> float:
    """Round up to whole steps."""
    return math.ceil(amount / step) * step
