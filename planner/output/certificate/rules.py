"""Rules that tie tables of a module together, as a checker that knows no runtime can check them: either, or."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.options.runtimes.registry import RUNTIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Two sets of families: of one of them, no plan uses any. Each of shape (num_families,)."""

    one: Bools
    other: Bools


def rules_of(problem: Problem, families: Families) -> tuple[Rule, ...]:
    """Return a rule for each module with a family that is right only where all tables of the module are cut by rows.

    Either the module uses no such family, or nothing that is not cut by rows.
    """
    runtime, listed = RUNTIMES[problem.runtime], families.families
    module = np.array([problem.tables[one.table].module_path for one in listed], dtype=object)
    tied = np.array(
        [runtime.needs_row_wise_module(problem.tables[one.table], one.scheme) for one in listed], dtype=np.bool_
    )
    by_rows = np.array([one.scheme in runtime.row_schemes for one in listed], dtype=np.bool_)
    return tuple(
        Rule(one=(module == name) & tied, other=(module == name) & ~by_rows)
        for name in sorted({str(path) for path in module[tied]})
    )
