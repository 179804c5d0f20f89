"""The user's own constraints, one by one: where each stands in the spec, and the problem with only some of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cost_models.vocabulary import Code
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.registry import RUNTIMES

#: Splits by access frequency are an offer and no constraint.
TABLE_FIELDS = tuple(field.name for field in fields(TableConstraints) if field.name != "hot_row_fractions")
GROUP_FIELDS = ("same_rank", "apart")
RESERVATION = "reserved_hbm_fraction"
CHECKPOINT_PLAN = "checkpoint_plan"
_MOST_NAMED = 4
_MAY_ONLY = {
    "sharding_types": "use",
    "compute_kernels": "run",
    "ranks": "be on ranks",
    "hosts": "be on hosts",
    "data_types": "have weights of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One thing that the user asks for."""

    field: str  # one of TABLE_FIELDS or GROUP_FIELDS, RESERVATION or CHECKPOINT_PLAN
    index: int  # of the table, or of the group in its list; 0 for what exists once
    message: str  # what it asks for, in words

    @property
    def pointer(self) -> str:
        """Where it stands in the spec, as a JSON pointer."""
        if self.field in TABLE_FIELDS:
            return f"/model/tables/{self.index}/constraints/{self.field}"
        if self.field in GROUP_FIELDS:
            return f"/constraints/{self.field}/{self.index}"
        if self.field == CHECKPOINT_PLAN:
            return f"/{self.field}"
        return f"/constraints/{self.field}"


def constraints_of(problem: Problem) -> tuple[Constraint, ...]:
    """List what the user asks for: groups, then tables in order, then the checkpoint's plan and the reservation.

    Other reservations (dense parameters, input batches) are facts of the model, not wishes.
    """
    found = []
    for field, what in zip(GROUP_FIELDS, ("must share one rank", "must not share a rank"), strict=True):
        for index, group in enumerate(getattr(problem, field)):
            names = _listed([problem.tables[table].name for table in sorted(group)])
            found.append(Constraint(field=field, index=index, message=f"tables {names} {what}"))
    for index, table in enumerate(problem.tables):
        found.extend(
            Constraint(field=field, index=index, message=f'table "{table.name}" {_asked(table, field)}')
            for field in TABLE_FIELDS
            if getattr(table.constraints, field) != getattr(_without(problem, table, (field,)), field)
        )
    if problem.checkpoint_plan is not None:
        what = "optimizer state" if problem.checkpoint_plan.keep == "state" else "sharding types and optimizer state"
        message = f"the {what} of the checkpoint's tables must be kept"
        found.append(Constraint(field=CHECKPOINT_PLAN, index=0, message=message))
    fraction = problem.reservation.hbm_fraction
    if fraction > 0:
        message = f"{fraction:.3g} of every rank's memory is kept free of tables"
        found.append(Constraint(field=RESERVATION, index=0, message=message))
    return tuple(found)


def with_only(problem: Problem, remaining: Collection[Constraint]) -> Problem:
    """Return the problem with these of its constraints and without its others."""
    by_field: dict[str, set[int]] = {}
    for constraint in remaining:
        by_field.setdefault(constraint.field, set()).add(constraint.index)
    groups: dict[str, Any] = {
        field: tuple(group for index, group in enumerate(getattr(problem, field)) if index in by_field.get(field, ()))
        for field in GROUP_FIELDS
    }
    reserved = problem.reservation.hbm_fraction if RESERVATION in by_field else 0.0
    return replace(
        problem,
        tables=tuple(_table_with_only(problem, table, index, by_field) for index, table in enumerate(problem.tables)),
        reservation=replace(problem.reservation, hbm_fraction=reserved),
        checkpoint_plan=problem.checkpoint_plan if CHECKPOINT_PLAN in by_field else None,
        **groups,
    )


def _table_with_only(problem: Problem, table: Table, index: int, by_field: dict[str, set[int]]) -> Table:
    if table.constraints == TableConstraints():
        return table
    dropped = [field for field in TABLE_FIELDS if index not in by_field.get(field, ())]
    return replace(table, constraints=_without(problem, table, dropped))


def _without(problem: Problem, table: Table, dropped: Collection[str]) -> TableConstraints:
    """Return the constraints of a table without some: as wide as they can be.

    Leaving ``data_types`` out would mean the table's own type, which may be larger than those listed: without the
    constraint it has any type that can be trained.
    """
    wide: dict[str, object] = dict.fromkeys(dropped)
    if "data_types" in wide and table.constraints.data_types is not None:
        wide["data_types"] = all_data_types(problem, table)
    return replace(table.constraints, **wide)  # type: ignore[arg-type]


def all_data_types(problem: Problem, table: Table) -> tuple[str, ...]:
    """Return the types that the weights of a table can have under the runtime, whatever is asked for."""
    has = RUNTIMES[problem.runtime].data_types
    return tuple(sorted(name for name, kind in DATA_TYPES.items() if name in has and table.can_be_trained_as(kind)))


def _asked(table: Table, field: str) -> str:
    """What a constraint asks for, after the name of its table."""
    if field == "pinned":
        return "is pinned"
    asked = getattr(table.constraints, field)
    if field == "min_partition":
        return f"may not have shards narrower than {asked} columns"
    if field == "cache_load_factors":
        return f"may only have caches of {_listed([f'{share:g}' for share in asked])} of its rows"
    names = [one.label if isinstance(one, Code) else str(one) for one in sorted(asked)]
    return f"may only {_MAY_ONLY[field]} {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    """``"a, b"``, and no more than a few of many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
