"""A timeline as a JSON document: bars with a value for each rank."""

from typing import Any

from planner.output.timeline.bars import Timeline


def timeline_document(timeline: Timeline) -> dict[str, Any]:
    """Return the timeline; a list of equal numbers becomes one number."""
    return {
        "unit": timeline.unit,
        "seconds": timeline.seconds,
        "num_ranks": timeline.num_ranks,
        "bars": [
            {
                "name": bar.name,
                "kind": bar.kind.value,
                "track": bar.track.value,
                "phase": bar.phase,
                "module": bar.module,
                "start_seconds": _column(bar.start_seconds.tolist()),
                "duration_seconds": _column(bar.duration_seconds.tolist()),
                "whole_seconds": bar.whole_seconds,
            }
            for bar in timeline.bars
        ],
    }


def _column(values: list[float]) -> list[float] | float:
    return values[0] if values and values.count(values[0]) == len(values) else values
