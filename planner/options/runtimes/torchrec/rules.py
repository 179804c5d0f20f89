"""TorchRec: which options of a table it trains correctly.

Found by training plans with real TorchRec 1.8 on CPU against an unsharded model (the tests
under ``tests/torchrec`` do it again). It accepts, and then trains **silently wrong**:

1. row blocks other than ceil(rows / n) in row_wise and table_row_wise;
2. a MEAN-pooled table cut by rows in a module that also has tables not cut by rows (the
   division by the bag length is then applied once too often to all other tables);
3. grid_shard of a MEAN-pooled table (means of partial bags are added);
4. a shard without rows (the fused CPU backward takes it and the next table for one);
5. a plan under a wrong module path (nothing is sharded): checked by the launcher client.

The geometry of finished plans is checked in :mod:`planner.options.runtimes.torchrec.geometry`.
"""

from collections.abc import Collection

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import SYNCED_OPTIMIZERS
from planner.domain.problem.storage import Storage
from planner.domain.problem.table import MAX_COLUMNS, Table
from planner.errors import Issue
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.torchrec.geometry import MAX_SHARD_COLUMNS, check_placement
from planner.options.runtimes.torchrec.hash_tables import (
    MODES,
    hash_table_issue,
    hash_table_kernels,
    hash_table_scheme_issue,
)
from planner.options.runtimes.torchrec.replicas import check_replicas

#: What TorchRec has. A scheme that is not listed is neither planned nor exported for it.
SCHEMES = (
    Scheme.DATA_PARALLEL,
    Scheme.TABLE_WISE,
    Scheme.COLUMN_WISE,
    Scheme.ROW_WISE,
    Scheme.TABLE_ROW_WISE,
    Scheme.TABLE_COLUMN_WISE,
    Scheme.GRID_SHARD,
)
#: Schemes that cut rows over all ranks of a group and reduce partial pools, as TorchRec
#: groups them when it divides MEAN pools (grid_shard is missing from that group there).
ROW_SCHEMES = frozenset({Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})
#: Schemes for which TorchRec builds a batched key-value lookup, less column_wise: pieces of a table on one rank would
#: share one cache of the size of a single piece's.
KEY_VALUE_SCHEMES = frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})
#: Optimizers of FBGEMM's ``SSDTableBatchedEmbeddingBags`` that keep no state per weight.
KEY_VALUE_OPTIMIZERS = frozenset({"none", "rowwise_adagrad"})
#: Optimizers of FBGEMM's fused kernels on CPUs.
HOST_OPTIMIZERS = frozenset({"none", "sgd", "adagrad", "rowwise_adagrad"})
#: Optimizers that no sharded table can have: TorchRec 1.8.0 asks every fused operator for its optimizer state
#: (``EmbeddingFusedOptimizer``), which FBGEMM's ``get_optimizer_state`` does not hand out for this one, and its own
#: class for tables outside of fused operators is a placeholder (``torchrec/optim/optimizers.py``).
UNBUILT_OPTIMIZERS = frozenset({"lars_sgd"})
#: FBGEMM's kernels are not compiled for bf16 weights: on GPUs its operators refuse them, and on CPUs the first lookup
#: fails.
LOOKUP_TYPES = frozenset(DATA_TYPES) - {"bf16"}
#: Types of weights in training. Quantised rows are looked up in inference alone: TorchRec builds no operator that
#: trains them or leaves them as they are, with any optimizer or none.
TRAINED_TYPES = frozenset({"fp32", "fp16"})
#: TorchRec 1.8.0 ``_populate_ssd_tbe_params`` passes no cached share of a ``key_value`` table on: it has this one, or
#: less where ``max_l1_cache_size`` bounds it.
MAX_KEY_VALUE_SHARE = 0.2
#: What an EmbeddingCollection (sequence embeddings) is sharded by here.
SEQUENCE_SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE})


class TorchRec(Runtime):
    """Rules of ``torchrec.distributed`` with FBGEMM kernels."""

    name = "torchrec"
    #: GPU kernels of some releases returned zeros for wider rows (torchrec issue 3673).
    max_columns = MAX_SHARD_COLUMNS
    row_schemes = ROW_SCHEMES
    #: FBGEMM allocates the rows of its UVM kernels itself (``new_managed_tensor``) and takes no memory to put them in.
    supports_scm = False
    data_types: Collection[str] = LOOKUP_TYPES
    trained_data_types: Collection[str] = TRAINED_TYPES
    #: FBGEMM 1.8.0 ``SplitTableBatchedEmbeddingBagsCodegen``: "Optimizer ... is not supported in CPU mode".
    host_optimizers = HOST_OPTIMIZERS
    max_key_value_share = MAX_KEY_VALUE_SHARE
    shares_operators = True
    runs_sharding_types_apart = True
    keeps_caches_apart = True
    hash_table_modes = MODES
    #: ``intra_and_cross_node_pg`` takes so many hosts for one as ``TORCHREC_RESOLVED_POD_SIZE`` says.
    has_pods: bool = True
    has_replica_groups = True
    #: ``EmbeddingCollectionSharder(use_index_dedup=True)``, for all sequences of a job.
    has_index_dedup = True

    def cache_reserved_bytes(self, index: int, storage: Storage, columns: int) -> float | None:
        """Keep caches apart by width and cached share, and those of ``key_value`` tables by table.

        FBGEMM takes off whole bytes (``int(cache_reserved_memory)``), so that less than one byte takes off nothing, and
        TorchRec compares the numbers when it groups tables. Two widths or shares never have the same number.
        """
        share = storage.cache_load_factor
        if share is None:
            return None
        if storage.kernel is Kernel.KEY_VALUE:
            return (index + 1) / 2**20  # more than any model has tables
        return (columns + share / 2) / (2 * MAX_COLUMNS)

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` is the only kernel of data_parallel; the others run every scheme but that.

        ``dense`` also runs table_wise, with an optimizer outside the kernel; it is offered
        only if the user names it, because the fused one is never slower. ``key_value``
        trains with few optimizers. Hash tables have kernels of their own.
        """
        if table.hash_table is not None:
            return tuple(kernel for kernel in hash_table_kernels(table.hash_table) if kernel in offered)
        if scheme is Scheme.DATA_PARALLEL:
            return tuple(offered & {Kernel.DENSE})
        runs = [Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM]
        named = table.constraints.compute_kernels
        if scheme is Scheme.TABLE_WISE and named is not None and Kernel.DENSE in named:
            runs.append(Kernel.DENSE)
        if scheme in KEY_VALUE_SCHEMES and table.optimizer.name in KEY_VALUE_OPTIMIZERS:
            runs.append(Kernel.KEY_VALUE)
        return tuple(kernel for kernel in runs if kernel in offered)

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why TorchRec would reject this scheme of the table, or train it wrongly."""
        if scheme not in SCHEMES:
            return f"TorchRec has no {scheme.label}"
        if table.optimizer.name in UNBUILT_OPTIMIZERS:
            return f"TorchRec 1.8 builds no operator that trains with {table.optimizer.name}: use another optimizer"
        names = table.constraints.data_types or (table.data_type.name,)
        others = set(names) - set(self.data_types)
        if len(others) == len(set(names)):  # else one of the others is chosen
            return (
                f"no kernel of FBGEMM 1.8 looks up {' or '.join(sorted(others))} weights: use fp16 or fp32 weights"
                " (outputs and messages may be bf16: output_dtype, forward_comm_dtype, backward_comm_dtype)"
            )
        if table.embedding_dim % 4:
            padded = -(-table.embedding_dim // 4) * 4
            return f"its kernels need rows of a multiple of 4 columns: pad embedding_dim to {padded}"
        if scheme is Scheme.GRID_SHARD and table.pooling == "mean":
            return "grid_shard adds the means of partial bags: use another scheme, or sum pooling"
        if table.pooling == "none" and scheme not in SEQUENCE_SCHEMES:
            return f"{scheme.label} of a sequence table is not supported"
        return None if table.hash_table is None else hash_table_scheme_issue(scheme)

    def hash_table_issue(self, table: Table, cluster: Cluster) -> tuple[str, str] | None:
        """Return why TorchRec cannot hold the hash table on a cluster, and the way out."""
        return hash_table_issue(table, cluster)

    def pod_issue(self, table: Table, scheme: Scheme) -> str | None:
        """A grid over a pod cannot be built with state for each row.

        TorchRec 1.8.0 (and 1.9.2) counts the column pieces of that state by the ranks of a host
        (``get_optimizer_rowwise_shard_metadata_and_global_metadata``), and refuses what does not add up.
        """
        if scheme is Scheme.GRID_SHARD and table.optimizer.states_per_row:
            return (
                f"TorchRec 1.8 cannot build the state of {table.optimizer.name} for a grid over several hosts of a pod:"
                " use an optimizer without state for each row, or another scheme"
            )
        return None

    def replica_issue(self, table: Table, scheme: Scheme, kernel: Kernel) -> str | None:
        """Return what keeps ``DMPCollection`` from averaging the table; see :mod:`.replicas`."""
        if scheme.is_replicated:
            return None
        if scheme is Scheme.TABLE_COLUMN_WISE:
            return "DMPCollection has no shape for the part of such a table on ranks that hold none of it"
        if kernel is not Kernel.FUSED:
            return f"sharding groups average tables of the kernel fused, not of {kernel.label}"
        if table.optimizer.name not in SYNCED_OPTIMIZERS:
            return f"sharding groups average no state of the optimizer {table.optimizer.name}"
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Rule 2: MEAN pools cut by rows are right only among their own kind."""
        return table.pooling == "mean" and scheme in ROW_SCHEMES

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check a finished placement, as a whole and then table by table."""
        of_replicas = check_replicas(problem, placement)
        return [*check_placement(problem, placement), *of_replicas, *super().check(problem, placement)]
