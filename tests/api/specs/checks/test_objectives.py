"""Ordered objectives of a spec: what belongs together, with a pointer and a way out."""

from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from planner.domain.problem.goals import Goal, Tolerance
from tests.support.service.specs import raw, tiny

STEP: dict[str, Any] = {"name": "step_time"}


def issues(*objectives: dict[str, Any], **changes: object) -> dict[str, str]:
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(tiny(objectives=list(objectives), **changes)))
    return {issue.pointer: issue.message for issue in refused.value.issues}


def test_objectives_become_goals_in_their_order() -> None:
    found = parse_spec(raw(tiny(objectives=[{"name": "fullest_rank"}, {**STEP, "tolerance": 0.05}])))
    assert found.problem.goals == (
        Goal(name="fullest_rank"),
        Goal(name="step_time", tolerance=Tolerance(relative=0.05)),
    )


def test_a_spec_without_objectives_keeps_its_digest() -> None:
    plain, ordered = (parse_spec(raw(spec)) for spec in (tiny(), tiny(objectives=[STEP, {"name": "fullest_rank"}])))
    assert plain.problem.goals == ()
    assert plain.spec_digest != ordered.spec_digest


def test_all_issues_are_reported_at_once() -> None:
    found = issues(
        {"name": "fullest_rank", "tolerance": 0.1},
        {"name": "fullest_rank"},
        {"name": "checkpoint_upload"},
        {"name": "moved_bytes"},
    )
    assert found == {
        "/objectives/0/tolerance": "0.1, and no objective comes before this one",
        "/objectives/1/name": "fullest_rank is listed before",
        "/objectives/2/name": "checkpoint_upload needs to know how the job is checkpointed",
        "/objectives/3/name": "moved_bytes needs a plan that runs already",
        "/objectives": "step_time is not among them",
    }


def test_an_unknown_name_hides_nothing_else() -> None:
    """Neither a repeated name nor a tolerance of the first objective; what an unknown objective is, is not guessed."""
    found = issues(
        {"name": "fullest_rank", "tolerance": 0.1},
        {"name": "step_tme"},
        {"name": "fullest_rank", "tolerance_bytes": 5.0},
        {"name": "checkpoint_upload"},
    )
    assert found == {
        "/objectives/0/tolerance": "0.1, and no objective comes before this one",
        "/objectives/1/name": "not one of the values that are taken",
        "/objectives/2/name": "fullest_rank is listed before",
        "/objectives/3/name": "checkpoint_upload needs to know how the job is checkpointed",
    }


def test_a_wrong_tolerance_leaves_its_objective_known() -> None:
    found = issues({"name": "fullest_rank"}, {"name": "fullest_rank", "tolerance": -1})
    assert found.keys() == {"/objectives", "/objectives/1/name", "/objectives/1/tolerance"}


def test_objectives_of_which_none_can_be_read_are_not_too_few() -> None:
    assert issues({"name": "step_tme"}).keys() == {"/objectives/0/name"}
    assert issues().keys() == {"/objectives"}


def test_a_tolerance_needs_an_objective_of_its_unit_before() -> None:
    found = issues({"name": "fullest_rank"}, {**STEP, "tolerance_seconds": 1.0, "tolerance_bytes": 5.0})
    assert found == {
        "/objectives/1/tolerance_seconds": "1, and no objective in seconds comes before this one",
        "/objectives/1/tolerance_bytes": "5, and no objective in bytes comes before this one",
    }
    parse_spec(raw(tiny(objectives=[STEP, {"name": "fullest_rank", "tolerance_seconds": 1.0}])))


def test_what_is_broken_is_not_missing() -> None:
    found = issues(STEP, {"name": "checkpoint_upload"}, checkpoint={"interval_steps": 0})
    assert set(found) == {"/checkpoint/interval_steps"}


def test_objectives_are_of_a_step_under_prices_of_shards() -> None:
    assert issues(STEP, objective="max_rank_time") == {
        "/objectives": "ordered objectives are of a training step, and the objective is max_rank_time"
    }


@pytest.mark.parametrize("tolerance", [-0.1, 101])
def test_tolerances_have_limits(tolerance: float) -> None:
    assert "/objectives/1/tolerance" in issues(STEP, {"name": "fullest_rank", "tolerance": tolerance})
