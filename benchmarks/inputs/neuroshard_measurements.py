"""Reads the cost files of NeuroShard and its forks: fused lookups, and all-to-alls of pooled rows.

Two text formats, each with a header line; lists inside a field are separated by spaces:

- ``table_ids,dims,cost_ms``: tables that one launch looks up together, their widths, forward and backward in ms;
- ``dim_sums,start_ms,fw_ms,bw_ms``: by rank, the sum of the widths of its tables, how much later than agreed it joined
  the forward all-to-all, and how long it then took there and in the backward one, in ms.

The batch is the global one: a rank looks its tables up for all samples, so it sends batch x width x 4 bytes forward,
and receives an equal share of everybody's; backward it is the reverse. Files are opened by the caller.

References
----------
daochenzha/neuroshard (MLSys 2023), ``tools/``, and citz73/csharding, ``data/cost_data``.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.inputs.lines import InvalidLine
from cost_models.measurements.schema import NUM_REUSE_BINS, REUSE_COLUMNS, Measurements, measurements

BATCH_SAMPLES = 65536
ELEMENT_BYTES = 4.0
_LOOKUP_HEADER = ["table_ids", "dims", "cost_ms"]
_EXCHANGE_HEADER = ["dim_sums", "start_ms", "fw_ms", "bw_ms"]
#: More ranks or tables than this in one line are no measurement of these programs.
_MOST_ITEMS = 4096
_LARGEST = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is known of one table, for one global batch."""

    rows: int
    lookups: float
    distinct_rows: float  # NaN where not known
    reuse: tuple[float, ...]  # shares of the distinct rows, NUM_REUSE_BINS of them


def table_facts(documents: Iterable[Mapping[str, object]]) -> tuple[TableFacts, ...]:
    """Facts from the rows of ``table_configs.json`` (NeuroShard's own), or the tables of ``tables.json``.

    Raises
    ------
    ValueError
        A table lacks a number; the text names it by its position.
    """
    return tuple(_facts(i, document) for i, document in enumerate(documents))


def _facts(position: int, document: Mapping[str, object]) -> TableFacts:
    """Facts of one table."""

    def number(value: object, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
            raise ValueError(f"table {position}: expected {name} to be a number >= 0")
        return float(value)

    if "row" in document:  # NeuroShard's own
        bins = [number(document.get(f"bin_{i}"), f"bin_{i}") for i in range(NUM_REUSE_BINS)]
        rows, distinct = number(document["row"], "row"), float("nan")
        lookups = number(document.get("pooling_factor"), "pooling_factor") * BATCH_SAMPLES
    else:
        counts = document.get("reuse_rows_hist")
        if not isinstance(counts, Sequence) or len(counts) != NUM_REUSE_BINS:
            raise ValueError(f"table {position}: expected reuse_rows_hist to have {NUM_REUSE_BINS} counts")
        bins = [number(count, "reuse_rows_hist") for count in counts]
        rows = number(document.get("num_embeddings"), "num_embeddings")
        lookups = number(document.get("lookups_per_batch"), "lookups_per_batch")
        distinct = number(document.get("unique_rows_per_batch"), "unique_rows_per_batch")
    total = sum(bins) or 1.0
    return TableFacts(
        rows=int(rows), lookups=lookups, distinct_rows=distinct, reuse=tuple(count / total for count in bins)
    )


def read_exchanges(text: str, *, name: str, first_launch: int = 0) -> Measurements:
    """Rows of ``dim_sums,start_ms,fw_ms,bw_ms``: for each line and rank one row forward and one backward.

    ``name`` begins the names of the tasks, one per line. ``first_launch`` numbers the first launch, two per line.
    Only the forward rows have starts: backward all ranks leave the forward exchange together.

    Raises
    ------
    InvalidLine
        A line is not of this form.
    """
    columns: dict[str, list[object]] = {key: [] for key in _EXCHANGE_COLUMNS}
    for index, (line, fields) in enumerate(_lines(text, _EXCHANGE_HEADER)):
        widths = _numbers(fields[0], line, "dim_sums")
        starts, forward, backward = (
            _numbers(field, line, what, count=len(widths))
            for field, what in zip(fields[1:], _EXCHANGE_HEADER[1:], strict=True)
        )
        if min(*forward, *backward) <= 0:
            raise InvalidLine(line, "expected every time to be > 0")
        if len(widths) < 2:
            raise InvalidLine(line, "expected at least two ranks")
        sent = [width * BATCH_SAMPLES * ELEMENT_BYTES for width in widths]
        even = [sum(sent) / len(sent)] * len(sent)
        unknown = [float("nan")] * len(sent)
        for at, (direction, out, into, late, times) in enumerate(
            (("forward", sent, even, starts, forward), ("backward", even, sent, unknown, backward))
        ):
            columns["launch"] += [first_launch + 2 * index + at] * len(sent)
            columns["task"] += [f"{name}:{index}"] * len(sent)
            columns["num_ranks"] += [len(sent)] * len(sent)
            columns["direction"] += [direction] * len(sent)
            columns["rank"] += range(len(sent))
            columns["sent_bytes"] += out
            columns["received_bytes"] += into
            columns["start_seconds"] += [start / 1e3 for start in late]
            columns["seconds"] += [time / 1e3 for time in times]
    columns["ranks_per_host"] = columns["num_ranks"]
    return _rows(
        columns, kind="collective", device="cpu", library="torch", implementation="torch_cpu", operation="all_to_all"
    )


_EXCHANGE_COLUMNS = (
    "launch",
    "task",
    "num_ranks",
    "direction",
    "rank",
    "sent_bytes",
    "received_bytes",
    "start_seconds",
    "seconds",
)


def read_lookups(
    text: str, tables: Sequence[TableFacts], *, num_ranks: int, name: str, first_launch: int = 0
) -> Measurements:
    """Rows of ``table_ids,dims,cost_ms``: for each line one launch, of one row per table.

    ``num_ranks`` is how many ranks ran at the same time on the host. See :func:`read_exchanges` for the rest.

    Raises
    ------
    InvalidLine
        A line is not of this form, or names a table that is not among ``tables``.
    """
    columns: dict[str, list[object]] = {
        key: []
        for key in ("launch", "task", "table", "shard_rows", "shard_columns", "lookups", "distinct_rows", "seconds")
    }
    for key in REUSE_COLUMNS:
        columns[key] = []
    for index, (line, fields) in enumerate(_lines(text, _LOOKUP_HEADER)):
        ids = _numbers(fields[0], line, "table_ids")
        widths = _numbers(fields[1], line, "dims", count=len(ids))
        cost = _numbers(fields[2], line, "cost_ms", count=1)[0]
        if cost <= 0:
            raise InvalidLine(line, "expected cost_ms > 0")
        for table, width in zip(ids, widths, strict=True):
            if table != int(table) or not table < len(tables):
                raise InvalidLine(line, f"expected table ids below {len(tables)}, the number of known tables")
            if width < 1 or width != int(width):
                raise InvalidLine(line, "expected every width to be a whole number >= 1")
            facts = tables[int(table)]
            columns["launch"].append(first_launch + index)
            columns["task"].append(f"{name}:{index}")
            columns["table"].append(f"t{int(table):03d}")
            columns["shard_rows"].append(facts.rows)
            columns["shard_columns"].append(int(width))
            columns["lookups"].append(facts.lookups)
            columns["distinct_rows"].append(facts.distinct_rows)
            columns["seconds"].append(cost / 1e3)
            for key, share in zip(REUSE_COLUMNS, facts.reuse, strict=True):
                columns[key].append(share)
    return _rows(
        columns,
        kind="lookup",
        device="cpu",
        library="fbgemm_gpu",
        implementation="fbgemm_tbe",
        num_ranks=num_ranks,
        ranks_per_host=num_ranks,
        element_bytes=ELEMENT_BYTES,
        output_element_bytes=ELEMENT_BYTES,
        optimizer_element_bytes=0.0,  # plain SGD
        optimizer_row_bytes=0.0,
        outputs=float(BATCH_SAMPLES),
    )


def _rows(columns: Mapping[str, list[object]], **constants: object) -> Measurements:
    """Columns that differ by row, and others that do not."""
    num_rows = len(columns["launch"])
    arrays = {key: np.array(values) for key, values in columns.items()}
    arrays |= {key: np.full(num_rows, value) for key, value in constants.items()}
    return measurements(arrays, num_rows)


def _lines(text: str, header: list[str]) -> Iterable[tuple[int, list[str]]]:
    """Fields of every line after the header, with its number in the file."""
    reader = csv.reader(text.splitlines())
    try:
        first = next(reader, None)
        if first != header:
            raise InvalidLine(1, f"expected the header {','.join(header)}")
        for fields in reader:
            if len(fields) != len(header):
                raise InvalidLine(reader.line_num, f"expected {len(header)} fields, not {len(fields)}")
            yield reader.line_num, fields
    except csv.Error as error:
        raise InvalidLine(reader.line_num, str(error)) from error


def _numbers(field: str, line: int, what: str, *, count: int | None = None) -> list[float]:
    """Numbers >= 0 of one field, separated by spaces."""
    words = field.split()
    if not words or len(words) > _MOST_ITEMS:
        raise InvalidLine(line, f"expected {what} to have 1 to {_MOST_ITEMS} numbers")
    if count is not None and len(words) != count:
        raise InvalidLine(line, f"expected {count} numbers in {what}, not {len(words)}")
    found = [_number(word, line, what) for word in words]
    if not all(0 <= value <= _LARGEST for value in found):
        raise InvalidLine(line, f"expected every number in {what} to lie between 0 and {_LARGEST:g}")
    return found


def _number(word: str, line: int, what: str) -> float:
    parse: Callable[[str], float] = float
    try:
        return parse(word)
    except ValueError as error:
        raise InvalidLine(line, f'expected a number in {what}, not "{word[:20]}"') from error
