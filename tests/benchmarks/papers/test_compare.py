"""The studies of papers: their questions are valid, and every claim is read from points that they have."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import CANCELLED, Point, PointOutcome
from api.specs.parse import parse_spec
from examples.studies import compare
from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.thorough import thorough

PLAN = {"checkpoint": {"write_reduction": 8.0, "stored_reduction": 3.0}}


def points_of_study(examples: Path, name: str) -> list[Point]:
    """All points, in their order."""
    folder = examples / "studies"
    request = json.loads((folder / f"{name}.json").read_bytes())
    request["spec"] = json.loads((folder / compare.COMPARISONS[name].spec).read_bytes())
    study = study_of(parse_study(json.dumps(request).encode()))
    found: list[Point] = []
    while more := study.next_points({one.key: PointOutcome(state=CANCELLED) for one in found}):
        found += more
    return found


def test_every_study_of_the_folder_is_compared(examples: Path) -> None:
    assert {path.stem for path in (examples / "studies").glob("*.json")} == set(compare.COMPARISONS)


@pytest.mark.parametrize("name", compare.COMPARISONS)
def test_points_are_specs_that_can_be_planned(examples: Path, name: str) -> None:
    points = points_of_study(examples, name)
    assert all(point.spec is not None for point in points)
    parse_spec(canonical_bytes(points[-1].spec))
    assert len({canonical_bytes(point.spec) for point in points}) == len(points)  # no two of them are alike


@pytest.mark.parametrize("name", compare.COMPARISONS)
def test_every_claim_is_read_from_points_of_the_study(examples: Path, name: str) -> None:
    points = {
        point.key: compare.Point(
            "planned",
            {"samples_per_second": 5e6, "num_hosts": index + 1, "fullest_rank_fraction": 0.5},
            PLAN,
        )
        for index, point in enumerate(points_of_study(examples, name))
    }
    found = compare.table(name, points)
    text = compare.text_of(found)
    assert len(found["claims"]) == len(compare.COMPARISONS[name].claims)
    for claim in found["claims"]:
        assert all(claim.values()), claim
        assert claim["ours"] in text
    assert max(len(line) for line in text.splitlines()) <= 120


def point(rate: float, **figures: Any) -> compare.Point:
    return compare.Point("planned", {"samples_per_second": rate, **figures})


def test_figures_are_read_as_they_are() -> None:
    points = {"a": point(1e6, num_hosts=2), "b": point(1.5e6, num_hosts=1), "c": compare.Point("no_plan", {})}
    assert compare.gain("b", "a")(points) == "+50%"
    assert compare.rate("a")(points) == "1,000 K/s"
    assert compare.share("c", "a")(points) == "no plan"
    assert compare.per_host("b", "a")(points) == "3x"
    assert compare.state("c")(points) == "no plan"
    assert compare.served("a")({"a": compare.Point("planned", {"requests_per_second": 30_000.0})}) == (
        "30,000/s a host, 4 hosts"
    )


def test_hosts_are_the_fewest_that_reach_the_rate() -> None:
    points = {
        "HBM/8": compare.Point("infeasible", {}),
        "HBM+DDR/8": point(2e6, num_hosts=8),
        "HBM+DDR/4": point(0.5e6, num_hosts=4),
        "HBM+DDR+SCM+SSD/2": point(1.2e6, num_hosts=2),
    }
    assert compare.hosts(1e6)(points) == "- / 8 / - / 2: 4.0x fewer"


def test_names_that_are_none_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["neon"])
    assert "no study of the name neon; there are neo, " in capsys.readouterr().err


@thorough
def test_a_study_runs_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    assert compare.main(["neo_memory", "-o", str(out), "--json", str(figures)]) == 0
    (study,) = json.loads(figures.read_bytes()).values()
    printed = {claim["what"]: claim["ours"] for claim in study["claims"]}
    assert printed["fp32, adagrad: 96 TB"] == "infeasible"
    assert printed["fp16, rowwise_adagrad: 24 TB"].startswith("fits")
    assert "12 T parameters" in capsys.readouterr().out
