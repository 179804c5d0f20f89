"""Every legal way to shard every table: families of pieces, with the user's constraints applied."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cost_models.arrays import Bools, Ints
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.problem import Problem
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import PinnedTable, Table
from planner.options.loadable_layouts import LoadableLayout, loadable_layouts
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.blocks import COLUMN_STEP
from planner.options.schemes.geometry import PREFERRED_ORDER, Geometry, geometry, least_piece_columns
from planner.options.schemes.widths import Widths, equal_cuts, given_cut, piece_widths, whole_width
from planner.options.storages import Storages
from planner.solver.problem import Scope
from planner.solver.segments import ends, side_by_side

#: A scheme that a table cannot have, and why, in words.
SchemeIssue = tuple[Scheme, str]


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
_LOSES_STATE = "optimizer state of the checkpoint would be lost"
#: Of a table that no checkpoint has.
_ANY_LAYOUT = LoadableLayout(schemes=frozenset(Scheme), kernels=frozenset(Kernel))


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
    sites, storages, loadable = _Sites(problem), Storages(problem, runtime), loadable_layouts(problem)
    families: list[Family] = []
    scheme_issues: dict[int, tuple[SchemeIssue, ...]] = {}
    for index, table in enumerate(problem.tables):
        issues: list[SchemeIssue] = []
        layout = loadable.get(index, _ANY_LAYOUT)
        families_of_table = list(_families_of_table(problem, runtime, sites, storages, index, table, layout, issues))
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
        groups: Bools = np.all(allowed.reshape(len(problem.tables), cluster.num_groups, -1), axis=2)
        count = len(problem.tables)
        self._together = np.isin(np.arange(count), [t for group in problem.same_rank for t in group])
        apart = np.isin(np.arange(count), [t for group in problem.apart for t in group])
        self._cluster = cluster
        self._has: dict[Scope, Bools] = {
            Scope.RANK: np.any(allowed, axis=1),
            Scope.HOST: np.any(groups, axis=1) & ~self._together,
            Scope.WORLD: np.all(allowed, axis=1) & ~apart & ~self._together,
        }

    def issue(self, index: int, geometry: Geometry) -> str:
        """Return why pieces of this geometry cannot be placed."""
        pod_size, lacks_group = self._cluster.pod_size, geometry.scope is Scope.HOST and not self._together[index]
        if pod_size is None or not lacks_group or self._has[Scope.HOST][index]:
            return NO_CUT
        return f"none of the pods of {pod_size} ranks lies whole on the ranks and hosts that are allowed"

    def fit(self, index: int, geometry: Geometry) -> bool:
        """Whether pieces of this geometry can be placed: tables that share one rank must be whole."""
        return bool(self._has[geometry.scope][index]) and not (self._together[index] and geometry.min_pieces > 1)


def _families_of_table(
    problem: Problem,
    runtime: Runtime,
    sites: _Sites,
    storages: Storages,
    index: int,
    table: Table,
    loadable: LoadableLayout,
    issues: list[SchemeIssue],
) -> Iterator[Family]:
    """Yield the families of a table; append to ``issues`` why it has none of a scheme."""
    constraints = table.constraints
    if constraints.pinned is not None:
        if issue := _pin_issue(constraints.pinned, loadable):
            issues.append((constraints.pinned.sharding_type, issue))
        else:
            yield _pinned_family(problem, index, constraints.pinned)
        return
    for scheme in PREFERRED_ORDER:
        if constraints.sharding_types is not None and scheme not in constraints.sharding_types:
            issues.append((scheme, "not among the allowed sharding_types"))
            continue
        if scheme not in loadable.schemes:
            issues.append((scheme, _LOSES_STATE))
            continue
        if scheme_issue := runtime.scheme_issue_on(problem.cluster, table, scheme):
            issues.append((scheme, scheme_issue))
            continue
        cut = geometry(scheme, table, problem.cluster)
        storages_of_scheme = storages.of(index, scheme, cut)
        if not storages_of_scheme:
            issues.append((scheme, storages.issue(index, scheme)))
            continue
        storages_of_scheme = tuple(one for one in storages_of_scheme if one.kernel in loadable.kernels)
        if not storages_of_scheme:
            allowed = " or ".join(kernel.label for kernel in sorted(loadable.kernels))
            issues.append((scheme, f"{_LOSES_STATE} by all allowed kernels but {allowed}"))
            continue
        if cut is not None and loadable.column_cut:
            cut = replace(cut, min_pieces=len(loadable.column_cut), max_pieces=len(loadable.column_cut))
        widths = None
        if cut is not None and sites.fit(index, cut):
            widths = _widths(problem, runtime, table, cut, loadable.column_cut)
        if cut is None or widths is None:
            issues.append((scheme, NO_CUT if cut is None else sites.issue(index, cut)))
            continue
        found = False
        for storage in storages_of_scheme:
            alike = storage.kernel is Kernel.FUSED_UVM_CACHING and runtime.needs_equal_pieces(problem)
            for some in equal_cuts(widths) if alike else (widths,):
                found = True
                yield Family(table=index, scheme=scheme, storage=storage, geometry=cut, widths=some)
        if not found:
            issues.append((scheme, NO_CUT))


def _pin_issue(pinned: PinnedTable, loadable: LoadableLayout) -> str:
    """Return why what a table is pinned to loses state, ``""`` if it does not."""
    if pinned.sharding_type not in loadable.schemes or pinned.compute_kernel not in loadable.kernels:
        return f"the table is pinned to it, and {_LOSES_STATE}"
    given = tuple(piece.num_columns for piece in pinned.pieces)
    if loadable.column_cut not in ((), given):
        return f"the table is pinned to pieces of other widths, and {_LOSES_STATE}"
    return ""


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


def _widths(
    problem: Problem, runtime: Runtime, table: Table, geometry: Geometry, given: tuple[int, ...]
) -> Widths | None:
    """Return the legal pieces of a table, of which ``given`` are the only ones unless it is empty."""
    if geometry.min_pieces == 1:
        return whole_width(table.embedding_dim) if table.embedding_dim <= runtime.max_columns else None
    if given:
        least = table.constraints.min_partition or COLUMN_STEP
        is_legal = least <= min(given) and max(given) <= runtime.max_columns
        return given_cut(given) if is_legal and all(columns % COLUMN_STEP == 0 for columns in given) else None
    cluster, least = problem.cluster, least_piece_columns(table)
    also = (cluster.world_size, cluster.ranks_per_group, cluster.num_groups)
    return piece_widths(table.embedding_dim, least, runtime.max_columns, geometry.max_pieces, also)
