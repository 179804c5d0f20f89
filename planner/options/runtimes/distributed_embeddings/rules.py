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

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import MAX_COLUMNS, Table
from planner.errors import Issue
from planner.options.runtimes.distributed_embeddings.geometry import Group, UnheldGeometry, layout_of
from planner.options.runtimes.per_table import TableIssue, kernel_issue, kernel_of, table_issues

#: Of those that specs can name, what Keras trains with the memory that is planned.
OPTIMIZERS = ("sgd", "adagrad")
#: Schemes whose shards can always be held.
SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE})
#: Why a table with means is not cut by rows.
NO_MEANS = "its bags have means: rows are cut for lookups of a fixed number of ids alone, which padding would change"


class DistributedEmbeddings:
    """Rules of ``dist_model_parallel.DistributedEmbedding``."""

    name = "distributed_embeddings"
    max_columns = MAX_COLUMNS
    row_schemes: frozenset[Scheme] = frozenset()
    splits_off_hot_rows = False
    supports_scm = False
    #: ``custom`` is whatever the user describes; exports reject rows that do not lie in hbm.
    device_families: frozenset[str] | None = frozenset({"gpu", "custom"})

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """One for each scheme."""
        del table
        runs = kernel_of(scheme)
        return (runs,) if runs in offered else ()

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a scheme of a table is not run, or why it is not an option."""
        untrained = _untrained(table)
        if untrained is not None:
            return untrained
        if scheme is Scheme.TABLE_ROW_WISE:
            return "rows are cut over all ranks: row_wise does that"
        if scheme not in SCHEMES:
            return f"{scheme.label} must cut into even slices on different ranks, which is not searched for"
        if scheme is Scheme.ROW_WISE and table.pooling == "mean":
            return NO_MEANS
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Tables are cut one by one."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check a finished placement table by table."""
        return table_issues(problem, placement, lambda table, placed: _table_issue(table, placed, placement.world_size))


def _table_issue(table: Table, placed: TablePlacement, num_ranks: int) -> TableIssue | None:
    """Return the code and the message of the first rule that a table breaks."""
    wrong_kernel = kernel_issue(placed)
    if wrong_kernel is not None:
        return wrong_kernel
    untrained = _untrained(table)
    if untrained is not None:
        return "untrained", f"the runtime distributed_embeddings cannot run this table: {untrained}"
    try:
        layout = layout_of(
            placed.shards,
            table.num_embeddings,
            table.embedding_dim,
            num_ranks,
            is_copied=placed.sharding_type.is_replicated,
        )
    except UnheldGeometry as error:
        return "geometry", str(error)
    if layout.group is Group.ROW_SLICE and table.pooling == "mean":
        return "pooling", NO_MEANS
    return None


def _untrained(table: Table) -> str | None:
    """Return why a table is not trained, wherever its shards are."""
    if not table.is_pooled:
        return "it exchanges one row per sample: use sum or mean pooling"
    if table.is_weighted:
        return "its lookups take no weights of ids"
    if table.data_type.name != "fp32":
        return f"its lookup kernels are for fp32 weights, not for {table.data_type.name}"
    if table.optimizer.name not in OPTIMIZERS:
        return f"it trains with {' or '.join(OPTIMIZERS)}, not with {table.optimizer.name}"
    return None
