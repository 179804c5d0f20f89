"""Stashes against all plans there are: every placement, with every set of whole tables stashed."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import DEVICE_KERNELS, Kernel
from planner.domain.plan.placement import Placement
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import TableConstraints
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.orchestration.placement.to_placement import to_placement
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import Reason
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exhaustive import assignments_in_order

LIMITS = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.4, relative_gap=0.0)
_NUM_PROBLEMS = 16


def random_problem(seed: int) -> Problem:
    """Three or four tables of up to 256 MB on two ranks, of which activations leave less than they need."""
    rng = np.random.default_rng((seed, 11))
    only_fused = TableConstraints(compute_kernels=DEVICE_KERNELS)
    tables = [
        make_table(f"t{i}", int(rng.integers(100_000, 1_000_000)), 64, pooling_factor=float(rng.uniform(1, 20)))
        for i in range(int(rng.integers(3, 5)))
    ]
    tables = [replace(table, constraints=only_fused) for table in tables]
    weights = sum(table.weight_bytes for table in tables)
    activations = float(rng.uniform(0.2, 0.6)) * weights
    seconds = float(rng.uniform(0.02, 0.2))
    return make_problem(
        *tables,
        cluster=make_cluster(1, 2, hbm_bytes=activations + weights * float(rng.uniform(0.42, 0.58)) + 2e7),
        dense=Dense(forward_seconds=seconds, backward_seconds=2 * seconds, activation_bytes=activations),
        stash=Stash(),
        pipeline="train_sparse_dist",
    )


def stashed(placement: Placement) -> Iterator[Placement]:
    """Yield a placement with every set of its fused tables stashed."""
    fused = [i for i, one in enumerate(placement.tables) if one.compute_kernel is Kernel.FUSED]
    for flags in itertools.product((False, True), repeat=len(fused)):
        marked = dict(zip(fused, flags, strict=True))
        yield replace(
            placement,
            tables=tuple(replace(one, stash_weights=marked.get(i, False)) for i, one in enumerate(placement.tables)),
        )


def best_seconds(problem: Problem) -> float | None:
    """The least objective of all placements for which some set of whole tables makes the room."""
    listed = list_and_price(problem, ROOFLINE)
    if isinstance(listed, Infeasibility):
        return None
    families, priced = listed
    for seconds, assignment in assignments_in_order(priced):
        placement = to_placement(problem, families, priced, assignment)
        if any(not verify(problem, one) for one in stashed(placement)):
            return seconds
    return None


@pytest.mark.parametrize("seed", range(_NUM_PROBLEMS))
def test_no_bound_is_above_the_best_plan_and_no_plan_below_it(seed: int) -> None:
    problem = random_problem(seed)
    best = best_seconds(problem)
    found = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("portfolio"), limits=LIMITS)
    if best is None:
        assert found.plan is None
        return
    assert found.reason != Reason.INFEASIBLE
    assert found.lower_bound_seconds <= best * (1 + 1e-9)
    if found.plan is not None:
        assert verify(problem, found.plan.placement) == ()
        assert found.plan.evaluation.objective_seconds >= best * (1 - 1e-6)


def test_the_problems_need_stashes() -> None:
    """Some have plans with a stash and none without, and some have none at all."""
    kinds = set()
    for seed in range(_NUM_PROBLEMS):
        problem = random_problem(seed)
        kinds.add((best_seconds(problem) is not None, best_seconds(replace(problem, stash=None)) is not None))
    assert kinds >= {(True, False)}
