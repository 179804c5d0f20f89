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
:mod:`planner.options.runtimes.sparsecore.id_limits`.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.base import TableIssue
from planner.options.runtimes.on_device import OnDeviceRuntime
from planner.options.runtimes.sparsecore.geometry import ALIGNMENT, MAX_ROW_NUMBER, check_shards, is_power_of_two


class SparseCore(OnDeviceRuntime):
    """Rules of ``jax_tpu_embedding.sparsecore``; ``fused`` stands for updates on the SparseCore."""

    name = "sparsecore"
    has_modulo_rows = True
    device_families: frozenset[str] | None = frozenset({"tpu", "custom"})
    export_reads_spec = True
    #: Of those that specs can name, by the library's ``short_name``, which is the same.
    optimizers = ("sgd", "adagrad", "adam")
    takes_id_weights = True
    pooling_reason = "it pools the ids of every sample"

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """There is one scheme and one kernel."""
        return super().kernels(table, scheme, offered) if scheme is Scheme.ROW_WISE else ()

    def untrained(self, table: Table) -> str | None:
        """Return why a table is not trained; numbers of its rows must fit, too."""
        too_long = table.num_embeddings > MAX_ROW_NUMBER
        return super().untrained(table) or (
            f"rows are numbered with 32 bits: at most {MAX_ROW_NUMBER}" if too_long else None
        )

    def cut_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Say why SparseCores do not run a scheme of a table."""
        if table.embedding_dim % ALIGNMENT:
            return f"rows are padded to a multiple of {ALIGNMENT} columns, which take memory"
        if scheme is not Scheme.ROW_WISE:
            return f"every SparseCore holds rows of every table, which row_wise plans and {scheme.label} does not"
        return None

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Return what the library would reject of a finished placement, and of so many chips."""
        issues = super().check(problem, placement)
        if not is_power_of_two(placement.world_size):
            message = f"rows are dealt out to a power of two of SparseCores, and {placement.world_size} chips have none"
            issues.insert(0, Issue(code="world-size", pointer="/world_size", message=message))
        return issues

    def kernel_issue(self, placed: TablePlacement) -> str | None:
        """Whatever the scheme, rows lie on the chip."""
        kernel = placed.compute_kernel
        return None if kernel is Kernel.FUSED else f"rows lie on the chip and run with fused, not {kernel.label}"

    def geometry_issue(self, table: Table, placed: TablePlacement, num_ranks: int) -> TableIssue | None:
        """Every chip must hold a share of the rows."""
        check_shards(placed, (table.num_embeddings, table.embedding_dim), num_ranks)
        return None
