"""What every partitioner promises; each one's test class inherits this."""

from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Incumbent, Partitioner, SearchOptions, SolveLimits
from planner.solver.problem import Objective, Reason, Scope, SolverProblem
from tests.support.planning.builders import best_assignment, brute_force, narrowest_shape, random_priced

#: Counted work ends the search; the clock is far away, so that a busy machine changes nothing.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=1.0, relative_gap=0.0)


class PartitionerContract:
    """Valid plans or none, nothing better than the optimum, equal inputs give equal plans."""

    partitioner: Partitioner
    exact: bool = False  # whether small instances are solved to optimality over the listed cuts
    limits: SolveLimits = LIMITS

    def value(self, priced: SolverProblem) -> float:
        """The objective of the plan that is found, which is valid."""
        outcome = self.partitioner.solve(priced, self.limits)
        assert outcome.assignment is not None
        assert violations(priced, outcome.assignment) == []
        return objective_of(priced, outcome.assignment)

    def check(self, priced: SolverProblem) -> None:
        """No plan is better than the best of all cuts, nor much worse than the best of the listed ones."""
        best, listed = brute_force(priced), brute_force(priced, listed=True)
        assert best is not None
        assert listed is not None
        assert best * (1 - 1e-12) <= self.value(priced) <= listed * (1.0 + (1e-5 if self.exact else 0.35))

    @pytest.mark.parametrize("objective", list(Objective))
    @pytest.mark.parametrize("seed", range(3))
    def test_against_brute_force(self, objective: Objective, seed: int) -> None:
        self.check(random_priced(seed, objective=objective, num_tables=2, windows=seed == 2))

    @pytest.mark.parametrize("objective", list(Objective))
    def test_ranks_of_unequal_speed_and_memory(self, objective: Objective) -> None:
        self.check(random_priced(9, objective=objective, num_tables=2, slowdown=True, equal_capacity=False))

    def test_equal_inputs_give_equal_plans(self) -> None:
        priced = random_priced(5, num_tables=6)
        first, second = (self.partitioner.solve(priced, self.limits) for _ in range(2))
        assert first.assignment is not None
        assert second.assignment is not None
        assert np.array_equal(first.assignment.piece_shape, second.assignment.piece_shape)
        assert np.array_equal(first.assignment.piece_site, second.assignment.piece_site)

    def test_memory_is_hard(self) -> None:
        """Two tables that only fit on different ranks, and not at all with a byte less."""
        priced = random_priced(1, num_tables=2, num_hosts=1, ranks_per_host=2)
        sizes = np.where(priced.shape_scope == Scope.RANK, 60.0, 1000.0)[:, None]  # only ranks can hold them
        totals = sizes * priced.shape_ranks[:, None]
        tight = replace(priced, shape_bytes=sizes, shape_total_bytes=totals, capacity_bytes=np.full((2, 1), 119.0))
        self.value(tight)
        impossible = replace(tight, capacity_bytes=np.full((2, 1), 59.0))
        outcome = self.partitioner.solve(impossible, self.limits)
        assert outcome.assignment is None
        assert outcome.reason is (Reason.INFEASIBLE if self.exact else Reason.NO_SOLUTION_FOUND)

    def test_rank_constraints(self) -> None:
        """Table 0 may use rank 2 alone, table 1 the ranks of host 0."""
        priced = random_priced(2, num_tables=2, fill=0.3)
        allowed = np.array([[False, False, True, False], [True, True, False, False]])
        self.check(replace(priced, table_rank_allowed=allowed))

    def test_same_rank_and_apart(self) -> None:
        priced = random_priced(4, num_tables=3, fill=0.3)
        whole = np.isin(np.arange(priced.num_families), priced.families_of_table[0])
        self.check(replace(restrict(priced, whole), same_rank=(np.array([0, 1]),), apart=(np.array([1, 2]),)))

    def test_tables_in_pieces_that_stay_apart(self) -> None:
        priced = random_priced(12, num_tables=2, fill=0.3)
        local = priced.family_scope != Scope.WORLD
        self.check(replace(restrict(priced, local), apart=(np.array([0, 1]),)))

    def test_pieces_that_share_a_host(self) -> None:
        priced = random_priced(6, num_tables=2, fill=0.3, same_host=True)
        self.check(restrict(priced, priced.family_same_host))

    def test_pinned_tables_stay(self) -> None:
        """Table 0 as 12 + 4 columns, which is not among the listed cuts, on ranks 3 and 1."""
        priced = random_priced(3, num_tables=2)
        narrowest = narrowest_shape(priced, 0, 1)
        pinned = replace(priced, pinned_shape=np.array([narrowest + 2, narrowest]), pinned_site=np.array([3, 1]))
        self.check(pinned)

    def test_a_start_is_never_lost(self) -> None:
        """The best of all plans has a cut that is not listed; nothing worse comes back."""
        for seed in (1, 5):
            priced = random_priced(seed)
            start, listed = best_assignment(priced), brute_force(priced, listed=True)
            assert start is not None
            assert listed is not None
            want = objective_of(priced, start)
            assert seed != 1 or want < listed
            outcome = self.partitioner.solve(priced, self.limits, SearchOptions(start=start))
            assert outcome.assignment is not None
            assert violations(priced, outcome.assignment) == []
            assert objective_of(priced, outcome.assignment) <= want * (1 + 1e-12)

    def test_a_start_that_breaks_a_rule_is_not_returned(self) -> None:
        priced = random_priced(0, num_tables=2, fill=0.3)
        start = best_assignment(priced)
        assert start is not None
        allowed = np.ones((2, 4), dtype=np.bool_)
        allowed[0] = [True, False, False, False]
        allowed[1] = [False, True, False, False]
        limited = replace(priced, table_rank_allowed=allowed)
        assert violations(limited, start) != []
        outcome = self.partitioner.solve(limited, self.limits, SearchOptions(start=start))
        assert outcome.assignment is not None
        assert violations(limited, outcome.assignment) == []

    def test_a_guide_is_a_hint(self) -> None:
        """Neither what the relaxation says nor the contrary makes a plan illegal, or the bound wrong."""
        priced = random_priced(10, num_tables=2)
        best, hint = brute_force(priced), lower_bound(priced).hint
        assert best is not None
        assert hint is not None
        misleading = replace(
            hint,
            option=np.searchsorted(priced.option_table, np.arange(priced.num_tables), side="right") - 1,
            slowest_seconds=hint.slowest_seconds / 10,
        )
        for given in (hint, misleading):
            outcome = self.partitioner.solve(priced, self.limits, SearchOptions(hint=given))
            assert outcome.assignment is not None
            assert violations(priced, outcome.assignment) == []
            assert objective_of(priced, outcome.assignment) >= best * (1 - 1e-12)

    def test_streams_incumbents_that_improve(self) -> None:
        """Each search tells what it has found, better every time; the answer is the best of all."""
        reported: list[Incumbent] = []
        priced = random_priced(7, num_tables=6)
        outcome = self.partitioner.solve(priced, self.limits, SearchOptions(on_incumbent=reported.append))
        assert reported
        assert outcome.assignment is not None
        of_search: dict[str, float] = {}
        for one in reported:
            assert violations(priced, one.assignment) == []
            assert one.objective_seconds == pytest.approx(objective_of(priced, one.assignment), rel=1e-12)
            assert one.objective_seconds < of_search.get(one.partitioner, np.inf)
            of_search[one.partitioner] = one.objective_seconds
        assert min(of_search.values()) == pytest.approx(objective_of(priced, outcome.assignment), rel=1e-9)

    def test_a_bound_it_proves_is_a_bound(self) -> None:
        """Over the listed cuts; a caller's bound does not cut off the optimum."""
        for seed in (0, 8):
            priced = random_priced(seed, num_tables=2, slowdown=seed == 8)
            best = brute_force(priced, listed=True)
            assert best is not None
            for known in (0.0, lower_bound(priced).seconds):
                outcome = self.partitioner.solve(priced, self.limits, SearchOptions(lower_bound_seconds=known))
                assert outcome.bound_seconds <= best * (1 + 1e-12)
                if outcome.reason is Reason.OPTIMAL:
                    assert outcome.assignment is not None
                    assert objective_of(priced, outcome.assignment) <= best * (1 + 1e-5)
