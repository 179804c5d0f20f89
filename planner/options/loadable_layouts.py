"""What a table may be, so that the runtime loads its optimizer state from a checkpoint of another plan.

Weights are read by their rows and columns, whatever the plan: ``torch.distributed.checkpoint`` reads the overlap of
every stored rectangle with every new one. State of the fused kernels is stored in the same way, in one of two shapes
(TorchRec 1.8.0, ``EmbeddingFusedOptimizer``):

* a number per weight has the shape of the weights, and is read like them;
* a number per row is stored once for every column piece, piece after piece from left to right, (pieces x rows,). A
  checkpoint with another number of pieces is refused; one with as many pieces of other widths is read, and every piece
  then has the state of other columns than its own.

Tables with the ``dense`` kernel have their state in an optimizer of the launcher, under other names: nothing is read
from there into fused kernels, or the other way round. ``key_value`` tables are stored in another form altogether.
The tests under ``tests/torchrec`` save and load such checkpoints.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table

#: Kernels of one form of state: rows in the device's memory, in the host's, or in both.
_FUSED = frozenset({Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadableLayout:
    """Schemes and kernels under which nothing is lost, and the one cut by columns that all of them must have."""

    schemes: frozenset[Scheme]
    kernels: frozenset[Kernel]
    column_cut: tuple[int, ...] = ()  # columns of each piece, left to right; empty if the cut is free


def loadable_layouts(problem: Problem) -> dict[int, LoadableLayout]:
    """Return what tables may be, by their index; tables that may be anything are not among them.

    Those are tables that the checkpoint does not have, or not in this shape.
    """
    if problem.checkpoint_plan is None:
        return {}
    plan = problem.checkpoint_plan
    before = {placed.name: placed for placed in plan.placement.tables}
    return {
        index: _loadable(table, before[table.name], schemes_too=plan.keep == "schemes")
        for index, table in enumerate(problem.tables)
        if table.name in before and has_shape_of(table, before[table.name])
    }


def has_shape_of(table: Table, placed: TablePlacement) -> bool:
    """Whether a placement has the rows and the columns of a table."""
    rows, columns = int(placed.shards.row_end.max()), int(placed.shards.column_end.max())
    return (rows, columns) == (table.num_embeddings, table.embedding_dim)


def _loadable(table: Table, before: TablePlacement, *, schemes_too: bool) -> LoadableLayout:
    schemes = frozenset({before.sharding_type}) if schemes_too else frozenset(Scheme)
    if before.compute_kernel is Kernel.KEY_VALUE:
        kernels = frozenset({Kernel.KEY_VALUE})
    elif not (table.optimizer.states_per_row or table.optimizer.states_per_element):
        return LoadableLayout(schemes=schemes, kernels=frozenset(Kernel) - {Kernel.KEY_VALUE})
    elif before.compute_kernel is Kernel.DENSE:
        return LoadableLayout(schemes=schemes & {before.sharding_type}, kernels=frozenset({Kernel.DENSE}))
    else:
        kernels = _FUSED
    schemes -= {Scheme.DATA_PARALLEL}
    if not table.optimizer.states_per_row:
        return LoadableLayout(schemes=schemes, kernels=kernels)
    offsets, first = np.unique(before.shards.column_offset, return_index=True)
    is_cut = len(offsets) > 1
    return LoadableLayout(
        schemes=frozenset(scheme for scheme in schemes if scheme.facts.cuts_columns == is_cut),
        kernels=kernels,
        column_cut=tuple(before.shards.num_columns[first].tolist()) if is_cut else (),
    )
