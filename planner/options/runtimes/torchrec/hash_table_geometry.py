"""TorchRec: whether the shards of a hash table in a finished plan are those that its managed collisions train.

Written from TorchRec's rules alone, as :mod:`planner.options.runtimes.torchrec.geometry` is.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.table import Table

_KERNELS = (Kernel.FUSED, Kernel.FUSED_UVM)
_MAX_BLOCKS = 1024


def hash_table_issues(table: Table, placed: TablePlacement, cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and hint for each rule of hash tables that a placed table breaks; the rows are checked apart.

    Of buckets every rank must hold as many: TorchRec 1.8.0 refuses other plans.
    """
    hash_table = table.hash_table
    if hash_table is None:
        return
    scheme, kernel, shards = placed.sharding_type, placed.compute_kernel, placed.shards
    if scheme is not Scheme.ROW_WISE:
        yield "hash-table", f"managed collisions are sharded row_wise, not {scheme.label}", "use row_wise"
        return
    never_reset = (Kernel.FUSED_UVM_CACHING,) if hash_table.eviction == "none" else ()
    if kernel not in (*_KERNELS, *never_reset):
        names = " or ".join(one.label for one in (*_KERNELS, *never_reset))
        yield "hash-table", f"kernel {kernel.label} does not reset rows of ids that lose their slots", f"use {names}"
    optimizer, on_hosts = table.optimizer.name, cluster.device_tier is Tier.DDR
    if hash_table.eviction != "none" and (optimizer == "none" or (on_hosts and optimizer == "rowwise_adagrad")):
        where = " on CPUs" if on_hosts else ""
        yield "hash-table", f"FBGEMM resets no rows with the optimizer {optimizer}{where}", "use another optimizer"
    if hash_table.mode == "mpzch":
        if on_hosts:
            yield "hash-table", "mpzch gives ids their slots on GPUs alone", "use zch, or ranks with GPUs"
        size = _bucket_size(hash_table, table.num_embeddings, len(shards))
        if size == 0 or np.any(shards.num_rows % size) or len(np.unique(shards.num_rows)) > 1:
            yield "hash-table", "the ranks do not hold as many whole buckets each", "use another bucket_size"
    elif len(shards) > _MAX_BLOCKS:
        yield "hash-table", f"zch has at most {_MAX_BLOCKS} row blocks, not {len(shards)}", "use fewer ranks"


def _bucket_size(hash_table: HashTable, num_slots: int, num_ranks: int) -> int:
    """Return the slots of a bucket, by default one bucket per rank."""
    return hash_table.bucket_size or num_slots // num_ranks
