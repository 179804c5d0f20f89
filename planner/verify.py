"""Whether a placement is right: cover, geometry, memory and constraints, told in words.

Starts from the shards alone and shares no code with schemes, options or partitioners.
"""

import bisect
import heapq
from collections.abc import Iterator

import numpy as np

from cost_models.vocabulary import Scheme
from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.problem import Problem
from planner.domain.table import Table
from planner.errors import Issue
from planner.memory import EXACT, LedgerRules, capacity_bytes
from planner.runtimes.registry import RUNTIMES
from planner.score import device_bytes
from planner.units import format_bytes

_ON_ALL_RANKS = (Scheme.ROW_WISE, Scheme.DATA_PARALLEL)
_ON_A_HOST = (Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD)


def verify(problem: Problem, placement: Placement, *, rules: LedgerRules = EXACT) -> tuple[Issue, ...]:
    """Return everything that is wrong with a placement; empty means it may be used.

    Pointers are into the plan document (``/tables/3/shards/0``). Memory is judged by the
    ledger ``rules`` of the cost model that the plan was made with.
    """
    issues = [*_cluster_issues(problem, placement), *_table_set_issues(problem, placement)]
    tables = {table.name: table for table in problem.tables}
    for index, placed in enumerate(placement.tables):
        if placed.name in tables:
            issues.extend(_shard_issues(problem, tables[placed.name], index, placed))
            issues.extend(_cover_issues(problem, tables[placed.name], index, placed))
            issues.extend(_model_issues(tables[placed.name], index, placed))
            issues.extend(_allowed_issues(problem, tables[placed.name], index, placed))
            issues.extend(_pin_issues(problem, tables[placed.name], index, placed))
    if issues:
        return tuple(issues)  # the rest needs shards that exist
    issues.extend(RUNTIMES[problem.runtime].check(problem, placement))
    issues.extend(_group_issues(problem, placement))
    issues.extend(_memory_issues(problem, placement, rules))
    return tuple(issues)


def _cluster_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    cluster = problem.cluster
    if placement.world_size != cluster.world_size or placement.ranks_per_host != cluster.ranks_per_host:
        yield Issue(
            code="cluster-mismatch",
            pointer="/world_size",
            message=(
                f"the plan is for {placement.world_size} ranks, {placement.ranks_per_host} per host; the cluster has"
                f" {cluster.world_size}, {cluster.ranks_per_host} per host"
            ),
            hint="plan again for this cluster",
        )


def _table_set_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    known = {table.name for table in problem.tables}
    seen: set[str] = set()
    for index, placed in enumerate(placement.tables):
        if placed.name not in known:
            yield Issue(
                code="unknown-table", pointer=f"/tables/{index}", message=f'no table "{placed.name}" in the spec'
            )
        if placed.name in seen:
            yield Issue(
                code="table-twice", pointer=f"/tables/{index}", message=f'table "{placed.name}" is placed twice'
            )
        seen.add(placed.name)
    for table in problem.tables:
        if table.name not in seen:
            yield Issue(code="missing-table", pointer="/tables", message=f'table "{table.name}" is not placed')


def _shard_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Ranks, ranges and tiers that do not exist."""
    tier = problem.cluster.device_tier
    for position, shard in enumerate(placed.shards):
        pointer = f"/tables/{index}/shards/{position}"
        if not 0 <= shard.rank < problem.world_size:
            yield Issue(
                code="rank-out-of-range",
                pointer=pointer,
                message=f'table "{table.name}": rank {shard.rank} of {problem.world_size}',
            )
        inside_rows = shard.row_offset >= 0 and shard.row_offset + shard.num_rows <= table.num_embeddings
        inside_columns = shard.column_offset >= 0 and shard.column_offset + shard.num_columns <= table.embedding_dim
        if not (inside_rows and inside_columns and shard.num_rows > 0 and shard.num_columns > 0):
            yield Issue(
                code="shard-out-of-range",
                pointer=pointer,
                message=(
                    f'table "{table.name}" has {table.num_embeddings} x {table.embedding_dim} cells;'
                    " this shard is not a non-empty part of them"
                ),
            )
        if shard.tier is not tier:
            yield Issue(
                code="tier",
                pointer=pointer,
                message=f'table "{table.name}": kernel {placed.compute_kernel.label} keeps rows in {tier.label}',
            )


def _cover_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Every cell exactly once, or once per rank for data_parallel."""
    if placed.sharding_type is Scheme.DATA_PARALLEL:
        whole = (0, table.num_embeddings, 0, table.embedding_dim)
        copies = [(s.row_offset, s.num_rows, s.column_offset, s.num_columns) for s in placed.shards]
        ranks = sorted(s.rank for s in placed.shards)
        if ranks != list(range(problem.world_size)) or any(copy != whole for copy in copies):
            yield Issue(
                code="cover",
                pointer=f"/tables/{index}",
                message=f'table "{table.name}": data_parallel needs exactly one full copy on every rank',
            )
        return
    overlap = overlapping_shards(placed.shards)
    if overlap is not None:
        yield Issue(
            code="overlap",
            pointer=f"/tables/{index}/shards/{overlap[1]}",
            message=f'table "{table.name}": shards {overlap[0]} and {overlap[1]} both hold some cells',
        )
    covered = sum(shard.num_rows * shard.num_columns for shard in placed.shards)
    missing = table.num_embeddings * table.embedding_dim - covered
    if overlap is None and missing:
        yield Issue(
            code="gap",
            pointer=f"/tables/{index}",
            message=f'table "{table.name}": {missing} cells are on no rank',
        )


def overlapping_shards(shards: tuple[Shard, ...]) -> tuple[int, int] | None:
    """Return two shards that share a cell; disjoint rectangles return ``None``.

    Sweeps down the rows. Shards that the sweep line cuts are kept by column; as long as none
    overlap, a new one can only meet its neighbours, so that each costs a binary search.
    """
    ends: list[tuple[int, int]] = []  # (row where it ends, shard), a heap
    cut: list[tuple[int, int]] = []  # (first column, shard), sorted
    for i in sorted(range(len(shards)), key=lambda i: (shards[i].row_offset, i)):
        shard = shards[i]
        while ends and ends[0][0] <= shard.row_offset:
            done = heapq.heappop(ends)[1]
            del cut[bisect.bisect_left(cut, (shards[done].column_offset, done))]
        place = bisect.bisect_left(cut, (shard.column_offset, i))
        if place > 0:
            left = cut[place - 1][1]
            if shards[left].column_offset + shards[left].num_columns > shard.column_offset:
                return min(left, i), max(left, i)
        if place < len(cut) and shard.column_offset + shard.num_columns > cut[place][0]:
            return min(cut[place][1], i), max(cut[place][1], i)
        cut.insert(place, (shard.column_offset, i))
        heapq.heappush(ends, (shard.row_offset + shard.num_rows, i))
    return None


def _model_issues(table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """What the plan says of the model, where it says it: a plan for another module shards nothing."""
    facts = (
        ("module_path", placed.module_path, table.module_path),
        ("data_type", placed.data_type, table.data_type.name),
        ("pooling", placed.pooling, table.pooling),
    )
    for fact, stated, actual in facts:
        if stated and stated != actual:
            yield Issue(
                code="model-mismatch",
                pointer=f"/tables/{index}/{fact}",
                message=f'table "{table.name}": the plan was made for {fact} "{stated}", the spec has "{actual}"',
                hint="plan again for this model",
            )


def _allowed_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """What the user allowed for the table."""
    wanted, pointer = table.constraints, f"/tables/{index}"
    name = f'table "{table.name}"'
    if wanted.sharding_types is not None and placed.sharding_type not in wanted.sharding_types:
        yield Issue(
            code="sharding-type", pointer=pointer, message=f"{name}: {placed.sharding_type.label} is not allowed"
        )
    if wanted.compute_kernels is not None and placed.compute_kernel not in wanted.compute_kernels:
        yield Issue(
            code="kernel", pointer=pointer, message=f"{name}: kernel {placed.compute_kernel.label} is not allowed"
        )
    ranks = {shard.rank for shard in placed.shards}
    if wanted.ranks is not None and not ranks <= wanted.ranks:
        yield Issue(code="rank", pointer=pointer, message=f"{name}: rank {min(ranks - wanted.ranks)} is not allowed")
    hosts = {problem.cluster.host_of(rank) for rank in ranks}
    if wanted.hosts is not None and not hosts <= wanted.hosts:
        yield Issue(code="host", pointer=pointer, message=f"{name}: host {min(hosts - wanted.hosts)} is not allowed")
    narrowest = min((shard.num_columns for shard in placed.shards), default=table.embedding_dim)
    if wanted.min_partition is not None and narrowest < min(wanted.min_partition, table.embedding_dim):
        yield Issue(
            code="min-partition",
            pointer=pointer,
            message=f"{name}: a shard is {narrowest} columns wide, at least {wanted.min_partition} are asked for",
        )


def _pin_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Where the user pinned the table; rows are judged by the rules of cover and of the runtime."""
    pinned = table.constraints.pinned
    if pinned is None:
        return
    hint = "plan again, or change the table's pinned placement"
    asked = (pinned.sharding_type, pinned.compute_kernel)
    found = (placed.sharding_type, placed.compute_kernel)
    if found != asked:
        message = (
            f"is pinned to {asked[0].label} with kernel {asked[1].label}, not {found[0].label} with {found[1].label}"
        )
        yield Issue(code="pinned", pointer=f"/tables/{index}", message=f'table "{table.name}" {message}', hint=hint)
        return
    wanted = {(piece.column_offset, piece.num_columns, piece.site) for piece in pinned.pieces}
    for position, shard in enumerate(placed.shards):
        if placed.sharding_type in _ON_ALL_RANKS:
            site = 0
        elif placed.sharding_type in _ON_A_HOST:
            site = problem.cluster.host_of(shard.rank)
        else:
            site = shard.rank
        if (shard.column_offset, shard.num_columns, site) not in wanted:
            columns = f"columns {shard.column_offset} to {shard.column_offset + shard.num_columns - 1}"
            yield Issue(
                code="pinned",
                pointer=f"/tables/{index}/shards/{position}",
                message=f'table "{table.name}": {columns} are not pinned to rank {shard.rank}',
                hint=hint,
            )
            return


def _group_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    ranks_of = {placed.name: {shard.rank for shard in placed.shards} for placed in placement.tables}
    for group in problem.same_rank:
        names = [problem.tables[t].name for t in sorted(group)]
        if len(set().union(*(ranks_of[name] for name in names))) != 1:
            yield Issue(code="same-rank", pointer="/tables", message=f"{', '.join(names)} must share one rank")
    for group in problem.apart:
        names = [problem.tables[t].name for t in sorted(group)]
        counts = np.zeros(problem.world_size, dtype=np.int64)
        for name in names:
            counts[sorted(ranks_of[name])] += 1
        if counts.max(initial=0) > 1:
            rank = int(np.argmax(counts))
            yield Issue(
                code="apart", pointer="/tables", message=f"{', '.join(names)} must stay apart: rank {rank} has two"
            )


def _memory_issues(problem: Problem, placement: Placement, rules: LedgerRules) -> Iterator[Issue]:
    used = device_bytes(problem, placement, rules)
    free = capacity_bytes(problem)[:, problem.cluster.device_tier]
    for rank in np.flatnonzero(used > free):
        yield Issue(
            code="memory",
            pointer=f"/ranks/{rank}",
            message=(
                f"rank {rank} needs {format_bytes(used[rank])} of {problem.cluster.device_tier.label},"
                f" {format_bytes(used[rank] - free[rank])} more than the {format_bytes(free[rank])} left for tables"
            ),
            hint="plan again: memory is a hard limit",
        )
