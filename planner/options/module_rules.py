"""Rules that tie the tables of an embedding module together: families that are right only in company."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.options.runtimes.registry import RUNTIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRule:
    """Two sets of families, ``tied`` and ``not_by_rows``, of which a plan uses one at most; masks (num_families,)."""

    is_of_module: Bools
    tied: Bools  # right only if every table of the module is cut by rows
    not_by_rows: Bools


def module_rules(problem: Problem, families: Families) -> dict[str, ModuleRule]:
    """Return a rule for each module that has a tied family, by the path of the module in alphabetical order."""
    runtime, listed = RUNTIMES[problem.runtime], families.families
    module = np.array([problem.tables[one.table].module_path for one in listed], dtype=object)
    tied = np.array(
        [runtime.needs_row_wise_module(problem.tables[one.table], one.scheme) for one in listed], dtype=np.bool_
    )
    not_by_rows = np.array([one.scheme not in runtime.row_schemes for one in listed], dtype=np.bool_)
    return {
        name: ModuleRule(is_of_module=inside, tied=inside & tied, not_by_rows=inside & not_by_rows)
        for name in sorted({str(path) for path in module[tied]})
        for inside in [module == name]
    }
