"""The phase ``checkpoint``: docs/cost-models.md#checkpoints."""

import math
from typing import Any

from tests.support.oracle.rows.access import distinct_rows, on_lines
from tests.support.oracle.shards import CACHED, ELEMENT_BYTES, STATE_BYTES, Job, Shard, Table

_STORED = {32: "fp32", 16: "fp16", 8: "int8", 4: "int4"}


class Checkpoints:
    """The checkpoints of a job: increments of a cycle, and what they take of a shard."""

    def __init__(self, job: Job) -> None:
        given: dict[str, Any] = job.spec["checkpoint"]
        self._job, self._given = job, given
        self._policy = given.get("policy", "full")
        self._steps = given["interval_steps"]
        self.full_every = given.get("full_every") or (1 if self._policy == "full" else 12)
        tables = [Table.of(index, one) for index, one in enumerate(job.model["tables"])]
        if self._policy == "intermittent":
            self.full_every = self._decided(tables)
        last = self.full_every - 1
        if self._policy == "consecutive":
            self._points, self._counts = [1] if last else [], [last] if last else []
        else:
            self._points = _spread(1, last) if last else []
            self._counts = [_stands_for(self._points, number, last) for number in range(len(self._points))]

    def seconds(self, shard: Shard) -> float:
        """Return the seconds per step that checkpoints of a shard cost."""
        given, table, y = self._given, shard.table, shard.rows
        held = y / self._job.machine.world if shard.is_replica else y
        full = self._stored(shard, held)
        snapshot, added = self._snapshot(shard, held, held), 0.0
        for intervals, count in zip(self._points, self._counts, strict=True):
            rows = self._changed(table, intervals) * held / table.num_rows
            if shard.kernel == "dense" and table.is_trained:
                rows = held
            snapshot += count * self._snapshot(shard, rows, held)
            added += count * min(self._stored(shard, rows) + min(8 * rows, held / 8), full)
        cycle = self.full_every
        read = added / (2 if self._policy == "consecutive" else cycle)
        late = (full + added) / cycle / given.get("upload_bytes_per_second", 1e9)
        late += (full + read) / given.get("download_bytes_per_second", 2e9)
        between = self._steps * given.get("intervals_between_failures", 20.0)
        return float(snapshot / cycle / self._steps + late * self._job.machine.per_host / between)

    def _changed(self, table: Table, intervals: int) -> float:
        if not table.is_trained:
            return 0.0
        lookups = self._job.machine.world * (self._job.batch * table.ids) * self._steps * intervals
        known = distinct_rows(table.access, table.num_rows, lookups)
        return min(math.inf if known is None else known, lookups, table.num_rows)

    def _decided(self, tables: list[Table]) -> int:
        sizes = [self._row_bytes(one.data_type, one.num_columns, one.optimizer) for one in tables]
        whole = sum(size * one.num_rows for size, one in zip(sizes, tables, strict=True))
        so_far = 0.0
        for number in range(1, self.full_every):
            part = sum(size * self._changed(one, number) for size, one in zip(sizes, tables, strict=True)) / whole
            so_far += part
            if 1 + so_far <= (number + 1) * part:
                return number + 1
        return self.full_every

    def _row_bytes(self, data_type: str, columns: int, optimizer: str, held: float | None = None) -> float:
        e, s, t = ELEMENT_BYTES[data_type], *STATE_BYTES[optimizer]
        weights = columns * e + (4 if data_type.startswith("int") else 0) if held is None else held
        if bits := self._given.get("bits"):
            stored = _STORED[bits]
            if ELEMENT_BYTES[stored] < e:
                weights = columns * ELEMENT_BYTES[stored] + (4 if stored.startswith("int") else 0)
        return weights + columns * s + t

    def _stored(self, shard: Shard, rows: float) -> float:
        name = next(name for name, size in ELEMENT_BYTES.items() if size == shard.e)
        return rows * self._row_bytes(name, shard.columns, shard.table.optimizer, shard.r)

    def _snapshot(self, shard: Shard, rows: float, held: float) -> float:
        machine, numbers = self._job.machine, self._job.machine.numbers
        to_host = 2 / numbers["ddr_bytes_per_second"] if "ddr_bytes_per_second" in numbers else math.nan
        device = 1 / machine.return_link if machine.device == "hbm" else to_host
        weights, both = shard.r, shard.r + shard.columns * shard.s
        near = (
            min(rows, (shard.cached or 0.0) * held) * weights
            if shard.kernel in (*CACHED, "hash_hybrid", "hash_caching")
            else 0.0
        )
        is_near = shard.kernel in ("dense", "fused", "hash")
        hot = rows if is_near else min(rows, shard.hot_rows / shard.table.num_rows * held)
        seconds = (rows * shard.t + near + hot * both) * device
        if shard.kernel in ("fused_uvm", "fused_uvm_caching", "hash_host", "hash_hybrid", "hash_caching"):
            to_scm = (
                1 / numbers["scm_bytes_per_second"] + 1 / numbers["ddr_bytes_per_second"] if shard.tier == "scm" else 0
            )
            seconds += (rows - hot) * both * (to_scm or to_host)
        if shard.kernel == "key_value":
            seconds += near / numbers["ssd_write_bytes_per_second"]
        return seconds


def _spread(first: int, last: int) -> list[int]:
    """Return at most eight whole numbers near a geometric row."""
    return sorted({round(first * (last / first) ** (j / 7)) for j in range(8)})


def _stands_for(points: list[int], number: int, last: int) -> float:
    """Return how many increments a point stands for, those between shared out by their distance."""
    unit = [(float(point), 1.0 if place == number else 0.0) for place, point in enumerate(points)]
    return sum(on_lines(unit, float(increment)) for increment in range(1, last + 1))
