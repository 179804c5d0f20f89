"""Tables that the user places exactly: shards of a plan become pieces, or it is said why they cannot.

A pin is legal where the scheme's own cut of the same columns on the same ranks, hosts or pods gives
the same shards, where the runtime executes it, and where nothing else in the spec forbids it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from api.schemas.shard import PinnedShardSpec
from api.schemas.table import PinnedSpec
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from api.specs.to_domain.pins_together import check_pins_together
from cost_models.text.number_text import counted
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import PinnedPiece, PinnedTable, Table, TableConstraints
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


def pin_tables(
    state: SpecState,
    tables: Mapping[str, Table],
    pins: Mapping[str, PinnedSpec],
    cluster: Cluster,
    issues: IssueCollector,
) -> dict[str, Table]:
    """Return the tables, those at the pointers of ``pins`` with their pins; without those whose pins have an issue.

    The first issue of each pin is reported.
    """
    runtime = RUNTIMES[state.spec.runtime]
    pinned_tables = dict(tables)
    for where, pin in pins.items():
        table = tables.get(where)
        if table is None:
            continue
        try:
            pinned = _pinned(table, pin, cluster, runtime)
            _check_other_constraints(table, pin, cluster)
        except _PinIssue as error:
            pointer = f"{where}/constraints/pinned{error.where}"
            issues.report(pointer, f"table {quoted(table.name)}: {error}", error.hint)
        else:
            pinned_tables[where] = replace(table, constraints=replace(table.constraints, pinned=pinned))
    check_pins_together(state, pinned_tables, cluster, issues)
    return {where: table for where, table in pinned_tables.items() if issues.is_sound(where)}


def _pinned(table: Table, pin: PinnedSpec, cluster: Cluster, runtime: Runtime) -> PinnedTable:
    """Return the pieces whose shards are those of the pin."""
    scheme, kernel = Scheme.from_label(pin.sharding_type), Kernel.from_label(pin.compute_kernel)
    _check_executed(runtime, table, scheme, kernel, cluster)
    in_scm = _check_storage(kernel, pin, cluster, runtime)
    cut = geometry(scheme, table, cluster)
    if cut is None or cut.max_pieces < cut.min_pieces:
        hosts = f"{cluster.num_groups} x {cluster.ranks_per_group} ranks"
        raise _PinIssue("/sharding_type", f"{scheme.label} does not fit {table.num_embeddings} rows on {hosts}")
    _check_sites(cluster, pin, Tier.SCM if in_scm else kernel.tier(cluster.device_tier))
    pieces = _pieces(pin, cut)
    if not cut.min_pieces <= len(pieces) <= cut.max_pieces:
        least = "" if cut.min_pieces == cut.max_pieces else f"{cut.min_pieces} to "
        most = counted(cut.max_pieces, "column piece")
        raise _PinIssue("/shards", f"{scheme.label} has {least}{most} here, and not {len(pieces)}")
    _check_columns(table, runtime, pieces)
    if cut.same_host:
        _check_same_group(cluster, scheme, pieces)
    return PinnedTable(
        sharding_type=scheme,
        compute_kernel=kernel,
        cache_load_factor=pin.cache_load_factor,
        in_scm=in_scm,
        pieces=tuple(_piece(table, cluster, scheme, cut, shards) for shards in pieces),
    )


def _check_executed(runtime: Runtime, table: Table, scheme: Scheme, kernel: Kernel, cluster: Cluster) -> None:
    scheme_issue = runtime.scheme_issue_on(cluster, table, scheme)
    if scheme_issue is not None:
        raise _PinIssue("/sharding_type", f"the runtime {runtime.name} does not run {scheme.label}: {scheme_issue}")
    any_kernel = replace(table, constraints=TableConstraints(compute_kernels=frozenset(Kernel)))
    kernels = runtime.kernels(any_kernel, scheme, frozenset(Kernel))
    if kernel not in kernels:
        names = ", ".join(one.label for one in kernels)
        raise _PinIssue("/compute_kernel", f"{scheme.label} runs with {names}, not with {kernel.label}", f"use {names}")
    on_hosts, optimizer = runtime.host_optimizers, table.optimizer.name
    if cluster.device_tier is Tier.DDR and kernel is not Kernel.DENSE and optimizer not in (on_hosts or {optimizer}):
        names = ", ".join(sorted(on_hosts or ()))
        message = f"{kernel.label} does not train with {optimizer} on hosts without accelerators"
        raise _PinIssue("/compute_kernel", message, f"use one of the optimizers {names}, or the kernel dense")


def _check_storage(kernel: Kernel, pin: PinnedSpec, cluster: Cluster, runtime: Runtime) -> bool:
    """Return whether the rows lie in storage-class memory: where a shard says so, or the cluster has no other."""
    cache_load_factor = pin.cache_load_factor
    usual, *others = row_tiers(kernel, cluster, runtime)
    has_usual = usual is cluster.device_tier or cluster.has_tier(usual)
    if not has_usual and not others:
        raise _PinIssue("/compute_kernel", f"{kernel.label} keeps rows in {usual.label}, of which the cluster has none")
    if (kernel.facts.is_cached) != (cache_load_factor is not None):
        if cache_load_factor is None:
            raise _PinIssue(
                "/cache_load_factor", f"{kernel.label} needs the share of the rows that it caches", "say it"
            )
        raise _PinIssue("/cache_load_factor", f"{kernel.label} has no cache", "leave cache_load_factor out")
    most = runtime.max_key_value_share
    if kernel is Kernel.KEY_VALUE and cache_load_factor is not None and cache_load_factor > most:
        message = f"the runtime {runtime.name} caches at most {most:g} of the rows of {kernel.label} tables"
        raise _PinIssue("/cache_load_factor", message, f"use {most:g} or less")
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


def _check_same_group(cluster: Cluster, scheme: Scheme, pieces: Sequence[Sequence[Numbered]]) -> None:
    group, noun = cluster.group_of(pieces[0][0][1].rank), cluster.group_noun
    for ((number, shard),) in pieces:
        if cluster.group_of(shard.rank) != group:
            message = f"{scheme.label} keeps a table on one {noun}, and rank {shard.rank} is not on {noun} {group}"
            raise _PinIssue(
                f"/shards/{number}/rank", message, f"pin its pieces to ranks of one {noun}, or as column_wise"
            )


def _piece(
    table: Table, cluster: Cluster, scheme: Scheme, geometry: Geometry, shards: Sequence[Numbered]
) -> PinnedPiece:
    """Return the piece, once the scheme's own shards of it are those of the pin."""
    columns = shards[0][1]
    num_shards, where, site = {
        Scope.RANK: (1, "rank", columns.rank),
        Scope.HOST: (
            cluster.ranks_per_group,
            f"every rank of a {cluster.group_noun}",
            cluster.group_of(columns.rank),
        ),
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
            found, right_value = getattr(shard, name), getattr(right, name)
            if found != right_value:
                message = f"{scheme.label} has {name} {right_value} on rank {right.rank} here, and not {found}"
                raise _PinIssue(f"/shards/{number}/{name}", message, "take the shards of a plan, or leave pinned out")
    return PinnedPiece(column_offset=columns.column_offset, num_columns=columns.num_columns, site=site)


def _check_other_constraints(table: Table, pin: PinnedSpec, cluster: Cluster) -> None:
    """Other constraints of the same table must allow what it is pinned to."""
    allowed = table.constraints
    if allowed.sharding_types is not None and Scheme.from_label(pin.sharding_type) not in allowed.sharding_types:
        raise _not_allowed("/sharding_type", "sharding_types", pin.sharding_type)
    if allowed.compute_kernels is not None and Kernel.from_label(pin.compute_kernel) not in allowed.compute_kernels:
        raise _not_allowed("/compute_kernel", "compute_kernels", pin.compute_kernel)
    for number, shard in enumerate(pin.shards):
        host = cluster.host_of(shard.rank)
        if allowed.ranks is not None and shard.rank not in allowed.ranks:
            raise _not_allowed(f"/shards/{number}/rank", "ranks", f"rank {shard.rank}")
        if allowed.hosts is not None and host not in allowed.hosts:
            raise _not_allowed(f"/shards/{number}/rank", "hosts", f"rank {shard.rank}, which is on host {host}")
        if allowed.min_partition is not None and shard.num_columns < allowed.min_partition:
            message = f"min_partition asks for {allowed.min_partition} columns, and this piece has {shard.num_columns}"
            raise _PinIssue(f"/shards/{number}/num_columns", message, _one_of("min_partition"))


def _not_allowed(where: str, constraint: str, what: str) -> _PinIssue:
    return _PinIssue(where, f"{constraint} do not allow {what}", _one_of(constraint))


def _one_of(name: str) -> str:
    return f"leave {name} or pinned out, or make them agree"
