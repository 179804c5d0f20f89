"""Medians over the node pairs or nodes of a cluster: what laws are fitted to and judged by, single runs apart.

A cluster was measured pair by pair (or node by node), with hundreds of runs of one collective and pairs that are
broken. A summary file gives medians. Where no summary of a run lies in the folder, its median is formed from the runs
themselves. A run that a median stands for is predicted as well, and counts in a group of single runs.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from benchmarks.prices.reality.collective_files import MeasuredCollective


def with_medians(rows: Iterable[MeasuredCollective]) -> list[MeasuredCollective]:
    """Return all rows, the medians that no file gives, and say of each run whether a median stands for it.

    A run of which there is no other stands for itself. A median that is formed has the file and the line of its first
    run.
    """
    found = list(rows)
    summarised = {_collective(row) for row in found if row.num_runs is not None and not row.is_run}
    runs: defaultdict[tuple[object, ...], list[MeasuredCollective]] = defaultdict(list)
    for row in found:
        if row.is_run:
            runs[_collective(row)].append(row)
    counted = summarised | {key for key, of_key in runs.items() if len(of_key) > 1}
    marked = [replace(row, has_median=row.is_run and _collective(row) in counted) for row in found]
    formed = [
        replace(of_key[0], seconds=statistics.median(row.seconds for row in of_key), num_runs=len(of_key), is_run=False)
        for key, of_key in runs.items()
        if len(of_key) > 1 and key not in summarised
    ]
    return marked + formed


def _collective(row: MeasuredCollective) -> tuple[object, ...]:
    """Return what the runs of one collective have in common."""
    return (
        row.platform,
        row.operation,
        row.num_ranks,
        row.ranks_per_host,
        row.message_bytes,
        row.is_in_place,
        row.library,
    )
