"""Points of a study of scenarios, and what its answer makes of them."""

import json
from typing import Any

import pytest

from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import COMPARED, FAILED, PLANNED, Point, PointOutcome
from api.services.studies.rules.comparison import Compared
from tests.support.service.specs import tiny

FACTOR = "model.tables.a.pooling_factor"
SCENARIOS = [{"label": "day", "set": {FACTOR: 8}}, {"label": "night", "weight": 3, "set": {FACTOR: 2}}]
PIN = {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": []}
#: Steps in the day and at night; of ``robust`` they are what the search found.
STEPS = {
    "own/day": (1.0, 4.0),
    "own/night": (3.0, 1.0),
    "mean": (2.0, 1.5),
    "largest": (2.5, 2.5),
    "robust": (1.5, 1.25),
}


def study(**fields: object) -> Any:
    return study_of(
        parse_study(json.dumps({"kind": "scenarios", "spec": tiny(), "scenarios": SCENARIOS, **fields}).encode())
    )


def digest(key: str) -> str:
    return f"sha256:{key}"


def planned(point: Point) -> PointOutcome:
    bound = {"own/day": 0.9, "own/night": 0.8}.get(point.key, 0.5)
    return PointOutcome(state=PLANNED, plan_digest=digest(point.key), objective_seconds=1.0, lower_bound_seconds=bound)


def compared(point: Point, **fields: Any) -> PointOutcome:
    assert point.comparison is not None
    names = [*point.comparison.plans, *(["robust"] if point.comparison.search else [])]
    seconds = {name: dict(zip(("day", "night"), STEPS[name], strict=True)) for name in names}
    given = {
        "seconds": seconds,
        "issues": {},
        "moves": {label: {"moved_bytes": 10.0, "seconds": 1.0} for label in point.comparison.moves},
        "pins": {"a": PIN, "b": PIN} if point.comparison.search else None,
        "bound": 1.2 if point.comparison.search else 0.0,
    }
    return PointOutcome(state=COMPARED, compared=Compared(**{**given, **fields}))


def run(one: Any, **fields: Any) -> tuple[list[list[str]], dict[str, PointOutcome], list[Point]]:
    """Run a study with made-up outcomes; ``fields`` are of what its search came to."""
    ended: dict[str, PointOutcome] = {}
    rounds: list[list[str]] = []
    points: list[Point] = []
    while now := one.next_points(ended):
        rounds.append([point.key for point in now])
        points += now
        for point in now:
            of_search = fields if point.key == "together" else {}
            ended[point.key] = planned(point) if point.comparison is None else compared(point, **of_search)
    return rounds, ended, points


def test_scenarios_are_planned_compared_searched_together_and_the_best_plan_is_compared_again() -> None:
    rounds, _, points = run(study())
    assert rounds == [["own/day", "own/night", "mean", "largest"], ["together"], ["robust"], ["chosen"]]
    by_key = {point.key: point for point in points}
    together, chosen = by_key["together"].comparison, by_key["chosen"].comparison
    assert together is not None
    assert set(together.plans) == {"own/day", "own/night", "mean", "largest"}
    assert together.search is not None
    assert (together.search.weights, together.search.quantile, together.search.is_relative) == ([1.0, 3.0], 1.0, False)
    assert chosen is not None
    assert chosen.moves == {"day": ("robust", "own/day"), "night": ("robust", "own/night")}
    tables = by_key["robust"].spec["model"]["tables"]  # type: ignore[index]
    assert [table["constraints"]["pinned"] for table in tables] == [PIN, PIN]


def test_the_answer_has_the_plan_its_price_the_bound_and_where_replanning_pays() -> None:
    one = study()
    _, ended, _ = run(one)
    answer = one.answer(ended)
    assert answer["plan"] | {"fits_share": 1.0} == {
        "key": "robust",
        "plan_digest": digest("robust"),
        "cost": 1.5,
        "most_seconds": 1.5,
        "mean_seconds": pytest.approx((1.5 + 3 * 1.25) / 4),
        "most_ratio_to_own": 1.5,
        "fits_share": 1.0,
    }
    assert answer["plan_of_mean"]["cost"] == 2.0
    assert answer["lower_bound"] == 1.2  # of the search, above 0.9 of the day alone
    assert answer["relative_gap"] == pytest.approx(1.5 / 1.2 - 1)
    day, night = answer["scenarios"]
    assert (day["own_seconds"], day["own_lower_bound_seconds"], day["ratio_to_own"]) == (1.0, 0.9, 1.5)
    assert night["mean_ratio_to_own"] == 1.5
    # A second of moving at half a second, and at a quarter of one, that each step saves.
    assert day["replan"]["break_even_steps"] == 2
    assert night["replan"] == {
        "plan_digest": digest("own/night"),
        "saved_seconds_per_step": 0.25,
        "moved_bytes": 10.0,
        "move_seconds": 1.0,
        "break_even_steps": 4,
    }


def test_a_quantile_lets_a_rare_scenario_be_slow() -> None:
    one = study(objective={"quantile": 0.75})
    _, ended, _ = run(one)
    answer = one.answer(ended)
    assert answer["plan"]["key"] == "own/night"  # 1.0 in three quarters of the weight
    assert answer["lower_bound"] == 0.8  # the order statistic of 0.9 and 0.8; none of the search


def test_ratios_treat_scenarios_alike() -> None:
    one = study(measure="ratio_to_own")
    _, ended, _ = run(one, bound=1.1)
    answer = one.answer(ended)
    assert answer["plan"]["cost"] == 1.5
    assert answer["lower_bound"] == 1.1


def test_a_plan_that_does_not_fit_where_it_has_to_is_not_chosen() -> None:
    issues = {"robust": {"day": "rank 0 is full"}}
    one = study()
    _, ended, _ = run(one, issues=issues)
    assert one.answer(ended)["plan"]["key"] == "mean"
    often = study(memory_probability=0.7)
    _, ended, _ = run(often, issues=issues)
    answer = often.answer(ended)
    assert answer["plan"]["key"] == "robust"
    assert answer["plan"]["fits_share"] == 0.75
    assert answer["scenarios"][0]["issue"] == "rank 0 is full"
    assert answer["lower_bound"] is None


def test_without_a_plan_of_the_search_the_best_of_the_others_is_chosen() -> None:
    one = study()
    seconds = {
        name: dict(zip(("day", "night"), steps, strict=True)) for name, steps in STEPS.items() if name != "robust"
    }
    rounds, ended, _ = run(one, pins=None, seconds=seconds, detail="prices do not add up", bound=0.0)
    assert rounds[2:] == [["chosen"]]
    answer = one.answer(ended)
    assert (answer["plan"]["key"], answer["detail"]) == ("mean", "prices do not add up")
    assert answer["lower_bound"] == 0.9


def test_without_rounds_nothing_is_searched() -> None:
    one = study(num_rounds=0)
    (together,) = one.next_points({point.key: planned(point) for point in one.next_points({})})
    assert together.comparison.search is None


def test_a_study_whose_comparison_failed_has_an_answer_without_a_plan() -> None:
    one = study()
    ended = {point.key: planned(point) for point in one.next_points({})}
    ended["together"] = PointOutcome(state=FAILED)
    assert one.next_points(ended) == ()
    answer = one.answer(ended)
    assert answer["plan"] is None
    assert answer["scenarios"] == []
