"""The smallest fleet: bisection against brute force, and what is proven."""

import json
import random
from typing import Any

import pytest

from api.services.studies.kinds.fleet import MEETS, OPEN, SHORT, next_indices
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import INFEASIBLE, NO_PLAN, PLANNED, Point, PointOutcome
from api.services.studies.rules.figures import machine_figures, with_step
from planner.errors import InvalidProblem
from tests.support.service.specs import tiny

TARGET = {"step_seconds": 0.01}
MACHINES = [
    {"label": "h100", "set": {"hardware.profile": "dgx-h100-80g"}},
    {"label": "a100", "set": {"hardware.profile": "dgx-a100-80g"}},
]
PRICES = {"dgx-h100-80g": {"price_per_host_hour": 98.0}, "dgx-a100-80g": {"price_per_host_hour": 41.0}}


def fleet(**fields: object) -> dict[str, Any]:
    asked = {
        "kind": "smallest_fleet",
        "spec": tiny(),
        "target": TARGET,
        "host_range": {"first": 1, "last": 12, "step": 1},
    }
    asked |= fields
    return {key: value for key, value in asked.items() if value is not None}


def study(document: object) -> Any:
    return study_of(parse_study(json.dumps(document).encode()))


def outcome(point: Point, step: float, bound: float) -> PointOutcome:
    assert point.machines is not None
    base = machine_figures(point.machines)
    found, best = (with_step(base, seconds, is_whole_step=False) for seconds in (step, bound))
    return PointOutcome(state=PLANNED, plan_digest=f"plan of {point.key}", figures=found, at_best=best)


def answered(document: object, steps: dict[str, tuple[float, float] | None]) -> tuple[dict[str, Any], list[str]]:
    """Run a study whose points take so long, with such bounds; ``None`` has no plan."""
    one, ended, asked = study(document), {}, []
    while points := one.next_points(ended):
        assert not {point.key for point in points} & ended.keys()
        for point in points:
            given = steps[point.key]
            ended[point.key] = PointOutcome(state=INFEASIBLE) if given is None else outcome(point, *given)
            asked.append(point.key)
    return one.answer(ended), asked


@pytest.mark.parametrize("seed", range(40))
def test_the_fewest_hosts_are_those_of_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    steps: dict[str, tuple[float, float] | None] = {}
    for hosts in range(1, 13):
        step = chance.uniform(0.5, 1.5) * 0.05 / hosts  # falls with hosts, not always
        steps[f"own/{hosts}"] = None if hosts <= seed % 3 else (step, step * chance.choice([0.5, 0.8, 0.99]))
    answer, asked = answered(fleet(), steps)
    (found,) = answer["machines"]
    reached = [hosts for hosts in range(1, 13) if (given := steps[f"own/{hosts}"]) and given[0] <= 0.01]
    assert found["fewest_hosts"] == (reached[0] if reached else None)
    below = range(1, (reached[0] if reached else 13))
    open_below = [hosts for hosts in below if (given := steps[f"own/{hosts}"]) and given[1] <= 0.01]
    assert found["undecided_hosts"] == open_below
    assert found["is_proven"] == (not open_below)
    assert found["at_least_hosts"] == (open_below[0] if open_below else found["fewest_hosts"])
    assert len(asked) == len(set(asked))


def test_a_large_range_is_not_asked_beyond_what_reaches_the_target() -> None:
    hosts = {"first": 1, "last": 512, "step": 1}
    steps = {f"own/{n}": (0.05 / n, 0.045 / n) for n in range(1, 513)}
    answer, asked = answered(fleet(host_range=hosts), steps)
    assert answer["machines"][0]["fewest_hosts"] == 5
    assert answer["machines"][0]["is_proven"]
    assert max(int(key.partition("/")[2]) for key in asked) <= 16


def test_machines_are_compared_by_price_with_a_proof() -> None:
    steps = {f"h100/{n}": (0.02 / n, 0.019 / n) for n in range(1, 13)}
    steps |= {f"a100/{n}": (0.05 / n, 0.0485 / n) for n in range(1, 13)}
    answer, _ = answered(fleet(machines=MACHINES, prices=PRICES), steps)
    assert [one["fewest_hosts"] for one in answer["machines"]] == [2, 5]
    assert answer["cheapest"] == {"machine": "h100", "price_per_hour": 196.0, "is_proven": True}
    steps |= {"a100/4": (0.05 / 4, 0.009)}  # four might do, and would cost 164
    answer, _ = answered(fleet(machines=MACHINES, prices=PRICES), steps)
    assert answer["cheapest"] == {"machine": "h100", "price_per_hour": 196.0, "is_proven": False}
    assert answer["machines"][1]["at_least_price_per_hour"] == 164.0


def test_a_rate_of_samples_is_reached_with_the_batch_of_all_hosts() -> None:
    rate = {"samples_per_second": 16 * 2 * 3 / 0.01}
    answer, _ = answered(fleet(target=rate), {f"own/{n}": (0.01, 0.0099) for n in range(1, 13)})
    assert answer["machines"][0]["fewest_hosts"] == 3
    assert answer["machines"][0]["is_proven"]


def test_solves_end_where_the_target_is_out_of_reach() -> None:
    dense = {"forward_seconds": 0.002, "backward_seconds": 0.004}
    (point, *_) = study(fleet(spec=tiny(model__dense=dense))).next_points({})
    assert point.spec["solver"]["cutoff_seconds"] == pytest.approx(0.004, rel=1e-4)
    assert point.spec["solver"]["cutoff_seconds"] > 0.004
    rate = {"samples_per_second": 3200.0}
    (point, *_) = study(fleet(target=rate)).next_points({})
    assert point.spec["solver"]["cutoff_seconds"] == pytest.approx(32 / 3200, rel=1e-4)


def test_a_target_that_any_step_reaches_needs_no_cutoff() -> None:
    (point, *_) = study(fleet(target={"samples_per_second": 1e-9})).next_points({})
    assert "cutoff_seconds" not in point.spec["solver"]


def test_without_a_plan_in_time_nothing_is_proven() -> None:
    one = study(fleet(hosts=[1, 2], host_range=None))
    ended = {key: PointOutcome(state=NO_PLAN) for key in ("own/1", "own/2")}
    assert one.next_points(ended) == []
    (found,) = one.answer(ended)["machines"]
    assert (found["fewest_hosts"], found["at_least_hosts"], found["is_proven"]) == (None, 1, False)


def test_what_is_asked_next() -> None:
    assert next_indices([None] * 10) == [0, 2]
    assert next_indices([SHORT, None, OPEN, *[None] * 7]) == [6, 9]
    assert next_indices([SHORT, None, SHORT, None, None, None, MEETS]) == [3, 5]
    assert next_indices([SHORT, None, SHORT, SHORT, MEETS]) == [1]
    assert next_indices([SHORT, None, SHORT]) == [1]
    assert next_indices([MEETS]) == []


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"target": {}}, "/target"),
        ({"target": {"step_seconds": 1.0, "samples_per_second": 1.0}}, "/target"),
        ({"hosts": [1, 2]}, ""),
        ({"hosts": [1, 1], "host_range": None}, "/hosts"),
        ({"machines": [MACHINES[0], MACHINES[0]]}, "/machines"),
        ({"host_range": {"first": 1, "last": 9, "factor": 1.5}}, "/host_range"),
    ],
)
def test_what_contradicts_itself_is_refused(fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        study(fleet(**fields))
    assert caught.value.issues[0].pointer.startswith(pointer)


@pytest.mark.parametrize("target", [{"step_seconds": 0.01}, {"samples_per_second": 1e9}, {"requests_per_second": 5}])
def test_a_bound_that_says_nothing_of_the_target_proves_nothing(target: dict[str, float]) -> None:
    one, ended = study(fleet(hosts=[1, 2], host_range=None, target=target)), {}
    while points := one.next_points(ended):
        for point in points:
            base = machine_figures(point.machines)
            found = with_step(base, 1.0, is_whole_step=False)
            ended[point.key] = PointOutcome(state=PLANNED, figures=found, at_best=base)
    (found,) = one.answer(ended)["machines"]
    assert (found["is_proven"], found["undecided_hosts"]) == (False, [1, 2])
