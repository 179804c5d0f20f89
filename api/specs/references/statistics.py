"""References of a spec to statistics become access CDFs, and the answer says which were used.

A reference is the digest of statistics, and after ``#`` the name of a table in them, if it is not the table's own. What
is planned and stored has the CDF itself, so that it can be read again without the statistics.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from api.schemas.table import AccessSpec, TableSpec
from api.specs.input.json import RejectedDocument, quoted
from api.specs.issues import IssueCollector
from api.specs.references.statistics_document import Statistics, parse_statistics
from api.specs.state import SpecState
from cost_models.text.number_text import counted
from planner.access.sketches.drift import MAX_RATIO, rates_of
from planner.access.sketches.footprints import counted_rows
from planner.access.sketches.positions import row_curve
from planner.access.sketches.sketch import TableSketch
from planner.domain.plan.plan import Assumption
from planner.errors import Issue

#: Canonical bytes of the statistics with a digest; ``None`` if there are none.
FindStatistics = Callable[[str], bytes | None]
_Points = Sequence[tuple[float, float]]
_Lookup = Callable[[str], Statistics | None]
#: Evidence of a table's access in a plan's provenance, if it is from statistics.
EVIDENCE = "statistics"
#: Tables whose pooling factors differ from what was seen that are named, the worst first.
_MOST_WARNINGS = 5
_SHOWN_DIGEST = len("sha256:") + 12
#: How far a share of the lookups, or of the distinct rows, may lie from what was counted by row number, at least; of
#: few lookups half a standard error of a half.
_ROW_TOLERANCE = 1e-4
_DIGITS = 12  # of fractions
_SUBJECT = re.compile(r"model\.tables\.(.+)\.access")


def subject_of(table: str) -> str:
    """Return what provenance calls the access of a table."""
    return f"model.tables.{table}.access"


def table_of(subject: str) -> str | None:
    """Return the table of a subject of :func:`subject_of`."""
    found = _SUBJECT.fullmatch(subject)
    return None if found is None else found[1]


def inline_statistics(state: SpecState, find: FindStatistics | None, issues: IssueCollector) -> SpecState:
    """Return the spec with CDFs instead of references, which statistics were used, and warnings.

    The warnings are of tables whose pooling factors are not those of their statistics.
    """

    @cache
    def lookup(digest: str) -> Statistics | None:
        raw = None if find is None else find(digest)
        return None if raw is None else parse_statistics(raw)

    tables = list(state.spec.model.tables)
    used, compared = list[Assumption](), list[_Compared]()
    for position, (where, table) in enumerate(state.written_tables()):
        if table.access is None or table.access.statistics is None:
            continue
        reference = table.access.statistics
        try:
            access, source, seen = _measured(table, reference, lookup)
        except _Unusable as error:
            issues.report(f"{where}/access/statistics", str(error), error.hint, code=error.code)
            access = None
        else:
            value = reference if "#" in reference else f"{reference}#{table.name}"
            used.append(Assumption(subject=subject_of(table.name), value=value, evidence=EVIDENCE, source=source))
            compared.append(_Compared(pointer=where, name=table.name, stated=_ids_per_sample(table), seen=seen))
        tables[position] = table.model_copy(update={"access": access})
    if used:
        digests = {item.value.partition("#")[0] for item in used}
        shown = ", ".join(f"{digest[:_SHOWN_DIGEST]}..." for digest in sorted(digests)[:3])
        value = f"access of {counted(len(used), 'table')} from statistics {shown}"
        used.append(Assumption(subject="model.tables.access.statistics", value=value, evidence="note"))
    model = state.spec.model.model_copy(update={"tables": tables})
    return replace(
        state,
        spec=state.spec.model_copy(update={"model": model}),
        statistics=tuple(used),
        statistics_warnings=tuple(_warnings(compared)),
    )


class _Unusable(Exception):
    """A reference that leads to nothing that could be used: what is wrong, and the way out."""

    def __init__(self, message: str, hint: str, code: str = "unknown-statistics") -> None:
        super().__init__(message)
        self.code, self.hint = code, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Ids per sample of a table, as the spec states them and as its statistics saw them."""

    pointer: str
    name: str
    stated: float
    seen: float

    @property
    def ratio(self) -> float:
        """By which factor the larger exceeds the smaller; infinite if only one of them is 0."""
        least, most = sorted((self.stated, self.seen))
        return 1.0 if most == least else most / least if least > 0 else math.inf


def _ids_per_sample(table: TableSpec) -> float:
    if table.features is None:
        return table.pooling_factor or 0.0
    return sum(feature.pooling_factor * feature.num_poolings for feature in table.features)


def _warnings(tables: Sequence[_Compared]) -> Iterator[Issue]:
    """Yield one warning for each table whose numbers differ most; the last one counts the others."""
    differing = [table for table in tables if table.ratio > MAX_RATIO]
    differing.sort(key=lambda table: -table.ratio)  # equal ones stay in the order of the spec
    for number, table in enumerate(differing[:_MOST_WARNINGS], start=1):
        more = len(differing) - number if number == _MOST_WARNINGS else 0
        also = f"; {counted(more, 'more table differs', 'more tables differ')} as well" if more else ""
        yield Issue(
            code="pooling-factor-mismatch",
            pointer=table.pointer,
            message=f"table {quoted(table.name)}: the spec states {table.stated:.4g} ids per sample,"
            f" and its statistics saw {table.seen:.4g}: more than {MAX_RATIO - 1:.0%} apart{also}",
            hint="state the pooling factor that was seen, or use statistics of these features; the spec's counts",
            severity="warning",
        )


def _measured(table: TableSpec, reference: str, lookup: _Lookup) -> tuple[AccessSpec, str, float]:
    """Return the access of a table, what it is from, and the ids per sample that were seen."""
    sketch = _sketch(table, reference, lookup)
    rates = rates_of(sketch)
    if rates is None:
        raise _Unusable(
            f"table {quoted(table.name)} is never looked up in these statistics",
            "leave access out, or use statistics of a trace that looks it up",
            "invalid-value",
        )
    has_rows_by_number = table.hash_table is None
    if has_rows_by_number and sketch.largest_row is not None and sketch.largest_row >= table.num_embeddings:
        raise _Unusable(
            f"the statistics have row {sketch.largest_row}, and the table has {table.num_embeddings} rows",
            "check that they are of this table, and that ids are counted after hashing",
            "statistics-mismatch",
        )
    points = rates.access_cdf(table.num_rows).points
    lookups, rows = counted(sketch.lookups, "lookup"), counted(round(sketch.distinct_rows), "distinct row")
    return (
        _access(table, sketch, points, counted_rows(sketch)),
        f"{lookups} in {counted(sketch.batches, 'batch', 'batches')}, {rows}",
        sketch.lookups_per_sample,
    )


def _access(table: TableSpec, sketch: TableSketch, cdf: _Points, counted_rows: _Points) -> AccessSpec:
    """Return the access of a table: with its lookups by row number, unless the spec says how rows are numbered."""
    access_cdf, distinct_rows = ([list(point) for point in points] for points in (cdf, counted_rows))
    ids = None if table.access is None else table.access.ids
    if table.hash_table is not None:
        return AccessSpec(access_cdf=access_cdf, distinct_rows=distinct_rows, ids=ids)
    if table.access is not None and table.access.row_cdf is not None:
        return table.access.model_copy(
            update={"statistics": None, "access_cdf": access_cdf, "distinct_rows": distinct_rows}
        )
    if ids not in (None, "unknown") or sketch.positions is None or sketch.largest_row is None:
        return AccessSpec(access_cdf=access_cdf, distinct_rows=distinct_rows, ids=ids)
    tolerance = max(_ROW_TOLERANCE, 0.25 / math.sqrt(sketch.lookups))
    rows, *shares = row_curve(sketch.positions, sketch.largest_row, table.num_embeddings, tolerance)
    lookups, distinct = (np.stack([rows, share], axis=1).round(_DIGITS).tolist() for share in shares)
    return AccessSpec(
        access_cdf=access_cdf, distinct_rows=distinct_rows, ids=ids, row_cdf=lookups, distinct_row_cdf=distinct
    )


def _sketch(table: TableSpec, reference: str, lookup: _Lookup) -> TableSketch:
    digest, _, name = reference.partition("#")
    try:
        statistics = lookup(digest)
    except RejectedDocument as error:
        raise _Unusable(f"the statistics cannot be read: {error}", "store them again") from None
    if statistics is None:
        hint = "POST /v1/statistics first; shardplan plan takes --statistics STATS.json"
        raise _Unusable("no statistics of this digest are kept here", hint)
    found = statistics.sketches.get(name or table.name)
    if found is None:
        known = ", ".join(list(statistics.sketches)[:5])
        message = f"the statistics have no table {quoted(name or table.name)}"
        raise _Unusable(message, f"name one of theirs after the digest and #: {known}")
    return found
