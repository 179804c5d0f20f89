"""Smaller tables: weights of a smaller type, or an optimizer with less state, for as few tables as possible."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.diagnosis.fixes.ladder import SLACK, Ladder, Step
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.data_type import DATA_TYPES, DataType
from planner.domain.problem.optimizer import OPTIMIZERS, Optimizer
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.runtimes.registry import RUNTIMES

_MOST_NAMED = 3


def data_type_ladder(problem: Problem, shortfalls: Sequence[Shortfall], kind: DataType) -> Ladder | None:
    """Store tables as ``kind``, those that fit nowhere first, then the largest; ``None`` if no table gets smaller.

    Types that cannot be trained are for tables without an optimizer, and not for a runtime that trains none of them.
    """
    if kind.name not in RUNTIMES[problem.runtime].types_of_weights(is_trained=problem.serving is None):
        return None

    def saved_bytes(table: Table) -> float:
        return _least_weight_bytes(table) - _weight_bytes(table, kind) if table.can_be_trained_as(kind) else 0.0

    def allowed(table: Table) -> Table:
        listed = table.constraints.data_types
        if listed is None:
            return replace(table, data_type=kind)
        wider = tuple(sorted({*listed, kind.name}))
        return replace(table, constraints=replace(table.constraints, data_types=wider))

    def change(index: int, table: Table) -> SpecChange:
        where, listed = f"/model/tables/{index}", allowed(table).constraints.data_types
        if listed is None:
            return SpecChange(pointer=f"{where}/data_type", value=kind.name)
        return SpecChange(pointer=f"{where}/constraints/data_types", value=listed)

    return _ladder(
        problem,
        shortfalls,
        ladder_kind="data_type",
        value=kind.name,
        saved_bytes=saved_bytes,
        changed=allowed,
        change=change,
        was=lambda table: " or ".join(table.constraints.data_types or (table.data_type.name,)),
    )


def _weight_bytes(table: Table, kind: DataType) -> float:
    return table.num_embeddings * kind.row_bytes(table.embedding_dim)


def _least_weight_bytes(table: Table) -> float:
    """Bytes of the weights in the narrowest type that the table may have."""
    listed = [DATA_TYPES[name] for name in table.constraints.data_types or ()]
    return min(_weight_bytes(table, kind) for kind in (listed or [table.data_type]) if table.can_be_trained_as(kind))


def optimizer_ladder(
    problem: Problem, shortfalls: Sequence[Shortfall], target: Optimizer, instead_of: Sequence[str]
) -> Ladder | None:
    """Train tables with ``target`` where the spec has one of ``instead_of``; the same order of tables."""

    def saved_bytes(table: Table) -> float:
        if table.optimizer.name not in instead_of:
            return 0.0
        shape = (table.num_embeddings, table.embedding_dim)
        return table.optimizer.state_bytes(*shape) - target.state_bytes(*shape)

    return _ladder(
        problem,
        shortfalls,
        ladder_kind="optimizer",
        value=target.name,
        saved_bytes=saved_bytes,
        changed=lambda table: replace(table, optimizer=target),
        change=lambda index, _: SpecChange(pointer=f"/model/tables/{index}/optimizer", value=target.name),
        was=lambda table: table.optimizer.name,
    )


def table_ladders(problem: Problem, shortfalls: Sequence[Shortfall]) -> list[Ladder]:
    """List the ladders that some table can climb: smaller types first, because they train with the same optimizer."""
    ladders = [
        data_type_ladder(problem, shortfalls, DATA_TYPES["fp16"]),
        data_type_ladder(problem, shortfalls, DATA_TYPES["int8"]),
        # the same method with one number of its second moment per row, then the leanest that adapts
        optimizer_ladder(problem, shortfalls, OPTIMIZERS["partial_rowwise_adam"], ("adam",)),
        optimizer_ladder(problem, shortfalls, OPTIMIZERS["partial_rowwise_lamb"], ("lamb",)),
        optimizer_ladder(problem, shortfalls, OPTIMIZERS["rowwise_adagrad"], tuple(OPTIMIZERS)),
    ]
    return [ladder for ladder in ladders if ladder is not None]


def _ladder(
    problem: Problem,
    shortfalls: Sequence[Shortfall],
    *,
    ladder_kind: str,
    value: str,
    saved_bytes: Callable[[Table], float],
    changed: Callable[[Table], Table],
    change: Callable[[int, Table], SpecChange],
    was: Callable[[Table], str],
) -> Ladder | None:
    saved = [saved_bytes(table) for table in problem.tables]
    urgent = {shortfall.table for shortfall in shortfalls}
    helped = [index for index, amount in enumerate(saved) if amount > 0]
    helped.sort(key=lambda index: (problem.tables[index].name not in urgent, -saved[index], index))
    if not helped:
        return None

    def step(number: int) -> Step:
        chosen = set(helped[:number])
        tables = tuple(changed(table) if index in chosen else table for index, table in enumerate(problem.tables))
        return Step(
            problem=replace(problem, tables=tables),
            message=_message(problem, helped[:number], ladder_kind, value, was),
            changes=tuple(change(index, problem.tables[index]) for index in sorted(chosen)),
        )

    guess = max(sum(problem.tables[index].name in urgent for index in helped), _enough(shortfalls, helped, saved))
    return Ladder(kind=ladder_kind, num_steps=len(helped), step=step, guess=guess)


def _enough(shortfalls: Sequence[Shortfall], helped: Sequence[int], saved: Sequence[float]) -> int:
    """How many tables save what the cluster is short of; 0 where that is not known."""
    short = (s.required_bytes - s.available_bytes for s in shortfalls if s.scope == "cluster")
    missing = max(short, default=0.0) * SLACK
    if missing <= 0:
        return 0
    return 1 + sum(total < missing for total in itertools.accumulate(saved[index] for index in helped))


def _message(problem: Problem, chosen: Sequence[int], field: str, value: str, was: Callable[[Table], str]) -> str:
    names = ", ".join(f'"{problem.tables[index].name}"' for index in chosen[:_MOST_NAMED])
    more = f" and {len(chosen) - _MOST_NAMED} more" if len(chosen) > _MOST_NAMED else ""
    before = " or ".join(sorted({was(problem.tables[index]) for index in chosen}))
    noun = "table" if len(chosen) == 1 else "tables"
    return f"{field} {value} instead of {before} for {len(chosen)} {noun}: {names}{more}"
