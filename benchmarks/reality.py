"""What the product predicts next to what others measured, for every public series in a folder of the shared format.

    python benchmarks/reality.py [--data FOLDER] [--json OUT] [--results OUT] [--plans]

Tables are recognised by their columns, so that any split of them is predicted: rows that laws were fitted to, and rows
that were held back. ``--json`` writes every row and every group; ``--results`` groups alone, from which
``docs/reality.md`` is made. ``--plans`` also plans every MLPerf system, which takes some minutes.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.prices.reality import collectives, kernels, whole_steps
from benchmarks.prices.reality.groups import GroupFigures, figures_of, groups_of
from benchmarks.prices.reality.mlperf.our_plans import compared
from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import read_table, table_files
from benchmarks.prices.reality.verdicts import verdict_of_plans, verdicts

#: What predicts the rows of a folder, each the series that it knows.
PARTS: tuple[Callable[[Path], Iterable[PredictedRow | LeftOutRow]], ...] = (
    collectives.rows,
    kernels.rows,
    whole_steps.rows,
)
PLAN_SECONDS = 5.0
BROKEN = "the rest of the file cannot be read"
UNREAD = "no part of the benchmark predicts these rows"


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/measured_gpu"), help="folder of measured tables")
    parser.add_argument("--json", type=Path, help="file for rows and groups")
    parser.add_argument("--results", type=Path, help="file for groups alone")
    parser.add_argument("--plans", action="store_true", help="also plan what MLPerf's submissions ran")
    given = parser.parse_args(arguments)
    if not given.data.is_dir():
        parser.error(f"{given.data} is no folder; --data names one with tables of the shared format")
    predicted, left_out = predict(given.data)
    groups = [figures_of(name, some) for name, some in groups_of(predicted)]
    plans = list(compared(given.data, time_limit_seconds=PLAN_SECONDS)) if given.plans else []
    sentences = [*verdicts(predicted), *verdict_of_plans(plans)]
    print("\n".join((*_table(groups), "", *sentences, "", *_left_out(left_out))))
    results = {
        "groups": [group.document() for group in groups],
        "verdicts": sentences,
        "plans": [asdict(plan) for plan in plans],
        "left_out": [{"file": file, "reason": reason, "rows": count} for (file, reason), count in left_out.items()],
    }
    if given.json is not None:
        _write(given.json, {**results, "rows": [_document(row) for row in predicted]})
    if given.results is not None:
        _write(given.results, results)


def predict(folder: Path) -> tuple[list[PredictedRow], dict[tuple[str, str], int]]:
    """Return the predicted rows of a folder, and how many others each file has for each reason.

    How many rows the rest of a broken file has is unknown: the file is listed with a count of 0.
    """
    predicted: list[PredictedRow] = []
    left_out: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, int]] = set()
    for part in PARTS:
        for row in part(folder):
            seen.add((row.file, row.line))
            if isinstance(row, LeftOutRow):
                left_out[row.file, row.reason] += 1
            else:
                predicted.append(row)
    for path in table_files(folder):
        table = read_table(path)
        if table.broken:
            left_out[path.name, f"{BROKEN}: {table.broken}"] = 0
        for row in (*table.left_out, *(line.left_out(UNREAD) for line in table.lines)):
            if (row.file, row.line) not in seen:
                left_out[row.file, row.reason] += 1
    return predicted, dict(left_out)


def _table(groups: list[GroupFigures]) -> Iterator[str]:
    width = max((len(group.group) for group in groups), default=5)
    yield f"{'group':{width}}  {'rows':>6}  {'mean':>7}  {'p90':>7}  {'largest':>8}"
    for group in groups:
        yield (
            f"{group.group:{width}}  {group.rows:6}  {group.mean_relative_error:7.1%}"
            f"  {group.p90_relative_error:7.1%}  {group.largest_relative_error:8.1%}"
        )


def _left_out(left_out: dict[tuple[str, str], int]) -> Iterator[str]:
    for (file, reason), count in sorted(left_out.items()):
        yield f"left out: {count or 'the rest'} of {file}: {reason}"


def _document(row: PredictedRow) -> dict[str, object]:
    return {
        "groups": list(row.groups),
        "file": row.file,
        "line": row.line,
        "platform": row.platform,
        "subject": row.subject,
        "measured_seconds": row.measured_seconds,
        "predicted_seconds": row.predicted_seconds,
        "lower_seconds": row.lower_seconds,
        "upper_seconds": row.upper_seconds,
        "is_extrapolated": row.is_extrapolated,
        "relative_error": row.relative_error,
    }


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
