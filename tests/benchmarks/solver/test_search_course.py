"""The course of a search, recorded and drawn."""

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.inputs.instances import meta_family
from benchmarks.solver.search_course import course_of, main
from benchmarks.solver.search_picture import STAGES, Look, picture
from tests.support.planning.builders import random_priced

SVG = "{http://www.w3.org/2000/svg}"


def test_looks_follow_the_work_from_the_race_to_the_refinement() -> None:
    bound_seconds, looks = course_of(random_priced(0, num_tables=24, ranks_per_host=3), work_seconds=0.3, seed=0)
    assert list(dict.fromkeys(look.stage for look in looks)) == ["race", "anneal", "refine"]
    assert all(one.work_fraction <= other.work_fraction for one, other in itertools.pairwise(looks))
    assert {look.chain for look in looks} == set(range(max(look.chain for look in looks) + 1))
    assert len({look.chain for look in looks if look.stage == "race"}) > 1
    for look in looks:
        assert look.best_seconds >= bound_seconds * (1 - 1e-9)
        assert look.objective_seconds > 0


def made_up() -> list[Look]:
    """Two chains race in parallel, the second is heated, and refined."""
    rows = [
        (0.1, 0, "race", 3.0, 3.0),
        (0.15, 1, "race", 2.8, 2.8),
        (0.2, 0, "race", 2.5, 2.5),
        (0.3, 1, "race", 2.0, 2.0),
        (0.6, 2, "anneal", 4.0, 2.0),
        (0.8, 2, "anneal", 1.5, 1.5),
        (1.0, 3, "refine", 1.4, 1.4),
    ]
    names = ("work_fraction", "chain", "stage", "objective_seconds", "best_seconds")
    return [Look(run=row[1], **dict(zip(names, row, strict=True))) for row in rows]


def points_of(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]  # type: ignore[misc]


def test_a_picture_has_a_line_for_each_run_and_one_for_the_best_plan() -> None:
    lines = ElementTree.fromstring(picture(made_up(), 1.0)).findall(f"{SVG}polyline")
    colours = [line.attrib["stroke"] for line in lines]
    assert colours == [*(STAGES[stage][0] for stage in ("race", "race", "anneal", "refine")), "black"]
    assert [len(points_of(line)) for line in lines[:-1]] == [2, 2, 2, 1]
    best = points_of(lines[-1])
    assert [x for x, _ in best] == sorted(x for x, _ in best)
    assert [y for _, y in best] == sorted(y for _, y in best)  # y grows downwards
    first, last = best[0], best[-1]
    assert points_of(lines[0])[0] == first
    assert points_of(lines[3])[-1] == last


@pytest.mark.parametrize("stage", ["race", "anneal", "refine"])
def test_the_picture_of_the_documentation_shows_all_stages(root: Path, stage: str) -> None:
    text = (root / "docs" / "local-search.svg").read_text()
    ElementTree.fromstring(text)
    colour, words = STAGES[stage]
    assert words in text
    assert re.search(rf'<polyline [^>]*stroke="{colour}"', text)


def test_the_command_draws_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, svg = tmp_path / "spec.json", tmp_path / "course.svg"
    spec.write_text(json.dumps(meta_family(num_tables=20, num_ranks=4, fill=0.5, seed=0)))
    assert main(["--spec", str(spec), "--work", "0.2", "--picture", str(svg)]) == 0
    ElementTree.fromstring(svg.read_text())
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["race", "anneal", "refine"]


def test_the_command_says_that_nothing_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, svg = tmp_path / "spec.json", tmp_path / "course.svg"
    stated = meta_family(num_tables=20, num_ranks=4, fill=1.0, seed=0)
    for table in stated["model"]["tables"]:
        table["num_embeddings"] *= 2
    spec.write_text(json.dumps(stated))
    assert main(["--spec", str(spec), "--work", "0.1", "--picture", str(svg)]) == 2
    assert "no plan fits" in capsys.readouterr().err
    assert not svg.exists()
