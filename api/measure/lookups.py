"""One embedding launch, timed: forward and backward seconds, and what its ids really were."""

from typing import Any

from api.measure.embeddings import FusedTables, Implementation
from api.measure.ids import Batch, draw_batches, reuse
from api.measure.lookup_design import LookupLaunch
from api.measure.rows import Row
from api.measure.stopwatch import Stopwatch, Times, rounded, times
from cost_models.measurements.schema import REUSE_COLUMNS

_WARM_UPS = 2
_LEAST_REPEATS, _MOST_REPEATS = 5, 40
#: Of all repeats of one attempt, unless the fewest take longer.
_SECONDS_OF_REPEATS = 0.4
#: A launch whose quartiles lie further apart, as a share of its median, is measured again, and the calmest time kept.
_MOST_SPREAD = 0.15
_ATTEMPTS = 3
#: Batches that take turns, so that no lap finds the rows of the lap before.
_BATCHES = 3


def measure_lookups(launch: LookupLaunch, implementation: Implementation, device: str, watch: Stopwatch) -> list[Row]:
    """Return a row for each table of a launch."""
    import torch

    by_table = [draw_batches(table, launch.batch, _BATCHES, device) for table in launch.tables]
    inputs = [_input([batches[turn] for batches in by_table]) for turn in range(_BATCHES)]
    columns = sum(table.columns for table in launch.tables)
    gradient = torch.full((launch.batch, columns), 1e-3, device=device)
    tables = implementation.build(launch, device)
    _laps(tables, inputs, gradient, watch, _WARM_UPS)
    forward, backward, both, repeats = _calmest(tables, inputs, gradient, watch)
    timed: Row = {
        "kind": "lookup",
        "task": launch.task,
        "library": implementation.library,
        "implementation": implementation.name,
        "num_ranks": 1,
        "ranks_per_host": 1,
        "repeats": repeats,
        "forward_seconds": rounded(forward.seconds),
        "backward_seconds": rounded(backward.seconds),
        "seconds": rounded(forward.seconds + backward.seconds),
        "spread_seconds": rounded(both.spread_seconds),
    }
    return [
        timed
        | {
            "table": table.name,
            "shard_rows": table.rows,
            "shard_columns": table.columns,
            "element_bytes": launch.element_bytes,
            "output_element_bytes": 4,
            "optimizer_element_bytes": 0,
            "optimizer_row_bytes": 4,
            "outputs": launch.batch,
            "zipf_alpha": table.alpha,
        }
        | _counts(batches)
        for table, batches in zip(launch.tables, by_table, strict=True)
    ]


def _input(batches: list[Batch]) -> tuple[Any, Any]:
    """Ids and offsets of all tables, table by table."""
    import torch

    lengths = torch.cat([batch.lengths for batch in batches])
    offsets = torch.cat([torch.zeros(1, dtype=torch.long, device=lengths.device), lengths.cumsum(0)])
    return torch.cat([batch.ids for batch in batches]), offsets


def _counts(batches: list[Batch]) -> Row:
    found = reuse(batches)
    return {
        "lookups": found.lookups,
        "distinct_rows": found.distinct_rows,
        **dict(zip(REUSE_COLUMNS, found.shares, strict=True)),
    }


def _laps(
    tables: FusedTables, inputs: list[tuple[Any, Any]], gradient: Any, watch: Stopwatch, repeats: int
) -> tuple[list[float], list[float]]:
    """Seconds of forward and of backward passes."""
    forward, backward = [], []
    for turn in range(repeats):
        ids, offsets = inputs[turn % len(inputs)]
        output, lap = watch.time(lambda ids=ids, offsets=offsets: tables.forward(ids, offsets))  # type: ignore[misc]
        forward.append(lap)
        _, lap = watch.time(lambda output=output: tables.backward(output, gradient))  # type: ignore[misc]
        backward.append(lap)
    watch.finish()
    return [lap() for lap in forward], [lap() for lap in backward]


def _calmest(
    tables: FusedTables, inputs: list[tuple[Any, Any]], gradient: Any, watch: Stopwatch
) -> tuple[Times, Times, Times, int]:
    """Forward, backward, both, and repeats, of the attempt whose repeats lie closest together."""
    attempts: list[tuple[Times, Times, Times, int]] = []
    repeats = _LEAST_REPEATS
    for _ in range(_ATTEMPTS):
        forward, backward = _laps(tables, inputs, gradient, watch, repeats)
        while (spent := sum(forward) + sum(backward)) < _SECONDS_OF_REPEATS and len(forward) < _MOST_REPEATS:
            more = min(int(_SECONDS_OF_REPEATS / spent * len(forward)), _MOST_REPEATS) - len(forward)
            further = _laps(tables, inputs, gradient, watch, max(more, 1))
            forward, backward = forward + further[0], backward + further[1]
        both = times([one + other for one, other in zip(forward, backward, strict=True)])
        attempts.append((times(forward), times(backward), both, len(forward)))
        if both.spread_seconds <= _MOST_SPREAD * both.seconds or sum(forward) + sum(backward) > 2 * _SECONDS_OF_REPEATS:
            break
    return min(attempts, key=lambda attempt: attempt[2].spread_seconds / attempt[2].seconds)
