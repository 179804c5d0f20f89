"""Whole solves against all plans there are: no bound above the best plan, no plan below it, none where none exists.

Every figure of a plan that was found is that of docs/cost-models.md. Specs of every feature, each drawn from its number
alone, so that a case that fails is run again with ``-k "test_whole_solves[NUMBER]"``.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from api.specs.request import SolveRequest
from planner.domain.plan.plan import PlanResult
from planner.options.compatible_families import compatible_family_sets
from planner.orchestration.answers.finish_plan import charged_seconds
from planner.orchestration.family_sets.branch_kinds import bound_of_kinds
from planner.output.certificate.certify import certify
from planner.pipeline import plan
from planner.pricing.price_options import drop_unusable, prune, restrict
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.bounds.chain import lower_bound, quick_bound
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Reason
from tests.support.brute_force.features import features_of
from tests.support.brute_force.recomputed import wrong_figures
from tests.support.brute_force.tiny_specs import tiny_request
from tests.support.brute_force.whole_optimum import WholeOptimum, whole_optimum
from tests.support.thorough import THOROUGH

_LEAST_SPECS = 64
_NUM_SPECS = 10_000 if THOROUGH else _LEAST_SPECS
#: Counted work ends the search; the clock is far away, however busy the machine.
_LIMITS = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.1, relative_gap=0.0)
_CERTIFIED = 8  # one plan in so many
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A solve, and the best plan there is."""

    request: SolveRequest
    best: WholeOptimum | None
    result: PlanResult
    streamed: tuple[PlanResult, ...]
    bounds: dict[str, float]

    @property
    def rounding(self) -> float:
        """How far apart two prices of one plan may be, relative."""
        return _ROUNDING + self.request.cost_model.rounding


def compared(number: int) -> Compared:
    """Solve a spec, and look at all of its plans."""
    request = tiny_request(number)
    best = whole_optimum(request)
    streamed: list[PlanResult] = []
    result = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=replace(_LIMITS, seed=request.limits.seed),
        previous=request.previous,
        on_result=streamed.append,
    )
    bounds = {"published": result.lower_bound_seconds}
    if best is not None:
        bounds |= dict(_bounds(best))
        if result.plan is not None and number % _CERTIFIED == 0:
            chosen = replace(best.listed.problem, use_index_dedup=result.plan.placement.use_index_dedup)
            found = certify(chosen, result.plan.placement, request.cost_model, head={}, work_seconds=0.1)
            bounds["certified"] = found["claim"]["bound_seconds"]
    return Compared(request=request, best=best, result=result, streamed=tuple(streamed), bounds=bounds)


def _bounds(best: WholeOptimum) -> Iterator[tuple[str, float]]:
    """Every bound of the solver, over the sets of families that one plan may hold together."""
    problem, families, priced = best.listed.problem, best.listed.families, best.listed.priced
    rest_seconds = seconds_without_shards(problem, best.free_seconds)
    modes = [prune(restrict(priced, mask)) for mask in compatible_family_sets(problem, families).masks]
    modes = [one for one in modes if len(set(one.family_table.tolist())) == one.num_tables]
    known = best.free_seconds - rest_seconds
    yield "quick", min(map(quick_bound, modes)) + rest_seconds
    for boxes, seconds in ((1, math.inf), (20, math.inf), (20, known)):
        bound = functools.partial(lower_bound, max_boxes=boxes, known_seconds=seconds)
        yield f"{boxes} boxes, {seconds} known", min(bound(one).seconds for one in modes) + rest_seconds
    if priced.num_kinds:
        yield "kinds", bound_of_kinds(drop_unusable(priced), max_boxes=12, known_seconds=known) + rest_seconds


@pytest.mark.parametrize("number", range(_NUM_SPECS))
def test_whole_solves(number: int) -> None:
    one = compared(number)
    best, result = one.best, one.result
    if best is None:
        assert result.plan is None
        return
    within = 1 + one.rounding
    assert {name: value for name, value in one.bounds.items() if value > best.free_seconds * within} == {}
    for found in (*one.streamed, result):
        assert found.lower_bound_seconds <= best.free_seconds * within
        assert found.plan is None or charged_seconds(found.plan) * within >= best.charged_seconds
    if best.charged_seconds < math.inf:
        assert result.reason is not Reason.INFEASIBLE
        assert result.plan is not None or one.request.partitioner_name != "portfolio"
    if result.plan is not None:
        assert list(wrong_figures(one.request, result.plan)) == []


def test_the_specs_have_every_feature() -> None:
    """What is above is of every one of them."""
    features = [features_of(tiny_request(number)) for number in range(_LEAST_SPECS)]
    names = {name for one in features for name in one}
    assert sorted(name for name in names if not any(one.get(name) for one in features)) == []
