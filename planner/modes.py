"""Modes: option sets in which every combination of options is legal together.

A few options are right only in company: TorchRec trains a MEAN-pooled table cut by rows
correctly only if every table of its module is cut by rows. Such a rule ties all tables of a
module together, so that it is lifted out of the search: each mode fixes, per module, "free"
(no such option) or "all by rows", and is an ordinary problem of independent tables.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from planner.domain.problem import Problem
from planner.enumerate import Options
from planner.runtimes.registry import RUNTIMES
from planner.runtimes.torchrec import ROW_SCHEMES

Bools = NDArray[np.bool_]

#: Modules beyond this number switch together, so that there are never more than 8 modes.
_MAX_INDEPENDENT_MODULES = 3


def option_modes(problem: Problem, options: Options) -> tuple[Bools, ...]:
    """Return the option masks of all modes, each of shape (num_options,), "free" first.

    Every plan that the runtime trains correctly lies in one of the masks when at most
    ``_MAX_INDEPENDENT_MODULES`` modules have MEAN-pooled tables; beyond, the modules switch
    together. A mask that leaves a table without options is dropped, unless all would be.
    """
    runtime = RUNTIMES[problem.runtime]
    module_of = np.array([problem.tables[option.table].module_path for option in options.options], dtype=object)
    tied = np.array(
        [runtime.needs_row_wise_module(problem.tables[o.table], o.scheme) for o in options.options], dtype=np.bool_
    )
    by_rows = np.array([option.scheme in ROW_SCHEMES for option in options.options], dtype=np.bool_)
    modules = sorted({str(name) for name in module_of[tied]})
    if not modules:
        return (np.ones(len(options.options), dtype=np.bool_),)
    independent = len(modules) <= _MAX_INDEPENDENT_MODULES
    choices = itertools.product((False, True), repeat=len(modules) if independent else 1)
    masks = []
    for choice in choices:
        rows_only = dict(zip(modules, choice if independent else choice * len(modules), strict=True))
        mask = np.ones(len(options.options), dtype=np.bool_)
        for name, only in rows_only.items():
            mask &= (module_of != name) | (by_rows if only else ~tied)
        masks.append(mask)
    tables = np.array([option.table for option in options.options])
    complete = [mask for mask in masks if len(np.unique(tables[mask])) == len(np.unique(tables))]
    return tuple(complete or masks[:1])
