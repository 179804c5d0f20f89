"""The pages as a browser without a network shows them: whole, quiet, and with nothing asked elsewhere."""

import json
import re

import pytest

from planner.domain.formats.units import format_bytes, format_seconds
from tests.api.http.pages.conftest import HOSTILE_NAME, HOSTILE_TABLES, Filled
from tests.support.service.browser import Browser
from tests.support.thorough import thorough

pytestmark = pytest.mark.browser

#: Charts and tables of a page, and what it says anyway.
EXPECTED = {
    "overview": (0, 3, ["Newest solves", "Newest plans", "Channels", "Ask for a plan", HOSTILE_NAME]),
    "solves": (0, 1, ["succeeded", HOSTILE_NAME, "too-large"]),
    "solve": (1, 1, ["Best plan", "Lower bound", "What was assumed", HOSTILE_NAME]),
    "solve without a plan": (0, 1, ["There is no plan", "What is short", "No plan exists"]),
    "plans": (0, 1, ["dgx-h100-80g", "roofline@2", HOSTILE_NAME]),
    "plan": (5, 3, ["Step time", "Rank by rank", "Memory", "Search", "What was assumed", *HOSTILE_TABLES]),
    "diff": (1, 2, ["Tables unchanged", "The specs differ", HOSTILE_TABLES[3]]),
    "studies": (0, 1, ["hosts and batches", "sweep", "6 of 6"]),
    "sweep": (1, 1, ["hosts and batches", "Front", "Samples per second", "65 samples is no multiple", "With a plan"]),
    "jobs": (0, 2, ["Answer", "ads", "Free ranks", "About this study"]),
    "channels": (0, 1, ["ads/ranker/prod"]),
    "channel": (0, 1, ["History", "points here now", "Roll back to version 1"]),
    "profiles": (0, 1, ["dgx-h100-80g", "NVIDIA DGX H100"]),
    "profile": (1, 1, ["hbm_bytes", "measured", "estimated", "Bus bandwidth"]),
    "cost models": (0, 1, ["roofline", "cpu-epyc@1"]),
    "cost model": (0, 0, ["learned:cpu-epyc@1", "Held-out rows", "The whole report"]),
}


def open_all(browser: Browser) -> None:
    """Open all that can be opened, and wait for the tables of charts, which are made then."""
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    browser.wait_for("[...document.querySelectorAll('figure details')].every(opened => opened.querySelector('table'))")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_page_is_whole_and_asks_no_one_else(filled: Filled, browser: Browser, name: str) -> None:
    num_charts, least_tables, reported = EXPECTED[name]
    browser.complaints.clear()
    browser.asked_for.clear()
    browser.open(filled.addresses()[name])
    shown = browser.text()
    for words in reported:
        assert words in shown, words
    assert browser.run("document.querySelectorAll('.chart[data-drawn] canvas').length") == num_charts
    assert browser.run("document.querySelectorAll('main table').length") >= least_tables
    home = f"http://127.0.0.1:{filled.server.port}/"
    assert {url for url in browser.asked_for if not url.startswith(home)} == set()
    # no model is active for the profile, which the API says with a 404, and the browser of each in its console
    assert [message for message in browser.complaints if "/cost-model" not in message] == []
    assert re.fullmatch("(.+ - )?shardplan", browser.run("document.title"))


@thorough
@pytest.mark.parametrize("name", EXPECTED)
def test_charts_have_ink_and_the_same_numbers_as_tables(filled: Filled, browser: Browser, name: str) -> None:
    browser.open(filled.addresses()[name])
    drawn = browser.run(
        """[...document.querySelectorAll('.chart canvas')].map(canvas => {
          const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          const colours = new Set();
          for (let i = 0; i < pixels.length; i += 4) {
            if (pixels[i + 3] > 200) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
          }
          return colours.size;
        })"""
    )
    assert all(number > 20 for number in drawn), drawn
    open_all(browser)
    unnamed = "[...document.querySelectorAll('figure')].filter(f => !f.querySelector('[role=img][aria-labelledby]'))"
    assert browser.run(f"{unnamed}.length") == 0


def test_figures_of_a_plan_are_those_of_the_api(filled: Filled, browser: Browser) -> None:
    plan = filled.server.client.get(f"/v1/plans/{filled.first}").json()
    browser.open(filled.addresses()["plan"])
    open_all(browser)
    tables = json.loads(
        browser.run(
            """JSON.stringify(Object.fromEntries([...document.querySelectorAll('table')].map(table => [
              table.caption.textContent,
              [...table.tBodies].flatMap(body => [...body.rows]).map(row => [...row.cells].map(c => c.textContent)),
            ])))"""
        )
    )

    def seconds(value: float) -> str:
        return format_seconds(value).replace(" us", " µs")

    assert tables["Phases"] == [
        [
            phase["name"].replace("_", " "),
            str(phase["slowest_rank"]),
            seconds(phase["seconds"]),
            seconds(phase["mean_seconds"]),
            seconds(phase["hidden_seconds"]),
            phase["evidence"],
        ]
        for phase in plan["phases"]
        if phase["seconds"] > 0
    ]
    assert tables["Starts"] == [
        [start["sharding_type"].replace("_", " "), start["module"] or "none given", seconds(start["seconds"])]
        for start in sorted(plan["starts"], key=lambda start: -start["seconds"])
    ]
    counted = [phase["name"] for phase in plan["phases"] if phase["counted"] and phase["seconds"] > 0]
    assert tables["Seconds of every rank by phase"] == [
        [str(rank["rank"]), str(rank["host"]), *(seconds(rank["seconds"][name]) for name in counted)]
        for rank in plan["ranks"]
    ]
    memory = tables["Memory of the accelerators (hbm): bytes of every rank"]
    for row, rank in zip(memory, plan["ranks"], strict=True):
        assert row[-2:] == [format_bytes(rank["bytes"]["hbm"]), format_bytes(rank["capacity_bytes"]["hbm"])]
        lines = [value for value in row[2:-2] if value != "0 B"]
        held = [format_bytes(value) for value in rank["ledger_bytes"]["hbm"].values() if value]
        assert sorted(lines) == sorted(held)
    listed = {row[0]: row for row in tables["Tables, the largest first"]}
    for table in plan["tables"]:
        row = listed[table["name"]]
        assert row[1] == format_bytes(sum(shard["bytes"] for shard in table["shards"]))
        assert row[2] == table["sharding_type"].replace("_", " ")
        assert row[5] == f"{len(table['shards']):,}"
    evidence = [
        row for level in ("measured", "datasheet", "estimated", "default") for row in tables[f"What is {level}"]
    ]
    assert {row[0] for row in evidence} == set(plan["provenance"]["evidence"])


def test_the_course_of_a_search_is_that_of_the_events(filled: Filled, browser: Browser) -> None:
    stream = filled.server.client.get(f"/v1/solves/{filled.solve}/events").text
    events = [
        json.loads(line) for line in re.findall(r"^event: progress\n(?:id: .*\n)?data: (.*)$", stream, re.MULTILINE)
    ]
    assert events
    for address in (filled.addresses()["solve"], filled.addresses()["plan"]):
        browser.open(address)
        browser.run("document.querySelectorAll('figure details').forEach(details => { details.open = true; })")
        title = "Best plan and bound over the time of the search"
        caption = f"[...document.querySelectorAll('caption')].find(caption => caption.textContent === '{title}')"
        browser.wait_for(f"!!{caption}")
        rows = browser.run(f"[...{caption}.parentElement.tBodies[0].rows].map(row => row.cells[1].textContent)")
        assert rows == [format_seconds(event["incumbent_seconds"]).replace(" us", " µs") for event in events]


@pytest.mark.parametrize(
    ("address", "reported"),
    [
        (f"/ui/plans/sha256:{'0' * 64}", "No plan of this id."),
        ("/ui/solves/nothing", "No solve of this id."),
        ("/ui/channels/no/such/channel", "channel"),
        ("/ui/hardware-profiles/none", "No hardware profile of this id."),
        ("/ui/cost-models/none@7", "cost model"),
        ("/ui/plans/nonsense", "A digest is sha256: and 64 digits 0-9 a-f."),
        ("/ui/nothing", "No such page"),
        ("/ui/solves/%FF", "No such page"),
    ],
)
def test_what_is_missing_gets_a_page_with_ways_on(browser: Browser, address: str, reported: str) -> None:
    browser.open(address)
    assert reported in browser.text()
    assert browser.run("document.querySelectorAll('main h1').length") == 1
    assert browser.run("document.querySelectorAll('.missing a').length") == 4


@thorough
def test_a_name_is_text_wherever_it_stands(filled: Filled, browser: Browser) -> None:
    for name, address in filled.addresses().items():
        browser.open(address)
        made = browser.run("document.querySelectorAll('main script, main img, main [onerror]').length")
        assert made == 0, name
    browser.open(filled.addresses()["plan"])
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE_NAME
    refused = browser.run(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; } catch (error) { return error.name; } return ''; })()"
    )
    assert refused == "TypeError"


def test_the_browser_writes_numbers_like_the_command_line(filled: Filled, browser: Browser) -> None:
    browser.open("/ui/solves")
    values = [
        0,
        0.5,
        1,
        3,
        9.995,
        99.95,
        999,
        999.4,
        999.96,
        1000,
        1023,
        1536,
        999_949,
        999_951,
        1e6,
        1.25e9,
        7.77e10,
        3e12,
    ]
    times = [value * scale for value in values[:8] for scale in (1e-6, 1e-3, 1)] + [0.00238717, 1.125, 0.0009996]
    times += [9.99e-9, 9.996e-9, 1e-8, 1e-9, 1.89e-10, 3.17e-14]
    written = browser.run(
        f"""(async () => {{
          const main = document.querySelector('script[type=module]').src;
          const format = await import(main.replace('main.js', 'format.js'));
          return [{json.dumps(values)}.map(format.bytes), {json.dumps(times)}.map(format.seconds)];
        }})()"""
    )
    assert written[0] == [format_bytes(value) for value in values]
    assert written[1] == [format_seconds(value).replace(" us", " µs") for value in times]


@pytest.mark.parametrize(
    ("zone", "summer", "winter"),
    [
        ("UTC", "2026-07-01 22:30:05 UTC", "2026-01-01 22:30:05 UTC"),
        ("Europe/Berlin", "2026-07-02 00:30:05 GMT+2", "2026-01-01 23:30:05 GMT+1"),
        ("America/New_York", "2026-07-01 18:30:05 EDT", "2026-01-01 17:30:05 EST"),
    ],
)
def test_a_time_names_its_zone(filled: Filled, browser: Browser, zone: str, summer: str, winter: str) -> None:
    browser.call("Emulation.setTimezoneOverride", timezoneId=zone)
    try:
        browser.open("/ui/solves")
        name = summer.split()[-1], winter.split()[-1]
        shown = browser.run("[...document.querySelectorAll('time')].map(time => [time.textContent, time.title])")
        assert shown
        for text, title in shown:
            assert text.endswith(name)
            assert title.endswith("Z")
        written = browser.run(
            """(async () => {
              const main = document.querySelector('script[type=module]').src;
              const { moment } = await import(main.replace('main.js', 'format.js'));
              return ['2026-07-01T22:30:05Z', '2026-01-01T22:30:05Z'].map(moment);
            })()"""
        )
        assert written == [summer, winter]
    finally:
        browser.call("Emulation.setTimezoneOverride", timezoneId="")


def test_a_table_that_is_split_by_access_rate_says_which_share_lies_where(filled: Filled, browser: Browser) -> None:
    browser.open("/ui/solves")
    hot = {"row_offset": 0, "num_rows": 10, "num_columns": 8, "tier": "hbm"}
    cold = hot | {"row_offset": 10, "num_rows": 90, "tier": "ddr"}
    split = {"compute_kernel": "fused_uvm", "data_type": "fp16", "shards": [hot, cold]}
    reported = browser.run(
        f"""(async () => {{
          const main = document.querySelector('script[type=module]').src;
          const {{ storage }} = await import(main.replace('main.js', 'pages/plan_tables.js'));
          return {json.dumps([split, split | {"shards": [hot], "hash_table_mode": "zch"}])}.map(storage);
        }})()"""
    )
    assert reported == ["fused uvm, hottest 10% in hbm, fp16", "fused uvm, fp16, zch slots"]


@pytest.mark.parametrize("width", [1280, 400])
def test_a_solve_without_a_plan_does_not_look_like_a_success(filled: Filled, browser: Browser, width: int) -> None:
    browser.resize(width)
    badge = "[...document.querySelectorAll('main .badge[data-state]')]"
    look = "(one) => [one.textContent, getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
    browser.open("/ui/solves")
    in_list = {reported: colours for reported, *colours in browser.run(f"{badge}.map({look})")}
    assert set(in_list) == {"succeeded", "infeasible"}
    assert in_list["infeasible"] != in_list["succeeded"]
    warning = browser.run(
        "(() => { const one = document.body.appendChild(document.createElement('p')); one.style.color = 'var(--warn)';"
        " const told = getComputedStyle(one).color; one.remove(); return told; })()"
    )
    assert in_list["infeasible"][0] == warning
    browser.open(f"/ui/solves/{filled.infeasible}")
    assert browser.run(f"{badge}.map({look})")[0] == ["infeasible", *in_list["infeasible"]]
    browser.resize(1400)
