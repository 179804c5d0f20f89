"""What every partitioner promises; each one's test class inherits this."""

from dataclasses import replace

import numpy as np
import pytest

from planner.evaluate import objective_seconds, rank_loads, violations
from planner.partitioners.base import Incumbent, Partitioner, SolveLimits
from planner.priced import Objective, PricedOptions, Reason
from planner.pricing import restrict
from tests.planner.builders import brute_force, random_priced

#: Counted work ends the search; the clock is far away, so that a busy machine changes nothing.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=20.0, relative_gap=0.0)


class PartitionerContract:
    """Valid plans or none, nothing better than the optimum, equal inputs give equal plans."""

    partitioner: Partitioner
    exact: bool = False  # whether small instances are solved to optimality

    def value(self, priced: PricedOptions, limits: SolveLimits = LIMITS) -> float | None:
        outcome = self.partitioner.solve(priced, limits)
        if outcome.assignment is None:
            return None
        assert violations(priced, outcome.assignment) == []
        return objective_seconds(priced, rank_loads(priced, outcome.assignment).seconds)

    @pytest.mark.parametrize("objective", list(Objective))
    @pytest.mark.parametrize("seed", range(3))
    def test_against_brute_force(self, objective: Objective, seed: int) -> None:
        priced = random_priced(seed, objective=objective, num_tables=2, windows=seed == 2)
        best, found = brute_force(priced), self.value(priced)
        assert best is not None
        assert found is not None
        assert found >= best * (1 - 1e-12)
        assert found <= best * (1.0 + (1e-5 if self.exact else 0.35))

    def test_equal_inputs_give_equal_plans(self) -> None:
        priced = random_priced(5, num_tables=6)
        first, second = (self.partitioner.solve(priced, LIMITS) for _ in range(2))
        assert first.assignment is not None
        assert second.assignment is not None
        assert np.array_equal(first.assignment.chosen_option, second.assignment.chosen_option)
        assert np.array_equal(first.assignment.unit_site, second.assignment.unit_site)

    def test_memory_is_hard(self) -> None:
        """Two tables that only fit on different ranks, and not at all with a byte less."""
        priced = random_priced(1, num_tables=2, num_hosts=1, ranks_per_host=2)
        sizes = np.where(priced.unit_scope == 0, 60.0, 1000.0)[:, None]  # only ranks can hold them
        totals = sizes * priced.ranks_touched[:, None]
        tight = replace(priced, unit_bytes=sizes, unit_total_bytes=totals, capacity_bytes=np.full((2, 1), 119.0))
        outcome = self.partitioner.solve(tight, LIMITS)
        assert outcome.assignment is not None
        assert violations(tight, outcome.assignment) == []
        impossible = replace(tight, capacity_bytes=np.full((2, 1), 59.0))
        outcome = self.partitioner.solve(impossible, LIMITS)
        assert outcome.assignment is None
        assert outcome.termination.reason is (Reason.INFEASIBLE if self.exact else Reason.NO_SOLUTION_FOUND)

    def test_rank_constraints(self) -> None:
        priced = random_priced(2, num_tables=3)
        allowed = np.ones((3, 4), dtype=np.bool_)
        allowed[0] = [False, False, True, False]
        limited = replace(priced, table_rank_allowed=allowed)
        outcome = self.partitioner.solve(limited, LIMITS)
        assert outcome.assignment is not None
        assert violations(limited, outcome.assignment) == []

    def test_same_rank_and_apart(self) -> None:
        priced = random_priced(4, num_tables=4, fill=0.3)
        whole = np.zeros(priced.num_options, dtype=np.bool_)
        whole[np.unique(priced.option_table, return_index=True)[1]] = True
        tied = replace(restrict(priced, whole), same_rank=(np.array([0, 1]),), apart=(np.array([1, 2, 3]),))
        outcome = self.partitioner.solve(tied, LIMITS)
        assert outcome.assignment is not None
        assert violations(tied, outcome.assignment) == []

    def test_pieces_that_share_a_host(self) -> None:
        priced = random_priced(6, num_tables=2, fill=0.3)
        second = np.isin(np.arange(priced.num_options), [1, 5])  # the two-piece option of each table
        tied = restrict(replace(priced, option_same_host=second), second)
        outcome = self.partitioner.solve(tied, LIMITS)
        assert outcome.assignment is not None
        assert violations(tied, outcome.assignment) == []

    def test_streams_incumbents_that_improve(self) -> None:
        told: list[Incumbent] = []
        outcome = self.partitioner.solve(random_priced(7, num_tables=6), LIMITS, on_incumbent=told.append)
        assert told
        values = [incumbent.objective_seconds for incumbent in told]
        priced = random_priced(7, num_tables=6)
        assert outcome.assignment is not None
        assert min(values) == pytest.approx(
            objective_seconds(priced, rank_loads(priced, outcome.assignment).seconds), rel=1e-9
        )

    def test_a_bound_it_proves_is_a_bound(self) -> None:
        priced = random_priced(8, num_tables=2)
        best = brute_force(priced)
        assert best is not None
        assert self.partitioner.solve(priced, LIMITS).bound_seconds <= best * (1 + 1e-12)
