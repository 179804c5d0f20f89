"""HugeCTR: what its embedding collection trains of a table.

Read from its source (NVIDIA-Merlin/HugeCTR, where ``shard`` takes ``compression_strategy``), not tried on GPUs:

1. Tables of a fixed size keep their weights as fp32, and train with SGD, element-wise AdaGrad or FTRL
   (``embedding_storage/ragged_static_embedding.cu``); row-wise AdaGrad, which needs far less memory, is not among them.
2. Gradients of rows wider than 256 columns are rejected (``embedding/operators/multi_to_one_reduce_v2.cuh``).
3. ``embedding_lookup`` takes no weights of ids, and without pooling a fixed number of ids per sample.
4. All rows lie in the memory of the GPU.
5. Pools of several GPUs are added, then divided by the length of the whole bag: means are right however tables are cut.

Where rows and columns go stands in :mod:`planner.options.runtimes.hugectr.geometry`. Column pieces must be equally
wide and on as many GPUs; the search does not ensure that, and no scheme that cuts columns is an option. Plans that have
such pieces can still be exported.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.hugectr.geometry import MAX_PIECE_COLUMNS, UnheldGeometry, check_copies, layout_of
from planner.options.runtimes.per_table import TableIssue, kernel_issue, kernel_of, table_issues

#: Of those that specs can name, what tables of a fixed size are trained with.
OPTIMIZERS = ("sgd", "adagrad")
#: Schemes whose shards an embedding collection can always hold.
SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})


class HugeCTR:
    """Rules of ``hugectr.EmbeddingCollectionConfig`` with tables of a fixed size."""

    name = "hugectr"
    max_columns = MAX_PIECE_COLUMNS
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
        """Return why HugeCTR does not run a scheme of a table, or why the scheme is not an option."""
        untrained = _untrained(table)
        if untrained is not None:
            return untrained
        if scheme not in SCHEMES:
            return f"{scheme.label} must cut into equal pieces, which is not searched for"
        if table.embedding_dim > MAX_PIECE_COLUMNS:
            return f"its gradients are {MAX_PIECE_COLUMNS} columns wide at most: make narrower tables of this one"
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Means are divided where pools are complete."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check that an embedding collection can hold a finished placement."""
        return table_issues(problem, placement, lambda table, placed: _table_issue(table, placed, placement.world_size))


def _table_issue(table: Table, placed: TablePlacement, num_gpus: int) -> TableIssue | None:
    """Return the code and the message of the first rule that a table breaks."""
    wrong_kernel = kernel_issue(placed)
    if wrong_kernel is not None:
        return wrong_kernel
    untrained = _untrained(table)
    if untrained is not None:
        return "untrained", f"the runtime hugectr cannot run this table: {untrained}"
    rows, columns = table.num_embeddings, table.embedding_dim
    try:
        if placed.sharding_type.is_replicated:
            check_copies(placed.shards, rows, columns, num_gpus)
        else:
            layout_of(placed.shards, rows, columns)
    except UnheldGeometry as error:
        return "geometry", str(error)
    return None


def _untrained(table: Table) -> str | None:
    """Return why an embedding collection does not train a table, wherever its shards are."""
    if not table.is_pooled:
        return "it looks up a fixed number of ids per sample without pooling: use sum or mean pooling"
    if table.is_weighted:
        return "its lookups take no weights of ids"
    if table.data_type.name != "fp32":
        return f"it keeps weights as fp32, not as {table.data_type.name}"
    if table.optimizer.name not in OPTIMIZERS:
        return f"it trains with {' or '.join(OPTIMIZERS)}, not with {table.optimizer.name}"
    return None
