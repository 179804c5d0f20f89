"""The report of a model: all that it must say, on a page that runs nothing and fetches nothing, and as text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from api.services.cost_models.report.charts import bars, scatter
from api.services.cost_models.report.html import PAGE_POLICY, report_page
from api.services.cost_models.report.text import model_text
from api.specs.references.learned_model import fit
from cost_models.learned.document.file import document_digest, model_bytes, parse_model
from cost_models.learned.reach.coverage import verdicts
from cost_models.measurements.json_rows import rows_from_json
from tests.support.service.measured import benchmark_rows, exchange_rows, model_document

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'"
VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def both() -> dict[str, Any]:
    """A model of lookups and of forward all-to-alls."""
    forward = [row for row in exchange_rows() if row["direction"] == "forward"]
    return json.loads(fit(rows_from_json([*benchmark_rows(), *forward]), name="both", seed=0))


@pytest.fixture(scope="module")
def collectives() -> dict[str, Any]:
    """A model without lookups."""
    forward = [row for row in exchange_rows() if row["direction"] == "forward"]
    return json.loads(fit(rows_from_json(forward), name="collectives", seed=0))


def hostile(of: dict[str, Any]) -> dict[str, Any]:
    """The document of somebody who has put markup into every text that is theirs; it is read without complaint."""
    text = HOSTILE
    found = json.loads(json.dumps(of))
    found["device"] = text
    found["name"] = text
    found["trained_on"]["libraries"] = [text]
    found["trained_on"]["implementations"] = [text]
    found["trained_on"]["rows_digest"] = text
    found["figures"]["split"] = text
    for group in found["figures"]["groups"]:
        group["group"] = text
    found["digest"] = document_digest(found)
    parse_model(model_bytes(found))
    return found


def test_the_page_runs_nothing_and_fetches_nothing(both: dict[str, Any]) -> None:
    page = Page(report_page(both))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "a", "use", "image", "foreignobject"}
    for _, attributes in page.tags:
        assert not set(attributes) & {"src", "href", "xlink:href", "style", "action", "srcset"}
        assert not [name for name in attributes if name.startswith("on")]
    style = re.findall(r"<style>(.*?)</style>", report_page(both), re.DOTALL)
    assert "url(" not in style[0] + "".join(page.text)
    assert "@import" not in style[0]


def test_only_a_service_has_a_way_back(both: dict[str, Any]) -> None:
    assert Page(report_page(both)).of("a") == []
    (link,) = Page(report_page(both, home=f"/ui/{HOSTILE}")).of("a")
    assert link == {"href": f"/ui/{HOSTILE}"}


def test_the_policy_allows_the_one_style_sheet_by_its_hash(both: dict[str, Any]) -> None:
    page = report_page(both)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(styles) == 1
    digest = base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in PAGE_POLICY
    assert PAGE_POLICY.startswith("default-src 'none'")
    assert "unsafe" not in PAGE_POLICY
    (policy,) = (meta["content"] for meta in Page(page).of("meta") if meta.get("http-equiv"))
    assert str(policy) + "; frame-ancestors 'none'" == PAGE_POLICY


def test_markup_in_names_is_text(both: dict[str, Any]) -> None:
    page = report_page(hostile(both))
    assert {tag for tag, _ in Page(page).tags} == {tag for tag, _ in Page(report_page(both)).tags}
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_charts_and_tables_can_be_read_without_being_seen(both: dict[str, Any]) -> None:
    page = Page(report_page(both))
    ids = [str(attributes["id"]) for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    charts = page.of("svg")
    assert len(charts) == 4  # points and sizes, of lookups and of collectives
    for chart in charts:
        assert chart["role"] == "img"
        assert set(str(chart["aria-labelledby"]).split()) <= set(ids)
    assert all(head.get("scope") in ("col", "row", "rowgroup") for head in page.of("th"))
    for region in [one for one in page.of("div") if one.get("class") == "wide"]:
        assert (region["tabindex"], region["role"], region["aria-labelledby"] in ids) == ("0", "region", True)
    assert page.of("html")[0]["lang"] == "en"


def test_page_and_text_say_the_same(both: dict[str, Any]) -> None:
    page, text = " ".join(Page(report_page(both)).text), model_text(both)
    everywhere = (
        "both: a cost model of Test GPU",
        "Error of held-out lookups",
        "Error of held-out collectives",
        "By phase",
        "By shards fused in one launch",
        "all_to_all forward",
        "Mean error by scheme",
        "shard_columns",
        "bytes_per_weight",
        "Collectives inside one host: reduce_scatter, all_gather, all_reduce.",
        "Any device other than Test GPU.",
        "Verdict",
        f"learned:{both['digest']}",
    )
    for words in everywhere:
        assert words in page
        assert words in text
    for verdict in verdicts(both):
        assert verdict.text in page
        assert f"- {verdict.text}" in " ".join(text.split())
    assert text.index("\nVerdict\n") > text.index("\nNot measured\n")  # the last that is read
    mean = both["figures"]["groups"][0]["mean_relative_error"]
    assert f"{mean:.1%}" in page
    assert f"{mean:.1%}" in text
    assert both["trained_on"]["rows_digest"] in page


def test_the_text_fits_a_terminal(both: dict[str, Any], collectives: dict[str, Any]) -> None:
    for document in (both, collectives, hostile(both), model_document()):
        lines = model_text(document).splitlines()
        assert max(map(len, lines[:-1])) <= 80
        assert lines[-1] == f"learned:{document['digest']}"


def test_schemes_have_the_errors_of_what_they_run(both: dict[str, Any], collectives: dict[str, Any]) -> None:
    def schemes(document: dict[str, Any]) -> dict[str, list[str]]:
        lines = model_text(document).partition("Mean error by scheme")[2].partition("\nWhere ")[0].splitlines()
        found = [re.split(r"  +", line.strip()) for line in lines]
        return {words[0]: words[1:] for words in found if len(words) == 4}

    (lookups,) = (g for g in both["figures"]["groups"] if (g["kind"], g["by"]) == ("lookup", "all"))
    (forward,) = (g for g in both["figures"]["groups"] if g["by"] == "collective")
    compute, exchange = f"{lookups['mean_relative_error']:.1%}", f"{forward['mean_relative_error']:.1%}"
    assert schemes(both) == {
        "Scheme": ["Lookups", "Forward comm.", "Backward comm."],
        **{f"{name}_wise": [compute, exchange, "roofline"] for name in ("table", "column", "table_column")},
        **{name: [compute, "roofline", "roofline"] for name in ("row_wise", "table_row_wise", "grid_shard")},
        "data_parallel": ["roofline", "none", "roofline"],
    }
    assert schemes(collectives)["table_wise"] == ["roofline", exchange, "roofline"]


def test_what_was_not_measured_is_named(both: dict[str, Any], collectives: dict[str, Any]) -> None:
    assert "- Lookups.\n" in model_text(collectives)
    assert "- Lookups that are weighted" in model_text(both)
    assert "Collectives over several hosts: all_to_all" in model_text(both)
    alone = model_text(model_document())
    assert "Collectives inside one host: all_to_all, reduce_scatter, all_gather" in " ".join(alone.split())
    assert "Where collectives" not in alone


def test_a_model_without_held_out_rows_says_so() -> None:
    document = model_document() | {"figures": {}}
    assert "how well it does is not known" in model_text(document)
    page = report_page(document)
    assert "how well it does is not known" in page
    assert Page(page).of("svg") == []
    assert "not known" in model_text(document).partition("Mean error by scheme")[2]


def test_collectives_that_were_too_few_to_hold_some_back_have_no_figures(both: dict[str, Any]) -> None:
    lookups = [group for group in both["figures"]["groups"] if group["kind"] == "lookup"]
    text = model_text(both | {"figures": both["figures"] | {"groups": lookups}})
    assert "No collectives  were held out, for there are too few" in text
    assert "No collectives" not in model_text(both)
    assert "not known" in text.partition("Mean error by scheme")[2]


def test_points_off_the_diagonal_are_counted() -> None:
    chart = scatter("c", [(1e-3, 1e-3), (1e-3, 2.1e-3), (1e-3, 4e-4), (0.0, 1.0)])
    assert chart.count("<circle") == 3
    assert "3 held-out points from 400 us to 2.1 ms, 2 of them beyond the lines of half and twice." in chart
    assert scatter("c", [(0.0, 1.0)]) == ""


def test_bars_are_as_long_as_errors_are_large() -> None:
    chart = bars("b", [("<small>", 0.05, 0.01), ("large", 0.10, 0.02)])
    assert re.findall(r'width="([\d.]+)"', chart) == ["150.0", "300.0"]
    assert "&lt;small&gt;" in chart
    assert bars("b", []) == ""
    assert 'width="0.0"' in bars("b", [("none", 0.0, 0.0)])
