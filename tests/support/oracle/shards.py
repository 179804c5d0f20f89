"""What every shard of a plan does in a step: the symbols of docs/cost-models.md#symbols."""

import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.dense import dense_times
from tests.support.oracle.machine import Machine, up_to
from tests.support.oracle.rows.access import classes, distinct_rows, hottest_first, on_lines
from tests.support.oracle.rows.blocks import curves, missed_of_heaviest, shares

ELEMENT_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0, "int4": 0.5, "int2": 0.25}
STATE_BYTES = {
    "none": (0, 0),
    "sgd": (0, 0),
    "rowwise_adagrad": (0, 4),
    "adagrad": (4, 0),
    "lars_sgd": (4, 0),
    "adam": (8, 0),
    "lamb": (8, 0),
    "partial_rowwise_adam": (4, 4),
    "partial_rowwise_lamb": (4, 4),
}
ROW_CUTS = ("row_wise", "table_row_wise", "grid_shard")
CACHED = ("fused_uvm_caching", "key_value")
#: Runtimes whose tables share FBGEMM operators.
OF_TORCHREC = ("torchrec", "torcheasyrec", "dynamicemb")
FETCHES_AHEAD = "train_prefetch_sparse_dist"


@dataclass(frozen=True)
class Job:
    """A spec with its defaults."""

    spec: dict[str, Any]
    machine: Machine
    deduplicates: bool = False  # as the plan has it

    @classmethod
    def of(cls, spec: dict[str, Any], *, deduplicates: bool = False) -> "Job":
        return cls(spec=spec, machine=Machine.of(spec["hardware"]), deduplicates=deduplicates)

    @property
    def model(self) -> dict[str, Any]:
        model: dict[str, Any] = self.spec["model"]
        return model

    @property
    def pipeline(self) -> str:
        return str(self.model.get("pipeline", "train_sparse_dist"))

    @property
    def runtime(self) -> str:
        return str(self.spec.get("runtime", "torchrec"))

    @property
    def has_modulo_rows(self) -> bool:
        """Whether neighbouring rows lie on different ranks."""
        return self.runtime in ("hugectr", "sparsecore")

    @property
    def samples_of_request(self) -> int | None:
        serving = self.spec.get("serving")
        return None if serving is None else int(serving["samples_per_request"])

    @property
    def batch(self) -> float:
        """B of the page."""
        samples = self.samples_of_request
        return float(self.model["batch_size_per_rank"]) if samples is None else samples / self.machine.world

    @property
    def replica_batch(self) -> float:
        """Samples that a replica serves."""
        samples = self.samples_of_request
        return self.batch if samples is None else float(math.ceil(samples / self.machine.world))

    def wire_bytes(self, field: str) -> float | None:
        """Bytes of an element of ``output_dtype`` and the like; ``None`` where the spec is silent."""
        name = self.model.get(field)
        return None if name is None else ELEMENT_BYTES[name]

    @property
    def dense(self) -> dict[str, Any]:
        """The dense part of the model."""
        return self.model.get("dense") or {}

    @property
    def dense_seconds(self) -> float:
        """F + B of the page."""
        return sum(dense_times(self.dense, self.machine, self.batch))


@dataclass(frozen=True)
class Table:
    """A table of the spec with its defaults."""

    index: int
    name: str
    num_rows: int
    num_columns: int
    features: tuple[tuple[float, float], ...]  # pooling factor, num_poolings
    data_type: str
    pooling: str
    is_weighted: bool
    optimizer: str
    access: dict[str, Any]
    module_path: str
    hash_table: dict[str, Any]
    expected_rows: int  # of a hash table, the ids that hold a row
    is_deduplicated: bool  # docs/deduplication.md

    @classmethod
    def of(cls, index: int, one: dict[str, Any], *, deduplicates: bool = False) -> "Table":
        given = one.get("features") or [{"pooling_factor": one.get("pooling_factor", 0.0)}]
        return cls(
            index=index,
            name=one["name"],
            num_rows=(one.get("hash_table") or {}).get("capacity") or one["num_embeddings"],
            num_columns=one["embedding_dim"],
            features=tuple((f["pooling_factor"], f.get("num_poolings", 1.0)) for f in given),
            data_type=one.get("data_type", "fp32"),
            pooling=one.get("pooling", "sum"),
            is_weighted=one.get("is_weighted", False),
            optimizer=one.get("optimizer", "rowwise_adagrad"),
            access=one.get("access") or {},
            module_path=one.get("module_path", ""),
            hash_table=one.get("hash_table") or {},
            expected_rows=one["num_embeddings"],
            is_deduplicated=deduplicates and one.get("pooling") == "none",
        )

    def sent_ids(self, batch: float) -> float:
        """Ids of a rank's batch that it sends: D(n) of them where repeats are left out."""
        unique = distinct_rows(self.access, self.num_rows, batch * self.ids) if self.is_deduplicated else None
        return batch * self.ids if unique is None else unique

    @property
    def is_pooled(self) -> bool:
        return self.pooling != "none"

    @property
    def ids(self) -> float:
        """Ids per sample."""
        return sum(factor * poolings for factor, poolings in self.features)

    @property
    def outputs(self) -> float:
        """Output rows per sample."""
        return sum(poolings for _, poolings in self.features) if self.is_pooled else self.ids

    @property
    def expected_outputs(self) -> float:
        """The same as TorchRec counts it."""
        if not self.is_pooled:
            return self.ids
        return sum(min(1.0, factor) * poolings for factor, poolings in self.features)

    @property
    def id_bytes(self) -> float:
        return 12.0 if self.is_weighted and not self.is_deduplicated else 8.0

    @property
    def is_trained(self) -> bool:
        return self.optimizer != "none"


@dataclass(frozen=True)
class Shard:
    """One shard and its counts."""

    table: Table
    rank: int
    scheme: str
    kernel: str
    tier: str
    stored_rows: int  # that it really holds
    columns: int
    launch_columns: float  # d' of the page
    own_lookups: float  # of its own rows, where n is of the heaviest block
    is_hot_part: bool  # the hot rows of a table split by heat, of which the cold part stands for both
    hot_rows: int  # of the table
    cached: float | None  # share of the rows
    reserved: float | None  # ``cache_reserved_bytes``
    #: from here on: of the page
    k: int
    rows: int
    batch_ids: float
    n: float
    o: float
    u: float
    m: float | None
    e: float
    overhead: float
    alignment: float
    s: float
    t: float
    hot_lookups: float
    hot_distinct: float

    def row_bytes(self, columns: int) -> float:
        return up_to(columns * self.e + self.overhead, self.alignment)

    @property
    def r(self) -> float:
        return self.row_bytes(self.columns)

    @property
    def h(self) -> float:
        return self.columns * self.e

    @property
    def is_replica(self) -> bool:
        return self.scheme == "data_parallel"

    @property
    def missed_rows(self) -> float:
        return self.u * (1 - (self.cached or 1.0) if self.m is None else self.m)

    @property
    def unheld_rows(self) -> float:
        """v' of the page."""
        return max(0.0, self.u - (1.0 if self.cached is None else self.cached) * self.rows)


def shards_of(job: Job, plan: dict[str, Any]) -> Iterator[Shard]:
    """Yield every shard of a plan document."""
    known = {one["name"]: (index, one) for index, one in enumerate(job.model["tables"])}
    for placed in plan["tables"]:
        table = Table.of(*known[placed["name"]], deduplicates=job.deduplicates)
        near = [one for one in placed["shards"] if one["tier"] == job.machine.device]
        far = [one for one in placed["shards"] if one["tier"] != job.machine.device]
        hot_rows = near[0]["num_rows"] if near and far else 0
        for one in placed["shards"]:
            stored = table.num_rows if hot_rows and one in far else one["num_rows"]
            yield _shard(job, table, placed, one, stored, hot_rows, hot_rows > 0 and one in near)


def _shard(
    job: Job, table: Table, placed: dict[str, Any], one: dict[str, Any], stored: int, hot_rows: int, is_hot: bool
) -> Shard:
    machine, scheme, kernel = job.machine, placed["sharding_type"], placed["compute_kernel"]
    k = {"row_wise": machine.world, "table_row_wise": machine.per_group, "grid_shard": machine.per_group}.get(scheme, 1)
    rows = -(-table.num_rows // k)
    in_step = machine.world * (job.batch * table.ids)
    data_type = placed.get("data_type") or table.data_type
    is_quantised = data_type.startswith("int")
    aligned = (is_quantised or job.samples_of_request is not None) and machine.device == "hbm"
    cached = placed.get("cache_load_factor")
    counts = _counts(json.dumps(table.access), table.num_rows, in_step, k, job.has_modulo_rows, cached, hot_rows)
    if scheme == "data_parallel":
        n = table.sent_ids(job.replica_batch)
        of_replica = distinct_rows(table.access, table.num_rows, job.batch * table.ids)
        u = math.inf if of_replica is None else of_replica
    else:
        n, u = in_step * counts.lookups, counts.distinct
        if table.is_deduplicated:
            n = machine.world * table.sent_ids(job.batch) * _most_unique(job, table, k)
    served = job.replica_batch if scheme == "data_parallel" else machine.world * job.batch
    return Shard(
        table=table,
        rank=one["rank"],
        scheme=scheme,
        kernel=kernel,
        tier=one["tier"],
        stored_rows=stored,
        columns=one["num_columns"],
        launch_columns=one["num_columns"] * _widest(job, table) / table.num_columns,
        own_lookups=_own_lookups(job, table, one, k, in_step, n),
        is_hot_part=is_hot,
        hot_rows=hot_rows,
        cached=cached,
        reserved=placed.get("cache_reserved_bytes"),
        k=k,
        rows=rows,
        batch_ids=table.sent_ids(job.batch),
        n=n,
        o=served * table.outputs if table.is_pooled else n,
        u=min(u, n, rows),
        m=counts.missed,
        e=ELEMENT_BYTES[data_type],
        overhead=4.0 if is_quantised else 0.0,
        alignment=16.0 if aligned else 1.0,
        s=float(STATE_BYTES[table.optimizer][0]),
        t=float(STATE_BYTES[table.optimizer][1]),
        hot_lookups=counts.hot_lookups,
        hot_distinct=counts.hot_distinct,
    )


def _widest(job: Job, table: Table) -> int:
    """Return the columns of the widest table that the same kernels look up."""

    def group(one: Table) -> tuple[object, ...]:
        return one.module_path, one.pooling, one.is_weighted, one.optimizer, one.data_type

    tables = [Table.of(0, one) for one in job.model["tables"]]
    alike = [one.num_columns for one in tables if group(one) == group(table)]
    return max(alike)


def _own_lookups(job: Job, table: Table, one: dict[str, Any], k: int, in_step: float, n: float) -> float:
    of_one = job.batch * table.ids
    lookups = of_one if table.is_deduplicated else in_step
    lines = None if k == 1 or job.has_modulo_rows else curves(table.access, table.num_rows, lookups)
    if lines is None:
        return n
    if table.is_deduplicated:
        lines, in_step = lines[::-1], job.machine.world * table.sent_ids(job.batch)
    ends = one["row_offset"] / table.num_rows, (one["row_offset"] + one["num_rows"]) / table.num_rows
    return in_step * (on_lines(lines[0], ends[1]) - on_lines(lines[0], ends[0]))


def _most_unique(job: Job, table: Table, k: int) -> float:
    """Return the share of one rank's distinct rows that the heaviest of k blocks has."""
    lines = curves(table.access, table.num_rows, job.batch * table.ids)
    if k == 1 or lines is None or job.has_modulo_rows:
        return 1 / k
    return max(shares(lines[1], table.num_rows, k))


@dataclass(frozen=True)
class _Counts:
    lookups: float  # share of the table's
    distinct: float  # rows; infinite where not known
    missed: float | None
    hot_lookups: float
    hot_distinct: float


@functools.lru_cache(maxsize=100_000)
def _counts(
    access_json: str, num_rows: int, in_step: float, k: int, has_modulo_rows: bool, cached: float | None, hot_rows: int
) -> _Counts:
    """Count what is the same for all shards of a cut."""
    access = json.loads(access_json)
    blocks = 1 if has_modulo_rows else k
    of_table = distinct_rows(access, num_rows, in_step)
    lookups = distinct = 1 / k
    lines = curves(access, num_rows, in_step)
    if lines is not None and blocks > 1:
        lookups, distinct = (max(shares(one, num_rows, blocks)) for one in lines)
    hot = (0.0, 0.0)
    known = classes(access, num_rows, in_step) if hot_rows else None
    if known is not None:
        of_lookups, of_distinct = hottest_first(known, num_rows)
        hot = on_lines(of_lookups, hot_rows / num_rows), on_lines(of_distinct, hot_rows / num_rows)
    missed = None
    if cached is not None:
        missed = missed_of_heaviest(access, num_rows, in_step, of_table, cached, blocks)
    return _Counts(lookups, math.inf if of_table is None else of_table * distinct, missed, *hot)
