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

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.base import Runtime
from planner.options.runtimes.torchrec.geometry import MAX_SHARD_COLUMNS, check_placement

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
#: Schemes for which TorchRec builds a batched key-value lookup.
KEY_VALUE_SCHEMES = frozenset({Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})
#: Optimizers of FBGEMM's ``SSDTableBatchedEmbeddingBags`` that keep no state per weight.
KEY_VALUE_OPTIMIZERS = frozenset({"none", "rowwise_adagrad"})
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

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` is the only kernel of data_parallel; the others run every scheme but that.

        ``dense`` also runs table_wise, with an optimizer outside the kernel; it is offered
        only if the user names it, because the fused one is never slower. ``key_value``
        trains with few optimizers.
        """
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
        if table.embedding_dim % 4:
            padded = -(-table.embedding_dim // 4) * 4
            return f"its kernels need rows of a multiple of 4 columns: pad embedding_dim to {padded}"
        if scheme is Scheme.GRID_SHARD and table.pooling == "mean":
            return "grid_shard adds the means of partial bags: use another scheme, or sum pooling"
        if table.pooling == "none" and scheme not in SEQUENCE_SCHEMES:
            return f"{scheme.label} of a sequence table is not supported"
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Rule 2: MEAN pools cut by rows are right only among their own kind."""
        return table.pooling == "mean" and scheme in ROW_SCHEMES

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check a finished placement, as a whole and then table by table."""
        return [*check_placement(problem, placement), *super().check(problem, placement)]
