"""Tables whose looked-up row numbers are unknown, where this could change the plan."""

import math
from collections.abc import Iterator

import numpy as np

from api.specs.assumptions import shown_names
from cost_models.text.number_text import counted
from cost_models.vocabulary import Scheme
from planner.domain.problem.access import AccessCdf, ReuseHistogram, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import RANKED, Table
from planner.errors import Issue
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.geometry import geometry

#: Times its even share that a row block could get, from which on it is worth a warning.
_LEAST_FACTOR = 2.0
_HEAD_ROWS = 32


def unknown_row_orders(problem: Problem) -> Iterator[Issue]:
    """Warn of tables that may be cut by rows, one block of which could get most lookups, as far as is known."""
    found = [
        (index, blocks)
        for index, table in enumerate(problem.tables)
        if table.ids == "unknown" and isinstance(table.access, RANKED) and (blocks := _most_blocks(problem, table)) > 1
    ]
    if not found:
        return
    tables = [problem.tables[index] for index, _ in found]
    shares = np.array([_first_share(table, blocks) for table, (_, blocks) in zip(tables, found, strict=True)])
    factors = shares * [blocks for _, blocks in found]
    worst = int(np.argmax(factors))
    names = [table.name for table, factor in zip(tables, factors.tolist(), strict=True) if factor >= _LEAST_FACTOR]
    if names:
        yield Issue(
            code="row-order-unknown",
            pointer="/model/tables",
            message=f"row blocks of {counted(len(names), 'table')} are priced as equal, because it is unknown which"
            f" row numbers are looked up: if the hottest rows came first, one of {found[worst][1]} blocks of"
            f" {shown_names([tables[worst].name])} would get about {shares[worst]:.0%} of its lookups."
            f" Tables: {shown_names(names)}",
            hint="give access.ids (hashed or frequency_sorted), or access.row_cdf, or statistics of a trace",
            severity="warning",
        )


def _first_share(table: Table, num_blocks: int) -> float:
    """Return about which share of the lookups the hottest rows get that fill one block.

    Quickly, for specs have thousands of tables. Of a reuse histogram as it was counted: rows of one batch.
    """
    access, block = table.access, -(-table.num_embeddings // num_blocks)
    if isinstance(access, ZipfAccess):
        block_sum, whole = (_zipf_sum(access.alpha, rows) for rows in (block, table.num_embeddings))
        return block_sum / whole
    if isinstance(access, AccessCdf):
        rows, lookups = np.array([(0.0, 0.0), *access.points]).T
        return float(np.interp(block / table.num_embeddings, rows, lookups))
    assert isinstance(access, ReuseHistogram)
    rows = np.array(access.distinct_rows[::-1])
    lookups = rows * 2.0 ** np.arange(len(rows))[::-1]
    row_sums, shares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (rows, lookups / lookups.sum()))
    return float(np.interp(block, row_sums, shares))


def _zipf_sum(alpha: float, num_rows: int) -> float:
    """Return about the sum of i^-alpha over the first rows: the head one by one, the tail as an integral."""
    head = min(num_rows, _HEAD_ROWS)
    first, last = head + 0.5, num_rows + 0.5
    tail = math.log(last / first) if alpha == 1 else (last ** (1 - alpha) - first ** (1 - alpha)) / (1 - alpha)
    return float(np.sum(np.arange(1.0, head + 1) ** -alpha)) + tail


def _most_blocks(problem: Problem, table: Table) -> int:
    """Return into how many ranges of rows a table may be cut at most; 1 where no cut by rows is open to it."""
    runtime, cluster, constraints = RUNTIMES[problem.runtime], problem.cluster, table.constraints
    if runtime.has_modulo_rows or table.ids_per_sample == 0:
        return 1
    allowed = frozenset(Scheme) if constraints.sharding_types is None else constraints.sharding_types
    if constraints.pinned is not None:
        allowed = frozenset({constraints.pinned.sharding_type})
    return max(
        (
            scheme.row_blocks(cluster.world_size, cluster.ranks_per_group)
            for scheme in allowed
            if scheme.facts.cuts_rows
            and geometry(scheme, table, cluster) is not None
            and runtime.scheme_issue_on(cluster, table, scheme) is None
        ),
        default=1,
    )
