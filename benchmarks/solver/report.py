"""Rows and suites as text of at most 120 columns, and as one JSON document."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from benchmarks.peers.peers import MILLISECONDS_PER_SECOND, PeerFigure
from benchmarks.solver.stage_clock import STAGES
from benchmarks.solver.suite import Instance, Row, Suite

WIDTH = 120
_MEBIBYTE = 1024**2
_HEAD = (
    f"  {'partitioner':<13}{'objective ms':>12}{'bound ms':>11}{'gap %':>8}{'/ peer':>8}{'s':>8}{'first s':>9}"
    f"{'to peer s':>10}{'MiB':>7}  ended"
)
_SUMMARY_HEAD = (
    f"  {'partitioner':<14}{'plans':>7}{'mean gap %':>12}{'worst gap %':>13}{'mean / peer':>13}{'worst / peer':>14}"
    f"{'mean s':>9}{'worst s':>9}{'worst MiB':>11}"
)


def head(instance: Instance, peers: Sequence[PeerFigure]) -> Iterator[str]:
    """Yield the lines above the rows of an instance."""
    size = f"{instance.num_tables} tables x {instance.num_ranks} ranks"
    yield f"{instance.name}  ({size}, limit {instance.time_limit_seconds:g} s)"
    for peer in peers:
        solved = math.isfinite(peer.objective_seconds)
        value = f"{_milliseconds(peer.objective_seconds)} ms" if solved else "no plan"
        cut = ", cut by its limit" if peer.timed_out else ""
        reported = f"{peer.who}: {value} in {peer.seconds:.2f} s{cut} ({peer.evidence})"
        yield from textwrap.wrap(reported, WIDTH, initial_indent="  peer ", subsequent_indent="       ")
    yield _HEAD


def line(row: Row) -> str:
    """Print one row."""
    measured = row.measured
    limit = f" ({measured.limit})" if measured.limit else ""
    return (
        f"  {row.partitioner:<13}{_milliseconds(measured.objective_seconds):>12}"
        f"{_milliseconds(measured.lower_bound_seconds):>11}{_percent(measured.relative_gap):>8}"
        f"{_number(row.ratio, 4):>8}{measured.seconds:>8.2f}{_number(measured.first_plan_seconds, 2):>9}"
        f"{_number(row.seconds_to_peer, 2):>10}{measured.peak_bytes / _MEBIBYTE:>7.0f}  {measured.reason}{limit}"
    )


def stages(row: Row) -> list[str]:
    """Print the seconds of the stages of one row, and what they leave out."""
    seconds = row.measured.stage_seconds
    parts = [f"{stage} {seconds[stage]:.3f}" for stage in STAGES]
    parts.append(f"rest {max(row.measured.seconds - math.fsum(seconds.values()), 0.0):.3f}")
    return textwrap.wrap(f"s: {', '.join(parts)}", WIDTH, initial_indent="    ", subsequent_indent="    ")


def summary(suite: Suite, rows: Sequence[Row], default: str) -> Iterator[str]:
    """Yield what a suite comes to; targets are judged on the ``default`` partitioner where it was measured."""
    yield f"suite {suite.name}: {suite.title}; {len({_case(row) for row in rows})} instances"
    yield _SUMMARY_HEAD
    for partitioner in dict.fromkeys(row.partitioner for row in rows):
        yield _summary_line([row for row in rows if row.partitioner == partitioner], partitioner)
    rated = [row for row in rows if row.partitioner == default]
    if not rated:
        return
    for target in suite.targets:
        meant = [row for row in rated if target.applies(row)]
        met = sum(target.met(row) for row in meant)
        yield f"  {default}: {target.title}: {met} of {len(meant)}"
    ratio = mean_ratio(rated)
    if suite.most_mean_ratio is not None and ratio is not None:
        yield f"  {default}: geometric mean of the ratios {ratio:.4f}, wanted at most {suite.most_mean_ratio:g}"
    if suite.most_mean_seconds is not None:
        seconds = fmean(row.measured.seconds for row in rated)
        yield f"  {default}: {seconds:.2f} s in the mean, wanted at most {suite.most_mean_seconds:g}"
    for note in suite.notes(rated):
        yield f"  {default}: {note}"


def _summary_line(rows: Sequence[Row], partitioner: str) -> str:
    solved = sum(row.measured.objective_seconds is not None for row in rows)
    gaps = [row.measured.relative_gap for row in rows if row.measured.relative_gap is not None]
    ratios = [row.ratio for row in rows if row.ratio is not None]
    return (
        f"  {partitioner:<14}{f'{solved}/{len(rows)}':>7}{_percent(mean_gap(gaps)):>12}"
        f"{_percent(max(gaps, default=None)):>13}{_number(mean_ratio(rows), 4):>13}"
        f"{_number(max(ratios, default=None), 4):>14}{fmean(row.measured.seconds for row in rows):>9.2f}"
        f"{max(row.measured.seconds for row in rows):>9.2f}"
        f"{max(row.measured.peak_bytes for row in rows) / _MEBIBYTE:>11.0f}"
    )


def mean_gap(gaps: Sequence[float]) -> float | None:
    """Geometric mean of objective / bound, less 1; gaps of 0 are then no trouble. ``None`` without any."""
    return math.exp(fmean(math.log1p(gap) for gap in gaps)) - 1 if gaps else None


def mean_ratio(rows: Sequence[Row]) -> float | None:
    """Geometric mean of the ratios to the best peer where both have a plan; ``None`` without any."""
    ratios = [row.ratio for row in rows if row.ratio is not None and math.isfinite(row.ratio)]
    return math.exp(fmean(math.log(ratio) for ratio in ratios)) if ratios else None


def document(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as plain values, in SI seconds and bytes; what is infinite becomes ``None``."""
    return [
        {
            "instance": row.instance.name,
            "num_tables": row.instance.num_tables,
            "num_ranks": row.instance.num_ranks,
            "time_limit_seconds": row.instance.time_limit_seconds,
            "partitioner": row.partitioner,
            "ratio_to_best_peer": _finite(row.ratio),
            "seconds_to_best_peer": row.seconds_to_peer,
            **asdict(row.measured),
            "peers": [{name: _finite(value) for name, value in asdict(peer).items()} for peer in row.peers],
        }
        for row in rows
    ]


def _case(row: Row) -> tuple[str, float]:
    return row.instance.name, row.instance.time_limit_seconds


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * MILLISECONDS_PER_SECOND:.4f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3f}"


def _number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
