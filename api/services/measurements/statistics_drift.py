"""What changed from the statistics before to those now, over all tables."""

from collections.abc import Mapping, Sequence

from api.schemas.statistics import DriftDocument, TableDriftDocument
from api.specs.references.statistics_document import Statistics
from planner.access.sketches.drift import drift
from planner.access.sketches.sketch import TableSketch


def drift_document(before: Sequence[Statistics], now: Statistics) -> DriftDocument:
    """Return the drift of every table; where several statistics before have a table, of the first."""
    first = {name: (name, sketch) for statistics in reversed(before) for name, sketch in statistics.sketches.items()}
    return drift_of_tables(first, before, now)


def drift_of_tables(
    before: Mapping[str, tuple[str, TableSketch]], digests: Sequence[Statistics], now: Statistics
) -> DriftDocument:
    """Return the drift of tables; ``before`` has the sketch of each, and its name in ``now``."""
    drifts = [
        (name, drift(sketch, now.sketches[name_now]))
        for name, (name_now, sketch) in before.items()
        if name_now in now.sketches
    ]
    drifts.sort(key=lambda item: (*(-part for part in item[1].weight), item[0]))
    names_now = {name_now for name_now, _ in before.values()}
    return DriftDocument(
        before=sorted({statistics.digest for statistics in digests}),
        now=now.digest,
        num_tables=len(drifts),
        num_drifted=sum(bool(found.reasons) for _, found in drifts),
        tables=[TableDriftDocument.of(found, table=name, drifted=bool(found.reasons)) for name, found in drifts],
        only_before=sorted(name for name, (name_now, _) in before.items() if name_now not in now.sketches),
        only_now=sorted(set(now.sketches) - names_now),
    )
