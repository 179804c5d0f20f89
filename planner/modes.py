"""Modes: option sets in which every combination of options is legal together.

A few options are right only in company: TorchRec trains a MEAN-pooled table cut by rows
correctly only if every table of its module is cut by rows. Such a rule ties all tables of a
module together, so that it is lifted out of the search: each mode fixes, per module, "free"
(no such option) or "all by rows", and is an ordinary problem of independent tables.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.domain.problem import Problem
from planner.enumerate import Options
from planner.runtimes.registry import RUNTIMES
from planner.runtimes.torchrec import ROW_SCHEMES

Bools = NDArray[np.bool_]

#: Undecided modules beyond this number switch together, so that there are never more than 8 modes.
_MAX_INDEPENDENT_MODULES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Option masks to search one after the other, each of shape (num_options,), "free" first."""

    masks: tuple[Bools, ...]
    #: whether every plan that the runtime trains correctly lies in one of the masks; only then
    #: is the failure of all of them a proof
    exhaustive: bool


def option_modes(problem: Problem, options: Options) -> Modes:
    """Return the modes of a problem.

    A module with a table that has no option in one of its two states is fixed to the other.
    The rest are tried in every combination while they are at most
    ``_MAX_INDEPENDENT_MODULES``; beyond, they switch together and the modes are not exhaustive.
    """
    runtime = RUNTIMES[problem.runtime]
    module_of = np.array([problem.tables[option.table].module_path for option in options.options], dtype=object)
    table_of = np.array([option.table for option in options.options])
    tied = np.array(
        [runtime.needs_row_wise_module(problem.tables[o.table], o.scheme) for o in options.options], dtype=np.bool_
    )
    by_rows = np.array([option.scheme in ROW_SCHEMES for option in options.options], dtype=np.bool_)
    states: dict[str, list[Bools]] = {}  # by module: what it leaves out in each state it can be in
    for name in sorted({str(path) for path in module_of[tied]}):
        inside = module_of == name
        left_out = (inside & tied, inside & ~by_rows)  # "free", "all by rows"
        states[name] = [
            out for out in left_out if _all_tables(table_of[inside]) == _all_tables(table_of[inside & ~out])
        ]
    undecided = sum(len(choices) > 1 for choices in states.values())
    exhaustive = undecided <= _MAX_INDEPENDENT_MODULES
    if exhaustive:
        combinations: Iterable[tuple[Bools, ...]] = itertools.product(*states.values())
    else:
        combinations = [tuple(choices[end] for choices in states.values()) for end in (0, -1)]
    none_left_out = np.zeros(len(options.options), dtype=np.bool_)
    masks = tuple(~np.logical_or.reduce((none_left_out, *left_out)) for left_out in combinations)
    return Modes(masks=masks, exhaustive=exhaustive)


def _all_tables(tables: NDArray[np.int64]) -> set[int]:
    return set(tables.tolist())
