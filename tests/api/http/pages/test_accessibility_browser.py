"""Pages for everyone: by keyboard, by ear, in the dark, on a narrow window, and with what somebody's day has in it."""

import itertools
import json

import pytest

from tests.api.http.pages.conftest import Filled
from tests.support.service.browser import Browser
from tests.support.thorough import thorough

pytestmark = pytest.mark.browser

PAGES = [
    "overview",
    "solves",
    "solve",
    "solve without a plan",
    "plans",
    "plan",
    "diff",
    "studies",
    "sweep",
    "jobs",
    "channels",
    "channel",
    "profiles",
    "profile",
    "cost models",
    "cost model",
]

#: Texts whose colour is too close to what is behind them, as WCAG 2.2 counts it (4.5, or 3 for large text).
TOO_FAINT = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const channel = (value) => { const c = value / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
      if (colour[3] > 0) throw new Error('a translucent ground');
    }
    throw new Error('nothing is behind');
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest('noscript, option')) continue;
    seen += 1;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color)), light(behind(element))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.push([walker.currentNode.textContent, ratio]);
  }
  return JSON.stringify({ faint, seen });
})()"""

OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true; })"

INTERACTIVE = (
    "[...document.querySelectorAll('a[href], button, input, select, textarea, summary, .scroll')]"
    ".filter(element => !element.disabled && element.checkVisibility())"
)


@pytest.fixture(autouse=True)
def as_before(browser: Browser) -> None:
    """A wide, light window."""
    browser.resize(1400)
    browser.prefer("light")


@thorough
@pytest.mark.parametrize("name", PAGES)
def test_texts_can_be_read_in_light_and_dark(filled: Filled, browser: Browser, name: str) -> None:
    browser.open(filled.addresses()[name])
    browser.run(OPEN_ALL)
    grounds = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        reported = json.loads(browser.run(TOO_FAINT))
        assert reported["seen"] > 20
        assert reported["faint"] == [], scheme
        grounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_charts_stand_out_and_follow_the_scheme(filled: Filled, browser: Browser, scheme: str) -> None:
    browser.prefer("light" if scheme == "dark" else "dark")
    browser.open(filled.addresses()["plan"])
    ground = "(() => { const canvas = document.querySelector('.chart canvas'); return canvas.toDataURL(); })()"
    before = browser.run(ground)
    browser.prefer(scheme)
    browser.wait_for(f"({ground}) !== {json.dumps(before)}")  # drawn again, without a reload
    weak = browser.run(
        """(() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const pairs = style.getPropertyValue(name).trim().slice(1).match(/../g);
            const channels = pairs.map((pair) => parseInt(pair, 16) / 255);
            const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const card = light('--card');
          return Array.from({ length: 10 }, (_, i) => `--c${i + 1}`).filter((name) => {
            const [a, b] = [light(name), card].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05) < 3;
          });
        })()"""
    )
    assert weak == []


@thorough
@pytest.mark.parametrize("name", PAGES)
def test_a_page_never_scrolls_sideways(filled: Filled, browser: Browser, name: str) -> None:
    for width in (320, 390, 768, 1600):
        browser.resize(width)
        if width == 320:
            browser.open(filled.addresses()[name])
            browser.run(OPEN_ALL)
        browser.wait_for(f"innerWidth === {width}")
        # charts follow the window when the browser has told them
        browser.wait_for(
            f"[...document.querySelectorAll('.chart canvas')].every(canvas => canvas.offsetWidth < {width})"
        )
        assert browser.run("document.documentElement.scrollWidth") <= width
        wide = browser.run(
            "[...document.querySelectorAll('main *')]"
            ".filter(element => !element.closest('.scroll, .chart, .quiet, .spoken')"
            f" && element.getBoundingClientRect().right > {width + 1}).map(element => element.outerHTML.slice(0, 80))"
        )
        assert wide == [], width


@thorough
@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_everything_and_shows_where_it_is(filled: Filled, browser: Browser, name: str) -> None:
    browser.open(filled.addresses()[name])
    browser.run(f"{INTERACTIVE}.forEach((element, i) => {{ element.dataset.number = i; }})")
    number = browser.run(f"{INTERACTIVE}.length")
    browser.run("window.scrollTo(0, 0); document.activeElement.blur()")
    reached, unseen = set(), []
    for _ in range(number + 5):
        browser.press("Tab", 9)
        at = browser.run(
            "(() => { const at = document.activeElement; const style = getComputedStyle(at);"
            " return [at.dataset.number ?? null, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,"
            " at.outerHTML.slice(0, 80)]; })()"
        )
        if at[0] is None:
            continue
        reached.add(int(at[0]))
        if not at[1]:
            unseen.append(at[2])
    missed = browser.run(
        f"{INTERACTIVE}.filter(element => !{json.dumps(sorted(reached))}.includes(Number(element.dataset.number)))"
        ".map(element => element.outerHTML.slice(0, 100))"
    )
    assert missed == []
    assert unseen == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_heard(filled: Filled, browser: Browser, name: str) -> None:
    browser.open(filled.addresses()[name])
    assert browser.run("[document.querySelectorAll('header').length, document.querySelectorAll('main').length]") == [
        1,
        1,
    ]
    assert browser.run("document.querySelector('nav[aria-label=Pages] [aria-current]') !== null")
    assert browser.run("document.querySelectorAll('h1').length") == 1
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(heading => Number(heading.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels)), levels
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "textbox", "searchbox", "combobox", "table", "region", "navigation", "img", "image"}
    unnamed = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored") and node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]
    assert unnamed == []
    assert browser.run("[...document.querySelectorAll('table')].every(table => table.querySelector('th[scope=col]'))")


def test_the_skip_link_leads_past_the_navigation(filled: Filled, browser: Browser) -> None:
    browser.open(filled.addresses()["plan"])
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().top >= 0")
    browser.press("Enter", 13, "\r")
    browser.wait_for("document.activeElement.id === 'main'")


@pytest.mark.parametrize("name", ["overview", "solves", "plans", "channels"])
def test_lists_show_all_of_an_entry_in_a_narrow_window(filled: Filled, browser: Browser, name: str) -> None:
    browser.resize(360)
    browser.open(filled.addresses()[name])
    cells = "[...document.querySelectorAll('main tbody td, main tbody th')]"
    ends = browser.run(f"{cells}.map(cell => cell.getBoundingClientRect().right)")
    assert ends
    assert max(ends) <= 360
    labels = browser.run(f"{cells}.map(cell => getComputedStyle(cell, '::before').content)")
    assert {"overview": '"Best plan"', "solves": '"Gap"', "plans": '"Objective"', "channels": '"Plan"'}[name] in labels


def test_a_table_that_goes_on_beyond_an_edge_has_a_shadow_there(filled: Filled, browser: Browser) -> None:
    """The shadow stays while its cover scrolls along, so that it shows where there is more and nowhere else."""
    browser.resize(360)
    browser.open(filled.addresses()["plan"])
    region = "[...document.querySelectorAll('.scroll')].find(region => region.textContent.startsWith('Phases'))"
    assert browser.run(f"{region}.scrollWidth > {region}.clientWidth + 20")

    def edges() -> tuple[int, int]:
        """How dark the ground is at the left and the right edge, between the lines of the head."""
        box = browser.run(f"{region}.scrollIntoView(), {region}.getBoundingClientRect().toJSON()")
        clip = {
            "x": box["x"],
            "y": box["y"] + 1 + browser.run("scrollY"),
            "width": box["width"],
            "height": 3,
            "scale": 1,
        }
        picture = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=False)
        first, *_, last = browser.run(
            f"""(async () => {{
              const bytes = Uint8Array.from(atob('{picture["data"]}'), (letter) => letter.charCodeAt(0));
              const drawn = await createImageBitmap(new Blob([bytes]));
              const context = new OffscreenCanvas(drawn.width, 1).getContext('2d');
              context.drawImage(drawn, 0, 0);
              const pixels = context.getImageData(0, 0, drawn.width, 1).data;
              return Array.from({{ length: drawn.width }}, (_, i) => pixels[4 * i]);
            }})()"""
        )
        return first, last

    left, right = edges()
    assert left > 250
    assert right < 220
    browser.run(f"{region}.scrollLeft = 10_000")
    left, right = edges()
    assert left < 220
    assert right > 250
    browser.resize(1400)
    left, right = edges()
    assert left > 250
    assert right > 250


def test_a_list_leaves_out_what_an_entry_has_not_in_a_narrow_window(filled: Filled, browser: Browser) -> None:
    browser.resize(360)
    browser.open(filled.addresses()["solves"])
    row = f"document.querySelector('a[href$=\"{filled.infeasible}\"]').closest('tr')"
    shown = browser.run(f"[...{row}.cells].map(cell => cell.checkVisibility())")
    assert shown == [True, True, True, False, False, True]  # "no plan exists": no gap and no plan
