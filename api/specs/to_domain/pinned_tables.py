"""Tables that the user places exactly: shards of a plan become pieces, or it is said why they cannot.

A pin is legal where the scheme's own cut of the same columns on the same ranks or hosts gives
the same shards, where the runtime executes it, and where nothing else in the spec forbids it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from api.schemas.shard import PinnedShardSpec
from api.schemas.spec import SpecDocument
from api.schemas.table import PinnedSpec
from api.specs.input.json import quoted
from cost_models.text.number_text import counted
from cost_models.vocabulary import Holders, Kernel, Scheme, Tier
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, Table, TableConstraints
from planner.errors import Issue
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.blocks import COLUMN_STEP
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Geometry, Piece, geometry
from planner.solver.problem import Scope

_OTHERWISE = "pin the table otherwise, or leave pinned out"
#: A shard and its place in the user's list.
Numbered = tuple[int, PinnedShardSpec]


class _PinIssue(Exception):
    """What is wrong with one pin: where below it, what, and the way out."""

    def __init__(self, where: str, message: str, hint: str = _OTHERWISE) -> None:
        super().__init__(message)
        self.where, self.hint = where, hint


def pin_tables(problem: Problem, spec: SpecDocument, base: str) -> tuple[Problem, tuple[Issue, ...]]:
    """Return the problem with the tables that the spec pins, and what is wrong with its pins.

    The first fault of each table is told; a table with a fault is left unpinned. ``base``
    stands before every pointer.
    """
    tables, issues = list(problem.tables), []
    for index, (given, table) in enumerate(zip(spec.model.tables, problem.tables, strict=True)):
        if given.constraints.pinned is None:
            continue
        try:
            pinned = _pinned(problem, table, given.constraints.pinned)
            _check_other_constraints(problem, table, given.constraints.pinned)
        except _PinIssue as pin_issue:
            where = f"{base}/model/tables/{index}/constraints/pinned{pin_issue.where}"
            message = f"table {quoted(table.name)}: {pin_issue}"
            issues.append(Issue(code="invalid-value", pointer=where, message=message, hint=pin_issue.hint))
        else:
            tables[index] = replace(table, constraints=replace(table.constraints, pinned=pinned))
    pinned_problem = replace(problem, tables=tuple(tables))
    return pinned_problem, (*issues, *_joint_issues(pinned_problem, base))


def _pinned(problem: Problem, table: Table, pin: PinnedSpec) -> PinnedTable:
    """Return the pieces whose shards are those of the pin."""
    cluster, runtime = problem.cluster, RUNTIMES[problem.runtime]
    scheme, kernel = Scheme.from_label(pin.sharding_type), Kernel.from_label(pin.compute_kernel)
    _check_executed(runtime, table, scheme, kernel)
    in_scm = _check_storage(problem, kernel, pin)
    cut = geometry(scheme, table, cluster)
    if cut is None or cut.max_pieces < cut.min_pieces:
        hosts = f"{cluster.num_hosts} x {cluster.ranks_per_host} ranks"
        raise _PinIssue("/sharding_type", f"{scheme.label} does not fit {table.num_embeddings} rows on {hosts}")
    _check_sites(cluster, pin, Tier.SCM if in_scm else kernel.tier(cluster.device_tier))
    pieces = _pieces(pin, cut)
    if not cut.min_pieces <= len(pieces) <= cut.max_pieces:
        least = "" if cut.min_pieces == cut.max_pieces else f"{cut.min_pieces} to "
        most = counted(cut.max_pieces, "column piece")
        raise _PinIssue("/shards", f"{scheme.label} has {least}{most} here, and not {len(pieces)}")
    _check_columns(table, runtime, pieces)
    if cut.same_host:
        _check_same_host(cluster, scheme, pieces)
    return PinnedTable(
        sharding_type=scheme,
        compute_kernel=kernel,
        cache_load_factor=pin.cache_load_factor,
        in_scm=in_scm,
        pieces=tuple(_piece(table, cluster, scheme, cut, shards) for shards in pieces),
    )


def _check_executed(runtime: Runtime, table: Table, scheme: Scheme, kernel: Kernel) -> None:
    scheme_issue = runtime.scheme_issue(table, scheme)
    if scheme_issue is not None:
        raise _PinIssue("/sharding_type", f"the runtime {runtime.name} does not run {scheme.label}: {scheme_issue}")
    asked = replace(table, constraints=TableConstraints(compute_kernels=frozenset(Kernel)))
    kernels = runtime.kernels(asked, scheme, frozenset(Kernel))
    if kernel not in kernels:
        names = ", ".join(one.label for one in kernels)
        raise _PinIssue("/compute_kernel", f"{scheme.label} runs with {names}, not with {kernel.label}", f"use {names}")


def _check_storage(problem: Problem, kernel: Kernel, pin: PinnedSpec) -> bool:
    """Return whether the rows lie in storage-class memory: where a shard says so, or the cluster has no other."""
    cluster, cache_load_factor = problem.cluster, pin.cache_load_factor
    usual, *others = row_tiers(kernel, cluster, RUNTIMES[problem.runtime])
    has_usual = usual is cluster.device_tier or cluster.has_tier(usual)
    if not has_usual and not others:
        raise _PinIssue("/compute_kernel", f"{kernel.label} keeps rows in {usual.label}, of which the cluster has none")
    if (kernel.facts.is_cached) != (cache_load_factor is not None):
        if cache_load_factor is None:
            raise _PinIssue(
                "/cache_load_factor", f"{kernel.label} needs the share of the rows that it caches", "say it"
            )
        raise _PinIssue("/cache_load_factor", f"{kernel.label} has no cache", "leave cache_load_factor out")
    return bool(others) and (not has_usual or any(shard.tier == Tier.SCM.label for shard in pin.shards))


def _check_sites(cluster: Cluster, pin: PinnedSpec, tier: Tier) -> None:
    for number, shard in enumerate(pin.shards):
        if shard.rank >= cluster.world_size:
            ranks = f"ranks 0 to {cluster.world_size - 1}"
            message = f"rank {shard.rank} is out of range: the cluster has {ranks}"
            raise _PinIssue(f"/shards/{number}/rank", message, f"use {ranks}")
        if shard.tier not in (None, tier.label):
            message = f"kernel {pin.compute_kernel} keeps rows in {tier.label}"
            raise _PinIssue(f"/shards/{number}/tier", message, f"use {tier.label}")


def _pieces(pin: PinnedSpec, geometry: Geometry) -> list[list[Numbered]]:
    """Return the shards of each column piece, from left to right and there by rank."""
    shards = sorted(enumerate(pin.shards), key=lambda item: (item[1].column_offset, item[1].rank))
    if geometry.scope is Scope.RANK:
        return [[shard] for shard in shards]
    return [list(group) for _, group in groupby(shards, key=lambda item: item[1].column_offset)]


def _check_columns(table: Table, runtime: Runtime, pieces: Sequence[Sequence[Numbered]]) -> None:
    """Pieces follow each other over all columns, and the runtime's kernels run them."""
    cover = f"cover the {table.embedding_dim} columns from left to right, without gaps and overlaps"
    end = 0
    for piece in pieces:
        first, width = piece[0][1].column_offset, piece[0][1].num_columns
        number = piece[0][0]
        if first != end:
            message = f"a piece starts at column {first}, and those left of it end at column {end}"
            raise _PinIssue(f"/shards/{number}/column_offset", message, cover)
        if width % COLUMN_STEP or not 0 < width <= runtime.max_columns:
            message = f"a piece of {width} columns; a multiple of {COLUMN_STEP} up to {runtime.max_columns} is right"
            raise _PinIssue(f"/shards/{number}/num_columns", message, "pin pieces of such a width")
        end += width
    if end != table.embedding_dim:
        raise _PinIssue("/shards", f"the pieces end at column {end} of {table.embedding_dim}", cover)


def _check_same_host(cluster: Cluster, scheme: Scheme, pieces: Sequence[Sequence[Numbered]]) -> None:
    host = cluster.host_of(pieces[0][0][1].rank)
    for ((number, shard),) in pieces:
        if cluster.host_of(shard.rank) != host:
            message = f"{scheme.label} keeps a table on one host, and rank {shard.rank} is not on host {host}"
            raise _PinIssue(f"/shards/{number}/rank", message, "pin its pieces to ranks of one host, or as column_wise")


def _piece(
    table: Table, cluster: Cluster, scheme: Scheme, geometry: Geometry, shards: Sequence[Numbered]
) -> PinnedPiece:
    """Return the piece, once the scheme's own shards of it are those of the pin."""
    columns = shards[0][1]
    num_shards, where, site = {
        Scope.RANK: (1, "rank", columns.rank),
        Scope.HOST: (cluster.ranks_per_host, "every rank of a host", cluster.host_of(columns.rank)),
        Scope.WORLD: (cluster.world_size, "every rank", 0),
    }[geometry.scope]
    if len(shards) != num_shards:
        message = f"{scheme.label} has one shard on {where}: {num_shards} at column {columns.column_offset}"
        raise _PinIssue("/shards", f"{message}, and not {len(shards)}")
    piece = Piece(
        scope=geometry.scope,
        column_offset=columns.column_offset,
        num_columns=columns.num_columns,
        replicated=geometry.replicated,
    )
    expected = expand(table, piece, site, cluster, cluster.device_tier)
    for (number, shard), right in zip(shards, expected, strict=True):
        for name in ("rank", "num_columns", "row_offset", "num_rows"):
            found, wanted = getattr(shard, name), getattr(right, name)
            if found != wanted:
                message = f"{scheme.label} has {name} {wanted} on rank {right.rank} here, and not {found}"
                raise _PinIssue(f"/shards/{number}/{name}", message, "take the shards of a plan, or leave pinned out")
    return PinnedPiece(column_offset=columns.column_offset, num_columns=columns.num_columns, site=site)


def _check_other_constraints(problem: Problem, table: Table, pin: PinnedSpec) -> None:
    """Other constraints of the same table must allow what it is pinned to."""
    wanted, cluster = table.constraints, problem.cluster
    if wanted.sharding_types is not None and Scheme.from_label(pin.sharding_type) not in wanted.sharding_types:
        raise _PinIssue("/sharding_type", f"sharding_types do not allow {pin.sharding_type}", _one_of("sharding_types"))
    if wanted.compute_kernels is not None and Kernel.from_label(pin.compute_kernel) not in wanted.compute_kernels:
        raise _PinIssue(
            "/compute_kernel", f"compute_kernels do not allow {pin.compute_kernel}", _one_of("compute_kernels")
        )
    for number, shard in enumerate(pin.shards):
        host = cluster.host_of(shard.rank)
        if wanted.ranks is not None and shard.rank not in wanted.ranks:
            raise _PinIssue(f"/shards/{number}/rank", f"ranks do not allow rank {shard.rank}", _one_of("ranks"))
        if wanted.hosts is not None and host not in wanted.hosts:
            message = f"hosts do not allow rank {shard.rank}, which is on host {host}"
            raise _PinIssue(f"/shards/{number}/rank", message, _one_of("hosts"))
        if wanted.min_partition is not None and shard.num_columns < wanted.min_partition:
            message = f"min_partition asks for {wanted.min_partition} columns, and this piece has {shard.num_columns}"
            raise _PinIssue(f"/shards/{number}/num_columns", message, _one_of("min_partition"))


def _one_of(name: str) -> str:
    return f"leave {name} or pinned out, or make them agree"


def _joint_issues(problem: Problem, base: str) -> Iterator[Issue]:
    """Yield pins that contradict each other, or a constraint on several tables."""
    yield from _together_issues(problem, base)
    yield from _apart_issues(problem, base)
    yield from _module_issues(problem, base)


def _together_issues(problem: Problem, base: str) -> Iterator[Issue]:
    for number, group in enumerate(problem.same_rank):
        pins = {index: pinned for index in sorted(group) if (pinned := problem.tables[index].constraints.pinned)}
        cut = [index for index, pinned in pins.items() if not pinned.sharding_type.is_whole]
        if cut:
            message = f"table {quoted(problem.tables[cut[0]].name)} is pinned to more than the one rank of its group"
        elif len({pinned.pieces[0].site for pinned in pins.values()}) > 1:
            message = "tables of this group are pinned to different ranks"
        else:
            continue
        yield _joint(f"{base}/constraints/same_rank/{number}", message, "pin the tables of a group to one rank")


def _apart_issues(problem: Problem, base: str) -> Iterator[Issue]:
    pins = {index: pinned for index, table in enumerate(problem.tables) if (pinned := table.constraints.pinned)}
    ranks_of = {index: _ranks(problem.cluster, pinned) for index, pinned in pins.items()}
    for number, group in enumerate(problem.apart):
        members = sorted(group & pins.keys())
        taken: set[int] = set()
        for index in members:
            name, mine = quoted(problem.tables[index].name), ranks_of[index]
            if pins[index].sharding_type.facts.holders is Holders.WORLD:
                message = f"table {name} is pinned to all ranks"
            elif not taken.isdisjoint(mine):
                message = f"table {name} is pinned to rank {min(taken & mine)}, like another one of the group"
            else:
                taken |= mine
                continue
            hint = "pin tables of a group to ranks of their own"
            yield _joint(f"{base}/constraints/apart/{number}", message, hint)
            break


def _ranks(cluster: Cluster, pinned: PinnedTable) -> frozenset[int]:
    """Return the ranks that hold a part of a pinned table."""
    if pinned.sharding_type.facts.holders is Holders.WORLD:
        return frozenset(range(cluster.world_size))
    if pinned.sharding_type.facts.holders is Holders.RANK:
        return frozenset(piece.site for piece in pinned.pieces)
    local = cluster.ranks_per_host
    return frozenset(rank for piece in pinned.pieces for rank in range(piece.site * local, (piece.site + 1) * local))


def _module_issues(problem: Problem, base: str) -> Iterator[Issue]:
    """MEAN pools that are right only in a module cut by rows throughout, and a pin that is not."""
    runtime = RUNTIMES[problem.runtime]
    other: dict[str, Table] = {}
    for table in problem.tables:
        pinned = table.constraints.pinned
        if pinned is not None and pinned.sharding_type not in runtime.row_schemes:
            other.setdefault(table.module_path, table)
    for index, table in enumerate(problem.tables):
        pinned = table.constraints.pinned
        if pinned is None or table.module_path not in other:
            continue
        if runtime.needs_row_wise_module(table, pinned.sharding_type):
            message = (
                f"MEAN-pooled table {quoted(table.name)} is pinned to {pinned.sharding_type.label}, and table "
                f"{quoted(other[table.module_path].name)} of its module is pinned to a scheme that does not cut rows"
            )
            where = f"{base}/model/tables/{index}/constraints/pinned/sharding_type"
            yield _joint(where, message, "cut all tables of the module by rows, or this one otherwise")


def _joint(where: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=hint)
