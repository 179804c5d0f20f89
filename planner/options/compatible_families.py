"""Modes: sets of families in which every combination is legal together.

A few families are right only in company: TorchRec trains a MEAN-pooled table cut by rows
correctly only if every table of its module is cut by rows. Such a rule ties all tables of a
module together, so that it is lifted out of the search: each mode fixes, per module, "free"
(no such family) or "all by rows", and is an ordinary problem of independent tables.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.options.module_rules import module_rules

#: Undecided modules up to this number are tried in every combination: at most 8 modes.
_MAX_COMBINED_MODULES = 3
#: Beyond, each of the largest of them is switched alone.
_MAX_SINGLE_SWITCHES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibleFamilies:
    """Masks of families to search one after the other, each of shape (num_families,)."""

    masks: tuple[Bools, ...]
    #: whether every plan that the runtime trains correctly lies in one of the masks; only then
    #: is the failure of all of them a proof
    exhaustive: bool
    #: modules that can be neither free nor all by rows: there is no plan at all
    unsatisfiable_modules: tuple[str, ...] = ()


def compatible_family_sets(problem: Problem, families: Families) -> CompatibleFamilies:
    """Return the modes of a problem.

    A module with a table that has no family in one of its two states is fixed to the other.
    Few undecided modules are tried in every combination. Of many, the modes are: all free, all
    by rows, and the largest of them by rows alone while the rest is free.
    """
    table_of = np.array([one.table for one in families.families], dtype=np.int64)
    states: dict[str, list[Bools]] = {}  # by module: what it leaves out in each state it can be in
    for name, rule in module_rules(problem, families).items():
        complete = set(table_of[rule.is_of_module].tolist())
        left_out = (rule.tied, rule.not_by_rows)  # "free", "all by rows"
        states[name] = [out for out in left_out if set(table_of[rule.is_of_module & ~out].tolist()) == complete]
    unsatisfiable = tuple(name for name, choices in states.items() if not choices)
    if unsatisfiable:
        return CompatibleFamilies(masks=(), exhaustive=True, unsatisfiable_modules=unsatisfiable)
    undecided = [name for name, choices in states.items() if len(choices) > 1]
    few = len(undecided) <= _MAX_COMBINED_MODULES
    combinations = itertools.product(*states.values()) if few else _switches(problem, states, undecided)
    none_left_out = np.zeros(len(families.families), dtype=np.bool_)
    masks = tuple(~np.logical_or.reduce((none_left_out, *left_out)) for left_out in combinations)
    return CompatibleFamilies(masks=masks, exhaustive=few)


def _switches(problem: Problem, states: dict[str, list[Bools]], undecided: list[str]) -> Iterator[tuple[Bools, ...]]:
    """Yield all free, all by rows, and the largest undecided modules by rows one at a time."""
    weight = dict.fromkeys(undecided, 0.0)
    for table in problem.tables:
        if table.module_path in weight:
            weight[table.module_path] += table.weight_bytes
    largest = sorted(undecided, key=lambda name: (-weight[name], name))[:_MAX_SINGLE_SWITCHES]
    for by_rows in ((), undecided, *((name,) for name in largest)):
        yield tuple(choices[-1] if name in by_rows else choices[0] for name, choices in states.items())
