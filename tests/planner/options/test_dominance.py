"""All pairs of families at once find what one family after the other does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cost_models.vocabulary import Kernel
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.table import TableConstraints
from planner.options import dominance
from planner.options.dominance import dominated_families
from planner.options.schemes.blocks import COLUMN_STEP
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.solver.problem import SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


def one_after_the_other(priced: SolverProblem) -> NDArray[np.bool_]:
    """Families of which another one of the same table, not dropped itself, takes the place."""
    first, last = priced.shapes_of_family
    cost = np.concatenate([priced.shape_seconds * (priced.phase_weight > 0), priced.shape_bytes], axis=1)
    dropped = np.zeros(priced.num_families, dtype=np.bool_)

    def replaces(other: int, one: int) -> bool:
        narrow = (priced.shape_columns[first[other]], priced.shape_columns[first[one]])
        wide = (priced.shape_columns[last[other] - 1], priced.shape_columns[last[one] - 1])
        if (
            priced.family_scope[other] != priced.family_scope[one]
            or (priced.family_same_host[other] and not priced.family_same_host[one])
            or priced.family_min_pieces[other] > priced.family_min_pieces[one]
            or priced.family_max_pieces[other] < priced.family_max_pieces[one]
            or narrow[0] > narrow[1]
            or wide[0] < wide[1]
        ):
            return False
        start = first[other] + (narrow[1] - narrow[0]) // COLUMN_STEP
        return bool(np.all(cost[start : start + last[one] - first[one]] <= cost[first[one] : last[one]]))

    for one in range(priced.num_families):
        mine = np.flatnonzero(priced.family_table == priced.family_table[one]).tolist()
        dropped[one] = any(
            other != one and not dropped[other] and replaces(other, one) and (other < one or not replaces(one, other))
            for other in mine
        )
    return dropped


@pytest.mark.parametrize("pairs", [1, 1_000, 500_000])
def test_tiered_families_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    """Eight ways to keep the rows of every table, however many pairs are looked at together."""
    monkeypatch.setattr(dominance, "_PAIRS", pairs)
    wanted = TableConstraints(compute_kernels=frozenset({Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING}))
    tables = [
        make_table(f"t{i}", 10 ** (3 + i), 64 * (1 + i % 2), access=ZipfAccess(alpha=0.8 + 0.1 * i), constraints=wanted)
        for i in range(5)
    ]
    listed = list_and_price(make_problem(*tables, cluster=make_cluster(2, 2, hbm_bytes=1e9)), ROOFLINE)
    assert not isinstance(listed, Infeasibility)
    found = dominated_families(listed[1])
    assert 0 < np.count_nonzero(found) < len(found)
    np.testing.assert_array_equal(found, one_after_the_other(listed[1]))
