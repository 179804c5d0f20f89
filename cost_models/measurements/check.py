"""What measured rows must be, whatever file they came in: complete, in range, in the right units, counted once."""

import numpy as np
from numpy.typing import NDArray

from cost_models.measurements.cells import MAX_COUNT, RowIssueCollector
from cost_models.measurements.schema import COLLECTIVES, COLUMNS, COPIES, KINDS, REUSE_COLUMNS, Measurements

MAX_ROWS = 250_000
#: The most that makes sense, by column.
_MOST = {
    "num_ranks": 2.0**20,
    "ranks_per_host": 2.0**20,
    "repeats": 2.0**20,
    "shard_rows": 2.0**48,
    "shard_columns": 2.0**20,
    "element_bytes": 64.0,
    "output_element_bytes": 64.0,
    "optimizer_element_bytes": 64.0,
    "zipf_alpha": 10.0,
    "contending": 2.0**20,
    "start_seconds": 600.0,
    "forward_seconds": 600.0,
    "backward_seconds": 600.0,
    "seconds": 600.0,
    "spread_seconds": 600.0,
    **dict.fromkeys(REUSE_COLUMNS, 1.0),
}
_POSITIVE = frozenset({"seconds", "forward_seconds", "backward_seconds", "element_bytes", "copied_bytes"})
#: Columns in which the rows of one launch agree: of every kind, and of lookups, which are timed as one.
_OF_A_LAUNCH = ("kind", "task", "device", "library", "implementation", "num_ranks", "ranks_per_host", "operation")
_OF_A_FUSED_LAUNCH = ("seconds", "forward_seconds", "backward_seconds", "spread_seconds", "repeats")
#: No memory or link moves more, and none so little in more than a second: the unit is wrong.
_MOST_BYTES_PER_SECOND = 1e14
_LEAST_BYTES_PER_SECOND = 1e5
#: Medians of two parts and of their sum differ a little.
_SUM_TOLERANCE = 0.1


def check(rows: Measurements) -> Measurements:
    """Return ``rows`` where nothing is wrong with them.

    Raises
    ------
    InvalidMeasurements
        With the first findings, in the order of the rows.
    """
    issues = RowIssueCollector()
    _check_cells(rows, issues)
    issues.raise_if_any()  # the rules below take sound cells for granted
    _check_operations(rows, issues)
    _check_lookups(rows, issues)
    _check_ranks(rows, issues)
    _check_launches(rows, issues)
    _check_units(rows, issues)
    _check_duplicates(rows, issues)
    issues.raise_if_any()
    return rows


def _check_cells(rows: Measurements, issues: RowIssueCollector) -> None:
    if rows.num_rows == 0:
        issues.add(-1, "", "", "there are no rows")
    if rows.num_rows > MAX_ROWS:
        issues.add(-1, "", rows.num_rows, f"more than {MAX_ROWS:,} rows: split the file")
    kind = rows.text("kind")
    issues.add_rows(~np.isin(kind, KINDS), "kind", kind, f"expected {', '.join(KINDS)}")
    for column in COLUMNS:
        values = rows.columns[column.name]
        needed = np.isin(kind, column.required_by)
        if column.type == "text":
            issues.add_rows(needed & (values == ""), column.name, None, "must be given for this kind of row")
            continue
        numbers = values.astype(np.float64)
        empty = numbers == -1 if column.type == "count" else np.isnan(numbers)
        issues.add_rows(needed & empty, column.name, None, "must be given for this kind of row")
        most = _MOST.get(column.name, float(MAX_COUNT))
        least = f"above {column.least:g}" if column.name in _POSITIVE else f"at least {column.least:g}"
        low = numbers <= column.least if column.name in _POSITIVE else numbers < column.least
        reason = f"expected {least} and at most {most:,.0f}"
        issues.add_rows(~empty & (low | ~(numbers <= most)), column.name, values, reason)


def _check_operations(rows: Measurements, issues: RowIssueCollector) -> None:
    kind, operation, direction = rows.text("kind"), rows.text("operation"), rows.text("direction")
    for name, known in (("collective", COLLECTIVES), ("copy", COPIES)):
        wrong = (kind == name) & ~np.isin(operation, known)
        issues.add_rows(wrong, "operation", operation, f"expected {', '.join(known)}")
    wrong = ~np.isin(direction, ("", "forward", "backward"))
    issues.add_rows(wrong, "direction", direction, "expected forward or backward, or nothing")
    lacks = (operation == "gather") & np.isnan(rows.numbers("row_bytes"))
    issues.add_rows(lacks, "row_bytes", None, "must be given for a gather")


def _check_lookups(rows: Measurements, issues: RowIssueCollector) -> None:
    lookups, distinct = rows.numbers("lookups"), rows.numbers("distinct_rows")
    slack = 1 + 1e-9  # averages over batches are rounded
    issues.add_rows(distinct > lookups * slack, "distinct_rows", distinct, "more than lookups")
    there = rows.counts("shard_rows").astype(np.float64)
    issues.add_rows((there >= 0) & (distinct > there * slack), "distinct_rows", distinct, "more than shard_rows")
    shares = np.stack([rows.numbers(name) for name in REUSE_COLUMNS])
    given = ~np.isnan(shares)
    issues.add_rows(np.any(given, axis=0) & ~np.all(given, axis=0), REUSE_COLUMNS[0], None, "give all bins, or none")
    total = np.sum(shares, axis=0)
    wrong = (np.abs(total - 1) > 0.01) & (total != 0)
    issues.add_rows(wrong, REUSE_COLUMNS[0], total, "the bins are shares of the distinct rows, and must sum to 1")
    both = rows.numbers("forward_seconds") + rows.numbers("backward_seconds")
    seconds = rows.numbers("seconds")
    wrong = (rows.text("kind") == "lookup") & (np.abs(both - seconds) > _SUM_TOLERANCE * seconds)
    issues.add_rows(wrong, "seconds", seconds, "not the sum of forward_seconds and backward_seconds")


def _check_ranks(rows: Measurements, issues: RowIssueCollector) -> None:
    num_ranks, per_host, rank = rows.counts("num_ranks"), rows.counts("ranks_per_host"), rows.counts("rank")
    issues.add_rows(num_ranks % per_host != 0, "ranks_per_host", per_host, "does not divide num_ranks")
    issues.add_rows(rank >= num_ranks, "rank", rank, "ranks count from 0 to num_ranks - 1")
    with_rank = np.flatnonzero((rank >= 0) & (rows.text("kind") == "collective"))
    pairs = np.stack([rows.counts("launch")[with_rank], rank[with_rank]], axis=1)
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    again = first[inverse.reshape(-1)] != np.arange(len(with_rank))
    for row in with_rank[again].tolist():
        issues.add(row, "rank", int(rank[row]), "the rank stands twice in its launch")


def _check_launches(rows: Measurements, issues: RowIssueCollector) -> None:
    """Rows that share a launch were one launch of one machine."""
    _, first, inverse = np.unique(rows.counts("launch"), return_index=True, return_inverse=True)
    of_row = first[inverse.reshape(-1)]
    fused = rows.text("kind") == "lookup"
    for name in (*_OF_A_LAUNCH, *_OF_A_FUSED_LAUNCH):
        values = rows.columns[name]
        differs = values != values[of_row]
        if values.dtype.kind == "f":
            differs &= ~(np.isnan(rows.numbers(name)) & np.isnan(rows.numbers(name)[of_row]))
        if name in _OF_A_FUSED_LAUNCH:
            differs &= fused
        for row in np.flatnonzero(differs).tolist():
            reason = f"differs from row {of_row[row] + 1} of the same launch; number launches of other runs apart"
            issues.add(row, name, values[row].item(), reason)


def _check_units(rows: Measurements, issues: RowIssueCollector) -> None:
    """Refuse seconds that are milliseconds, and bytes that are gigabytes, by the rate that they would make."""
    row_bytes = rows.counts("shard_columns") * rows.numbers("element_bytes")
    parts = np.stack([rows.numbers("lookups") * row_bytes, rows.numbers("sent_bytes"), rows.numbers("copied_bytes")])
    moved = np.nansum(parts, axis=0)
    _, inverse = np.unique(rows.counts("launch"), return_inverse=True)
    of_launch = np.bincount(inverse.reshape(-1), weights=moved)[inverse.reshape(-1)]
    moved = np.where(rows.text("kind") == "lookup", of_launch, moved)
    seconds = rows.numbers("seconds")
    rate = moved / seconds
    issues.add_rows(
        rate > _MOST_BYTES_PER_SECOND, "seconds", seconds, "more bytes a second than anything moves: give seconds"
    )
    issues.add_rows(
        (seconds > 1) & (rate < _LEAST_BYTES_PER_SECOND),
        "seconds",
        seconds,
        "under 100 kB a second: give seconds, not milli- or microseconds",
    )


def _check_duplicates(rows: Measurements, issues: RowIssueCollector) -> None:
    """Refuse rows that are alike in every column: a file joined to itself would pass for larger launches."""
    coded = (_codes(rows.columns[column.name]) for column in COLUMNS)
    differing = [code for code in coded if np.any(code != code[0])]
    codes = np.stack(differing or [np.zeros(rows.num_rows, dtype=np.int64)], axis=1)
    order = np.lexsort(codes.T)  # stable: the first of equal rows stays the first
    alike = np.all(codes[order][1:] == codes[order][:-1], axis=1)
    for place in np.flatnonzero(alike).tolist():
        row, other = int(order[place + 1]), int(order[place])
        reason = f"the same as row {other + 1}; equal shards of one launch need names of their own, such as t1#2"
        issues.add(row, "", "", reason)


def _codes(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Whole numbers that are equal where the values are, empty ones included."""
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    _, inverse = np.unique(values, return_inverse=True)
    codes: NDArray[np.int64] = inverse.reshape(-1).astype(np.int64)
    return codes
