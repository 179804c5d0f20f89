"""SparseCores of TPUs, by the library jax-tpu-embedding: what it trains of a table.

Read from its source (release 0.1.0), and its preprocessing of inputs run on CPUs; not tried on TPUs:

1. Every table is cut by rows over all SparseCores (``utils.utils.shard_emb_table``, ``lib/nn/table_stacking.py``);
   there is no other way to place one.
2. Weights and slots are fp32; of the optimizers that specs can name there are SGD, element-wise AdaGrad and Adam
   (``lib/nn/embedding_spec.py``). Row-wise AdaGrad is not among them.
3. Bags are pooled by sum, mean or sqrtn; ids may be weighted, means are then divided by the sum of weights
   (``lib/core/process_coo_tensors_impl.h``).
4. Rows are padded to a multiple of 8 columns. Specs must say so, for plans to count the memory.

Where rows go is said in :mod:`planner.options.runtimes.sparsecore.geometry`, how many ids fit in
:mod:`.sparsecore_limits`.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import MAX_COLUMNS, Table
from planner.errors import Issue
from planner.options.runtimes.per_table import TableIssue, table_issues
from planner.options.runtimes.sparsecore.geometry import (
    ALIGNMENT,
    MAX_ROW_NUMBER,
    UnheldTable,
    check_shards,
    is_power_of_two,
)

#: Of those that specs can name, by the library's ``short_name``, which is the same.
OPTIMIZERS = ("sgd", "adagrad", "adam")


class SparseCore:
    """Rules of ``jax_tpu_embedding.sparsecore``."""

    name = "sparsecore"
    max_columns = MAX_COLUMNS
    row_schemes: frozenset[Scheme] = frozenset()
    splits_off_hot_rows = False
    supports_scm = False
    device_families: frozenset[str] | None = frozenset({"tpu", "custom"})

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``fused`` stands for updates on the SparseCore."""
        del table
        return (Kernel.FUSED,) if scheme is Scheme.ROW_WISE and Kernel.FUSED in offered else ()

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Say why SparseCores do not run a scheme of a table."""
        untrained = _untrained(table)
        if untrained is not None:
            return untrained
        if table.embedding_dim % ALIGNMENT:
            return f"rows are padded to a multiple of {ALIGNMENT} columns, which take memory"
        if scheme is not Scheme.ROW_WISE:
            return f"every SparseCore holds rows of every table, which row_wise plans and {scheme.label} does not"
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Means are divided before ids are sent."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Judge a finished placement by what the library would make of it."""
        issues = table_issues(
            problem, placement, lambda table, placed: _table_issue(table, placed, placement.world_size)
        )
        if not is_power_of_two(placement.world_size):
            message = f"rows are dealt out to a power of two of SparseCores, and {placement.world_size} chips have none"
            issues.insert(0, Issue(code="world-size", pointer="/world_size", message=message))
        return issues


def _table_issue(table: Table, placed: TablePlacement, num_chips: int) -> TableIssue | None:
    """Return the code and the message of the first rule that a table breaks."""
    if placed.compute_kernel is not Kernel.FUSED:
        return "kernel", f"rows lie on the chip and run with fused, not {placed.compute_kernel.label}"
    untrained = _untrained(table)
    if untrained is not None:
        return "untrained", f"the runtime sparsecore cannot run this table: {untrained}"
    try:
        check_shards(placed.shards, table.num_embeddings, table.embedding_dim, num_chips)
    except UnheldTable as error:
        return "geometry", str(error)
    return None


def _untrained(table: Table) -> str | None:
    """Return why the library does not train a table, wherever its shards are."""
    if not table.is_pooled:
        return "it pools the ids of every sample: use sum or mean pooling"
    if table.data_type.name != "fp32":
        return f"it keeps weights as fp32, not as {table.data_type.name}"
    if table.optimizer.name not in OPTIMIZERS:
        return f"it trains with {', '.join(OPTIMIZERS[:-1])} or {OPTIMIZERS[-1]}, not with {table.optimizer.name}"
    if table.num_embeddings > MAX_ROW_NUMBER:
        return f"rows are numbered with 32 bits: at most {MAX_ROW_NUMBER}"
    return None
