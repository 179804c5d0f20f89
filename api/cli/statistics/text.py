"""Statistics and their drift as text of at most 80 columns."""

import numpy as np

from api.schemas.statistics import DriftDocument
from api.specs.references.statistics_document import Statistics
from cost_models.text.number_text import counted
from planner.access.sketches.drift import rates_of
from planner.access.sketches.sketch import TableSketch
from planner.output.explain.text.layout import WIDTH

_SHOWN_TABLES, _SHOWN_ROWS = 20, 5
_CACHE_FRACTION = 0.1
_NAME_COLUMNS = 22


def statistics_text(statistics: Statistics) -> str:
    """Return the tables with the most lookups, and the digest that a spec names."""
    sketches = _most_looked_up(statistics)
    lines = [
        f"{'table':<{_NAME_COLUMNS}} {'lookups':>15} {'distinct rows':>14} {'per batch':>10} {'misses at':>9}",
        f"{'':<{_NAME_COLUMNS}} {'':>15} {'':>14} {'distinct':>10} {_CACHE_FRACTION:>9.0%}",
        *(_line(sketch) for sketch in sketches[:_SHOWN_TABLES]),
    ]
    if len(sketches) > _SHOWN_TABLES:
        lines.append(f"... and {counted(len(sketches) - _SHOWN_TABLES, 'more table')}")
    return "\n".join([*lines, "", f"access.statistics: {statistics.digest}"])


def hot_rows_text(statistics: Statistics) -> str:
    """Return the hottest rows of the tables with the most lookups, as many as fit into a line."""
    lines = [f"{'table':<{_NAME_COLUMNS}} hottest rows (about this share of the lookups)"]
    for sketch in _most_looked_up(statistics)[:_SHOWN_TABLES]:
        line = f"{sketch.table[:_NAME_COLUMNS]:<{_NAME_COLUMNS}}"
        for hot in sketch.heavy_hitters[:_SHOWN_ROWS]:
            hot_share = f" {hot.row} ({hot.lookups / sketch.lookups:.1%})"
            if len(line) + len(hot_share) > WIDTH:
                break
            line += hot_share
        lines.append(line.rstrip())
    return "\n".join(lines)


def _most_looked_up(statistics: Statistics) -> list[TableSketch]:
    """Those with the most lookups first."""
    return sorted(statistics.sketches.values(), key=lambda sketch: (-sketch.lookups, sketch.table))


def drift_text(document: DriftDocument) -> str:
    """Return the tables that have drifted, and why."""
    lines = [f"{document.num_drifted} of {counted(document.num_tables, 'table')} changed by more than chance"]
    for table in [table for table in document.tables if table.drifted][:_SHOWN_TABLES]:
        lines.append(f"  {table.table[:70]}")
        lines.extend(f"    {reason}" for reason in table.reasons)
    for names, what in ((document.only_before, "not there any more"), (document.only_now, "new")):
        if names:
            lines.append(f"  {counted(len(names), 'table')} {what}: {', '.join(names)[:50]}")
    return "\n".join(lines)


def _line(sketch: TableSketch) -> str:
    rates = rates_of(sketch)
    missed = "" if rates is None else f"{rates.miss_ratio(np.array([_CACHE_FRACTION * sketch.distinct_rows]))[0]:.1%}"
    return (
        f"{sketch.table[:_NAME_COLUMNS]:<{_NAME_COLUMNS}} {sketch.lookups:>15,} {sketch.distinct_rows:>14,.0f} "
        f"{sketch.distinct_rows_per_batch:>10,.0f} {missed:>9}"
    )
