"""From options to the solver problem: every unit priced once, and options that cannot help dropped.

The only caller of cost models on the way to a plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Codes, Floats, Ints, arrays_of
from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import DEVICE_KERNELS
from planner.access.table_columns import data_type_code, table_columns
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.options.dominance import dominated_families
from planner.options.enumerate import Cuts, Families, Family, list_cuts, table_rank_allowed
from planner.pricing.memory.ledger import EXACT, capacity_bytes, shard_ledger
from planner.pricing.memory.tier_traffic import shard_traffic
from planner.pricing.price_work import price_work
from planner.pricing.shard_work import build_work
from planner.pricing.step.index_dedup import free_windows
from planner.pricing.step.phases import counted_phases, in_phases_of
from planner.pricing.step.starts import starts_of_families
from planner.solver.bounds.crowding import crowding_families
from planner.solver.problem import Objective, Scope, SolverProblem, no_ints

_SHAPES = 65_536  # that are priced together: columns of their work stay in the processor's cache


def price(problem: Problem, families: Families, cost_model: CostModel) -> SolverProblem:
    """Price every shape of every family, each once, however many pieces have it."""
    cuts, cluster = list_cuts(families), problem.cluster
    listed = families.families
    family_table = np.array([family.table for family in listed], dtype=np.int64)
    scope = np.array([family.geometry.scope for family in listed], dtype=np.int8)
    seconds, per_rank, last, busy_seconds = _shape_costs(problem, listed, cuts, cost_model)
    if cluster.num_groups == 1:
        scope = np.where(scope == Scope.HOST, np.int8(Scope.WORLD), scope)  # the same ranks
    touched = np.array([1, cluster.ranks_per_group, cluster.world_size])[scope[cuts.shape_family]][:, None]
    geometries = [family.geometry for family in listed]
    pinned_shape, pinned_site = _pinned(problem, families, cuts)
    fixed_table, fixed_columns = _fixed_cuts(listed)
    kinds, starts = starts_of_families(problem, [(family.table, family.scheme) for family in listed], cost_model)
    return SolverProblem(
        objective=Objective.STEP_TIME if problem.objective == "step_time" else Objective.MAX_RANK_TIME,
        table_columns=np.array([t.embedding_dim for t in problem.tables], dtype=np.int64),
        family_table=family_table,
        family_scope=scope,
        family_same_host=np.array([g.same_host and cluster.num_groups > 1 for g in geometries], dtype=np.bool_),
        family_min_pieces=np.array([g.min_pieces for g in geometries], dtype=np.int64),
        family_max_pieces=np.array([family.widths.max_pieces for family in listed], dtype=np.int64),
        shape_family=cuts.shape_family,
        shape_columns=cuts.shape_columns,
        shape_seconds=seconds,
        shape_bytes=per_rank,
        shape_total_bytes=per_rank * (touched - 1) + last,
        option_family=cuts.option_family,
        unit_option=cuts.unit_option,
        unit_shape=cuts.unit_shape,
        capacity_bytes=capacity_bytes(problem),
        host_of_rank=np.arange(cluster.world_size, dtype=np.int64) // cluster.ranks_per_group,
        rank_slowdown=in_phases_of(problem, cluster.phase_slowdown(), 1.0),
        table_rank_allowed=table_rank_allowed(problem),
        phase_weight=counted_phases(problem, cost_model).astype(np.float64),
        phase_window_seconds=free_windows(problem),
        same_rank=tuple(np.array(sorted(group), dtype=np.int64) for group in problem.same_rank),
        apart=tuple(np.array(sorted(group), dtype=np.int64) for group in problem.apart),
        pinned_shape=pinned_shape,
        pinned_site=pinned_site,
        fixed_cut_table=fixed_table,
        fixed_cut_columns=fixed_columns,
        family_source=np.arange(len(listed), dtype=np.int64),
        shape_busy_seconds=busy_seconds[:, busy_seconds.any(axis=0)] if busy_seconds.any() else None,
        family_kind=kinds,
        kind_start_seconds=starts,
        charged_kinds=np.zeros(len(starts), dtype=np.bool_),
    )


def _shape_costs(
    problem: Problem, listed: Sequence[Family], cuts: Cuts, cost_model: CostModel
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the seconds of every shape by phase, its bytes by tier, and for how long it keeps each tier busy.

    The bytes are those of a full and of the last row block, which is shorter than the others; every rank is charged a
    full one.
    """
    columns = FamilyColumns.of(listed)
    reads_tiers = not DEVICE_KERNELS.issuperset(columns.kernel.tolist())
    parts = []
    for start in range(0, len(cuts.shape_family), _SHAPES):
        some = slice(start, start + _SHAPES)
        table = columns.table[cuts.shape_family[some]]
        work = columns.work(problem, cuts.shape_family[some], cuts.shape_columns[some])
        seconds = price_work(
            problem, work, table=table, cost_model=cost_model, hardware=problem.cluster.hardware
        ).seconds
        last_rows = work.table_rows - work.shard_rows * (work.row_shards - 1)
        per_rank, last = (
            shard_ledger(problem, work, table=table, stored_rows=rows, ledger=EXACT).by_tier()
            for rows in (work.shard_rows, last_rows)
        )
        busy = np.zeros_like(per_rank)
        if reads_tiers:
            busy = shard_traffic(work, problem.cluster.hardware).busy_seconds
        parts.append((seconds, per_rank, last, busy))
    seconds, per_rank, last, busy = (np.concatenate(column) for column in zip(*parts, strict=True))
    return seconds, per_rank, last, busy


def shape_work(problem: Problem, families: Families) -> ShardWork:
    """Return the work of one piece of every shape of every family, in the order of the solver problem."""
    cuts = list_cuts(families)
    return FamilyColumns.of(families.families).work(problem, cuts.shape_family, cuts.shape_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyColumns:
    """What every piece of a family shares, one entry per family, shape (F,)."""

    table: Ints
    scheme: Codes
    kernel: Codes
    cache_load_factor: Floats  # NaN without a cache
    data_type: Codes
    hot_row_share: Floats
    in_scm: Bools

    @classmethod
    def of(cls, listed: Sequence[Family]) -> "FamilyColumns":
        """Return the columns of some families."""
        stored, code = [family.storage for family in listed], {name: data_type_code(name) for name in DATA_TYPES}
        shares = (storage.cache_load_factor for storage in stored)
        return cls(
            table=np.array([family.table for family in listed], dtype=np.int64),
            scheme=np.array([family.scheme for family in listed], dtype=np.int8),
            kernel=np.array([storage.kernel for storage in stored], dtype=np.int8),
            cache_load_factor=np.array([np.nan if share is None else share for share in shares]),
            data_type=np.array([code[storage.data_type.name] for storage in stored], dtype=np.int8),
            hot_row_share=np.array([storage.hot_row_share for storage in stored]),
            in_scm=np.array([storage.in_scm for storage in stored], dtype=np.bool_),
        )

    def work(self, problem: Problem, family: Ints | slice, shard_columns: Ints) -> ShardWork:
        """Return the work of pieces, each given by its family and its width."""
        columns = {name: column[family] for name, column in arrays_of(self)}
        return build_work(problem, table_columns(problem), shard_columns=shard_columns, **columns)


def _pinned(problem: Problem, families: Families, cuts: Cuts) -> tuple[Ints, Ints]:
    """Return shape and site of every piece that the user fixed, in the order of tables and columns."""
    shapes, sites = [no_ints()], [no_ints()]
    for family, listed in enumerate(families.families):
        pinned = problem.tables[listed.table].constraints.pinned
        if pinned is not None:
            option = np.searchsorted(cuts.option_family, family)  # its only one
            shapes.append(cuts.unit_shape[cuts.unit_option == option])
            sites.append(np.array([piece.site for piece in pinned.pieces], dtype=np.int64))
    return np.concatenate(shapes), np.concatenate(sites)


def _fixed_cuts(listed: Sequence[Family]) -> tuple[Ints, Ints]:
    """Return table and columns of every piece of the tables that have one legal cut; their families all have it."""
    cut_of = {family.table: family.widths for family in listed if family.widths.is_fixed}
    columns = [widths.columns[widths.cuts[0]] for widths in cut_of.values()]
    tables = np.repeat(np.array([*cut_of], dtype=np.int64), [len(one) for one in columns])
    return tables, np.concatenate([no_ints(), *columns])


def restrict(priced: SolverProblem, keep: Bools) -> SolverProblem:
    """Return the same problem with some of its families, shape (F,), indices renumbered."""
    return _renumbered(priced, keep, np.ones(priced.num_shapes, dtype=np.bool_))


def _renumbered(priced: SolverProblem, keep_family: Bools, keep_shape: Bools) -> SolverProblem:
    """Drop families and shapes, and with them the options that need them."""
    if np.all(keep_family) and np.all(keep_shape):
        return priced
    keep_shape = keep_shape & keep_family[priced.shape_family]
    keep_option = _whole_options(priced, keep_shape)
    keep_unit = keep_option[priced.unit_option]
    new_family, new_shape, new_option = (np.cumsum(keep) - 1 for keep in (keep_family, keep_shape, keep_option))
    if not np.all(keep_shape[priced.pinned_shape]):
        raise ValueError("Expected to keep the shapes of pinned tables.")
    shape, option, unit = (np.flatnonzero(keep) for keep in (keep_shape, keep_option, keep_unit))
    return replace(
        priced,
        family_table=priced.family_table[keep_family],
        family_scope=priced.family_scope[keep_family],
        family_same_host=priced.family_same_host[keep_family],
        family_min_pieces=priced.family_min_pieces[keep_family],
        family_max_pieces=priced.family_max_pieces[keep_family],
        family_source=priced.family_source[keep_family],
        family_kind=priced.family_kind[keep_family] if priced.num_kinds else priced.family_kind,
        shape_family=new_family[priced.shape_family[shape]],
        shape_columns=priced.shape_columns[shape],
        shape_seconds=priced.shape_seconds[shape],
        shape_bytes=priced.shape_bytes[shape],
        shape_total_bytes=priced.shape_total_bytes[shape],
        shape_busy_seconds=None if priced.shape_busy_seconds is None else priced.shape_busy_seconds[shape],
        option_family=new_family[priced.option_family[option]],
        unit_option=new_option[priced.unit_option[unit]],
        unit_shape=new_shape[priced.unit_shape[unit]],
        pinned_shape=new_shape[priced.pinned_shape],
        move=None if priced.move is None else priced.move.of_families(keep_family),
    )


def _whole_options(priced: SolverProblem, keep_shape: Bools) -> Bools:
    """Mark the options all of whose shapes are kept, shape (O,)."""
    whole = np.ones(priced.num_options, dtype=np.bool_)
    whole[priced.unit_option[~keep_shape[priced.unit_shape]]] = False
    return whole


def prune(priced: SolverProblem) -> SolverProblem:
    """Drop what no plan can use and what no plan needs.

    A dominated family is replaced piece by piece by another one at no cost, so that no optimum is lost.
    """
    usable = drop_unusable(priced)
    return restrict(usable, ~dominated_families(usable))


def drop_unusable(priced: SolverProblem) -> SolverProblem:
    """Drop what no plan can use.

    A shape that exceeds every site is in no plan. A family of which no listed cut is left
    is dropped too: the narrowest cut is always listed, and a plan with wider pieces of
    the same table would need a piece at least as wide. So is a family that leaves the other
    tables too little memory.

    Pinned pieces stay whatever they take: if they exceed their site, it is for a search to say that there is no plan.
    """
    fits = np.all(priced.shape_bytes <= roomiest_site(priced), axis=1)
    fits[priced.pinned_shape] = True
    has_option = np.zeros(priced.num_families, dtype=np.bool_)
    has_option[priced.option_family[_whole_options(priced, fits)]] = True
    fitting = _renumbered(priced, has_option, fits)
    return restrict(fitting, ~crowding_families(fitting))


def roomiest_site(priced: SolverProblem) -> Floats:
    """Return what the roomiest site of each shape has per rank, (S, M); negative where it may use none.

    A rank has its own capacity; a host (or pod), or the world, that of its smallest rank.
    """
    by_host = (priced.num_tables, priced.num_hosts, -1)
    ranks_allowed = priced.table_rank_allowed
    hosts_allowed = np.asarray(ranks_allowed.reshape(by_host).all(axis=2))
    room = np.empty((priced.num_tables, len(Scope), priced.num_tiers))
    for tier in range(priced.num_tiers):
        capacity = priced.capacity_bytes[:, tier]
        of_host = capacity.reshape(priced.num_hosts, -1).min(axis=1)
        room[:, Scope.RANK, tier] = _roomiest(ranks_allowed, capacity)
        room[:, Scope.HOST, tier] = _roomiest(hosts_allowed, of_host)
        room[:, Scope.WORLD, tier] = np.where(ranks_allowed.all(axis=1), capacity.min(), -1.0)
    result: Floats = room[priced.shape_table, priced.shape_scope]
    return result


def _roomiest(allowed: Bools, capacity: Floats) -> Floats:
    """Return the largest capacity of the sites that each table may use, (T,); most tables may use all."""
    room = np.full(len(allowed), capacity.max())
    some = np.flatnonzero(~allowed.all(axis=1))
    room[some] = np.where(allowed[some], capacity, -1.0).max(axis=1)
    return room
