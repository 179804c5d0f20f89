"""Kernels of traces: forward launches one by one, and all backward kernels of a step with their sort.

A trace states the tables, lookups, bags and weights of a launch together, and no width. All tables are taken as alike;
their mean width is what a rank sends of pooled rows in the step over the bags of its launches. Which rows are looked up
is not known.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.prices.reality.cells import UNREADABLE, count, number, time
from benchmarks.prices.reality.tbe.launch import MOST_COLUMNS, MOST_TABLES, Table, kernel_seconds, profile_of
from benchmarks.prices.reality.tbe.predicted import Found, Numbered, Row, left_out, predicted

COLUMNS = frozenset({"trace", "class", "dur_us", "tbe_indices", "tbe_offsets", "tbe_weight_elems", "payload_bytes"})
_OF_BACKWARD = ("tbe_backward", "sort", "index_prep")
_MEASURED_APART = "bounds_check"  # of index preparation: happens before the forward launch


def found(path: Path, numbered: Sequence[Numbered]) -> Iterator[Found]:
    """Yield a prediction for each forward launch, and one for the backward pass of each step."""
    steps: dict[tuple[str, ...], list[Numbered]] = defaultdict(list)
    for line, row in numbered:
        steps[tuple(row.get(name, "") for name in ("trace", "gpu", "rank", "step"))].append((line, row))
    for (_, gpu, _, step), of_step in steps.items():
        launches = [one for one in of_step if one[1]["class"] == "tbe_forward"]
        backward = [one for one in of_step if _is_backward(one[1])]
        kernels = [*launches, *backward]
        yield from left_out(path, (one for one in of_step if one not in kernels), "no kernel of embeddings")
        profile = profile_of(gpu)
        if profile is None:
            yield from left_out(path, kernels, "no profile of the GPU")
        elif not launches or not step:
            yield from left_out(path, kernels, "backward kernels without the launch of their step")
        elif any(not row["tbe_offsets"] for _, row in launches):
            yield from left_out(path, kernels, "shape of the launches of the step not stated")
        else:
            try:
                yield from list(_step(path, profile, launches, backward, of_step))
            except UNREADABLE as error:
                yield from left_out(path, kernels, f"not readable: {error}")


def _is_backward(row: Row) -> bool:
    return row["class"] in _OF_BACKWARD and _MEASURED_APART not in row["kernel"]


def _step(
    path: Path, profile: str, launches: Sequence[Numbered], backward: Sequence[Numbered], of_step: Sequence[Numbered]
) -> Iterator[Found]:
    sent = _sent([row for _, row in of_step])
    bags = sum(number(row, "tbe_offsets") - 1 for _, row in launches)
    if not 0 < sent <= MOST_COLUMNS * bags:
        yield from left_out(path, [*launches, *backward], "width not known")
        return
    columns = max(1, round(sent / bags))
    tables, lookups = [], 0.0
    for line, row in launches:
        alike = _tables(row, columns)
        tables += alike
        lookups += number(row, "tbe_indices")
        yield predicted(
            path,
            line,
            gpu=row["gpu"],
            profile=profile,
            location="DEVICE",
            direction="forward",
            columns=columns,
            lookups=number(row, "tbe_indices"),
            subject=f"forward launch of {len(alike)} tables in {row['trace']}, {row['step']}",
            measured_seconds=time(row, "dur_us") / 1e6,
            predicted_seconds=kernel_seconds(profile, alike)[0],
        )
    if any(row["class"] == "tbe_backward" for _, row in backward):
        line, row = backward[0]
        yield predicted(
            path,
            line,
            gpu=row["gpu"],
            profile=profile,
            location="DEVICE",
            direction="backward",
            columns=columns,
            lookups=lookups,
            subject=f"backward pass of {len(tables)} tables in {row['trace']}, {row['step']}",
            measured_seconds=sum(time(row, "dur_us") for _, row in backward) / 1e6,
            predicted_seconds=kernel_seconds(profile, tables)[1],
        )
        yield from left_out(path, backward[1:], "counted with the other kernels of the backward pass")
    else:
        yield from left_out(path, backward, "no backward kernel in the step")


def _sent(of_step: Sequence[Row]) -> float:
    """Elements of pooled rows that a rank sends: all reduce-scatters of rows cut over ranks, else one all-to-all."""
    payloads: dict[str, list[float]] = defaultdict(list)
    for row in of_step:
        if row.get("dtype") == "float" and row["payload_bytes"]:
            payloads[row.get("collective", "")].append(number(row, "payload_bytes") / 4)
    return sum(payloads["_reduce_scatter_base"]) or max(payloads["all_to_all"], default=0.0)


def _tables(row: Row, columns: int) -> list[Table]:
    num_tables = count(row, "tbe_features", most=MOST_TABLES)
    weight_bytes = 2.0 if "Half" in row["kernel"] else 4.0
    table = Table(
        rows=max(1, round(number(row, "tbe_weight_elems") / columns / num_tables)),
        columns=columns,
        lookups=number(row, "tbe_indices") / num_tables,
        outputs=(number(row, "tbe_offsets") - 1) / num_tables,
        distinct=np.nan,
        element_bytes=weight_bytes,
        is_weighted="_weighted" in row["kernel"],
    )
    return [table] * num_tables
