"""Points of sweeps: their specs, their order, what is refused."""

import json
from typing import Any

import pytest

from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import (
    CANCELLED,
    FAILED,
    INFEASIBLE,
    INVALID,
    NO_PLAN,
    PLANNED,
    Point,
    PointOutcome,
)
from api.services.studies.rules.figures import machine_figures, with_step
from planner.errors import InvalidProblem
from tests.support.service.specs import tiny

HOSTS = {"field": "hardware.num_hosts", "values": [1, 2]}
BATCHES = {"field": "model.batch_size_per_rank", "range": {"first": 64, "last": 256, "factor": 2}}


def sweep(*axes: object, **fields: object) -> dict[str, Any]:
    return {"kind": "sweep", "spec": tiny(), "axes": list(axes) or [HOSTS, BATCHES], **fields}


def study(document: object) -> Any:
    return study_of(parse_study(json.dumps(document).encode()))


def ended(point: Point, *, step_seconds: float = 0.001) -> PointOutcome:
    if point.machines is None:
        return PointOutcome(state=INVALID)
    found = with_step(machine_figures(point.machines), step_seconds, is_whole_step=False)
    return PointOutcome(state=PLANNED, plan_digest=f"sha256:{'a' * 64}", figures=found, at_best=found)


def all_points(document: object) -> list[Point]:
    one, found, points = study(document), {}, []
    while round_ := one.next_points(found):
        points += round_
        found |= {point.key: ended(point) for point in round_}
    return points


def issues_of(document: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidProblem) as caught:
        study(document)
    return [(issue.pointer, issue.message) for issue in caught.value.issues]


def test_points_are_the_product_of_the_axes_in_rounds_along_the_last() -> None:
    points = all_points(sweep())
    assert [point.key for point in points] == ["1/64", "2/64", "1/128", "2/128", "1/256", "2/256"]
    shapes = [(point.spec["hardware"]["num_hosts"], point.spec["model"]["batch_size_per_rank"]) for point in points]
    assert shapes == [(1, 64), (2, 64), (1, 128), (2, 128), (1, 256), (2, 256)]
    assert points[3].labels == {"hardware.num_hosts": "2", "model.batch_size_per_rank": "128"}
    assert points[3].machines.num_ranks == 2 * points[2].machines.num_ranks


def test_a_point_begins_with_its_neighbours_plan_and_ends_at_what_is_known() -> None:
    points = {point.key: point for point in all_points(sweep(front=["samples_per_second"]))}
    assert "warm_start" not in points["1/64"].spec["solver"]
    assert "cutoff_seconds" not in points["1/64"].spec["solver"]
    assert points["2/128"].spec["solver"]["warm_start"] == {"digest": f"sha256:{'a' * 64}"}
    # Two hosts with 64 samples on each rank have trained 256 samples in a millisecond.
    assert points["1/128"].spec["solver"]["cutoff_seconds"] == pytest.approx(0.001, rel=1e-4)
    assert points["2/128"].spec["solver"]["cutoff_seconds"] == pytest.approx(0.002, rel=1e-4)
    whole = {point.key: point for point in all_points(sweep(front=["samples_per_second"], prune=False))}
    assert all("cutoff_seconds" not in point.spec["solver"] for point in whole.values())


def test_a_study_goes_on_from_the_points_that_have_ended() -> None:
    one = study(sweep())
    first = one.next_points({})
    some = {first[0].key: ended(first[0])}
    assert [point.key for point in one.next_points(some)] == ["2/64"]


def test_variants_set_several_fields_and_items_by_star_and_name() -> None:
    axis = {
        "variants": [
            {"label": "half", "set": {"model.tables.*.data_type": "fp16", "hardware.num_hosts": 2}},
            {"label": "one", "set": {f"model.tables.{tiny()['model']['tables'][0]['name']}.data_type": "fp16"}},
        ]
    }
    half, one = all_points(sweep(axis))
    assert {table["data_type"] for table in half.spec["model"]["tables"]} == {"fp16"}
    assert [table.get("data_type") for table in one.spec["model"]["tables"]].count("fp16") == 1
    assert half.spec["hardware"]["num_hosts"] == 2


def test_a_global_batch_is_divided_by_the_ranks_of_each_point() -> None:
    one, two = all_points(sweep(HOSTS, global_batch_size=256))
    per_rank = [point.spec["model"]["batch_size_per_rank"] for point in (one, two)]
    assert per_rank == [256 // one.machines.num_ranks, 256 // two.machines.num_ranks]


def test_a_point_that_cannot_be_made_says_why_and_stops_no_other() -> None:
    odd, even = all_points(sweep({"field": "global_batch_size", "values": [101, 128]}))
    ranks = even.machines.num_ranks
    assert odd.spec is None
    assert f"a batch of 101 samples is no multiple of {ranks} ranks" in odd.issue
    assert even.spec is not None
    (missing,) = all_points(sweep({"field": "model.tables.nosuch.data_type", "values": ["fp16"]}))
    assert "has no item nosuch" in missing.issue


def test_ranges_end_at_the_last_value() -> None:
    steps = {"field": "hardware.num_hosts", "range": {"first": 1, "last": 6, "step": 2}}
    assert [point.key for point in all_points(sweep(steps))] == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ({"field": "solver.seed"}, "give one of values, range and variants"),
        ({"values": [1]}, "values and a range are of a field"),
        ({"field": "a", "values": [1], "range": {"first": 1, "last": 2, "step": 1}}, "give one of values"),
        ({"field": "a", "range": {"first": 1, "last": 2}}, "a range has either step or factor"),
        ({"field": "a", "range": {"first": 0, "last": 2, "factor": 2}}, "a range goes up from first"),
    ],
)
def test_axes_that_contradict_themselves_are_refused(axis: object, message: str) -> None:
    ((pointer, found),) = issues_of(sweep(axis))
    assert pointer.startswith("/axes/0")
    assert message in found


def test_values_that_stand_twice_and_too_many_points_are_refused_together() -> None:
    seeds = {"field": "solver.seed", "values": list(range(1000))}
    found = issues_of(sweep({"field": "hardware.num_hosts", "values": [1, 1, 2]}, seeds))
    assert found == [
        ("/axes/0", "1 of 3 values stand more than once"),
        ("/axes", "3 x 1000 values are 3,000 points, 2,000 at most"),
    ]


def test_an_unknown_kind_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidProblem) as caught:
        parse_study(json.dumps(sweep() | {"kind": "sweeep"}).encode())
    assert caught.value.issues[0].pointer == "/kind"
    assert "did you mean sweep?" in caught.value.issues[0].hint


PREVIOUS = {"digest": f"sha256:{'b' * 64}", "remaining_steps": 3}


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "max_rank_time"},
        {"objectives": [{"name": "step_time"}]},
        {"previous_plan": PREVIOUS},
        {"cost_model": "learned"},
    ],
)
def test_a_bound_that_is_not_of_the_step_cuts_nothing_off(given: dict[str, Any]) -> None:
    points = all_points(sweep(front=["samples_per_second"], spec=tiny(**given)))
    assert all("cutoff_seconds" not in point.spec["solver"] for point in points)


def test_a_search_begins_at_the_previous_plan_alone() -> None:
    points = all_points(sweep(spec=tiny(previous_plan=PREVIOUS)))
    assert all("warm_start" not in point.spec["solver"] for point in points)


def test_a_cutoff_of_the_spec_stays() -> None:
    points = all_points(sweep(front=["samples_per_second"], spec=tiny(solver__cutoff_seconds=1e-7)))
    assert {point.spec["solver"]["cutoff_seconds"] for point in points} == {1e-7}


def test_labels_with_slashes_or_without_end_name_points_apart() -> None:
    first = {"variants": [{"label": one, "set": {"name": "a"}} for one in ("1", "1/2")]}
    last = {"variants": [{"label": one, "set": {"solver.seed": 1}} for one in ("2/3", "3")]}
    assert len({point.key for point in all_points(sweep(first, last))}) == 4
    texts = [*("x" * 5000 + end for end in "ab"), "a\u0000b", "a\nb"]
    keys = [point.key for point in all_points(sweep({"field": "name", "values": texts}))]
    assert len(set(keys)) == 4
    assert all(len(key) <= 100 and key.isprintable() for key in keys)


def test_two_axes_of_one_field_are_refused() -> None:
    ((pointer, message),) = issues_of(sweep(HOSTS, HOSTS | {"values": [3, 4]}))
    assert pointer == "/axes/1"
    assert "hardware.num_hosts" in message


@pytest.mark.parametrize("state", [None, NO_PLAN, FAILED, CANCELLED, INFEASIBLE])
def test_a_front_is_proven_if_no_point_without_a_plan_can_have_one(state: str | None) -> None:
    one = study(sweep(HOSTS, front=["samples_per_second"]))
    (first,) = one.next_points({})
    outcomes = {first.key: ended(first)}
    (second,) = one.next_points(outcomes)
    if state is not None:
        outcomes[second.key] = PointOutcome(state=state)
    (point,) = one.answer(outcomes)["front"]["points"]
    assert point["is_proven"] == (state == INFEASIBLE)
    # More hosts are no better in the number of hosts, whatever their plan.
    fewest = study(sweep(HOSTS, front=["num_hosts"]))
    assert fewest.answer(outcomes)["front"]["points"][0]["is_proven"]


@pytest.mark.parametrize(
    ("spec", "axis", "fields"),
    [
        ({"model": [], "hardware": {"profile": "dgx-h100-80g"}}, HOSTS, {"global_batch_size": 64}),
        (tiny(solver=[]), HOSTS, {}),
        (tiny(), {"field": "hardware.num_hosts", "values": [1, 10**400]}, {}),
        (tiny(), {"field": "global_batch_size", "values": [10**400 + 1, 16]}, {}),
        (tiny(), {"field": "hardware.num_hosts", "range": {"first": 1, "last": 1e308, "factor": 1e300}}, {}),
    ],
)
def test_values_of_any_size_and_kind_make_points_that_say_what_is_wrong(
    spec: object, axis: object, fields: dict[str, object]
) -> None:
    prices = {"dgx-h100-80g": {"price_per_host_hour": 1.5}}
    points = all_points(sweep(axis, spec=spec, prices=prices, **fields))
    assert any(point.issue for point in points)
