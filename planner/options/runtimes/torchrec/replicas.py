"""Which tables TorchRec keeps alike in all sharding groups, from the shards of a finished plan alone.

``DMPCollection`` (1.8.0) averages the weights of ``SplitTableBatchedEmbeddingBagsCodegen`` operators as they lie in
memory. Rows that a cache holds have newer weights than the memory behind it; operators of block storage, and of
``dense`` tables that are sharded, are not among them at all. Gradients of ``data_parallel`` tables are added up over
all ranks instead. It is not made at all where an operator has optimizer state of which no part is called "sum", nor
where a rank holds no part of a table that is cut ``table_column_wise``
(``create_global_tensor_shape_stride_from_metadata``).
"""

from collections.abc import Iterator

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.errors import Issue

#: Optimizers whose state is called "sum" (FBGEMM 1.8.0 ``get_optimizer_state``), or that have none.
_OPTIMIZERS = ("sgd", "rowwise_adagrad", "adagrad")


def check_replicas(problem: Problem, placement: Placement) -> Iterator[Issue]:
    """Yield the tables of which replicas would not stay alike, where a job has several sharding groups."""
    if not problem.is_replicated:
        return
    optimizers = {table.name: table.optimizer.name for table in problem.tables}
    for index, placed in enumerate(placement.tables):
        if placed.sharding_type is Scheme.DATA_PARALLEL:
            continue
        name, optimizer = f'table "{placed.name}"', optimizers[placed.name]
        if placed.sharding_type is Scheme.TABLE_COLUMN_WISE:
            yield Issue(
                code="replica-scheme",
                pointer=f"/tables/{index}/sharding_type",
                message=f"{name}: TorchRec's DMPCollection fails on ranks without a part of a table_column_wise table",
                hint="use column_wise, or another scheme",
            )
        if placed.compute_kernel is not Kernel.FUSED:
            yield Issue(
                code="replica-kernel",
                pointer=f"/tables/{index}/compute_kernel",
                message=f"{name}: TorchRec does not average tables with the kernel {placed.compute_kernel.label} over"
                " sharding groups",
                hint="use the kernel fused, or data_parallel",
            )
        if optimizer not in (*_OPTIMIZERS, "none"):
            yield Issue(
                code="replica-optimizer",
                pointer=f"/tables/{index}",
                message=f"{name}: TorchRec's DMPCollection finds no state to average of the optimizer {optimizer}",
                hint=f"use {' or '.join(_OPTIMIZERS)}, or data_parallel",
            )
