"""Ranks that choose their pieces: every table whole, within budgets and rules, and better than piece by piece."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Effort, SolveLimits
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import constructions
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.rank_filling import fill_ranks
from planner.solver.partitioners.local_search.search_data import search_view, to_assignment
from planner.solver.partitioners.local_search.starts import target_of
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced


def few(seed: int, **changes: object) -> SolverProblem:
    """Six tables on four ranks, with one number for seconds."""
    return random_priced(seed, num_tables=6, objective=Objective.MAX_RANK_TIME, **changes)  # type: ignore[arg-type]


def filled(priced: SolverProblem, rounds: int = 6, limits: SolveLimits = LIMITS) -> list[Chain]:
    view = search_view(priced)
    chains = fill_ranks(view, target_of(view, None), itertools.count(), Effort(limits), 0.5)
    return list(itertools.islice(chains, rounds))


def state_of(chain: Chain) -> Assignment:
    """What a chain is at, whether it fits or not."""
    arrays = chain._arrays  # noqa: SLF001
    return to_assignment(chain._view, arrays.slot_shape, arrays.slot_site, arrays.num_pieces)  # noqa: SLF001


def only_memory_is_short(priced: SolverProblem) -> None:
    """Check some rounds: every table is whole and where it may be."""
    chains = filled(priced)
    assert chains
    for chain in chains:
        assert all("exceeds tier" in problem for problem in violations(priced, state_of(chain)))


@pytest.mark.parametrize("seed", range(6))
def test_every_table_is_placed_whole_and_only_memory_may_be_short(seed: int) -> None:
    priced = few(seed, same_host=seed % 2 == 1, slowdown=seed % 3 == 0, equal_capacity=seed % 2 == 0)
    allowed = priced.table_rank_allowed.copy()
    allowed[0, 0] = allowed[3, 2] = False
    limited = replace(priced, table_rank_allowed=allowed, apart=(np.array([1, 2]), np.array([4, 5])))
    only_memory_is_short(limited)


def test_rounds_differ_and_end_where_nothing_is_left_over() -> None:
    """Loose memory: the first rounds may leave something over, but ranks are given more time until nothing is."""
    chains = filled(few(3, fill=0.5), rounds=100)
    assert 1 < len(chains) < 40
    assert np.isfinite(chains[-1].best_seconds)
    assert len({state_of(chain).piece_site.tobytes() for chain in chains}) > 1


def test_a_round_that_would_take_most_of_the_effort_is_not_begun() -> None:
    """Four ranks choose from six pieces each, by 101 x 101 cells of 2.5 ns: 0.6 ms."""
    for milliseconds, begins in ((2, False), (4, True)):
        limits = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=milliseconds / 1000, reproducible=True)
        assert bool(filled(few(3), limits=limits)) is begins


def test_ranks_that_are_full_to_the_brim() -> None:
    """11 + 9 and 8 + 7 + 5 fill two ranks; one table after the other, the heaviest first, ends with 22 on one."""
    priced = random_priced(3, num_tables=5, num_hosts=1, ranks_per_host=2, num_phases=1)
    priced = replace(priced, objective=Objective.MAX_RANK_TIME)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    sizes = np.array([11.0, 9, 8, 7, 5])[whole.shape_table][:, None]
    tight = replace(
        whole,
        shape_bytes=sizes,
        shape_total_bytes=sizes,
        shape_seconds=sizes.copy(),
        capacity_bytes=np.full((2, 1), 20.0),
    )
    view = search_view(tight)
    built = [chain.best_seconds for chain in constructions(view, None, 0, Effort(LIMITS))]
    assert min(built) == np.inf
    best = min(filled(tight), key=lambda chain: chain.best_seconds)
    assert best.best_seconds == 20.0
    assignment = best.assignment()
    assert assignment is not None
    assert violations(tight, assignment) == []
    assert objective_of(tight, assignment) == 20.0


def test_tables_are_cut_to_what_is_left_of_a_rank() -> None:
    """Three tables of 16 columns on two ranks that hold 24 columns each: one must be cut."""
    priced = random_priced(1, num_tables=3, num_hosts=1, ranks_per_host=2, num_phases=1)
    cut = restrict(replace(priced, objective=Objective.MAX_RANK_TIME), priced.family_scope == Scope.RANK)
    sizes = cut.shape_columns[:, None].astype(np.float64)
    tight = replace(
        cut,
        shape_bytes=sizes,
        shape_total_bytes=sizes,
        shape_seconds=sizes.copy(),
        capacity_bytes=np.full((2, 1), 24.0),
    )
    assert min(chain.best_seconds for chain in filled(tight, rounds=50)) == 24.0


@pytest.mark.parametrize("seed", range(12))
def test_a_state_without_a_legal_site_for_some_piece_is_not_offered(seed: int) -> None:
    """Whatever keeps apart and wherever tables may be, every state has all tables, and a search ends well."""
    rng = np.random.default_rng(seed)
    priced = few(seed, slowdown=seed % 2 == 0, equal_capacity=seed % 3 == 0)
    allowed = rng.random(priced.table_rank_allowed.shape) > 0.5
    allowed[~allowed.any(axis=1)] = True
    apart = tuple(np.sort(rng.choice(6, 3, replace=False)) for _ in range(2))
    limited = replace(priced, table_rank_allowed=allowed, apart=apart)
    for chain in filled(limited, rounds=10):
        assert np.all(chain._arrays.num_pieces > 0)  # noqa: SLF001
    outcome = LocalSearch().solve(limited, replace(LIMITS, work_limit_seconds=0.2))
    assert outcome.assignment is None or violations(limited, outcome.assignment) == []


def test_tables_that_no_rank_can_choose_are_placed_first() -> None:
    """A table whose pieces must share a host is no rank's to choose."""
    priced = few(1, same_host=True, fill=0.2)
    bound = priced.family_same_host & (priced.family_max_pieces > 1)
    keeps = bound | (priced.family_table != 0)
    limited = restrict(priced, keeps)
    assert np.count_nonzero(keeps & (priced.family_table == 0)) == 1
    only_memory_is_short(limited)


def test_a_pinned_table_stays_where_it_is() -> None:
    priced = few(4, fill=0.3)
    shape = int(priced.shapes_of_family[0][priced.families_of_table[0][2]])
    pinned = replace(priced, pinned_shape=np.array([shape]), pinned_site=np.array([3]))
    for chain in filled(pinned):
        assignment = state_of(chain)
        mine = pinned.shape_table[assignment.piece_shape] == 2
        assert assignment.piece_shape[mine].tolist() == [shape]
        assert assignment.piece_site[mine].tolist() == [3]
