"""Which shards of hash tables TorchRec's managed collisions train."""

from .live_table import LiveTable
from .plan_types import TableDocument

_KERNELS = ("fused", "fused_uvm")
#: Runs only where no rows are reset for other ids: of a row that lies in the cache as well it resets one copy to zeros.
_NEVER_RESET = "fused_uvm_caching"
_MAX_BLOCKS = 1024  # of zch: the segments that ``ManagedCollisionModule`` records


def hash_table_reasons(table: TableDocument, live: LiveTable, device: str) -> list[str]:
    """Return everything about the shards of a hash table that TorchRec refuses, or trains wrongly."""
    found = live.hash_table
    if found is None:
        return []
    if table["sharding_type"] != "row_wise":
        return [f"managed collisions are sharded row_wise, not {table['sharding_type']}"]
    kernels = (*_KERNELS, _NEVER_RESET) if found.eviction == "none" else _KERNELS
    reasons, shards = [], table["shards"]
    if table["compute_kernel"] not in kernels:
        reasons.append(f"{table['compute_kernel']} does not reset rows of ids that lose their slots")
    if found.mode == "mpzch":
        size = found.bucket_size or live.num_embeddings // len(shards) or 1
        if len({shard["num_rows"] for shard in shards}) > 1 or any(shard["num_rows"] % size for shard in shards):
            reasons.append(f"the ranks do not hold as many whole buckets of {size} slots each")
        if device == "cpu":
            reasons.append("mpzch gives ids their slots on GPUs alone")
    elif len(shards) > _MAX_BLOCKS:
        reasons.append(f"zch has at most {_MAX_BLOCKS} row blocks, not {len(shards)}")
    if device == "cpu" and found.eviction != "none" and live.optimizer == "rowwise_adagrad":
        reasons.append("FBGEMM resets no rows of rowwise_adagrad on CPUs; use sgd or adagrad")
    return reasons
