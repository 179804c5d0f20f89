"""What a plan is worth, and what no plan is better than, from its document."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from api.execution.processes.solve import planned
from api.services.studies.rules.figures import Machines, figures_of, step_bound
from api.specs.parse import parse_spec
from cost_models.queues.md1 import highest_rate, time_quantile
from planner.domain.formats.compact_form import long_document
from planner.output.exporters.generic import to_document
from tests.support.service.specs import tiny

MACHINES = Machines(num_hosts=1, num_ranks=2, batch_size_per_rank=16)


def plan_of(**changes: object) -> dict[str, Any]:
    request = parse_spec(json.dumps(tiny(**changes)).encode())
    plan = planned(request, request.assumptions).plan
    assert plan is not None
    facts = {"name": "x", "spec_digest": request.spec_digest, "hardware_profile": request.hardware_profile}
    return json.loads(json.dumps(to_document(plan, **facts)))


def test_without_dense_compute_a_step_is_the_objective() -> None:
    plan = plan_of()
    found, at_best = figures_of(plan, MACHINES)
    assert found.step_seconds == plan["objective"]["seconds"]
    assert not found.is_whole_step
    assert at_best.step_seconds == plan["objective"]["lower_bound_seconds"]
    assert found.samples_per_second == pytest.approx(32 / plan["objective"]["seconds"])


def test_a_whole_step_is_bounded_by_its_parts() -> None:
    dense = {"forward_seconds": 0.001, "backward_seconds": 0.002, "parameter_bytes": 800_000_000}
    plan = plan_of(model__dense=dense)
    whole = plan["whole_step"]
    found, at_best = figures_of(plan, MACHINES)
    assert found.is_whole_step
    assert found.samples_per_second == pytest.approx(whole["samples_per_second"])
    assert at_best.step_seconds is not None
    assert plan["objective"]["lower_bound_seconds"] + 0.003 <= at_best.step_seconds <= whole["seconds"] * (1 + 1e-12)
    exposed = whole["dense_all_reduce_seconds"] - 0.002
    assert exposed > 0
    least = plan["objective"]["lower_bound_seconds"] + 0.003 + exposed + whole["overhead_seconds"]
    assert at_best.step_seconds == pytest.approx(least)


def test_objectives_that_are_no_step_bound_none() -> None:
    assert step_bound(plan_of(objective="max_rank_time")) is None


def test_checkpoints_write_and_store() -> None:
    checkpoint = {"interval_steps": 100, "policy": "one_shot", "full_every": 4, "bits": 8}
    plan = plan_of(checkpoint=checkpoint, model__tables__0__optimizer="rowwise_adagrad")
    found, at_best = figures_of(plan, MACHINES)
    assert found.checkpoint_write_bytes_per_second == plan["checkpoint"]["mean_write_bytes_per_second"]
    assert found.checkpoint_stored_bytes == plan["checkpoint"]["stored_bytes"]
    assert (found.checkpoint_stored_bytes or 0) > 0
    assert at_best.checkpoint_stored_bytes == 0
    assert figures_of(plan_of(), MACHINES)[0].checkpoint_stored_bytes is None
    earlier = plan["checkpoint"]
    del earlier["mean_write_bytes_per_second"]
    assert figures_of(plan, MACHINES)[0].checkpoint_stored_bytes is None


def test_requests_are_bounded_by_the_bound_of_one() -> None:
    """A plan of 1 ms whose bound is 0.5 ms, 400 requests per second."""
    serving = {
        "sustained_requests_per_second": 800.0,
        "p99_seconds": 0.002,
        "requests_per_second": 400.0,
        "utilization_limit": 0.8,
        "p99_limit_seconds": 0.003,
    }
    plan: dict[str, Any] = {**plan_of(), "serving": serving}
    plan["objective"] = {"name": "request_latency", "seconds": 0.001, "lower_bound_seconds": 0.0005}
    found, at_best = figures_of(plan, MACHINES)
    assert (found.requests_per_second, found.p99_seconds) == (800.0, 0.002)
    assert at_best.p99_seconds == pytest.approx(time_quantile(400.0, 0.0005, 0.99))
    assert at_best.requests_per_second == pytest.approx(min(1600.0, highest_rate(0.0005, 0.003, 0.99)))
    json.dumps(asdict(at_best), allow_nan=False)
    plan["objective"]["lower_bound_seconds"] = 0.0
    assert figures_of(plan, MACHINES)[1].requests_per_second is None


def test_both_forms_of_a_plan_say_the_same() -> None:
    compact = plan_of()
    assert figures_of(compact, MACHINES) == figures_of(long_document(compact), MACHINES)
    ranks = long_document(compact)["ranks"]
    share = max(rank["bytes"]["hbm"] / rank["capacity_bytes"]["hbm"] for rank in ranks)
    assert figures_of(compact, MACHINES)[0].fullest_rank_fraction == pytest.approx(share)
    assert share > 0
