"""Whether a placement is right: cover, geometry, memory and constraints.

Starts from the shards alone and shares no code with options, the geometry of schemes, or partitioners (an import
contract holds that). It shares with them the ledger of bytes (:mod:`planner.pricing.memory.ledger`), the tiers of a
kernel's rows (:mod:`planner.options.row_tiers`), and three facts of ``cost_models.vocabulary``, as definitions of
words: whether a scheme replicates a table, which site of a scheme a rank belongs to, whether a kernel caches. The
rules of a runtime (``planner.options.runtimes.<runtime>``) are written apart from the options: those of TorchRec read
no fact of a scheme.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Bools
from cost_models.vocabulary import Tier
from planner.domain.formats.units import format_bytes
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedTable, Table
from planner.errors import Issue
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.memory.ledger import capacity_bytes, sparse_capacity_bytes
from planner.verification.evaluate_placement import bytes_by_tier
from planner.verification.overlap import overlapping_shards
from planner.verification.stash import stash_issues
from planner.verification.stored_state import checkpoint_issues

#: Codes of what is wrong where the shards are no partition of the tables over the ranks.
NO_PARTITION = frozenset(
    {
        "cluster-mismatch",
        "cover",
        "gap",
        "missing-table",
        "overlap",
        "rank-out-of-range",
        "shard-out-of-range",
        "table-twice",
        "unknown-table",
    }
)


def verify(problem: Problem, placement: Placement) -> tuple[Issue, ...]:
    """Return everything that is wrong with a placement; empty means it may be used.

    Pointers are into the plan document (``/tables/3/shards/0``).
    """
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    issues = [
        *_cluster_issues(problem, placement),
        *_index_dedup_issues(problem, placement),
        *_table_set_issues(problem, placement),
    ]
    tables = {table.name: table for table in problem.tables}
    shard_issues = _shard_issues(problem, tables, placement)
    for index, placed in enumerate(placement.tables):
        if placed.name in tables:
            issues.extend(shard_issues.get(index, ()))
            for check in (_cover_issues, _model_issues, _allowed_issues, _pin_issues):
                issues.extend(check(problem, tables[placed.name], index, placed))
    if any(issue.code in NO_PARTITION for issue in issues):
        return tuple(issues)  # the rest needs shards that exist
    issues.extend(RUNTIMES[problem.runtime].check(problem, placement))
    issues.extend(checkpoint_issues(problem, placement))
    issues.extend(_group_issues(problem, placement))
    issues.extend(_memory_issues(problem, placement))
    issues.extend(_kv_cache_issues(problem, placement))
    return tuple(issues)


def _kv_cache_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    """Yield an issue where the plan states another size of the cache of keys and values than it is judged with."""
    cache, stated = problem.kv_cache, placement.kv_cache_bytes
    if stated is None or (cache is not None and stated == cache.least_bytes):
        return
    takes = "no such cache" if cache is None else f"{format_bytes(cache.least_bytes)} of every rank"
    yield Issue(
        code="kv-cache",
        pointer="/kv_cache_bytes",
        message=f"the plan leaves {format_bytes(stated)} of every rank to keys and values; the spec has {takes}",
        hint="list this size in serving.kv_cache.sizes_bytes, or plan again",
    )


def _cluster_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    cluster = problem.cluster
    if placement.world_size != cluster.world_size or placement.ranks_per_host != cluster.ranks_per_host:
        has = "the cluster has" if cluster.job is None else "a sharding group has"
        yield Issue(
            code="cluster-mismatch",
            pointer="/world_size",
            message=(
                f"the plan is for {placement.world_size} ranks, {placement.ranks_per_host} per host; {has}"
                f" {cluster.world_size}, {cluster.ranks_per_host} per host"
            ),
            hint="plan again for this cluster",
        )
    elif placement.ranks_per_group != cluster.ranks_per_group:
        yield Issue(
            code="cluster-mismatch",
            pointer="/pod_size",
            message=(
                f"the plan cuts rows over groups of {placement.ranks_per_group} ranks (pod_size, or else"
                f" ranks_per_host); groups of the cluster have {cluster.ranks_per_group}"
            ),
            hint="plan again for this cluster, or state the plan's pod_size as hardware.pod_size of the spec",
        )


def _index_dedup_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    if placement.use_index_dedup == problem.use_index_dedup:
        return
    says, asks = ("on", "off") if placement.use_index_dedup else ("off", "on")
    yield Issue(
        code="index-dedup-mismatch",
        pointer="/use_index_dedup",
        message=f"the plan is for use_index_dedup {says}, and the spec has it {asks}",
        hint=f"plan again, or set model.use_index_dedup to {says}",
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


def _shard_issues(problem: Problem, tables: dict[str, Table], placement: Placement) -> dict[int, list[Issue]]:
    """Return issues of ranks, ranges and tiers that do not exist, by the index of the table in the plan."""
    shards, of = placement.all_shards(), placement.table_of_shards()
    tiers = [_tier_of_rows(problem, placed) for placed in placement.tables]
    known = [tables.get(placed.name) for placed in placement.tables]
    is_known = np.array([table is not None for table in known])[of]
    rows = np.array([0 if table is None else table.num_embeddings for table in known], dtype=np.int64)[of]
    columns = np.array([0 if table is None else table.embedding_dim for table in known], dtype=np.int64)[of]
    no_rank = (shards.rank < 0) | (shards.rank >= problem.world_size)
    no_part = (shards.row_offset < 0) | (shards.row_end > rows) | (shards.num_rows <= 0)
    no_part |= (shards.column_offset < 0) | (shards.column_end > columns) | (shards.num_columns <= 0)
    wrong_tier = (shards.tier != np.array(tiers, dtype=np.int64)[of]) & ~_hot_shards(problem, placement)
    first = np.searchsorted(of, np.arange(len(placement.tables)))
    issues: dict[int, list[Issue]] = {}
    for number in np.flatnonzero(is_known & (no_rank | no_part | wrong_tier)).tolist():
        index = int(of[number])
        placed, found = placement.tables[index], issues.setdefault(index, [])
        pointer, name = f"/tables/{index}/shards/{number - first[index]}", f'table "{placed.name}"'
        if no_rank[number]:
            message = f"{name}: rank {shards.rank[number]} of {problem.world_size}"
            found.append(Issue(code="rank-out-of-range", pointer=pointer, message=message))
        if no_part[number]:
            message = f"{name} has {rows[number]} x {columns[number]} cells; this shard is not a non-empty part of them"
            found.append(Issue(code="shard-out-of-range", pointer=pointer, message=message))
        if wrong_tier[number]:
            places = row_tiers(placed.compute_kernel, problem.cluster, RUNTIMES[problem.runtime])
            labels = " or ".join(tier.label for tier in places)
            apart = ", all of a table in one of them" if len(places) > 1 else ""
            message = f"{name}: kernel {placed.compute_kernel.label} keeps rows in {labels}{apart}"
            found.append(Issue(code="tier", pointer=pointer, message=message))
    return issues


def _tier_of_rows(problem: Problem, placed: TablePlacement) -> Tier:
    """Return where the rows of a table must lie: all in storage-class memory if some lie there and may."""
    places = row_tiers(placed.compute_kernel, problem.cluster, RUNTIMES[problem.runtime])
    return Tier.SCM if placed.in_scm and Tier.SCM in places else places[0]


def _hot_shards(problem: Problem, placement: Placement) -> Bools:
    """Mark first rows in the device's memory whose table has its other rows on the same rank."""
    shards, of = placement.all_shards(), placement.table_of_shards()
    hot_rows = np.array([placed.hot_rows for placed in placement.tables], dtype=np.int64)[of]
    is_hot: Bools = (shards.row_offset == 0) & (shards.num_rows == hot_rows)
    is_hot &= shards.tier == problem.cluster.device_tier
    if not RUNTIMES[problem.runtime].splits_off_hot_rows or not is_hot.any():
        return np.zeros(len(shards), dtype=np.bool_)
    places = np.stack([of, shards.rank, shards.column_offset, shards.num_columns], axis=1).tolist()
    is_cold = (hot_rows > 0) & (shards.row_offset == hot_rows)
    with_cold = {tuple(places[shard]) for shard in np.flatnonzero(is_cold).tolist()}
    for shard in np.flatnonzero(is_hot).tolist():
        is_hot[shard] = tuple(places[shard]) in with_cold
    return is_hot


def _cover_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Yield where a cell is not on exactly one rank, or not on every rank if the table is replicated."""
    if placed.sharding_type.is_replicated:
        if not _is_one_copy_per_rank(table, placed.shards, problem.world_size):
            yield Issue(
                code="cover",
                pointer=f"/tables/{index}",
                message=(
                    f'table "{table.name}": {placed.sharding_type.label} needs exactly one full copy on every rank'
                ),
            )
        return
    overlap = overlapping_shards(placed.shards)
    if overlap is not None:
        yield Issue(
            code="overlap",
            pointer=f"/tables/{index}/shards/{overlap[1]}",
            message=f'table "{table.name}": shards {overlap[0]} and {overlap[1]} both hold some cells',
        )
    missing = table.num_embeddings * table.embedding_dim - placed.shards.num_cells
    if overlap is None and missing:
        yield Issue(
            code="gap",
            pointer=f"/tables/{index}",
            message=f'table "{table.name}": {missing} cells are on no rank',
        )


def _is_one_copy_per_rank(table: Table, shards: Shards, num_ranks: int) -> bool:
    is_whole = (shards.row_offset == 0) & (shards.num_rows == table.num_embeddings)
    is_whole &= (shards.column_offset == 0) & (shards.num_columns == table.embedding_dim)
    return bool(np.all(is_whole)) and np.array_equal(np.sort(shards.rank), np.arange(num_ranks))


def _model_issues(_: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Yield what the plan states of the model and is not so: a plan for another module shards nothing."""
    facts = (
        ("module_path", placed.module_path, (table.module_path,)),
        ("pooling", placed.pooling, (table.pooling,)),
        ("hash_table_mode", placed.hash_table_mode, (table.hash_table_mode,)),
        ("data_type", placed.data_type, table.constraints.data_types or (table.data_type.name,)),
    )
    for fact, stated, allowed in facts:
        if stated and stated not in allowed:
            has = " or ".join(allowed) or "none"
            yield Issue(
                code="model-mismatch",
                pointer=f"/tables/{index}/{fact}",
                message=f'table "{table.name}": the plan was made for {fact} "{stated}", the spec has "{has}"',
                hint="plan again for this model",
            )


def _allowed_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Yield what the constraints of the table do not allow."""
    constraints, pointer = table.constraints, f"/tables/{index}"
    name = f'table "{table.name}"'
    if constraints.sharding_types is not None and placed.sharding_type not in constraints.sharding_types:
        yield Issue(
            code="sharding-type", pointer=pointer, message=f"{name}: {placed.sharding_type.label} is not allowed"
        )
    if constraints.compute_kernels is not None and placed.compute_kernel not in constraints.compute_kernels:
        yield Issue(
            code="kernel", pointer=pointer, message=f"{name}: kernel {placed.compute_kernel.label} is not allowed"
        )
    share = placed.cache_load_factor
    has_cache = placed.compute_kernel.facts.is_cached
    if has_cache != (share is not None) or (share is not None and not 0 < share <= 1):
        rule = "needs a cache_load_factor above 0, at most 1" if has_cache else "has no cache"
        yield Issue(code="cache", pointer=pointer, message=f"{name}: kernel {placed.compute_kernel.label} {rule}")
    splits = {round(fraction * table.num_embeddings) for fraction in constraints.hot_row_fractions or ()}
    if placed.hot_rows and constraints.hot_row_fractions is not None and placed.hot_rows not in splits:
        message = f"{name}: a split at {placed.hot_rows} rows is none of the hot_row_fractions"
        yield Issue(code="hot-rows", pointer=pointer, message=message)
    if constraints.cache_load_factors is not None and share is not None and share not in constraints.cache_load_factors:
        yield Issue(code="cache", pointer=pointer, message=f"{name}: a cache_load_factor of {share} is not allowed")
    if constraints.ranks is not None and (others := _ranks_of(placed) - constraints.ranks):
        yield Issue(code="rank", pointer=pointer, message=f"{name}: rank {min(others)} is not allowed")
    if constraints.hosts is not None:
        others = {problem.cluster.host_of(rank) for rank in _ranks_of(placed)} - constraints.hosts
        if others:
            yield Issue(code="host", pointer=pointer, message=f"{name}: host {min(others)} is not allowed")
    narrowest = int(placed.shards.num_columns.min(initial=table.embedding_dim))
    if constraints.min_partition is not None and narrowest < min(constraints.min_partition, table.embedding_dim):
        yield Issue(
            code="min-partition",
            pointer=pointer,
            message=f"{name}: a shard is {narrowest} columns wide, at least {constraints.min_partition} are asked for",
        )


def _pin_issues(problem: Problem, table: Table, index: int, placed: TablePlacement) -> Iterator[Issue]:
    """Yield where a pinned table is elsewhere first; the rules of cover and of the runtime check its rows."""
    if table.constraints.pinned is None:
        return
    for pointer, message in _unpinned(placed, table.constraints.pinned, problem.cluster.ranks_per_group):
        hint = "plan again, or change the table's pinned placement"
        yield Issue(
            code="pinned", pointer=f"/tables/{index}{pointer}", message=f'table "{table.name}"{message}', hint=hint
        )
        return


def _unpinned(placed: TablePlacement, pinned: PinnedTable, ranks_per_group: int) -> Iterator[tuple[str, str]]:
    """Yield how a table is not as pinned: a pointer into the table, and words that follow its name."""
    expected = (pinned.sharding_type, pinned.compute_kernel)
    found = (placed.sharding_type, placed.compute_kernel)
    if found != expected:
        yield "", " is pinned to {} with kernel {}, not {} with {}".format(*(code.label for code in expected + found))
    if placed.cache_load_factor != pinned.cache_load_factor:
        yield "", f" is pinned with cache_load_factor {pinned.cache_load_factor}, not {placed.cache_load_factor}"
    if placed.in_scm != pinned.in_scm:
        yield "", " is pinned to scm" if pinned.in_scm else " is not pinned to scm"
    sites = {(piece.column_offset, piece.num_columns, piece.site) for piece in pinned.pieces}
    for position, shard in enumerate(placed.shards):
        site = placed.sharding_type.site(shard.rank, ranks_per_group)
        if (shard.column_offset, shard.num_columns, site) not in sites:
            columns = f"columns {shard.column_offset} to {shard.column_offset + shard.num_columns - 1}"
            yield f"/shards/{position}", f": {columns} are not pinned to rank {shard.rank}"


def _ranks_of(placed: TablePlacement) -> set[int]:
    return set(placed.shards.rank.tolist())


def _group_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    by_name = {placed.name: placed for placed in placement.tables}
    for group in problem.same_rank:
        names = [problem.tables[t].name for t in sorted(group)]
        if len(set().union(*(_ranks_of(by_name[name]) for name in names))) != 1:
            yield Issue(code="same-rank", pointer="/tables", message=f"{', '.join(names)} must share one rank")
    for group in problem.apart:
        names = [problem.tables[t].name for t in sorted(group)]
        counts = np.zeros(problem.world_size, dtype=np.int64)
        for name in names:
            counts[sorted(_ranks_of(by_name[name]))] += 1
        if counts.max(initial=0) > 1:
            rank = int(np.argmax(counts))
            yield Issue(
                code="apart", pointer="/tables", message=f"{', '.join(names)} must stay apart: rank {rank} has two"
            )


def _memory_issues(problem: Problem, placement: Placement) -> Iterator[Issue]:
    used, free = bytes_by_tier(problem, placement), capacity_bytes(problem)
    device = problem.cluster.device_tier
    if problem.stash is not None:  # what tables may take while no activations are there; the rest is followed below
        free[:, device] = sparse_capacity_bytes(problem)
    yield from stash_issues(problem, placement, used[:, device], free[:, device])
    for rank, tier in zip(*np.nonzero(used > free), strict=True):
        need, have = used[rank, tier], free[rank, tier]
        yield Issue(
            code="memory",
            pointer=f"/ranks/{rank}",
            message=(
                f"rank {rank} needs {format_bytes(need)} of {Tier(int(tier)).label},"
                f" {format_bytes(need - have)} more than the {format_bytes(have)} left for tables"
            ),
            hint="plan again: memory is a hard limit",
        )
