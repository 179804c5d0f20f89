"""What a search counts as moved: at most what moves, and the same after any moves as counted again."""

from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import objective_of, violations
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.kernels.anneal import anneal
from planner.solver.partitioners.kernels.cost.smooth_cost import count_moved, count_overflow
from planner.solver.partitioners.kernels.moves.ejection_chain import start_ejection_chain
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.proposal_mix import ProposalRates, cumulative_mix
from planner.solver.partitioners.local_search.search_data import search_view, to_assignment
from planner.solver.problem import SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import brute_force, random_priced
from tests.support.planning.exhaustive import best_assignment
from tests.support.planning.moves import with_move
from tests.support.planning.proposing import begun, plan_of, propose
from tests.support.thorough import THOROUGH, thorough


def running(seed: int, **changes: object) -> SolverProblem:
    """A random instance where the best plan of another one runs."""
    priced = random_priced(seed, num_tables=2, same_host=True, slowdown=seed % 2 == 1)
    before = best_assignment(random_priced(seed + 100, num_tables=2, same_host=True))
    assert before is not None
    return with_move(priced, before, **changes)


@thorough
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cuts", [True, False])
def test_counting_along_is_counting_again(seed: int, cuts: bool) -> None:
    priced = running(seed, seconds_per_byte=1e-3, max_bytes=40.0)
    view = search_view(priced)
    chain = Chain(view, seed)
    begin = best_assignment(priced)
    assert begin is not None
    assert chain.load(begin)
    state, arrays = chain._state, chain._arrays  # noqa: SLF001
    after_cuts = 0.05 if cuts else 0.0
    often = dict.fromkeys(("pair", "three_rank", "ejection", "homing", "replacement"), 0.05)
    mix = cumulative_mix(ProposalRates(**often, after_cuts=after_cuts, on_hosts=0.3, cuts=cuts))
    for _ in range(30):
        # Few proposals, so that sums of changes are not counted again between them and the comparison.
        anneal(chain._data, state, 50, 0.5, 20.0, 1.0, mix, np.inf)  # noqa: SLF001
        moved, over, here = (
            arrays.counters["moved_bytes"][0],
            arrays.counters["overflow"][0],
            arrays.columns_here.copy(),
        )
        count_moved(chain._data, state)  # noqa: SLF001
        count_overflow(chain._data, state)  # noqa: SLF001
        assert moved == pytest.approx(arrays.counters["moved_bytes"][0], abs=1e-9)
        assert over == pytest.approx(arrays.counters["overflow"][0], abs=1e-9)
        assert np.array_equal(here, columns_here(chain, priced))
        found = to_assignment(view, arrays.slot_shape, arrays.slot_site, arrays.num_pieces)
        assert arrays.counters["moved_bytes"][0] <= moved_bytes(priced, found) + 1e-9
    assert arrays.counters["move_price"][0] > 0


def test_long_chains_of_exchanges_are_counted_along() -> None:
    still = random_priced(0, num_tables=40, ranks_per_host=3, num_phases=1)
    before = plan_of(begun(still))
    chain = begun(with_move(still, before, seconds_per_byte=1e-6), before)
    arrays, preserved, most = chain._arrays, 0, 0  # noqa: SLF001
    for _ in range(2000):
        sites = arrays.slot_site.copy()
        preserved += propose(chain, start_ejection_chain, 0.0)
        most = max(most, int(np.sum(arrays.slot_site != sites)))
        assert np.array_equal(arrays.columns_here, columns_here(chain, still))
    moved = arrays.counters["moved_bytes"][0]
    count_moved(chain._data, chain._state)  # noqa: SLF001
    assert moved == pytest.approx(arrays.counters["moved_bytes"][0], abs=1e-6)
    assert preserved > 2
    assert most > 3


def columns_here(chain: Chain, priced: SolverProblem) -> np.ndarray:
    """Columns of every table on each rank and host."""
    view, arrays = chain._view, chain._arrays  # noqa: SLF001
    found = to_assignment(view, arrays.slot_shape, arrays.slot_site, arrays.num_pieces)
    here = np.zeros_like(arrays.columns_here)
    shape = found.piece_shape
    scope = priced.shape_scope[shape]
    place = found.piece_site + np.where(scope == 1, priced.num_ranks, 0)
    np.add.at(here, (priced.shape_table[shape][scope < 2], place[scope < 2]), priced.shape_columns[shape][scope < 2])
    return here


@pytest.mark.parametrize("price", [pytest.param(0.0, marks=thorough), 0.01, pytest.param(0.3, marks=thorough)])
def test_a_search_finds_the_best_plan_at_a_price(price: float) -> None:
    exact = 0
    num_seeds = 6 if THOROUGH else 3
    for seed in range(num_seeds):
        priced = running(seed, seconds_per_byte=price)
        best = brute_force(priced)
        assert best is not None
        found = LocalSearch().solve(priced, replace(LIMITS, work_limit_seconds=0.3)).assignment
        assert found is not None
        assert objective_of(priced, found) >= best * (1 - 1e-9)
        exact += objective_of(priced, found) <= best * (1 + 1e-9)
    assert exact >= num_seeds - 1


@thorough
@pytest.mark.parametrize("most_bytes", [0.0, 20.0, 60.0])
def test_a_search_finds_the_best_plan_within_the_bytes_that_may_move(most_bytes: float) -> None:
    exact = 0
    for seed in range(6):
        priced = running(seed, max_bytes=most_bytes)
        best = brute_force(priced)
        found = LocalSearch().solve(priced, replace(LIMITS, work_limit_seconds=0.3)).assignment
        assert (found is None) >= (best is None)
        if found is None:
            exact += best is None
            continue
        assert best is not None
        assert violations(priced, found) == []
        assert objective_of(priced, found) >= best * (1 - 1e-9)
        exact += objective_of(priced, found) <= best * (1 + 1e-9)
    assert exact >= 5
