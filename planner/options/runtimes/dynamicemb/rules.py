"""dynamicemb: hash tables of NVIDIA's recsys-examples, together with tables of TorchRec.

Read from its source (NVIDIA/recsys-examples, ``corelib/dynamicemb``, commit 43465ae), whose kernels were not run:

1. A hash table is cut by rows over all ranks, whatever its size (``planner/planner.py``): keys are dealt out by their
   remainder, and every rank has as many slots.
2. It trains with SGD, Adam, AdaGrad and row-wise AdaGrad (``optimizer.py``). Weights of ids are taken for how often an
   id came, not for factors (``batched_dynamicemb_tables.py``, ``forward``).
3. Other tables are TorchRec's, copied or cut by rows over all ranks: tables on single ranks are neither saved nor
   loaded (``get_planner.py``). So every table is on every rank, and constraints of its planner leave nothing open.
4. Tables of one operator share buckets, the memory that their values lie in, and the share of it that lies on the
   device (:mod:`planner.options.runtimes.dynamicemb.operators`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.base import OperatorIssue
from planner.options.runtimes.dynamicemb.operators import load_factors, placed_operator_issues, table_operator_issues
from planner.options.runtimes.torchrec.rules import TorchRec

SCHEMES = (Scheme.DATA_PARALLEL, Scheme.ROW_WISE)
#: Kernels of hash tables that are options, fastest first; and those that are if the table names them.
HASH_KERNELS, NAMED_HASH_KERNELS = (Kernel.HASH, Kernel.HASH_CACHING), (Kernel.HASH_HYBRID, Kernel.HASH_HOST)
OPTIMIZERS = ("none", "sgd", "adam", "adagrad", "rowwise_adagrad")
#: Slots that buckets are made of (``BUCKET_ALIGNMENT``).
BUCKET_STEP = 16


class DynamicEmb(TorchRec):
    """Rules of ``DynamicEmbeddingShardingPlanner`` and of what it shards."""

    name = "dynamicemb"
    has_replica_groups = False
    device_families: frozenset[str] | None = frozenset({"gpu", "custom"})
    hash_table_modes = frozenset({"dynamicemb"})
    export_reads_spec = True
    #: Its tables are on all ranks: none goes over the ranks of a pod.
    has_pods = False

    def cache_reserved_bytes(self, index: int, storage: Storage, columns: int) -> float | None:
        """Keep the caches of TorchRec's tables apart; hash tables have none of FBGEMM's."""
        return None if storage.kernel.facts.is_hashed else super().cache_reserved_bytes(index, storage, columns)

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """Of hash tables those that differ from table to table, unless others are named; of others TorchRec's."""
        if table.hash_table is None:
            return tuple(one for one in super().kernels(table, scheme, offered) if one is not Kernel.KEY_VALUE)
        named = table.constraints.compute_kernels or frozenset()
        listed = (*HASH_KERNELS, *(kernel for kernel in NAMED_HASH_KERNELS if kernel in named))
        return tuple(kernel for kernel in listed if kernel in offered)

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a table is not sharded so."""
        if scheme not in SCHEMES:
            return f"dynamicemb neither saves nor loads tables that are {scheme.label}: use row_wise or data_parallel"
        if table.hash_table is None:
            return super().scheme_issue(table, scheme)
        if scheme is not Scheme.ROW_WISE:
            return "hash tables are cut by rows over all ranks: use row_wise"
        if table.is_weighted:
            return "its weights of ids would be taken for how often an id came: use a table without hash_table"
        if table.optimizer.name not in OPTIMIZERS:
            return f"hash tables train with {', '.join(OPTIMIZERS[1:])}, not with {table.optimizer.name}"
        return super().scheme_issue(table, scheme)

    def hash_table_issue(self, table: Table, cluster: Cluster) -> tuple[str, str] | None:
        """Return why dynamicemb cannot hold the hash table on a cluster, and the way out."""
        hash_table = table.hash_table
        if hash_table is None:
            return None
        size, initial = hash_table.bucket_size, hash_table.initial_capacity_per_rank
        if size is not None and size % BUCKET_STEP:
            padded = size + -size % BUCKET_STEP
            return f"buckets have a multiple of {BUCKET_STEP} slots, not {size}", f"use bucket_size {padded}"
        of_rank = -(-table.num_embeddings // cluster.world_size)
        if initial is not None and initial > of_rank:
            return (
                f"initial_capacity_per_rank {initial} exceeds the {of_rank} slots of one of {cluster.world_size} ranks",
                f"use at most {of_rank}, or leave it out",
            )
        shares = table.constraints.cache_load_factors
        if shares is not None and len(set(shares)) > 1:
            return (
                f"{len(set(shares))} cache_load_factors: hash tables of one operator have one share of their rows in"
                " the memory of the accelerator, so that the planner cannot choose it table by table",
                "name one cache_load_factor",
            )
        return None

    def load_factors(self, table: Table) -> tuple[float, ...] | None:
        """Return one share for all hash tables that name none, so that those of one operator agree."""
        return None if table.hash_table is None else load_factors(table)

    def has_one_share(self, table: Table) -> bool:
        """Whether the table is a hash table: those of one operator have one share."""
        return table.hash_table is not None

    def operator_issues(self, tables: Mapping[str, Table]) -> Iterator[OperatorIssue]:
        """Yield hash tables that differ in what one operator has once."""
        return table_operator_issues(tables, self.kernels)

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check a finished placement by TorchRec's rules, which know no hash table, and by those of hash tables."""
        fixed = replace(problem, tables=tuple(replace(table, hash_table=None) for table in problem.tables))
        of_hash = {
            f"/tables/{index}" for index, placed in enumerate(placement.tables) if placed.compute_kernel.facts.is_hashed
        }
        found = [
            issue
            for issue in super().check(fixed, placement)
            if not (issue.code == "kernel" and issue.pointer in of_hash)
        ]
        return [*found, *_kernel_issues(problem, placement), *placed_operator_issues(problem, placement)]


def _kernel_issues(problem: Problem, placement: Placement) -> list[Issue]:
    """Return an issue for each table whose kernel or scheme is not one of its kind."""
    tables, issues = {table.name: table for table in problem.tables}, []
    for index, placed in enumerate(placement.tables):
        table = tables.get(placed.name)
        if table is None:
            continue
        is_hash, kernel = table.hash_table is not None, placed.compute_kernel
        where, named = f"/tables/{index}", f'table "{placed.name}"'
        if placed.sharding_type.label not in ("data_parallel", "row_wise"):
            message = f"{named}: {placed.sharding_type.label} tables are neither saved nor loaded by dynamicemb"
            issues.append(Issue(code="scheme", pointer=where, message=message, hint="use row_wise or data_parallel"))
        if is_hash != kernel.facts.is_hashed:
            has, kind = ("a hash_table", "of hash tables") if is_hash else ("no hash_table", "of other tables")
            message = f"{named} has {has} in the spec, and {kernel.label} is not a kernel {kind}"
            issues.append(Issue(code="kernel", pointer=where, message=message, hint="plan again for this spec"))
        elif kernel is Kernel.KEY_VALUE:
            message = f"{named}: dynamicemb's planner offers no key_value"
            issues.append(Issue(code="kernel", pointer=where, message=message, hint="use another kernel"))
    return issues
