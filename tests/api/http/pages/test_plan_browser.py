"""Parts of the page of a plan that only some plans have, or that are asked for: the figures are those of the API."""

import json
from typing import Any

import pytest

from planner.domain.formats.units import format_bytes, format_seconds
from tests.api.http.pages.conftest import Filled, solved
from tests.support.service.browser import Browser
from tests.support.service.specs import tiny

pytestmark = pytest.mark.browser

REASONS = {
    "Balance": ("balance_seconds", "the most that other ranks for the same shards can gain"),
    "Packing": ("packing_seconds", "lost because the shards do not divide evenly among ranks"),
    "Choice": ("choice_seconds", "the shards cost more than the mix of shardings that the bound assumes"),
}


def seconds(value: float) -> str:
    """Seconds as a page writes them."""
    return format_seconds(value).replace(" us", " µs")


FACTS = """JSON.stringify(Object.fromEntries([...document.querySelectorAll('dl.facts > div')].map(fact => [
  fact.querySelector('dt').textContent, fact.querySelector('dd').textContent,
])))"""


def expected_facts(plan: dict[str, Any]) -> dict[str, str]:
    """What a page says of the gap of a plan."""
    parts = plan["gap_parts"]
    whole = sum(parts[key] for key, _ in REASONS.values())
    facts = {
        name: f"{seconds(parts[key])}, {100 * parts[key] / whole:.0f}% of the gap: {reason}"
        for name, (key, reason) in REASONS.items()
        if parts[key] > 0
    }
    facts["A longer solve"] = "cannot raise the bound" if parts["is_bound_final"] else "may raise the bound"
    if parts["refuted_seconds"] > 0:
        facts["Branching"] = f"raised the bound by {seconds(parts['refuted_seconds'])}"
    return facts


def test_the_parts_of_a_gap_are_those_of_the_api(filled: Filled, browser: Browser) -> None:
    """Seven tables that are not cut do not divide evenly among four ranks."""
    tables = [
        {"name": f"t{i}", "num_embeddings": 20_000 * (i + 1), "embedding_dim": 64, "pooling_factor": 10 + 7 * i}
        for i in range(7)
    ]
    for table in tables:
        table["constraints"] = {"sharding_types": ["table_wise"]}
    changes = {"hardware__ranks_per_host": 4, "solver__relative_gap": 0, "model__batch_size_per_rank": 65_536}
    result: Any = solved(filled.server, tiny(model__tables=tables, **changes))["result"]
    digest = result["plan_digest"]
    plan = filled.server.client.get(f"/v1/plans/{digest}").json()
    expected = expected_facts(plan)
    assert expected.keys() >= {"Balance", "Branching"}
    browser.open(f"/ui/plans/{digest}")
    shown = json.loads(browser.run(FACTS))
    assert {name: shown.get(name) for name in (*REASONS, "A longer solve", "Branching")} == {
        **dict.fromkeys(REASONS),
        **expected,
    }


@pytest.mark.parametrize("is_final", [False, True])
def test_every_part_of_a_gap_has_its_words(browser: Browser, is_final: bool) -> None:
    """And a plan that is proven best shows none."""
    parts = {"balance_seconds": 1e-4, "packing_seconds": 2e-4, "choice_seconds": 1e-4, "refuted_seconds": 5e-5}
    plan = {
        "gap_parts": {**parts, "is_bound_final": is_final},
        "termination": {"reason": "FEASIBLE"},
        "provenance": {"late_gain_seconds": 3e-6},
    }
    best = {**plan, "termination": {"reason": "OPTIMAL"}}
    browser.open("/ui/solves")
    none_of_best = browser.run(
        f"""(async () => {{
          const main = document.querySelector('script[type=module]').src;
          const {{ gapParts }} = await import(main.replace('main.js', 'pages/plan_gap.js'));
          document.getElementById('main').replaceChildren(gapParts({json.dumps(plan)}));
          return gapParts({json.dumps(best)}) === null;
        }})()"""
    )
    assert none_of_best
    shown = json.loads(browser.run(FACTS))
    assert shown == expected_facts(plan) | {"The second half": "gained 3 µs"}
    assert len(shown) == 6


def test_tiers_of_an_explained_plan_are_those_of_the_api(filled: Filled, browser: Browser) -> None:
    explained = filled.server.client.get(f"/v1/plans/{filled.first}/explanation").json()
    browser.open(f"/ui/plans/{filled.first}")
    browser.run("[...document.querySelectorAll('button')].find(one => one.textContent === 'Explain this plan').click()")
    browser.wait_for("document.querySelector('main').innerText.includes('Memory tiers')")
    rows = json.loads(
        browser.run(
            """JSON.stringify([...document.querySelectorAll('table')]
              .filter(table => table.caption.textContent === 'Tiers on their fullest and their busiest rank')
              .flatMap(table => [...table.tBodies].flatMap(body => [...body.rows]))
              .map(row => [...row.cells].map(cell => cell.textContent)))"""
        )
    )
    assert explained["tiers"]
    assert rows == [
        [
            use["tier"],
            format_bytes(use["used_bytes"]),
            format_bytes(use["capacity_bytes"]),
            "" if use["busiest_rank"] is None else seconds(use["busy_seconds"]),
            "" if use["rate"] is None else use["rate"].replace("_", " "),
        ]
        for use in explained["tiers"]
    ]


def test_pods_are_shown_with_hosts(filled: Filled, browser: Browser) -> None:
    """Two hosts of two ranks in one pod: in the head, in words of cuts, and rank by rank."""
    changes = {"hardware__num_hosts": 2, "hardware__pod_size": 4, "model__tables__0__optimizer": "sgd"}
    table = {"constraints": {"sharding_types": ["table_row_wise"]}}
    spec = tiny(**changes, **{f"model__tables__0__{key}": value for key, value in table.items()})
    result: Any = solved(filled.server, spec)["result"]
    browser.open(f"/ui/plans/{result['plan_digest']}")
    text = browser.run("document.querySelector('main').innerText")
    assert "4 ranks (2 hosts × 2, 1 pod of 4)" in text
    browser.run("[...document.querySelectorAll('details')].forEach(one => { one.open = true; })")
    browser.wait_for("document.querySelectorAll('details table').length > 1")
    words, rows = json.loads(
        browser.run(
            """(() => {
              const tables = [...document.querySelectorAll('table')];
              const cells = (caption) => tables.filter(table => table.caption?.textContent === caption)
                .flatMap(table => [...table.rows]).map(row => [...row.cells].map(cell => cell.textContent));
              return JSON.stringify([cells('How the tables are cut'), cells('Seconds of every rank by phase')]);
            })()"""
        )
    )
    assert ["table row wise", "cut by rows over one pod"] in [row[:2] for row in words]
    assert [row[:3] for row in rows] == [["Rank", "Host", "Pod"], *([str(r), str(r // 2), "0"] for r in range(4))]
