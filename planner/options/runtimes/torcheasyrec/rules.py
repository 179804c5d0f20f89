"""TorchEasyRec: TorchRec's rules, less what TorchEasyRec's config cannot ask for.

What is planned for it can be exported (:mod:`planner.output.exporters.torcheasyrec`) with these sharding types, kernels
and cuts. Its planner chooses the ranks of tables that are not on all ranks, so that a spec cannot name ranks or hosts.
Columns are not cut: TorchRec then cuts pieces of one width, and the search does not ensure that. Plans that have such
pieces can still be exported.
"""

from cost_models.vocabulary import Holders, Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.per_table import TableIssue, table_issues
from planner.options.runtimes.torcheasyrec.config import (
    CACHE_LOAD_FACTOR,
    DATA_TYPES,
    KERNELS,
    UndictatedTable,
    check_kernel,
    check_pooling,
    check_shards,
    in_order,
    name_issue,
)
from planner.options.runtimes.torchrec.geometry import MAX_SHARD_COLUMNS
from planner.options.runtimes.torchrec.rules import ROW_SCHEMES, TorchRec


class TorchEasyRec:
    """Rules of TorchRec under TorchEasyRec's planner, on GPUs."""

    name = "torcheasyrec"
    max_columns = MAX_SHARD_COLUMNS
    row_schemes = ROW_SCHEMES
    splits_off_hot_rows = False
    supports_scm = False
    #: On CPUs its planner cuts no rows and leaves tables of sequences whole.
    device_families: frozenset[str] | None = frozenset({"gpu", "custom"})

    def __init__(self) -> None:
        """Take TorchRec's rules as a base."""
        self._torchrec = TorchRec()

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` replicates; a cache needs a table that allows TorchRec's own load factor alone."""
        if scheme.is_replicated:
            return tuple(offered & {Kernel.DENSE})
        has_its_cache = table.constraints.cache_load_factors == (CACHE_LOAD_FACTOR,)
        return tuple(
            kernel
            for kernel in KERNELS
            if kernel in offered and (has_its_cache or kernel is not Kernel.FUSED_UVM_CACHING)
        )

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why TorchEasyRec would not train this scheme of the table, or has no config for it."""
        wrong_name = name_issue(table.name)
        if wrong_name is not None:
            return wrong_name
        others = {table.data_type.name, *(table.constraints.data_types or ())} - DATA_TYPES.keys()
        if others:
            return f"weights are {' or '.join(DATA_TYPES)}, not {' or '.join(sorted(others))}"
        torchrec_issue = self._torchrec.scheme_issue(table, scheme)
        if torchrec_issue is not None:
            return torchrec_issue
        if scheme.facts.cuts_columns:
            return f"{scheme.label} must cut at TorchRec's own width, which is not searched for"
        is_placed = (table.constraints.ranks, table.constraints.hosts) != (None, None)
        if is_placed and scheme.facts.holders is not Holders.WORLD:
            return f"its planner chooses the ranks of {scheme.label}; they cannot be asked for"
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """As in TorchRec."""
        return self._torchrec.needs_row_wise_module(table, scheme)

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check a finished placement by TorchRec's rules, and by what the config can request."""
        own = table_issues(problem, placement, lambda table, placed: _table_issue(table, placed, placement))
        return [*self._torchrec.check(problem, placement), *own]


def _table_issue(table: Table, placed: TablePlacement, placement: Placement) -> TableIssue | None:
    """Return the first property of a table that the config cannot request."""
    reason = _undictated(table, placed, placement)
    return None if reason is None else ("undictated", reason)


def _undictated(table: Table, placed: TablePlacement, placement: Placement) -> str | None:
    data_type = placed.data_type or table.data_type.name
    if data_type not in DATA_TYPES:
        return f"weights are {' or '.join(DATA_TYPES)}, not {data_type}"
    try:
        check_kernel(placed.sharding_type, placed.compute_kernel, placed.cache_load_factor)
        check_pooling(placed.sharding_type, table.pooling)
        check_shards(
            placed.sharding_type,
            in_order(placed.shards),
            table.num_embeddings,
            table.embedding_dim,
            num_hosts=placement.world_size // placement.ranks_per_host,
            ranks_per_host=placement.ranks_per_host,
        )
    except UndictatedTable as error:
        return str(error)
    return name_issue(table.name)
