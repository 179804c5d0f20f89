"""Columns of shard work for tests: one shard of a table per row, counted as the schemes define it."""

from typing import Any

import numpy as np

from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.laws.law_set import LawSet
from cost_models.hardware.profile_fields import FIELDS
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Evidence, Kernel, Scheme

ROW_CUTS = (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD)

_INTEGERS = ("table_rows", "table_columns", "shard_rows", "shard_columns", "row_shards")
_FLAGS = ("in_scm", "is_weighted", "is_pooled", "is_trained")
_CODES = ("scheme", "kernel")


def shard_work(
    num_ranks: int = 8,
    ranks_per_host: int = 8,
    *,
    pod_size: int | None = None,
    prefetches: bool = False,
    forward_message_bytes: float = 64 * 2**20,
    backward_message_bytes: float = 64 * 2**20,
    id_message_bytes: float = 2**20,
    **columns: Any,
) -> ShardWork:
    """Build work from raw columns; scalars are repeated to the length of the longest column."""
    defaults: dict[str, Any] = {
        "scheme": Scheme.TABLE_WISE,
        "kernel": Kernel.FUSED,
        "table_rows": 1_000_000,
        "table_columns": 128,
        "shard_rows": 1_000_000,
        "shard_columns": 128,
        "row_shards": 1,
        "element_bytes": 4.0,
        "row_overhead_bytes": 0.0,
        "row_alignment_bytes": 1.0,
        "optimizer_element_bytes": 0.0,
        "optimizer_row_bytes": 4.0,
        "batch_ids": 10_240.0,
        "batch_outputs": 1_024.0,
        "expected_outputs": 1_024.0,
        "lookups": 10_240.0 * num_ranks,
        "distinct_rows": np.nan,
        "cache_load_factor": np.nan,
        "missed_share": np.nan,
        "hot_lookup_share": 0.0,
        "hot_distinct_share": 0.0,
        "hot_row_share": 0.0,
        "slot_lookup_bytes": 0.0,
        "slot_upkeep_bytes": 0.0,
        "slot_launches": 0.0,
        "in_scm": False,
        "is_weighted": False,
        "is_pooled": True,
        "is_trained": True,
        "output_element_bytes": np.nan,
        "forward_comm_element_bytes": np.nan,
        "backward_comm_element_bytes": np.nan,
    }
    defaults["launch_columns"] = columns.get("shard_columns", defaults["shard_columns"])
    unknown = columns.keys() - defaults.keys()
    if unknown:
        raise TypeError(f"no such columns: {unknown}")
    merged = defaults | columns
    length = max(np.size(value) for value in merged.values())
    arrays: dict[str, Any] = {}
    for name, value in merged.items():
        arrays[name] = np.array(np.broadcast_to(np.asarray(value, dtype=_kind(name)), (length,)))
    return ShardWork(
        num_ranks=num_ranks,
        ranks_per_host=ranks_per_host,
        pod_size=pod_size,
        prefetches=prefetches,
        forward_message_bytes=forward_message_bytes,
        backward_message_bytes=backward_message_bytes,
        id_message_bytes=id_message_bytes,
        **arrays,
    )


def _kind(column: str) -> type[np.generic]:
    """Return the element type of a column."""
    if column in _CODES:
        return np.int8
    if column in _INTEGERS:
        return np.int64
    return np.bool_ if column in _FLAGS else np.float64


def table_shard(
    scheme: Scheme,
    *,
    rows: int = 1_000_000,
    columns: int = 128,
    pieces: int = 1,
    batch: int = 1_024,
    pooling: float = 10.0,
    num_ranks: int = 8,
    ranks_per_host: int = 8,
    pooled: bool = True,
    **more: Any,
) -> ShardWork:
    """Build one shard of a table cut by ``scheme`` into ``pieces`` column pieces."""
    sharing = {Scheme.ROW_WISE: num_ranks, Scheme.TABLE_ROW_WISE: ranks_per_host, Scheme.GRID_SHARD: ranks_per_host}
    row_shards = sharing.get(scheme, 1)
    served = 1 if scheme is Scheme.DATA_PARALLEL else num_ranks
    ids = batch * pooling
    outputs = float(batch) if pooled else ids
    message = outputs * columns * 4
    values: dict[str, Any] = {
        "scheme": scheme,
        "kernel": Kernel.DENSE if scheme is Scheme.DATA_PARALLEL else Kernel.FUSED,
        "table_rows": rows,
        "table_columns": columns,
        "shard_rows": -(-rows // row_shards),
        "shard_columns": columns // pieces,
        "row_shards": row_shards,
        "batch_ids": ids,
        "batch_outputs": outputs,
        "expected_outputs": min(1.0, pooling) * batch if pooled else ids,
        "lookups": ids * served / row_shards,
        "is_pooled": pooled,
        "forward_message_bytes": message,
        "backward_message_bytes": message,
        "id_message_bytes": ids * 8,
    }
    return shard_work(num_ranks, ranks_per_host, **(values | more))


def hardware(
    evidence: Evidence = Evidence.GIVEN,
    laws: LawSet | None = None,
    domain_ranks: int = 0,
    family: str = "inference",
    **numbers: float,
) -> Hardware:
    """Hardware of exactly these numbers; of the families "gpu" and "custom" it has the kernels of GPUs."""
    machine = Hardware(
        profile="test",
        family=family,
        ranks_per_host=8,
        numbers={
            name: Quantity(value=value, unit=FIELDS[name].unit, evidence=evidence, source="a test")
            for name, value in numbers.items()
        },
        domain_ranks=domain_ranks,
    )
    return machine if laws is None else machine.with_laws(laws)


def plain_hardware(evidence: Evidence = Evidence.GIVEN) -> Hardware:
    """Round rates: 1 TB/s memory, 100 GB/s inside a host, 10 GB/s across hosts."""
    return hardware(
        evidence,
        hbm_bytes=80e9,
        hbm_bytes_per_second=1e12,
        intra_host_bytes_per_second=1e11,
        inter_host_bytes_per_second=1e10,
        host_link_message_seconds=1e-5,
    )


#: 4 TB/s of L2 that holds 1 MB; 10 ps per lookup forward, 20 ps backward, 40 ps before, 1 ns in caches; updates at 500
#: GB/s and of at least 2 ns per row; 16, 8 and 18 GB/s of kernels that gather or update host memory, and of caches.
GPU_NUMBERS = {
    "l2_bytes": 1e6,
    "l2_bytes_per_second": 4e12,
    "lookup_seconds": 3e-11,
    "repeated_lookup_seconds": 1e-11,
    "sequence_lookup_seconds": 5e-10,
    "bag_seconds": 3e-10,
    "backward_lookup_seconds": 2e-11,
    "gradient_row_seconds": 5e-10,
    "index_lookup_seconds": 4e-11,
    "cache_lookup_seconds": 1e-9,
    "update_bytes_per_second": 5e11,
    "update_row_seconds": 2e-9,
    "update_column_seconds": 4e-11,
    "moment_row_seconds": 6e-9,
    "host_link_gather_bytes_per_second": 1.6e10,
    "host_link_update_bytes_per_second": 8e9,
    "host_link_cache_bytes_per_second": 1.8e10,
}


def gpu_hardware(evidence: Evidence = Evidence.GIVEN, **changes: float) -> Hardware:
    """The plain hardware with the kernels of a GPU, and with the tiers of ``tiered_hardware``."""
    numbers = {name: number.value for name, number in tiered_hardware().numbers.items()}
    return hardware(evidence, family="gpu", **(numbers | GPU_NUMBERS | changes))


def tiered_hardware(**changes: float) -> Hardware:
    """The same with 20 GB/s to the host and 10 GB/s back, 25 GB/s of host memory, and a drive of 1 million reads.

    Storage-class memory is read at 8 GB/s and written at 2 GB/s, in blocks of 256 bytes.
    """
    numbers = {name: number.value for name, number in plain_hardware().numbers.items()}
    tiers = {
        "host_link_bytes_per_second": 2e10,
        "host_link_return_bytes_per_second": 1e10,
        "ddr_bytes_per_second": 2.5e10,
        "scm_bytes_per_second": 8e9,
        "scm_write_bytes_per_second": 2e9,
        "scm_block_bytes": 256.0,
        "ssd_bytes_per_second": 4e9,
        "ssd_write_bytes_per_second": 2e9,
        "ssd_reads_per_second": 1e6,
        "ssd_block_bytes": 4096.0,
    }
    return hardware(**(numbers | tiers | changes))
