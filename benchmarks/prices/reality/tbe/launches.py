"""Launches of a benchmark: forward and backward, with rows in device memory, in host memory, or cached there."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.prices.reality.cells import UNREADABLE, count, is_number, number, time
from benchmarks.prices.reality.tbe.launch import (
    ELEMENT_BYTES,
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_TABLES,
    STATE_BYTES,
    Table,
    launch_seconds,
    profile_of,
)
from benchmarks.prices.reality.tbe.power_law import Touched, power_law, uniform
from benchmarks.prices.reality.tbe.predicted import Found, Numbered, Row, left_out, predicted
from cost_models.vocabulary import Kernel

COLUMNS = frozenset({"backend", "kernel_location", "fwd_ms", "bwd_ms", "lookups", "batch_per_table"})
#: Series whose clock starts before Python launches the forward kernel on an idle GPU, and how long that takes: fitted
#: to the four launches in device memory, which an H100 with a filled queue runs that much faster.
TIMED_FROM_PYTHON = "NVIDIA/recsys-examples"
PYTHON_SECONDS = 47e-6
_LOCATIONS = {"DEVICE": Kernel.FUSED, "UVM": Kernel.FUSED_UVM, "UVM_CACHING": Kernel.FUSED_UVM_CACHING}


def found(path: Path, numbered: Sequence[Numbered]) -> Iterator[Found]:
    """Yield two predictions for each row, or a reason for each direction that has none."""
    for line, row in numbered:
        try:
            yield from _directions(path, line, row)
        except UNREADABLE as error:
            yield from left_out(path, [(line, row)], f"not readable: {error}")


def _directions(path: Path, line: int, row: Row) -> Iterator[Found]:
    location = row["kernel_location"].partition("(")[0].strip()
    profile = profile_of(row.get("gpu", ""))
    reason = ""
    if row["backend"] != "fbgemm_tbe":
        reason = f"the hash tables of {row['backend']}, not FBGEMM's kernels"
    elif location not in _LOCATIONS:
        reason = f"rows in {location}"
    elif profile is None:
        reason = "no profile of the GPU"
    elif row.get("optimizer", "") not in STATE_BYTES:
        reason = f"optimizer {row.get('optimizer')}"
    elif row.get("weights_dtype") not in ELEMENT_BYTES or row.get("output_dtype") not in ELEMENT_BYTES:
        reason = "data type"
    if reason or profile is None:
        yield from left_out(path, [(line, row)] * 2, reason)
        return
    num_tables, table = count(row, "tables", most=MOST_TABLES), _table(row, location)
    forward, backward = launch_seconds(profile, [table] * num_tables)
    if row.get("source", "").startswith(TIMED_FROM_PYTHON):
        forward += PYTHON_SECONDS
    seconds = forward, backward
    for direction, column, value in zip(("forward", "backward"), ("fwd_ms", "bwd_ms"), seconds, strict=True):
        if not row[column]:
            yield from left_out(path, [(line, row)], "no time measured")
            continue
        yield predicted(
            path,
            line,
            gpu=row["gpu"],
            profile=profile,
            location=location,
            direction=direction,
            columns=table.columns,
            lookups=table.lookups * num_tables,
            subject=f"{direction} of {num_tables} tables of {table.rows} x {table.columns} {row['weights_dtype']}, "
            f"{table.lookups:.0f} lookups each, {row['optimizer']}, {row['kernel_location']}",
            measured_seconds=time(row, column) / 1e3,
            predicted_seconds=value,
        )


def _table(row: Row, location: str) -> Table:
    num_tables, num_rows = count(row, "tables", most=MOST_TABLES), count(row, "rows_per_table", most=MOST_ROWS)
    bags, lookups = number(row, "batch_per_table"), number(row, "lookups") / num_tables
    alpha = row.get("alpha", "")
    touched = power_law(float(alpha), num_rows, lookups) if is_number(alpha) else uniform(num_rows, lookups)
    distinct = number(row, "unique_lookups") / num_tables if row.get("unique_lookups") else touched.distinct
    held, missed = _cache(row, location, num_rows, distinct, touched)
    is_pooled = row.get("pooling", "none") != "none"
    return Table(
        rows=num_rows,
        columns=count(row, "dim", most=MOST_COLUMNS),
        lookups=lookups,
        outputs=bags if is_pooled else lookups,
        distinct=distinct,
        element_bytes=ELEMENT_BYTES[row["weights_dtype"]],
        output_element_bytes=ELEMENT_BYTES[row["output_dtype"]],
        optimizer=row["optimizer"],
        is_pooled=is_pooled,
        kernel=_LOCATIONS[location],
        cache_load_factor=held,
        missed_share=missed,
    )


def _cache(row: Row, location: str, num_rows: int, distinct: float, touched: Touched) -> tuple[float, float]:
    """Return the cached share of the rows and the missed share of the distinct ones."""
    if location != "UVM_CACHING":
        return np.nan, np.nan
    if row.get("cache_footprint_ratio"):  # cached rows over the distinct ones of a batch
        cached = number(row, "cache_footprint_ratio") * distinct
    else:
        cached = number(row, "cache_load_factor") * num_rows
    return min(cached / num_rows, 1.0), touched.missed_share(cached)
