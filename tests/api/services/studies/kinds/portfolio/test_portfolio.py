"""Portfolios of a small model: which plans are made, which are chosen, what the answer says of them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from api.execution.processes.solve import planned
from api.services.studies.kinds.portfolio.portfolio import Portfolio
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import Point, PointOutcome
from api.services.studies.rules.figures import Machines
from api.services.studies.rules.outcomes import impossible, outcome_of_plan
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import InvalidProblem
from planner.output.exporters.generic import to_document

TABLES = [
    {
        "name": f"t{number}",
        "num_embeddings": 200_000 + 40_000 * number,
        "embedding_dim": 64,
        "pooling_factor": 4 + number,
    }
    for number in range(12)
]
SPEC = {
    "name": "small",
    "model": {"batch_size_per_rank": 60, "tables": TABLES},
    "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
    "solver": {"work_limit_seconds": 0.1, "time_limit_seconds": 60},
}
RESTART = {
    "host_failures_per_day": 0.01,
    "repair_hours": 10,
    "startup_seconds": 100,
    "repeated_seconds": 500,
    "checkpoint_bytes_per_second": 1e9,
}


class Planner:
    """Plans the points of studies, each once."""

    def __init__(self) -> None:
        self.plans: dict[str, bytes] = {}
        self._known: dict[tuple[bytes, Machines], PointOutcome] = {}
        self.library = Library(find_plan=self.plans.get)

    def outcome(self, point: Point) -> PointOutcome:
        if point.spec is None or point.machines is None:
            return impossible(point.issue)
        raw = canonical_bytes(point.spec)
        key = raw, point.machines
        if key not in self._known:
            request = parse_spec(raw, self.library)
            plan = planned(request, request.assumptions).plan
            assert plan is not None
            facts = {"name": "x", "spec_digest": request.spec_digest, "hardware_profile": request.hardware_profile}
            document = json.loads(json.dumps(to_document(plan, **facts)))
            self.plans[document["plan_digest"]] = canonical_bytes(document)
            self._known[key] = outcome_of_plan(document, point.machines)
        return self._known[key]

    def run(self, study: Portfolio) -> tuple[dict[str, PointOutcome], list[list[str]]]:
        ended: dict[str, PointOutcome] = {}
        rounds = []
        while points := study.next_points(ended):
            assert not any(point.key in ended for point in points)
            rounds.append([point.key for point in points])
            ended.update((point.key, self.outcome(point)) for point in points)
        return ended, rounds


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner()


def asked(**fields: object) -> bytes:
    return json.dumps(
        {"kind": "portfolio", "spec": SPEC, "hosts": [4, 3, 2, 5], "remaining_steps": [3, 30], **fields}
    ).encode()


def study(planner: Planner, **fields: object) -> Portfolio:
    found = study_of(parse_study(asked(**fields)), planner.library)
    assert isinstance(found, Portfolio)
    return found


def pointers(raw: bytes) -> list[str]:
    with pytest.raises(InvalidProblem) as caught:
        study_of(parse_study(raw))
    return [issue.pointer for issue in caught.value.issues]


def test_both_chains_are_planned_link_by_link(planner: Planner) -> None:
    _, rounds = planner.run(study(planner))
    assert rounds[0] == ["own/4", "own/3", "own/2", "own/5"]
    assert rounds[1] == [
        *("from_main/3/3", "from_main/3/30"),
        *("from_main/5/3", "from_main/5/30"),
        *("from_fewest/3/3", "from_fewest/3/30"),
    ]
    assert rounds[2] == ["from_main/2/3", "from_main/2/30", "from_fewest/4/3", "from_fewest/4/30"]
    assert rounds[3] == ["from_fewest/5/3", "from_fewest/5/30"]
    assert len(rounds) == 4


def test_the_answer_is_of_the_chain_that_moves_less(planner: Planner) -> None:
    asking = study(planner)
    ended, _ = planner.run(asking)
    answer = asking.answer(ended)
    totals = answer["total_bytes_by_order"]
    assert answer["total_bytes"] == min(totals.values()) == totals[answer["order"]]
    assert answer["total_bytes"] == sum(one["moved_bytes"] + one["checkpoint_bytes"] for one in answer["transitions"])
    assert answer["total_bytes"] < 0.75 * answer["independent_bytes"]
    assert [(one["from_hosts"], one["to_hosts"]) for one in answer["transitions"]] == [(4, 3), (3, 2), (4, 5)]
    assert answer["plan_digests"] == {str(2 * one["num_hosts"]): one["plan_digest"] for one in answer["members"]}
    for one in answer["members"]:
        assert one["key"].split("/")[1] == str(one["num_hosts"])
        assert one["step_seconds"] == ended[one["key"]].objective_seconds
        same = [found.objective_seconds for key, found in ended.items() if key.split("/")[1] == str(one["num_hosts"])]
        assert one["best_step_seconds"] == min(same)
        assert one["at_least_step_seconds"] <= one["best_step_seconds"]
        assert one["step_ratio"] <= one["step_ratio_at_most"]


def test_bytes_are_those_that_the_plans_state(planner: Planner) -> None:
    """A plan that was made from its neighbour's counts the same bytes, by itself: the last host is lost."""
    asking = study(planner)
    ended, _ = planner.run(asking)
    answer = asking.answer(ended)
    checked = 0
    for one in answer["transitions"]:
        digest = answer["plan_digests"][str(2 * one["to_hosts"])]
        movement = json.loads(planner.plans[digest]).get("movement")
        if movement and movement["previous_plan_digest"] == answer["plan_digests"][str(2 * one["from_hosts"])]:
            assert movement["moved_bytes"] == pytest.approx(one["moved_bytes"] + one["checkpoint_bytes"], abs=1)
            checked += 1
    assert checked or answer["order"] == "from_fewest"


def test_a_member_is_as_near_the_best_as_was_asked(planner: Planner) -> None:
    near, far = study(planner, max_step_ratio=0.0), study(planner, max_step_ratio=1.0)
    answers = [asking.answer(planner.run(asking)[0]) for asking in (near, far)]
    for one in answers[0]["members"]:
        ended = planner.run(near)[0]
        order, hosts = answers[0]["order"], one["num_hosts"]
        tried = [key for key in ended if key == f"own/{hosts}" or key.startswith(f"{order}/{hosts}/")]
        assert one["step_seconds"] == min(ended[key].objective_seconds or 0.0 for key in tried)
    assert answers[1]["total_bytes"] <= answers[0]["total_bytes"]


def test_a_study_that_was_cut_off_goes_on_alike(planner: Planner) -> None:
    """Whatever part of a round has ended, the rest of that round comes next, and nothing else."""
    asking = study(planner)
    ended, rounds = planner.run(asking)
    before: dict[str, PointOutcome] = {}
    for keys in rounds:
        for cut in range(len(keys)):
            part = {**before, **{key: ended[key] for key in keys[:cut]}}
            again = study(planner)  # which knows nothing
            assert [point.key for point in again.next_points(part)] == keys[cut:]
        before.update((key, ended[key]) for key in keys)


def test_members_may_share_the_batch_of_all_ranks(planner: Planner) -> None:
    points = study(planner, batch="global").next_points({})
    batches = {
        point.labels["hardware.num_hosts"]: point.spec and point.spec["model"]["batch_size_per_rank"]
        for point in points
    }
    assert batches == {"4": 60, "3": 80, "2": 120, "5": 48}
    (refused,) = [point for point in study(planner, hosts=[4, 3, 7], batch="global").next_points({}) if not point.spec]
    assert refused.issue == "a batch of 480 samples is no multiple of 14 ranks; the nearest are 476 or 490"
    stated = study(planner, batch="global", global_batch_size=240).next_points({})
    assert stated[0].spec is not None
    assert stated[0].spec["model"]["batch_size_per_rank"] == 30


def test_a_member_that_has_no_plan_is_left_out(planner: Planner) -> None:
    asking = study(planner, hosts=[4, 3, 7], batch="global")
    ended, _ = planner.run(asking)
    answer = asking.answer(ended)
    assert answer["total_bytes"] is None
    assert [one["plan_digest"] is None for one in answer["members"]] == [False, False, True]
    assert answer["plan_digests"].keys() == {"8", "6"}


def test_restarts_are_arithmetic_of_what_was_given(planner: Planner) -> None:
    prices = {"dgx-h100-80g": {"price_per_host_hour": 90.0}}
    asking = study(planner, restart=RESTART, prices=prices)
    ended, _ = planner.run(asking)
    answer = asking.answer(ended)
    costs, change = answer["restarts"], answer["transitions"][0]
    rates = [answer["members"][index]["samples_per_second"] for index in (0, 1)]
    assert costs["failures_per_day"] == pytest.approx(0.04)
    assert costs["restart_seconds"] == pytest.approx(600 + change["moved_seconds"] + change["most_read_bytes"] / 1e9)
    assert costs["slower_seconds"] == pytest.approx(36_000 * (1 - rates[1] / rates[0]))
    assert costs["return_seconds"] >= 100
    lost = 0.04 * (costs["restart_seconds"] + costs["return_seconds"] + costs["slower_seconds"])
    assert costs["lost_seconds_per_day"] == pytest.approx(lost)
    assert costs["price_per_day"] == pytest.approx(lost * 4 * 90 / 3600)
    with_spare = 0.04 * costs["spare_restart_seconds"]
    assert costs["spare_price_per_day"] == pytest.approx(90 * 24 + with_spare * 4 * 90 / 3600)
    assert study(planner, hosts=[4, 2], restart=RESTART).answer({}).get("restarts", 0) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"hosts": [4, 4]}, ["/hosts"]),
        ({"hosts": [4]}, ["/hosts"]),
        ({"remaining_steps": [3, 3]}, ["/remaining_steps"]),
        ({"global_batch_size": 100}, [""]),
        ({"lost": "first"}, ["/lost"]),
        ({"lost": "any", "lost_host": 1}, [""]),
        ({"max_step_ratio": -1}, ["/max_step_ratio"]),
        ({"restart": {**RESTART, "host_failures_per_day": 0}}, ["/restart/host_failures_per_day"]),
        ({"spec": {**SPEC, "objectives": [{"name": "step_time"}]}}, ["/spec/objectives"]),
        ({"spec": {**SPEC, "previous_plan": {"digest": "sha256:" + 64 * "0"}}}, ["/spec/previous_plan"]),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(fields: Mapping[str, Any], expected: list[str]) -> None:
    assert pointers(asked(**fields)) == expected
