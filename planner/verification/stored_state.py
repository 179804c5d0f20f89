"""What a checkpoint stores of a table's optimizer, and whether another plan of the table reads all of it.

Written from the stored tensors, apart from the options, which start from schemes
(:mod:`planner.options.loadable_layouts`): the two agree, or a plan is refused.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.checkpoint_plan import CheckpointPlan
from planner.domain.problem.optimizer import Optimizer
from planner.domain.problem.problem import Problem
from planner.errors import Issue


class Form(Enum):
    """Under which names, and by which optimizer, state is stored."""

    FUSED = "the fused kernels"
    COPIES = "the optimizer of the copies"
    DENSE = "the optimizer of a dense table"
    KEY_VALUE = "the key_value kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The tensors of a table's state: where they are, and which columns each row of a number per row belongs to."""

    form: Form
    column_pieces: tuple[tuple[int, int], ...]  # (first column, columns) of each, left to right


def form_of(scheme: Scheme, kernel: Kernel) -> Form:
    """Return who has the state of a table."""
    if kernel is Kernel.KEY_VALUE:
        return Form.KEY_VALUE
    if kernel is Kernel.DENSE:
        return Form.COPIES if scheme.is_replicated else Form.DENSE
    return Form.FUSED


def stored_state(placed: TablePlacement) -> StoredState:
    """Return what a checkpoint under a plan stores of a table."""
    pieces = np.stack([placed.shards.column_offset, placed.shards.num_columns], axis=1)
    pieces = np.unique(pieces, axis=0) if pieces[:, 0].any() else pieces[:1]  # most tables have one piece
    form = form_of(placed.sharding_type, placed.compute_kernel)
    return StoredState(form=form, column_pieces=tuple(map(tuple, pieces.tolist())))


def state_loss(optimizer: Optimizer, old: StoredState, new: StoredState) -> str:
    """Return why state under one plan is not read under another, in words; ``""`` if all of it is."""
    has_state = bool(optimizer.states_per_row or optimizer.states_per_element)
    if old.form is not new.form and (has_state or Form.KEY_VALUE in (old.form, new.form)):
        return f"its state is that of {old.form.value}, which {new.form.value} do not read"
    in_kernel = old.form in (Form.FUSED, Form.KEY_VALUE)
    if optimizer.states_per_row and in_kernel and old.column_pieces != new.column_pieces:
        before_widths, widths = (" + ".join(str(columns) for _, columns in one.column_pieces) for one in (old, new))
        per_row = f"{optimizer.name} keeps a number per row of every column piece"
        return f"{per_row}, and the pieces have {widths} columns, not {before_widths}"
    return ""


def checkpoint_issues(problem: Problem, placement: Placement) -> list[Issue]:
    """Return tables of which a placement loses what the checkpoint's plan is to keep; pointers are into the plan."""
    if problem.checkpoint_plan is None:
        return []
    plan: CheckpointPlan = problem.checkpoint_plan
    before = {placed.name: placed for placed in plan.placement.tables}
    tables = {table.name: table for table in problem.tables}
    issues = []
    for index, placed in enumerate(placement.tables):
        old, table = before.get(placed.name), tables[placed.name]
        if old is None or _shape(old) != (table.num_embeddings, table.embedding_dim):
            continue
        code, loss = "checkpoint-state", state_loss(table.optimizer, stored_state(old), stored_state(placed))
        if not loss and plan.keep == "schemes" and old.sharding_type is not placed.sharding_type:
            code, loss = "checkpoint-scheme", f"it is {old.sharding_type.label}, not {placed.sharding_type.label}"
        if loss:
            issues.append(
                Issue(
                    code=code,
                    pointer=f"/tables/{index}",
                    message=f'table "{placed.name}" in the checkpoint: {loss}',
                    hint="plan again, or leave checkpoint_plan out",
                )
            )
    return issues


def _shape(placed: TablePlacement) -> tuple[int, int]:
    return int(placed.shards.row_end.max()), int(placed.shards.column_end.max())
