"""Charts as they come out of the canvas: which labels stand where, and which lines are drawn."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from planner.domain.formats.units import format_bytes
from tests.api.http.pages.conftest import Filled
from tests.support.service.browser import Browser
from tests.support.thorough import thorough

pytestmark = pytest.mark.browser

#: Keeps of every canvas the texts with their left and right end, and the lines with both ends, of its last drawing.
LISTEN = """(() => {
  const kept = new Map();
  const of = (context) => {
    if (!kept.has(context.canvas)) kept.set(context.canvas, { texts: [], lines: [], at: null });
    return kept.get(context.canvas);
  };
  const { clearRect, fillText, moveTo, lineTo } = CanvasRenderingContext2D.prototype;
  const around = (name, original, keep) => {
    CanvasRenderingContext2D.prototype[name] = function (...given) {
      keep(this, given);
      return original.apply(this, given);
    };
  };
  around("clearRect", clearRect, (context) => kept.delete(context.canvas));
  around("fillText", fillText, (context, [text, x]) => {
    const { actualBoundingBoxLeft, actualBoundingBoxRight } = context.measureText(text);
    const at = context.getTransform().e / devicePixelRatio + x;
    of(context).texts.push([text, at - actualBoundingBoxLeft, at + actualBoundingBoxRight]);
  });
  around("moveTo", moveTo, (context, point) => { of(context).at = point; });
  around("lineTo", lineTo, (context, point) => {
    of(context).lines.push([of(context).at, point]);
    of(context).at = point;
  });
  globalThis.drawn = (caption) => {
    const figure = [...document.querySelectorAll("figure")].find((one) => one.innerText.includes(caption));
    const canvas = figure.querySelector("canvas");
    return { width: canvas.offsetWidth, texts: [], lines: [], ...kept.get(canvas) };
  };
})()"""
SEARCH = "Best plan and bound over the time of the search"


@pytest.fixture
def listened(browser: Browser) -> Iterator[Browser]:
    """A browser on a page whose drawings are kept."""
    browser.resize(1000)
    browser.open("/ui/solves")
    browser.run(LISTEN)
    yield browser
    browser.resize(1400)


def searched(browser: Browser, bests: Sequence[float], bounds: Sequence[float]) -> dict[str, Any]:
    """What is drawn of a search that finds plans and bounds, one a second, as a page hears of them."""
    events = [
        {"at_seconds": i, "incumbent_seconds": best, "bound_seconds": bound, "relative_gap": 0.1, "partitioner": "x"}
        for i, (best, bound) in enumerate(zip(bests, bounds, strict=True), 1)
    ]
    browser.run(
        f"""(async () => {{
          const main = document.querySelector('script[type=module]').src;
          const {{ gapChart }} = await import(main.replace('main.js', 'charts/gap.js'));
          const heard = [];
          const chart = gapChart(heard, () => heard.length + 1);
          document.getElementById('main').replaceChildren(chart.element);
          globalThis.hear = () => {json.dumps(events)}.forEach((event) => {{ heard.push(event); chart.redraw(); }});
        }})()"""
    )
    browser.wait_for("document.querySelector('.chart[data-drawn] canvas') !== null")
    browser.run("hear()")
    browser.wait_for(f"drawn('{SEARCH}').texts.some(([text]) => text === 'since the search began')")
    reported: dict[str, Any] = browser.run(f"drawn('{SEARCH}')")
    return reported


def on_scale(reported: dict[str, Any]) -> list[float]:
    """Seconds at the lines of the scale, from its labels; all of one unit, and no two alike."""
    left = [text for text, begin, _ in reported["texts"] if begin < 70 and text.endswith(" µs")]
    assert len(left) == len(set(left)) > 3, left
    return sorted(float(text.removesuffix(" µs")) * 1e-6 for text in left)


@thorough
@pytest.mark.parametrize("gap", [0.0, 1e-9, 4e-4])
def test_the_scale_of_a_search_does_not_blow_up_what_is_no_gap(listened: Browser, gap: float) -> None:
    """A thousandth of the value at least is on it, between lines at round numbers that tell them apart."""
    best = 233.48e-6
    lines = on_scale(searched(listened, [best, best], [best * (1 - gap), best * (1 - 1e-9)]))
    assert lines[-1] - lines[0] >= 0.001 * best
    assert lines[0] < best * (1 - gap) <= best < lines[-1]
    assert {round(b - a, 12) for a, b in itertools.pairwise(lines)} == {5e-8}


def test_the_scale_of_a_search_is_filled_by_a_gap(listened: Browser) -> None:
    best = 233.48e-6
    lines = on_scale(searched(listened, [best, best], [best * 0.9, best * 0.95]))
    assert 0.1 * best < lines[-1] - lines[0] < 0.2 * best


def test_a_search_is_drawn_in_steps_however_small(listened: Browser) -> None:
    """A plan is the best until there is a better one, also where both are less than a line's width apart."""
    reported = searched(listened, [3e-4, *(2.5e-4 - i * 1e-6 for i in range(12))], [1e-4, *[1.2e-4] * 12])
    lines = reported["lines"]
    assert [(a, b) for a, b in lines if a[0] != b[0] and a[1] != b[1]] == []
    left = min(a[0] for a, _ in lines)
    falls = [a for a, b in lines if a[0] == b[0] > left and b[1] > a[1]]
    assert len(falls) >= 12


@thorough
@pytest.mark.parametrize("width", [1400, 1000, 360, 320])
def test_the_end_of_a_scale_of_memory_has_its_label(filled: Filled, listened: Browser, width: int) -> None:
    plan = filled.server.client.get(f"/v1/plans/{filled.first}").json()
    capacity = format_bytes(max(rank["capacity_bytes"]["hbm"] for rank in plan["ranks"]))
    listened.resize(500)
    listened.open(filled.addresses()["plan"])
    listened.run(LISTEN)
    listened.resize(width)
    listened.wait_for(f"drawn('Memory of the accelerators').texts.some(([text]) => text === {json.dumps(capacity)})")
    reported = listened.run("drawn('Memory of the accelerators')")
    labels = sorted(reported["texts"], key=lambda one: one[2])
    assert labels[-1][0] == capacity
    assert labels[-1][2] <= reported["width"]
    scale = [one for one in labels if one[0].endswith("B")]
    assert all(a[2] < b[1] for a, b in itertools.pairwise(scale)), scale
