"""The picture of a step has its bars to scale, and its memory up to the peak."""

import re
from xml.etree import ElementTree

import pytest

from planner.output.drawing.palette import MEMORY_LINES
from planner.output.drawing.step_picture import rank_to_draw, step_picture
from planner.output.explain.shard_groups import rank_loads
from planner.output.timeline.plan_timeline import plan_timeline
from tests.planner.output.timeline.test_plan_timeline import PROBLEMS, planned

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str, rank: int | None = None) -> tuple[ElementTree.Element, int]:
    _, _, document = planned(name)
    loads = rank_loads(document)
    rank = rank_to_draw(document, loads) if rank is None else rank
    return ElementTree.fromstring(step_picture(plan_timeline(document), loads, [rank])), rank


def bars(picture: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Rectangles by the words of their titles."""
    found = {}
    for one in picture.iter(f"{SVG}rect"):
        title = one.find(f"{SVG}title")
        if title is not None and one.get("class") != "part":
            found[str(title.text).split(":")[0]] = one
    return found


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_is_an_svg_that_stays_within_its_frame(name: str) -> None:
    picture, _ = drawn(name)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for one in picture.iter(f"{SVG}rect"):
        x, y = float(one.get("x", 0)), float(one.get("y", 0))
        assert x >= 0
        assert x + float(one.attrib["width"]) <= width + 0.01
        assert y + float(one.attrib["height"]) <= height + 0.01


def test_bars_are_to_scale_and_copies_lie_under_the_dense_part() -> None:
    _, found, _ = planned("a stash")
    stash, step = found.evaluation.stash, found.evaluation.whole_step
    assert stash is not None
    assert step is not None
    picture, _ = drawn("a stash", stash.busiest_rank)
    by_name = bars(picture)
    lengths = {name: float(bar.attrib["width"]) for name, bar in by_name.items()}
    assert lengths["dense backward"] / lengths["dense forward"] == pytest.approx(2.0, rel=1e-3)
    copied = stash.to_host_seconds / step.dense_forward_seconds
    assert lengths["stash"] / lengths["dense forward"] == pytest.approx(copied, rel=1e-3)
    assert by_name["stash"].attrib["x"] == by_name["dense forward"].attrib["x"]


def test_memory_is_drawn_up_to_its_peak() -> None:
    _, found, _ = planned("a stash")
    picture, rank = drawn("a stash")
    memory = found.evaluation.ranks[rank].step_memory
    assert memory is not None
    polygons = list(picture.iter(f"{SVG}polygon"))
    assert {one.attrib["class"] for one in polygons} <= set(MEMORY_LINES.values())
    heights = [float(y) for one in polygons for y in re.findall(r",([0-9.]+)", one.attrib["points"])]
    limit = next(float(one.attrib["y1"]) for one in picture.iter(f"{SVG}line") if one.get("class") == "limit")
    full, peak = max(heights) - limit, max(heights) - min(heights)
    assert peak / full == pytest.approx(memory.peak_bytes / memory.device_bytes, rel=0.01)


def test_names_in_a_plan_are_text() -> None:
    _, _, document = planned("embeddings alone")
    starts = [{**start, "sharding_type": "<b>&"} for start in document["starts"]]
    changed = {**document, "starts": starts}
    text = step_picture(plan_timeline(changed), rank_loads(document), [0])
    assert "<b>" not in text
    ElementTree.fromstring(text)
