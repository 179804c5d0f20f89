"""NVIDIA distributed-embeddings (TensorFlow, Horovod): what it trains of a table.

Read from its source (NVIDIA-Merlin/distributed-embeddings, where ``DistributedEmbedding`` takes
``gpu_embedding_size``), not tried on GPUs:

1. Its lookup kernels are for fp32 weights (``cc/kernels/embedding_lookup_kernels.cc``) and take no weights of ids.
2. Outputs are exchanged as one row per sample and table: lookups without pooling are for one id per sample only.
3. Variables are trained by optimizers of Keras, none of which has one state per row; Adam is rejected because its
   sparse step decays the moments of all rows through a copy as large as the table, for which no memory is planned.
4. Tables cut by rows gather the ids of all ranks as tensors of a fixed number of ids, look up those that are not
   theirs as zeros, and add up. Shorter bags can be padded with ids that no rank has; means would count them.
5. Tables can be left to the CPU of the host, which then looks them up itself: a speed that no kernel of ours has.

Where rows and columns go stands in :mod:`planner.options.runtimes.distributed_embeddings.geometry`. Column slices must
be even and on different ranks; the search does not ensure that, and no scheme that cuts columns is an option. Plans
that have such slices can still be exported. Table-parallel tables must be on every rank, or there must be none: that
is a rule of whole plans, which the export checks.
"""

from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.table import Table
from planner.options.runtimes.base import TableIssue
from planner.options.runtimes.distributed_embeddings.geometry import Group, layout_of
from planner.options.runtimes.on_device import OnDeviceRuntime

#: Schemes whose shards can always be held.
SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE})
#: Why a table with means is not cut by rows.
NO_MEANS = "its bags have means: rows are cut for lookups of a fixed number of ids alone, which padding would change"


class DistributedEmbeddings(OnDeviceRuntime):
    """Rules of ``dist_model_parallel.DistributedEmbedding``."""

    name = "distributed_embeddings"
    #: Of those that specs can name, what Keras trains with the memory that is planned.
    optimizers = ("sgd", "adagrad")
    pooling_reason = "it exchanges one row per sample"
    fp32_reason = "its lookup kernels are for fp32 weights, not for"

    def cut_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a scheme of a table is not run, or why it is not an option."""
        if scheme is Scheme.TABLE_ROW_WISE:
            return "rows are cut over all ranks: row_wise does that"
        if scheme not in SCHEMES:
            return f"{scheme.label} must cut into even slices on different ranks, which is not searched for"
        return NO_MEANS if scheme is Scheme.ROW_WISE and table.pooling == "mean" else None

    def geometry_issue(self, table: Table, placed: TablePlacement, num_ranks: int) -> TableIssue | None:
        """Check that ranks can hold the shards."""
        layout = layout_of(placed, (table.num_embeddings, table.embedding_dim), num_ranks)
        return ("pooling", NO_MEANS) if layout.group is Group.ROW_SLICE and table.pooling == "mean" else None
