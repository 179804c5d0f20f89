"""The report of a learned model as one HTML file: no script, nothing to fetch, and one link at most.

Every text of a document goes through ``escape``, whatever was checked before.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from api.services.cost_models.report.charts import bars, scatter
from api.services.cost_models.report.facts import KINDS, Facts, Table, facts
from cost_models.learned.reach.coverage import held_out_groups

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #57606a; --rule: #d0d7de; --mark: #0b62c4; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f1318; --ink: #e6edf3; --faint: #9da7b3; --rule: #3a424c; --mark: #6cb2ff; }
}
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
a { color: var(--mark); }
p, figcaption { color: var(--faint); margin: .25rem 0 .75rem; max-width: 48rem; } figcaption { font-size: .875rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; } code { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } .wide:focus-visible { outline: 2px solid var(--mark); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; } tbody th { font-weight: normal; }
thead th, th[scope=rowgroup] { color: var(--faint); font-weight: 600; } th[scope=rowgroup] { padding-top: .75rem; }
.charts { display: flex; flex-wrap: wrap; align-items: start; gap: 1rem 2rem; }
figure { margin: 0; flex: 1 1 20rem; max-width: 32rem; }
svg { display: block; width: 100%; height: auto; font-size: 12px; } svg text { fill: var(--ink); }
.frame { fill: none; stroke: var(--rule); } .grid { stroke: var(--rule); stroke-dasharray: 2 4; }
.even { stroke: var(--ink); } .twice { stroke: var(--faint); stroke-dasharray: 6 4; }
.point { fill: var(--mark); fill-opacity: .55; } .bar { fill: var(--mark); }
.median { stroke: var(--ink); stroke-width: 2; }
@media (max-width: 36rem) { svg { font-size: 14px; } } @media (max-width: 28rem) { svg { font-size: 17px; } }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
@media print { .wide { overflow: visible; } table, figure { break-inside: avoid; } body { max-width: none; } }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
#: The page has its own style, by hash; nothing runs in it and nothing is loaded.
_CONTENT_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
#: The same as a header, where it can also say that no other page may frame this one.
PAGE_POLICY = f"{_CONTENT_POLICY}; frame-ancestors 'none'"
_SIZES = ("shards", "bytes")


def report_page(document: Mapping[str, Any], *, home: str | None = None) -> str:
    """Return the page about the document of a model that was read without complaint.

    Parameters
    ----------
    document
        Of the model.
    home
        The address of the model's page where a service shows this one; a file has none, and leads nowhere.
    """
    report = facts(document)
    back = "" if home is None else f'<p><a href="{escape(home)}">The cost model in shardplan</a></p>\n'
    tables = "".join(_table(i, table) for i, table in enumerate(report.tables))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(report.title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_CONTENT_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n{back}{_head(report)}\n{''.join(_charts(document))}"
        f"{tables}{_list('Not measured', report.not_measured)}</main></body></html>\n"
    )


def _head(report: Facts) -> str:
    entries = "".join(f"<dt>{escape(label)}</dt><dd>{escape(words)}</dd>" for label, words in report.summary)
    name = f"<dt>cost_model of a spec</dt><dd><code>{escape(report.reference)}</code></dd>"
    return f"<h1>{escape(report.title)}</h1>\n<dl>{entries}{name}</dl>\n{_list('Verdict', report.verdicts)}"


def _charts(document: Mapping[str, Any]) -> Iterator[str]:
    for kind, named in KINDS.items():
        points = document["figures"].get("points_seconds", {}).get(kind, ())
        sizes = [
            (group["group"], group["mean_relative_error"], group["median_relative_error"])
            for by in _SIZES
            for group in held_out_groups(document, kind, by)
        ]
        drawn = scatter(f"points-{kind}", points) + bars(f"sizes-{kind}", sizes)
        if drawn:
            yield f'<section><h2>Held-out {named} at a glance</h2><div class="charts">{drawn}</div></section>\n'


def _table(number: int, table: Table) -> str:
    """A table that scrolls by itself where the window is narrow, also from the keyboard."""
    name = f"table-{number}"
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    return (
        f'<section><h2 id="{name}">{escape(table.title)}</h2><p>{escape(table.note)}</p>'
        f'<div class="wide" role="region" tabindex="0" aria-labelledby="{name}"><table aria-labelledby="{name}">'
        f"<thead><tr>{heads}</tr></thead>{''.join(_bodies(table))}</table></div></section>\n"
    )


def _bodies(table: Table) -> Iterator[str]:
    for heading, rows in table.bodies:
        yield "<tbody>"
        if heading:
            yield f'<tr><th scope="rowgroup" colspan="{len(table.columns)}">{escape(heading)}</th></tr>'
        for first, *others in rows:
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
            yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
        yield "</tbody>"


def _list(title: str, items: Sequence[str]) -> str:
    entries = "".join(f"<li>{escape(words)}</li>" for words in items)
    return f"<section><h2>{escape(title)}</h2><ul>{entries}</ul></section>\n"
