"""``stats``: access statistics of id traces, their merge, and what changed between two."""

import contextlib
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from api.cli.errors import BadInput, echo
from api.cli.files import check_distinct, check_output, read_bytes, write_content, write_document
from api.cli.statistics.collect import OnProgress, collect, columns_of
from api.cli.statistics.text import drift_text, hot_rows_text, statistics_text
from api.cli.statistics.traces.base import TraceOptions
from api.cli.statistics.traces.registry import read_trace
from api.schemas.base import MAX_NAME_LENGTH, NAME_PATTERN
from api.services.measurements.statistics_drift import drift_document
from api.specs.input.json import UNREADABLE, RejectedDocument
from api.specs.references.statistics_document import SCHEMA_VERSION, Statistics, merge_statistics, parse_statistics
from planner.access.sketches.sketch import OtherSketch

DEFAULT_BATCH_SIZE = 65_536
_SECONDS_BETWEEN_LINES = 2.0

StatisticsFiles = Annotated[
    list[str] | None,
    typer.Option("--statistics", metavar="STATS.json", help="Statistics that access.statistics of the spec names."),
]


def stats_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="TRACE...", help="Traces (.parquet, .npz, .csv); statistics for --merge and --compare."),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="STATS.json", help="Where to write the result, else stdout.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN[=TABLE]", help="Read this column, as lookups of this table or one of its name; repeatable."
        ),
    ] = None,
    padding_id: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]ID", help="An id that only fills up samples, of one column or of all; repeatable."
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What is between the ids of a cell in .csv, such as ^; else spaces."),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=2**24,
            show_default=str(DEFAULT_BATCH_SIZE),
            help="Samples of one batch, of all ranks together.",
        ),
    ] = None,
    hash_seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=2**32 - 1, show_default="0", help="Seed of the hashes; merge only equal ones."
        ),
    ] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Merge statistics of workers that read other traces.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Show what changed from OLD to NEW statistics.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on stderr.")] = False,
) -> None:
    """Sketch the lookups of id traces, table by table; merge or compare such sketches."""
    check_output(output, *files)
    if merge and compare:
        raise BadInput("give either --merge or --compare")
    of_traces = {
        "--table": table or None,
        "--padding-id": padding_id or None,
        "--separator": separator,
        "--batch-size": batch_size,
        "--hash-seed": hash_seed,
    }
    for option, given in of_traces.items():
        if (merge or compare) and given is not None:
            raise BadInput(f"{option} is for traces")
    if compare:
        _compare(files, output, quiet)
        return
    check_distinct(((path, str(Path(path).resolve())) for path in files), "lookups")
    num_padding = 0
    try:
        if merge:
            statistics = merge_statistics(_parts(files))
        else:
            tables = _columns_of_tables(table)
            options = _options(files, padding_id, separator)
            _check_names(files, tables, options)
            report = None if quiet else _progress(len(files))
            statistics, num_padding = collect(
                [Path(path) for path in files],
                batch_size=DEFAULT_BATCH_SIZE if batch_size is None else batch_size,
                options=options,
                tables=tables,
                hash_seed=hash_seed or 0,
                on_progress=report,
            )
    except OtherSketch as error:
        raise BadInput(str(error)) from None
    write_content(statistics.canonical, output)
    if not quiet:
        if padding_id:
            echo(f"{num_padding:,} ids only fill up samples (--padding-id) and count as no lookups\n")
        echo(hot_rows_text(statistics) + "\n")
        echo(statistics_text(statistics))  # ends with the digest that a spec names


def _compare(files: list[str], output: str | None, quiet: bool) -> None:
    if len(files) != 2:
        raise BadInput("--compare takes two files: the old statistics and the new ones")
    old, new = (_read_statistics(path) for path in files)
    document = drift_document([old], new)
    write_document(document.model_dump(mode="json"), output)
    if not quiet:
        echo(drift_text(document))


def _columns_of_tables(assignments: list[str] | None) -> dict[str, list[str]] | None:
    """``["user_id=user", "friend_id=user", "item"]`` as the columns of each table."""
    if not assignments:
        return None
    columns: dict[str, list[str]] = {}
    for text in assignments:
        column, equals, name = text.rpartition("=")
        if not equals:
            column = name
        if not column or not name:
            raise BadInput(f"--table takes COLUMN or COLUMN=TABLE, not {text!r}")
        columns.setdefault(name, []).append(column)
    return columns


def _options(files: list[str], padding: list[str] | None, separator: str | None) -> TraceOptions:
    """Return how traces are read: ``["0", "history=-1"]`` is an id of all columns but one, which has its own."""
    if separator is not None:
        if not separator.strip() or re.search(r"[0-9+\-\n]", separator):
            raise BadInput("--separator takes what stands between ids: no digits, no signs, no blanks")
        if not any(path.lower().endswith(".csv") for path in files):
            raise BadInput("--separator is for .csv: other traces have lists of ids")
    ids: dict[str, int] = {}
    for text in padding or ():
        column, _, number = text.rpartition("=")
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", number):
            raise BadInput(f"--padding-id takes ID or COLUMN=ID with a whole number, not {text!r}")
        if column in ids:
            raise BadInput(f"--padding-id: {f'column {column!r}' if column else 'all columns'} can have one only")
        ids[column] = int(number)
    return TraceOptions(
        separator=separator,
        padding_id=ids.get(""),
        padding_ids={column: number for column, number in ids.items() if column},
    )


def _parts(files: list[str]) -> list[Statistics]:
    parts = [_read_statistics(path) for path in files]
    check_distinct(((path, part.digest) for path, part in zip(files, parts, strict=True)), "lookups")
    seeds = [next(iter(part.sketches.values())).hash_seed for part in parts]
    for path, seed in zip(files, seeds, strict=True):
        if seed != seeds[0]:
            raise BadInput(
                f"{path} was made with --hash-seed {seed}, and {files[0]} with {seeds[0]}: only equal ones merge"
            )
    return parts


def _read_statistics(path: str) -> Statistics:
    """Read statistics; a file that is none is refused by its name, with what is wrong and the way out."""
    try:
        return parse_statistics(read_bytes(path))
    except RejectedDocument as error:
        again = "collect it again with shardplan stats TRACE..."
        version = next((issue for issue in error.issues if issue.pointer == "/schema_version"), None)
        if error.issues[0].code in UNREADABLE:
            what = f"cannot be read: {error.issues[0].message}; it was cut short, or is another file"
        elif any(issue.pointer == "/statistics_digest" and issue.code == "missing-field" for issue in error.issues):
            what = "is no access statistics: it has no statistics_digest"
        elif version is not None:
            what = f"is of another version: {version.message}; this version reads schema_version {SCHEMA_VERSION}"
        else:
            first = error.issues[0]
            what = f"is no access statistics as they were written: at {first.pointer}: {first.message}"
        raise BadInput(f"{path} {what}; {again}") from None


def _check_names(files: list[str], tables: dict[str, list[str]] | None, options: TraceOptions) -> None:
    """Refuse names that no table has, by the first sample of every trace: before hours of reading, not after."""
    options = replace(options, columns=columns_of(tables))
    found = dict.fromkeys(tables or ())
    columns: set[str] = set()
    for path in files:
        with contextlib.closing(read_trace(Path(path), 1, options)) as pieces:
            first = next(pieces, None)
        if first is not None:
            columns.update(first.ids)
            if tables is None:
                found.update(dict.fromkeys(first.ids))
    unknown = [name for name in options.padding_ids if columns and name not in columns]
    if unknown:
        raise BadInput(f"--padding-id: no column {unknown[0]!r} is read; these are: {', '.join(sorted(columns))[:200]}")
    for name in found:
        if len(name) > MAX_NAME_LENGTH or not re.fullmatch(NAME_PATTERN.rstrip("$").lstrip("^"), name):
            raise BadInput(f"{name!r} is no name of a table: call it otherwise with --table COLUMN=TABLE")


def _progress(num_files: int) -> OnProgress:
    """Print every two seconds how much of the traces is read."""
    seen: set[Path] = set()
    began = printed_at = time.monotonic()

    def report(lookups: int, path: Path, read_fraction: float) -> None:
        nonlocal printed_at
        seen.add(path)
        now = time.monotonic()
        if now - printed_at >= _SECONDS_BETWEEN_LINES:
            printed_at = now
            rate = lookups / (now - began) / 1e6
            where = f"file {len(seen)} of {num_files}, {read_fraction:.0%} of it"
            echo(f"shardplan: {lookups:,} lookups, {rate:.1f} million a second; {where}")

    return report


def found_statistics(files: list[str] | None) -> dict[str, bytes]:
    """Return the content of statistics files by digest, each file checked."""
    found = [_read_statistics(path) for path in files or ()]
    return {statistics.digest: statistics.canonical for statistics in found}
