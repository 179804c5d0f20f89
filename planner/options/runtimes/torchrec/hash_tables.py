"""TorchRec's managed collisions: which options a table with one has.

A ``ManagedCollisionEmbeddingBagCollection`` (or ``ManagedCollisionEmbeddingCollection``) finds the slot of every id on
the rank that holds the slot, after the exchange of ids, and looks the slots up in an embedding module of its own. It is
sharded by rows alone, all tables alike: ``ManagedCollisionCollectionSharder.sharding_types``.

When ids lose their slots, the rows of these are reset, and this bounds the kernels [1]:

- ``key_value`` has no such reset;
- of rows that lie in a cache as well, the one in the cache becomes zero and the one in host memory a new row, so that
  what an id starts from depends on the cache;
- without an optimizer the reset is refused, and on CPUs it does not exist for row-wise AdaGrad.

Ids that were probed (``mpzch``) are given slots on GPUs alone: the operator for CPUs only reads [2].

Buckets of ``mpzch`` are given to ranks whole, as many to each. The runtime itself also takes numbers of buckets that
differ by one, which TorchRec 1.8.0's planner refuses in public releases (``_get_num_buckets`` asks for a knob).

References
----------
.. [1] TorchRec 1.8.0 ``mc_embedding_modules._evict``; FBGEMM 1.8.0 ``reset_embedding_weight_momentum``.
.. [2] FBGEMM 1.8.0 ``zero_collision_hash``: "Expected readonly to be true".
"""

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.table import Table

MODES = frozenset({"zch", "mpzch"})
#: Most row blocks that a module records (``ManagedCollisionModule``: "limited to 1024 shards").
MAX_SHARDS = 1024


def hash_table_kernels(hash_table: HashTable) -> tuple[Kernel, ...]:
    """Return the kernels that run a table whose ids come and go, fastest first."""
    if hash_table.evicts:
        return (Kernel.FUSED, Kernel.FUSED_UVM)
    return (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM)


def hash_table_scheme_issue(scheme: Scheme) -> str | None:
    """Return why TorchRec does not shard a hash table like this, or ``None``."""
    return None if scheme is Scheme.ROW_WISE else "managed collisions are sharded by row_wise alone"


def hash_table_issue(table: Table, cluster: Cluster) -> tuple[str, str] | None:
    """Return why TorchRec cannot hold the hash table on a cluster, and the way out, or ``None``."""
    hash_table, optimizer = table.hash_table, table.optimizer.name
    if hash_table is None:
        return None
    on_hosts = cluster.device_tier is Tier.DDR
    if on_hosts and hash_table.mode == "mpzch":
        return "ids get their slots on GPUs alone, and the cluster has none", "use zch, or ranks with GPUs"
    if hash_table.evicts and optimizer == "none":
        return "rows of ids that lose their slots are reset with the optimizer, and there is none", "name an optimizer"
    if on_hosts and hash_table.evicts and optimizer == "rowwise_adagrad":
        return f"FBGEMM resets no rows of {optimizer} on CPUs", "use sgd or adagrad, or ranks with GPUs"
    if hash_table.mode == "zch" and cluster.world_size > MAX_SHARDS:
        return f"zch has at most {MAX_SHARDS} row blocks, and there are {cluster.world_size} ranks", "use fewer ranks"
    return None
