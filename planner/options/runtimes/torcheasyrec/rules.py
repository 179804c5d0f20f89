"""TorchEasyRec: TorchRec's rules, less what TorchEasyRec's config cannot ask for.

What is planned for it can be exported (:mod:`planner.options.runtimes.torcheasyrec.export`) with these sharding
types, kernels and cuts. Its planner chooses the ranks of tables that are not on all ranks, so that a spec cannot name
ranks or hosts. Columns are not cut: TorchRec then cuts pieces of one width, and the search does not ensure that. Plans
that have such pieces can still be exported.
"""

from cost_models.vocabulary import Holders, Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import Table
from planner.options.runtimes.base import TableIssue
from planner.options.runtimes.geometry import UnheldGeometry
from planner.options.runtimes.torcheasyrec.config import (
    CACHE_LOAD_FACTOR,
    DATA_TYPES,
    HASH_TABLE_KERNEL,
    KERNELS,
    check_asked,
    name_issue,
)
from planner.options.runtimes.torchrec.rules import TorchRec


class TorchEasyRec(TorchRec):
    """Rules of TorchRec under TorchEasyRec's planner, on GPUs."""

    name = "torcheasyrec"
    #: On CPUs its planner cuts no rows and leaves tables of sequences whole.
    device_families: frozenset[str] | None = frozenset({"gpu", "custom"})
    data_types = DATA_TYPES.keys()
    keeps_caches_apart = False
    has_replica_groups = False
    has_index_dedup = False  # ``plan_util.py`` makes its sharders itself, without that argument
    #: ``zch`` of a feature; its config has no other managed collisions.
    hash_table_modes: frozenset[str] = frozenset({"zch"})
    #: Its planner's ``Topology`` has no pod size: it would place groups on hosts (``tzrec/utils/plan_util.py``).
    has_pods = False

    def cache_reserved_bytes(self, index: int, storage: Storage, columns: int) -> float | None:
        """No field of its config states one."""
        return None

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` replicates; a cache needs a table that allows TorchRec's own load factor alone.

        Of hash tables constraints of all tables alike state the kernel, so that there is one.
        """
        if table.hash_table is not None:
            return tuple(offered & {HASH_TABLE_KERNEL})
        if scheme.is_replicated:
            return tuple(offered & {Kernel.DENSE})
        has_its_cache = table.constraints.cache_load_factors == (CACHE_LOAD_FACTOR,)
        return tuple(
            kernel
            for kernel in KERNELS
            if kernel in offered and (has_its_cache or kernel is not Kernel.FUSED_UVM_CACHING)
        )

    def name_issue(self, name: str) -> str | None:
        """Names of tables are parts of names of modules."""
        return name_issue(name)

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why TorchEasyRec would not train this scheme of the table, or has no config for it."""
        if wrong_name := name_issue(table.name):
            return f"its name {wrong_name}"
        if others := {table.data_type.name, *(table.constraints.data_types or ())} - DATA_TYPES.keys():
            return f"weights are {' or '.join(DATA_TYPES)}, not {' or '.join(sorted(others))}"
        if torchrec_issue := super().scheme_issue(table, scheme):
            return torchrec_issue
        if scheme.facts.cuts_columns:
            return f"{scheme.label} must cut at TorchRec's own width, which is not searched for"
        is_placed = (table.constraints.ranks, table.constraints.hosts) != (None, None)
        if is_placed and scheme.facts.holders is not Holders.WORLD:
            return f"its planner chooses the ranks of {scheme.label}; they cannot be asked for"
        return None

    def table_issue(self, table: Table, placed: TablePlacement, placement: Placement) -> TableIssue | None:
        """Return the first thing about a table that the config cannot ask for; TorchRec's rules come before."""
        data_type = placed.data_type or table.data_type.name
        if data_type not in DATA_TYPES:
            return "undictated", f"weights are {' or '.join(DATA_TYPES)}, not {data_type}"
        try:
            check_asked(placed, (table.num_embeddings, table.embedding_dim), table.pooling, placement)
        except UnheldGeometry as error:
            return "undictated", str(error)
        wrong_name = name_issue(table.name)
        return None if wrong_name is None else ("undictated", f"its name {wrong_name}")
