"""Ways to store the rows of a table: kernels, types of weights, cached shares, hot shares and tiers."""

import functools
import itertools
from collections.abc import Iterable
from dataclasses import replace

from cost_models.vocabulary import CACHED_KERNELS, DEVICE_KERNELS, Kernel, Scheme, Tier
from planner.access.hot_rows import hot_row_shares
from planner.access.table_columns import table_columns
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import Table
from planner.options.row_tiers import row_tiers
from planner.options.runtimes.base import Runtime
from planner.options.schemes.geometry import Geometry
from planner.solver.problem import Scope

#: What decides the storage of rows: kernels, data types, cached shares and hot shares.
_StorageKey = tuple[tuple[Kernel, ...], tuple[str, ...], tuple[float, ...], tuple[float, ...]]
#: Cached shares of the rows that are listed if the user names none: about three per decade, as miss curves bend.
CACHE_LOAD_FACTORS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)
#: The one object of a way to store rows: thousands of families have the same.
_storage = functools.lru_cache(maxsize=4096)(Storage)


class Storages:
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
        has = self._runtime.types_of_weights(is_trained=self._problem.serving is None)
        types = tuple(name for name in names if name in has and table.can_be_trained_as(DATA_TYPES[name]))
        cached = self._runtime.load_factors(table) or constraints.cache_load_factors or CACHE_LOAD_FACTORS
        return self._listed(kernels, types, cached, hot)

    def issue(self, index: int, scheme: Scheme) -> str:
        """Return why no kernel stores the rows of a table: which run it, which tiers are absent, or its optimizer."""
        problem, runtime = self._problem, self._runtime
        table = problem.tables[index]
        named = table.constraints.compute_kernels
        allowed = problem.kernels if named is None else named
        kernels = _kernels(problem, runtime, table, scheme, allowed)
        if not kernels:
            runs = runtime.kernels(table, scheme, allowed)
            if problem.is_replicated and runs:
                return "; ".join(dict.fromkeys(runtime.replica_issue(table, scheme, kernel) or "" for kernel in runs))
            if without := _kernels(problem, runtime, replace(table, optimizer=OPTIMIZERS["none"]), scheme, allowed):
                return f"{_labels(without)} does not run with optimizer {table.optimizer.name}"
            runs = runtime.kernels(table, scheme, frozenset(Kernel))
            return f"it runs with {_labels(runs)}, none of them among the allowed compute_kernels"
        tiers = {tier for kernel in kernels for tier in row_tiers(kernel, problem.cluster, runtime)}
        absent = sorted(tier for tier in tiers if not problem.cluster.has_tier(tier))
        if all(kernel not in DEVICE_KERNELS for kernel in kernels) and problem.cluster.device_tier in tiers:
            return "the cluster has no accelerators, in addition to whose memory its kernels keep rows"
        least, most = min(table.constraints.cache_load_factors or CACHE_LOAD_FACTORS), runtime.max_key_value_share
        if set(kernels) == {Kernel.KEY_VALUE} and least > most:
            return f"key_value caches at most {most:g} of the rows, and {least:g} is the least allowed"
        if absent:
            return f"the cluster has no {' and no '.join(tier.label for tier in absent)}, where its kernels keep rows"
        types = runtime.types_of_weights(is_trained=problem.serving is None)
        if not {*(table.constraints.data_types or (table.data_type.name,))} & set(types):
            return f"its weights are {' or '.join(types)} here"
        return "none of the allowed data_types can be trained with the table's optimizer by the runtime"

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
                    types,
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


def _kernels(
    problem: Problem, runtime: Runtime, table: Table, scheme: Scheme, allowed: frozenset[Kernel]
) -> tuple[Kernel, ...]:
    """Return the kernels that run a scheme of a table on the devices of the cluster, fastest first."""
    kernels = runtime.kernels(table, scheme, allowed)
    if problem.is_replicated:
        kernels = tuple(kernel for kernel in kernels if runtime.replica_issue(table, scheme, kernel) is None)
    known = runtime.host_optimizers
    if problem.cluster.device_tier is Tier.HBM or known is None or table.optimizer.name in known:
        return kernels
    return tuple(kernel for kernel in kernels if kernel is Kernel.DENSE)


def _labels(kernels: Iterable[Kernel]) -> str:
    return " or ".join(kernel.label for kernel in kernels)
