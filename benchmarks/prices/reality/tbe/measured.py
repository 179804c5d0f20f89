"""Launches that ``shardplan measure`` timed on a GPU: forward and backward of one or several tables together."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.prices.reality.cells import UNREADABLE, count, number, time
from benchmarks.prices.reality.tbe.launch import MOST_COLUMNS, MOST_ROWS, Table, launch_seconds, profile_of
from benchmarks.prices.reality.tbe.predicted import Found, Numbered, left_out, predicted

COLUMNS = frozenset({"kind", "launch", "device", "implementation", "shard_rows", "shard_columns", "forward_seconds"})
_IMPLEMENTATION = "fbgemm_tbe"


def found(path: Path, numbered: Sequence[Numbered]) -> Iterator[Found]:
    """Yield two predictions for each launch; further rows of a launch are tables of it."""
    for _, group in groupby(numbered, key=lambda one: (one[1]["kind"], one[1]["launch"])):
        rows = list(group)
        try:
            yield from list(_launch(path, rows))
        except UNREADABLE as error:
            yield from left_out(path, rows, f"not readable: {error}")


def _launch(path: Path, rows: Sequence[Numbered]) -> Iterator[Found]:
    line, first = rows[0]
    profile = profile_of(first["device"])
    if first["kind"] != "lookup":
        yield from left_out(path, rows, f"no launch of lookups: {first['kind']}")
    elif first["implementation"] != _IMPLEMENTATION:
        yield from left_out(path, rows, f"kernels of {first['implementation']}, not FBGEMM's")
    elif profile is None:
        yield from left_out(path, rows, "no profile of the GPU")
    else:
        tables = [
            Table(
                rows=count(row, "shard_rows", most=MOST_ROWS),
                columns=count(row, "shard_columns", most=MOST_COLUMNS),
                lookups=number(row, "lookups"),
                outputs=number(row, "outputs"),
                distinct=number(row, "distinct_rows"),
                element_bytes=number(row, "element_bytes"),
                output_element_bytes=number(row, "output_element_bytes"),
            )
            for _, row in rows
        ]
        lookups = sum(table.lookups for table in tables)
        seconds = launch_seconds(profile, tables)
        for direction, value in zip(("forward", "backward"), seconds, strict=True):
            yield predicted(
                path,
                line,
                gpu=first["device"],
                profile=profile,
                location="DEVICE",
                direction=direction,
                columns=max(table.columns for table in tables),
                lookups=lookups,
                subject=f"{direction} of {len(tables)} tables, {lookups:.0f} lookups",
                measured_seconds=time(first, f"{direction}_seconds"),
                predicted_seconds=value,
            )
        yield from left_out(path, rows[1:], "a further table of a launch")
