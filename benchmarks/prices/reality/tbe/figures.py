"""Figures from pull requests: forward launches by width, and the two kernels of a backward pass added up.

FBGEMM updates a row by one thread block where many lookups meet, else by one warp; both kernels run in every backward
pass, and the figures have one row for each. Rows of the kernels that FBGEMM replaced in June 2026 are left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.prices.reality.cells import UNREADABLE, count, is_number, number, time
from benchmarks.prices.reality.row import LeftOutRow
from benchmarks.prices.reality.tables import documents
from benchmarks.prices.reality.tbe.launch import (
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_TABLES,
    STATE_BYTES,
    Table,
    kernel_seconds,
    profile_of,
)
from benchmarks.prices.reality.tbe.power_law import uniform, zipf_bags
from benchmarks.prices.reality.tbe.predicted import Found, Numbered, Row, left_out, predicted

COLUMNS = frozenset({"group", "direction", "time_us", "lookups_total", "pooling_L", "note"})
_PARTS = {"bwd CTA-per-row", "bwd warp-per-row"}


def found(path: Path, numbered: Sequence[Numbered]) -> Iterator[Found]:
    """Yield a prediction for each forward launch and each pair of backward kernels."""
    pairs: dict[tuple[str, ...], list[Numbered]] = defaultdict(list)
    for line, row in numbered:
        if reason := _reason(row):
            yield from left_out(path, [(line, row)], reason)
        elif row["direction"] in _PARTS:
            shape = (*(row[name] for name in ("gpu", "tables", "rows", "dim", "batch", "pooling_L")), _config(row))
            pairs[shape].append((line, row))
        else:
            yield from _guarded(path, [(line, row)], "forward")
    for parts in pairs.values():
        if {row["direction"] for _, row in parts} == _PARTS and len(parts) == 2:
            yield from _guarded(path, parts, "backward")
        else:
            yield from left_out(path, parts, "one kernel of a backward pass without the other")


def _reason(row: Row) -> str:
    """Why no law predicts a row; "" if there is no such reason."""
    note, direction = row["note"], row["direction"]
    if row.get("kernel") != "DEVICE" or (direction != "fwd" and direction not in _PARTS):
        return f"no forward or backward kernel of embeddings: {row['group']}"
    if "inference" in note or row["group"] == "amd_nbit":
        return "inference kernel"
    if "CPU bound" in note:
        return "bound by launches from Python"
    if "AMBIGUOUS" in note:
        return "shape not certain"
    if note.startswith("generic kernel"):
        return "kernel that FBGEMM has replaced"
    if profile_of(row["gpu"]) is None:
        return "no profile of the GPU"
    if row.get("optimizer", "") not in STATE_BYTES:
        return "optimizer not stated"
    if row["alpha"] != "uniform" and not is_number(row["alpha"]):
        return "distribution of ids not stated"
    return ""


def _config(row: Row) -> str:
    """Return the production configuration that a row names instead of a shape."""
    named = re.search(r"bench_\d+", row["note"])
    return named.group() if named and "json" in row["rows"] else ""


def _guarded(path: Path, parts: Sequence[Numbered], direction: str) -> Iterator[Found]:
    try:
        yield _prediction(path, parts, direction)
    except UNREADABLE as error:
        yield from left_out(path, parts[:1], f"not readable: {error}")
    yield from left_out(path, parts[1:], "counted with the other kernel of the backward pass")


def _prediction(path: Path, parts: Sequence[Numbered], direction: str) -> Found:
    line, row = parts[0]
    tables = _production(path, row) if _config(row) else _alike(row)
    if not tables:
        reason = "no configuration of production tables in the folder"
        return LeftOutRow(file=path.name, line=line, reason=reason)
    profile = profile_of(row["gpu"]) or ""
    seconds = kernel_seconds(profile, tables)[0 if direction == "forward" else 1]
    lookups = sum(table.lookups for table in tables)
    columns = sum(table.columns * table.lookups for table in tables) / lookups
    return predicted(
        path,
        line,
        gpu=row["gpu"],
        profile=profile,
        location="DEVICE",
        direction=direction,
        columns=round(columns),
        lookups=lookups,
        subject=f"{direction} of {len(tables)} tables of {row['rows']} x {row['dim']} fp32, {lookups:.0f} lookups",
        measured_seconds=sum(time(part, "time_us") for _, part in parts) / 1e6,
        predicted_seconds=seconds,
    )


def _alike(row: Row) -> list[Table]:
    """Return equal tables; the bags of a forward launch are stated for all of them."""
    num_tables = count(row, "tables", most=MOST_TABLES)
    bags = number(row, "bags_total") / num_tables if row.get("bags_total") and row["direction"] == "fwd" else None
    bags = number(row, "batch") if bags is None else bags
    num_rows, columns = count(row, "rows", most=MOST_ROWS), count(row, "dim", most=MOST_COLUMNS)
    return [_table(row, num_rows, columns, bags)] * num_tables


def _production(path: Path, row: Row) -> list[Table]:
    known: dict[str, dict[str, list[int]]] = {}
    for content in documents(path.parent):
        configs = content.get("configs")
        known |= configs if isinstance(configs, dict) else {}
    config = known.get(_config(row), {"rows": [], "dims": []})
    bags = number(row, "batch")
    return [_table(row, rows, dim, bags) for rows, dim in zip(config["rows"], config["dims"], strict=True)]


def _table(row: Row, num_rows: int, columns: int, bags: float) -> Table:
    bag_ids = number(row, "pooling_L")
    if row["alpha"] == "uniform":
        touched = uniform(num_rows, bags * bag_ids)
    else:
        touched = zipf_bags(number(row, "alpha"), num_rows, bags, bag_ids)
    return Table(
        rows=num_rows,
        columns=columns,
        lookups=bags * bag_ids,
        outputs=bags,
        distinct=touched.distinct,
        optimizer=row["optimizer"],
        is_weighted=row.get("weighted") == "yes",
    )
