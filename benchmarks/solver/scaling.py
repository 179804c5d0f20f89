"""How the seconds of each stage grow with the number of tables."""

import math
from collections.abc import Sequence

from benchmarks.solver.stage_clock import STAGES
from benchmarks.solver.suite import Row

_LEAST_SECONDS = 0.01  # below, a stage's growth is the clock's noise
#: These take what the limit leaves; a number for them would say nothing.
_LIMITED = ("search", "finish")


def stage_growth(rows: Sequence[Row]) -> list[str]:
    """Print the exponent of each stage: seconds grow as tables to its power; 1 is linear.

    ``rows``: the same family of instances on equally many ranks. The exponent is the slope of the
    least-squares line through the logarithms.
    """
    lines = []
    for stage in STAGES:
        points = [
            (math.log(row.instance.num_tables), math.log(seconds))
            for row in rows
            if (seconds := row.measured.stage_seconds[stage]) >= _LEAST_SECONDS
        ]
        exponent = slope(points)
        if stage not in _LIMITED and exponent is not None:
            lines.append(f"{stage}: seconds grow as tables to the power of {exponent:.2f}")
    return lines


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the least-squares line; ``None`` without two different abscissas."""
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    across = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return across / math.fsum((x - mean_x) ** 2 for x, _ in points)
