"""Specs of scenarios: given, drawn, mixed, refused."""

import json
from typing import Any

import pytest

from api.schemas.studies.scenarios import ScenariosSpec
from api.services.studies.kinds.registry import parse_study
from api.services.studies.kinds.robust.traffic import Scenario, mixed, scenarios_of, weighted_mean
from planner.errors import InvalidProblem
from tests.support.service.specs import tiny

FACTOR = "model.tables.a.pooling_factor"
DAY, NIGHT = {"label": "day", "weight": 3, "set": {FACTOR: 8}}, {"label": "night", "set": {FACTOR: 2.0}}


def request(**fields: object) -> ScenariosSpec:
    found = parse_study(json.dumps({"kind": "scenarios", "spec": tiny(), "scenarios": [DAY, NIGHT], **fields}).encode())
    assert isinstance(found, ScenariosSpec)
    return found


def factors(scenarios: list[Scenario]) -> list[list[Any]]:
    return [[table["pooling_factor"] for table in one.spec["model"]["tables"]] for one in scenarios]


def issues_of(**fields: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidProblem) as caught:
        scenarios_of(request(**fields))
    return [(issue.pointer, issue.message) for issue in caught.value.issues]


def test_scenarios_are_the_spec_with_fields_set() -> None:
    assert factors(scenarios_of(request())) == [[8, 1.0], [2.0, 1.0]]


def test_the_mean_is_weighted_and_the_largest_is_by_field() -> None:
    night = {**NIGHT, "set": {FACTOR: 2, "model.batch_size_per_rank": 20}}
    several = scenarios_of(request(scenarios=[DAY, night]))
    mean = mixed(several, tiny(), weighted_mean(several))
    largest = mixed(several, tiny(), max)
    assert mean["model"]["tables"][0]["pooling_factor"] == 6  # (3 x 8 + 2) / 4 = 6.5, and whole as both are
    assert mean["model"]["batch_size_per_rank"] == 17  # (3 x 16 + 20) / 4
    assert mean["model"]["tables"][1] == tiny()["model"]["tables"][1]  # type: ignore[index]
    assert largest["model"]["tables"][0]["pooling_factor"] == 8
    assert largest["model"]["batch_size_per_rank"] == 20


def test_what_is_no_number_is_that_of_the_spec() -> None:
    digests = [f"sha256:{letter * 64}" for letter in "ab"]
    several = scenarios_of(
        request(
            scenarios=[
                {"label": digest[-1], "set": {"model.tables.a.access": {"statistics": digest}}} for digest in digests
            ]
        )
    )
    assert mixed(several, tiny(), max)["model"]["tables"][0].get("access") is None


def test_drawn_scenarios_lie_within_the_factor_and_come_out_again() -> None:
    spread = {"number": 40, "factor": 2.0, "seed": 3, "weight": 2}
    spec = tiny(model__tables__0__features=[{"name": "f", "pooling_factor": 10.0}])
    del spec["model"]["tables"][0]["pooling_factor"]  # type: ignore[index]
    drawn = scenarios_of(request(scenarios=[], spread=spread, spec=spec))
    found = [one.spec["model"]["tables"][0]["features"][0]["pooling_factor"] for one in drawn]
    assert [one.label for one in drawn[:2]] == ["drawn 1", "drawn 2"]
    assert all(5.0 <= factor <= 20.0 for factor in found)
    assert min(found) < 6.5
    assert max(found) > 15.0
    assert drawn == scenarios_of(request(scenarios=[], spread=spread, spec=spec))
    others = scenarios_of(request(scenarios=[], spread={**spread, "seed": 4}, spec=spec))
    assert found != [one.spec["model"]["tables"][0]["features"][0]["pooling_factor"] for one in others]


def test_drawn_scenarios_change_tables_that_stand_for_their_only_feature() -> None:
    drawn = scenarios_of(request(scenarios=[], spread={"number": 3, "factor": 2.0}))
    first = [of_tables[0] for of_tables in factors(drawn)]
    assert len(set(first)) == 3
    assert all(1.0 <= factor <= 4.0 for factor in first)


def test_scenarios_that_are_no_traffic_are_refused_together() -> None:
    found = issues_of(
        scenarios=[
            {"label": "a", "set": {"hardware.num_hosts": 2}},
            {"label": "b", "set": {"model.tables.b.num_embeddings": 700}},
            {"label": "c", "set": {"model.tables.z.pooling_factor": 1}},
            {"label": "a"},
        ]
    )
    assert [pointer for pointer, _ in found] == [
        "/scenarios/0/set",
        "/scenarios/1/set",
        "/scenarios/2/set",
        "/scenarios/3/label",
    ]
    assert "changes hardware from" in found[0][1]
    assert "num_embeddings of table b from 500 to 700" in found[1][1]
    assert "has no item z" in found[2][1]


def test_one_scenario_is_no_question() -> None:
    with pytest.raises(InvalidProblem, match="1 scenarios are given"):
        request(scenarios=[DAY])


def test_a_label_of_a_drawn_scenario_is_taken() -> None:
    ((pointer, message),) = issues_of(
        scenarios=[{"label": "drawn 1"}, NIGHT], spread={"number": 1, "factor": 2.0, "seed": 0}
    )
    assert pointer == "/scenarios/0/label"
    assert "drawn scenario" in message
