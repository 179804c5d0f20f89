"""Learned models as text of at most 80 columns: the report of one, and a list of several."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from api.services.cost_models.report.facts import Table, facts, held_out_errors, reference_of
from planner.output.explain.text.layout import WIDTH, columns, paragraph, short_digest, shortened

_LABEL_WIDTH = 16


def model_text(document: Mapping[str, Any]) -> str:
    report = facts(document)
    lines = paragraph(report.title, indent="")
    for label, words in report.summary:
        if words.startswith("sha256:"):
            words = short_digest(words)
        lines += paragraph(f"{label:<{_LABEL_WIDTH}}{words}", hanging=" " * _LABEL_WIDTH)
    for table in report.tables:
        lines += ["", *_table(table)]
    for heading, items in (("Not measured", report.not_measured), ("Verdict", report.verdicts)):
        lines += ["", heading]
        for words in items:
            lines += paragraph(f"- {words}", hanging="  ")
    return "\n".join([*lines, "", "cost_model of a spec:", report.reference])


def list_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return name, device, held-out error and reference of each model, which stands on a line of its own."""
    entries = []
    for document in documents:
        lines = paragraph(f"{document['name']}: {document['device']}", indent="", hanging="  ")
        lines += paragraph(f"mean error of held-out rows: {held_out_errors(document)}", hanging="  ")
        entries.append("\n".join([*lines, reference_of(document)]))
    return "\n\n".join(entries)


def _table(table: Table) -> Iterator[str]:
    yield table.title
    yield from paragraph(table.note)
    rows = [row for _, body in table.bodies for row in body]
    heading, *aligned = columns([table.columns, *rows])
    yield heading
    place = iter(aligned)
    for name, body in table.bodies:
        if name:
            yield shortened(f"  {name}", WIDTH)
        for _ in body:
            yield next(place)
