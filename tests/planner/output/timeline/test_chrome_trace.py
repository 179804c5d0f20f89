"""A trace follows the format: complete events that nest, named rows, whole nanoseconds, and the step of the plan."""

import itertools
import json
from collections import defaultdict
from typing import Any

import pytest

from planner.options.runtimes.export import ExportFacts
from planner.output.drawing.palette import MEMORY_COLOURS, STEP_COLOURS
from planner.output.exporters.registry import CHROME_TRACE, export_parts
from planner.output.timeline.chrome_trace import COLOUR_NAMES
from tests.planner.output.timeline.test_plan_timeline import PROBLEMS, model_of, planned

#: Reserved colour names, https://chromium.googlesource.com/catapult/+/refs/heads/main/tracing/tracing/base/color_scheme.html
RESERVED = {
    "thread_state_uninterruptible", "thread_state_iowait", "thread_state_running", "thread_state_runnable",
    "thread_state_sleeping", "thread_state_unknown", "background_memory_dump", "light_memory_dump",
    "detailed_memory_dump", "vsync_highlight_color", "generic_work", "good", "bad", "terrible", "black", "grey",
    "white", "yellow", "olive", "rail_response", "rail_animation", "rail_idle", "rail_load", "startup",
    "heap_dump_stack_frame", "heap_dump_object_type", "heap_dump_child_node_arrow", "cq_build_running",
    "cq_build_passed", "cq_build_failed", "cq_build_abandoned",
}  # fmt: skip


def trace(name: str, *, with_prices: bool = True) -> dict[str, Any]:
    problem, _, document = planned(name)
    facts = ExportFacts(problem=problem, cost_model=model_of(problem)) if with_prices else ExportFacts()
    found = json.loads(b"".join(export_parts(document, CHROME_TRACE, module_path=None, facts=facts)))
    return dict(found)


def complete(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in found["traceEvents"] if event["ph"] == "X"]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("with_prices", [True, False])
def test_events_have_what_the_format_asks_for(name: str, with_prices: bool) -> None:
    found = trace(name, with_prices=with_prices)
    assert found["displayTimeUnit"] in {"ms", "ns"}
    named: set[tuple[int, int | None]] = set()
    for event in found["traceEvents"]:
        assert event["pid"] > 0
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}
            (key,) = event["args"]
            assert key == event["name"].split("_", 1)[1]
            named.add((event["pid"], event.get("tid")))
        else:
            assert set(event) == {"ph", "pid", "tid", "name", "cat", "ts", "dur", "cname", "args"}
            assert event["ts"] >= 0
            assert event["dur"] > 0
            assert event["cname"] in RESERVED
            assert (event["pid"], event["tid"]) in named
            for value in (event["ts"], event["dur"]):
                assert round(value * 1000) == pytest.approx(value * 1000, abs=1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_events_of_a_row_nest_or_follow_each_other(name: str) -> None:
    rows = defaultdict(list)
    for event in complete(trace(name)):
        start = round(event["ts"] * 1000)
        rows[event["pid"], event["tid"]].append((start, start + round(event["dur"] * 1000)))
    for spans in rows.values():
        for (a, b), (c, d) in itertools.combinations(spans, 2):
            assert b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_trace_ends_with_the_step(name: str) -> None:
    _, found, document = planned(name)
    written = trace(name)
    whole = found.evaluation.whole_step
    step = found.evaluation.objective_seconds if whole is None else whole.seconds
    end = max(event["ts"] + event["dur"] for event in complete(written))
    assert end == pytest.approx(step * 1e6, abs=1e-3)
    unit = "request" if document["serving"] else "step"
    assert written["otherData"][f"{unit}_seconds"] == pytest.approx(step)
    assert written["otherData"]["plan_digest"] == document["plan_digest"]


def test_every_rank_is_a_process_and_shows_sharding_types_of_its_modules() -> None:
    written = trace("embeddings alone")
    names = [event["args"]["name"] for event in written["traceEvents"] if event["name"] == "process_name"]
    assert names == ["rank 0, host 0", "rank 1, host 0", "rank 2, host 1", "rank 3, host 1"]
    parts = {(event["name"], event["args"]["module"]) for event in complete(written) if event["cat"] == "sharding_type"}
    assert ("row_wise", "towers.users") in parts
    assert ("table_wise", "towers.items") in parts
    assert {event["cat"] for event in complete(trace("embeddings alone", with_prices=False))} == {
        "phase",
        "starts",
        "wait",
    }


def test_prices_that_are_not_those_of_the_plan_are_left_out() -> None:
    """As of a release that priced the plan otherwise: parts longer than their phase would be wrong."""
    problem, _, document = planned("embeddings alone")
    ranks = json.loads(json.dumps(document["ranks"]))
    seconds = ranks["seconds"]["backward_compute"]
    ranks["seconds"]["backward_compute"] = [one / 2 for one in seconds] if isinstance(seconds, list) else seconds / 2
    facts = ExportFacts(problem=problem, cost_model=model_of(problem))
    changed = {**document, "ranks": ranks}
    found = json.loads(b"".join(export_parts(changed, CHROME_TRACE, module_path=None, facts=facts)))
    assert "sharding_type" not in {event["cat"] for event in complete(found)}


def test_every_colour_of_a_step_has_a_name_in_the_format() -> None:
    assert set(STEP_COLOURS) <= set(COLOUR_NAMES)
    assert not set(COLOUR_NAMES) & set(MEMORY_COLOURS)
