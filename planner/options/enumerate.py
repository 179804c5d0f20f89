"""Every legal way to shard every table: families of pieces, with the user's constraints applied."""

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cost_models.arrays import Bools, Ints
from cost_models.vocabulary import CACHED_KERNELS, DEVICE_KERNELS, Kernel, Scheme, Tier
from planner.access.hot_rows import hot_row_shares
from planner.access.table_columns import table_columns
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import PinnedTable, Table
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.blocks import COLUMN_STEP
from planner.options.schemes.geometry import PREFERRED_ORDER, Geometry, geometry, least_piece_columns
from planner.options.schemes.widths import Widths, equal_cuts, piece_widths, whole_width
from planner.solver.problem import Scope
from planner.solver.segments import ends, side_by_side

#: What decides the storage of rows: kernels, data types, cached shares and hot shares.
_StorageKey = tuple[tuple[Kernel, ...], tuple[str, ...], tuple[float, ...], tuple[float, ...]]
#: A scheme that a table cannot have, and why, in words.
SchemeIssue = tuple[Scheme, str]


#: Cached shares of the rows that are listed if the user names none: about three per decade, as miss curves bend.
CACHE_LOAD_FACTORS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way to shard one table: what all its cuts have in common."""

    table: int
    scheme: Scheme
    storage: Storage
    geometry: Geometry
    widths: Widths

    @property
    def kernel(self) -> Kernel:
        """Which code looks rows up."""
        return self.storage.kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """All families of a problem, those of a table next to each other."""

    families: tuple[Family, ...]
    #: by table without any family: all schemes, each with the reason
    scheme_issues: dict[int, tuple[SchemeIssue, ...]] = field(default_factory=dict)


#: Why a scheme is no option with the listed column widths; other widths might change that.
NO_CUT = "no cut fits the table's shape, the cluster and the constraints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """The pieces of families and the listed cuts, as ``SolverProblem`` numbers them."""

    shape_family: Ints  # (S,)
    shape_columns: Ints  # (S,)
    option_family: Ints  # (O,)
    unit_option: Ints  # (U,)
    unit_shape: Ints  # (U,)


def enumerate_families(problem: Problem) -> Families:
    """List every way that the runtime executes correctly and the user allows.

    Families that are right only in a module cut by rows throughout are included; which of
    them may be used together is decided by :mod:`planner.options.compatible_families`.
    """
    runtime = RUNTIMES[problem.runtime]
    sites, storages = _Sites(problem), _Storages(problem, runtime)
    families: list[Family] = []
    scheme_issues: dict[int, tuple[SchemeIssue, ...]] = {}
    for index, table in enumerate(problem.tables):
        issues: list[SchemeIssue] = []
        families_of_table = list(_families_of_table(problem, runtime, sites, storages, index, table, issues))
        if not families_of_table:
            scheme_issues[index] = tuple(issues)
        families.extend(families_of_table)
    return Families(families=tuple(families), scheme_issues=scheme_issues)


def list_cuts(families: Families) -> Cuts:
    """Number the shapes and the listed cuts of all families."""
    distinct = {id(family.widths): family.widths for family in families.families}
    place = {which: index for index, which in enumerate(distinct)}
    of = np.array([place[id(family.widths)] for family in families.families], dtype=np.int64)
    widths = list(distinct.values())  # few, of many families
    cuts = [cut for one in widths for cut in one.cuts]
    num_shapes = np.array([len(one.columns) for one in widths], dtype=np.int64)
    num_cuts = np.array([len(one.cuts) for one in widths], dtype=np.int64)
    num_units = np.array([len(cut) for cut in cuts], dtype=np.int64)
    shape_family, column = side_by_side(ends(num_shapes)[of], num_shapes[of])
    option_family, cut = side_by_side(ends(num_cuts)[of], num_cuts[of])
    unit_option, unit = side_by_side(ends(num_units)[cut], num_units[cut])
    first_shape = ends(num_shapes[of])[:-1]
    return Cuts(
        shape_family=shape_family,
        shape_columns=np.concatenate([one.columns for one in widths])[column],
        option_family=option_family,
        unit_option=unit_option,
        unit_shape=np.concatenate(cuts)[unit] + first_shape[option_family[unit_option]],
    )


def table_rank_allowed(problem: Problem) -> Bools:
    """Return which ranks may hold shards of which tables, shape (num_tables, num_ranks)."""
    ranks = np.arange(problem.world_size)
    allowed = np.ones((len(problem.tables), problem.world_size), dtype=np.bool_)
    host_of_rank = ranks // problem.cluster.ranks_per_host
    for index, table in enumerate(problem.tables):
        if table.constraints.ranks is not None:
            allowed[index] &= np.isin(ranks, sorted(table.constraints.ranks))
        if table.constraints.hosts is not None:
            allowed[index] &= np.isin(host_of_rank, sorted(table.constraints.hosts))
    return allowed


def hot_rows_of(problem: Problem, family: Family) -> int:
    """Return the rows of each piece that lie in the device's memory, if its other rows lie elsewhere."""
    return round(family.storage.hot_row_share * problem.tables[family.table].num_embeddings)


def with_narrowest_pieces(problem: Problem, tables: Collection[int]) -> Problem:
    """Return the problem with the narrowest pieces allowed for some tables."""
    return with_pieces_of(problem, dict.fromkeys(tables, COLUMN_STEP))


def with_pieces_of(problem: Problem, columns: Mapping[int, int]) -> Problem:
    """Return the problem with pieces of so many columns, by table, allowed.

    A table of which the user named the width of pieces, or the pieces themselves, stays as it is.
    """
    narrowed = list(problem.tables)
    for index, least in columns.items():
        constraints = narrowed[index].constraints
        if constraints.min_partition is None and constraints.pinned is None:
            narrowed[index] = replace(narrowed[index], constraints=replace(constraints, min_partition=least))
    return replace(problem, tables=tuple(narrowed))


class _Sites:
    """Which scopes each table can have at all under rank, same-rank and apart constraints."""

    def __init__(self, problem: Problem) -> None:
        cluster = problem.cluster
        allowed = table_rank_allowed(problem)
        hosts: Bools = np.all(allowed.reshape(len(problem.tables), cluster.num_hosts, -1), axis=2)
        count = len(problem.tables)
        self._together = np.isin(np.arange(count), [t for group in problem.same_rank for t in group])
        apart = np.isin(np.arange(count), [t for group in problem.apart for t in group])
        self._has: dict[Scope, Bools] = {
            Scope.RANK: np.any(allowed, axis=1),
            Scope.HOST: np.any(hosts, axis=1) & ~self._together,
            Scope.WORLD: np.all(allowed, axis=1) & ~apart & ~self._together,
        }

    def fit(self, index: int, geometry: Geometry) -> bool:
        """Whether pieces of this geometry can be placed: tables that share one rank must be whole."""
        return bool(self._has[geometry.scope][index]) and not (self._together[index] and geometry.min_pieces > 1)


def _families_of_table(
    problem: Problem,
    runtime: Runtime,
    sites: _Sites,
    storages: "_Storages",
    index: int,
    table: Table,
    issues: list[SchemeIssue],
) -> Iterator[Family]:
    """Yield the families of a table; append to ``issues`` why it has none of a scheme."""
    constraints = table.constraints
    if constraints.pinned is not None:
        yield _pinned_family(problem, index, constraints.pinned)
        return
    for scheme in PREFERRED_ORDER:
        if constraints.sharding_types is not None and scheme not in constraints.sharding_types:
            issues.append((scheme, "not among the allowed sharding_types"))
            continue
        if scheme_issue := runtime.scheme_issue(table, scheme):
            issues.append((scheme, scheme_issue))
            continue
        cut = geometry(scheme, table, problem.cluster)
        storages_of_scheme = storages.of(index, scheme, cut)
        if not storages_of_scheme:
            issues.append((scheme, _no_storage(problem, runtime, index, scheme)))
            continue
        widths = None
        if cut is not None and sites.fit(index, cut):
            widths = _widths(problem, runtime, table, cut)
        if cut is None or widths is None:
            issues.append((scheme, NO_CUT))
            continue
        found = False
        for storage in storages_of_scheme:
            alike = storage.kernel is Kernel.FUSED_UVM_CACHING and runtime.needs_equal_pieces(problem)
            for some in equal_cuts(widths) if alike else (widths,):
                found = True
                yield Family(table=index, scheme=scheme, storage=storage, geometry=cut, widths=some)
        if not found:
            issues.append((scheme, NO_CUT))


#: The one object of a way to store rows: thousands of families have the same.
_storage = functools.lru_cache(maxsize=4096)(Storage)


class _Storages:
    """Ways to store rows that the user, the runtime and the cluster's memory allow."""

    def __init__(self, problem: Problem, runtime: Runtime) -> None:
        self._problem, self._runtime = problem, runtime
        cluster = problem.cluster
        #: by kernel: whether its rows lie in storage-class memory; empty if the cluster has no memory for them
        self._in_scm = {
            kernel: [
                tier is Tier.SCM
                for tier in row_tiers(kernel, cluster, runtime)
                if kernel in DEVICE_KERNELS or (tier is not cluster.device_tier and cluster.has_tier(tier))
            ]
            for kernel in Kernel
        }
        self._lists: dict[_StorageKey, tuple[Storage, ...]] = {}
        self._hot: dict[int, tuple[float, ...]] = {}  # by table

    def of(self, index: int, scheme: Scheme, geometry: Geometry | None) -> tuple[Storage, ...]:
        """Return the storages of one scheme of a table."""
        table = self._problem.tables[index]
        constraints = table.constraints
        allowed = self._problem.kernels if constraints.compute_kernels is None else constraints.compute_kernels
        names = constraints.data_types or (table.data_type.name,)
        kernels = _kernels(self._problem, self._runtime, table, scheme, allowed)
        hot: tuple[float, ...] = (0.0,)
        if Kernel.FUSED_UVM in kernels and geometry is not None and geometry.scope is Scope.RANK:
            hot += self._hot_row_shares(index)
        has = self._runtime.data_types
        types = tuple(name for name in names if name in has and table.can_be_trained_as(DATA_TYPES[name]))
        return self._listed(kernels, types, constraints.cache_load_factors or CACHE_LOAD_FACTORS, hot)

    def _listed(
        self, kernels: tuple[Kernel, ...], types: tuple[str, ...], cached: tuple[float, ...], hot: tuple[float, ...]
    ) -> tuple[Storage, ...]:
        """Return one list for all tables with the same choices: there are few of these, and thousands of tables."""
        key = (kernels, types, cached, hot)
        if key not in self._lists:
            every = tuple(sorted(set(cached), reverse=True))
            shares: dict[Kernel, tuple[float | None, ...]] = dict.fromkeys(CACHED_KERNELS, every)
            most = self._runtime.max_key_value_share
            shares[Kernel.KEY_VALUE] = tuple(share for share in every if share <= most)
            types_of: dict[Kernel, tuple[str, ...]] = dict.fromkeys(Kernel, types)
            if self._problem.serving is None:
                types_of[Kernel.KEY_VALUE] = tuple(name for name in types if name in self._runtime.key_value_types)
            self._lists[key] = tuple(
                _storage(
                    kernel=kernel,
                    data_type=DATA_TYPES[name],
                    cache_load_factor=share,
                    hot_row_share=hot_share,
                    in_scm=in_scm,
                )
                for kernel in kernels
                for in_scm, share, hot_share, name in itertools.product(
                    self._in_scm[kernel],
                    shares.get(kernel, (None,)),
                    hot if kernel is Kernel.FUSED_UVM else (0.0,),
                    types_of[kernel],
                )
            )
        return self._lists[key]

    def _hot_row_shares(self, index: int) -> tuple[float, ...]:
        """Return the shares of its rows, each a whole number of them, at which a table may be split between tiers."""
        if not self._runtime.splits_off_hot_rows:
            return ()
        if index not in self._hot:
            table = self._problem.tables[index]
            rows, shares = table.num_embeddings, table.constraints.hot_row_fractions
            if shares is None:
                shares = tuple(hot_row_shares(table_columns(self._problem).hot_rows.of_table[index]))
            self._hot[index] = tuple(
                num / rows for num in sorted({round(share * rows) for share in shares} - {0, rows})
            )
        return self._hot[index]


def _no_storage(problem: Problem, runtime: Runtime, index: int, scheme: Scheme) -> str:
    """Return why no kernel stores the rows of a table: which run it, which tiers are absent, or its optimizer."""
    table = problem.tables[index]
    named = table.constraints.compute_kernels
    allowed = problem.kernels if named is None else named
    kernels = _kernels(problem, runtime, table, scheme, allowed)
    if not kernels:
        if without := _kernels(problem, runtime, replace(table, optimizer=OPTIMIZERS["none"]), scheme, allowed):
            return f"{_labels(without)} does not run with optimizer {table.optimizer.name}"
        runs = runtime.kernels(table, scheme, frozenset(Kernel))
        return f"it runs with {_labels(runs)}, none of them among the allowed compute_kernels"
    tiers = {tier for kernel in kernels for tier in row_tiers(kernel, problem.cluster, runtime)}
    absent = sorted(tier for tier in tiers if not problem.cluster.has_tier(tier))
    if all(kernel not in DEVICE_KERNELS for kernel in kernels) and problem.cluster.device_tier in tiers:
        return "the cluster has no accelerators, beside whose memory its kernels keep rows"
    least = min(table.constraints.cache_load_factors or CACHE_LOAD_FACTORS)
    if set(kernels) == {Kernel.KEY_VALUE} and least > runtime.max_key_value_share:
        return (
            f"key_value caches at most {runtime.max_key_value_share:g} of the rows, and {least:g} is the least allowed"
        )
    if absent:
        return f"the cluster has no {' and no '.join(tier.label for tier in absent)}, where its kernels keep rows"
    if set(kernels) == {Kernel.KEY_VALUE} and problem.serving is None:
        return f"key_value keeps {' or '.join(sorted(runtime.key_value_types))} weights here"
    return "none of the allowed data_types can be trained with the table's optimizer by the runtime"


def _kernels(
    problem: Problem, runtime: Runtime, table: Table, scheme: Scheme, allowed: frozenset[Kernel]
) -> tuple[Kernel, ...]:
    """Return the kernels that run a scheme of a table on the devices of the cluster, fastest first."""
    kernels = runtime.kernels(table, scheme, allowed)
    known = runtime.host_optimizers
    if problem.cluster.device_tier is Tier.HBM or known is None or table.optimizer.name in known:
        return kernels
    return tuple(kernel for kernel in kernels if kernel is Kernel.DENSE)


def _labels(kernels: Iterable[Kernel]) -> str:
    return " or ".join(kernel.label for kernel in kernels)


def _pinned_family(problem: Problem, index: int, pinned: PinnedTable) -> Family:
    """Return the family of the user's own cut, with that cut as the only listed one, left to right."""
    table = problem.tables[index]
    cut = geometry(pinned.sharding_type, table, problem.cluster)
    if cut is None:
        raise ValueError(f"Expected a pinned sharding type that table {table.name} can have.")
    given = np.array([piece.num_columns for piece in pinned.pieces], dtype=np.int64)
    if len(given) == 1:
        widths = whole_width(table.embedding_dim)
    else:
        columns = np.arange(given.min(), given.max() + 1, COLUMN_STEP, dtype=np.int64)
        widths = Widths(columns=columns, cuts=((given - given.min()) // COLUMN_STEP,), max_pieces=len(given))
    storage = Storage(
        kernel=pinned.compute_kernel,
        data_type=table.data_type,
        cache_load_factor=pinned.cache_load_factor,
        in_scm=pinned.in_scm,
    )
    return Family(table=index, scheme=pinned.sharding_type, storage=storage, geometry=cut, widths=widths)


def _widths(problem: Problem, runtime: Runtime, table: Table, geometry: Geometry) -> Widths | None:
    if geometry.min_pieces == 1:
        return whole_width(table.embedding_dim) if table.embedding_dim <= runtime.max_columns else None
    cluster, least = problem.cluster, least_piece_columns(table)
    also = (cluster.world_size, cluster.ranks_per_host, cluster.num_hosts)
    return piece_widths(table.embedding_dim, least, runtime.max_columns, geometry.max_pieces, also)
