"""Embedding launches, timed: forward and backward seconds, and what their ids really were.

Several launches take turns, visit after visit, so that the laps of each are spread over seconds: a machine that is
slower for a while, because of what else it does, then slows down some laps of all launches and not all laps of one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from api.cli.measuring.embeddings import Implementation
from api.cli.measuring.ids import Batch, draw_batches, reuse_columns
from api.cli.measuring.lookup_design import LookupLaunch
from api.cli.measuring.rows import Row
from api.cli.measuring.stopwatch import Stopwatch, device_kind, median_and_spread, rounded

_WARM_UPS = 2
#: An accelerator keeps its pace: fewer repeats leave time for more launches.
_VISITS = {"cpu": 8, "cuda": 2}
_LEAST_LAPS = 2  # of a visit
_MOST_LAPS = {"cpu": 24, "cuda": 8}
#: Of the laps of one visit, unless the fewest take longer.
_SECONDS_OF_VISIT = {"cpu": 0.08, "cuda": 0.02}
#: Batches that take turns, so that no lap finds the rows of the lap before.
_BATCHES = 3


def measure_lookups(
    launches: Sequence[LookupLaunch],
    implementation: Implementation,
    device: str,
    watch: Stopwatch,
    went_on: Callable[[], None],
) -> list[list[Row]]:
    """Return, for each launch, a row for each of its tables; ``went_on`` hears when one was built and of each visit."""
    timed = []
    for launch in launches:
        timed.append(_Timed(launch, implementation, device, watch))
        went_on()
    for _ in range(_VISITS[device_kind(device)]):
        for one in timed:
            one.visit()
            went_on()
    return [one.rows(implementation) for one in timed]


class _Timed:
    """A launch with its tables and ids, and the laps that it has run."""

    def __init__(self, launch: LookupLaunch, implementation: Implementation, device: str, watch: Stopwatch) -> None:
        self._launch, self._watch = launch, watch
        self._seconds_of_visit, self._most_laps = (
            _SECONDS_OF_VISIT[device_kind(device)],
            _MOST_LAPS[device_kind(device)],
        )
        self._batches = [draw_batches(table, launch.batch, _BATCHES, device) for table in launch.tables]
        self._inputs = [_input([batches[turn] for batches in self._batches]) for turn in range(_BATCHES)]
        columns = sum(table.columns for table in launch.tables)
        self._gradient = torch.full((launch.batch, columns), 1e-3, device=device)
        self._embeddings = implementation.build(launch.tables, launch.data_type, device)
        self._forward: list[float] = []
        self._backward: list[float] = []
        self._laps(_WARM_UPS)

    def visit(self) -> None:
        forward, backward = self._laps(1)
        fitting = int(self._seconds_of_visit / max(forward[0] + backward[0], 1e-6))
        if fitting:  # the first lap after other launches found the caches full of their rows
            forward, backward = self._laps(min(max(fitting, _LEAST_LAPS), self._most_laps))
        self._forward += forward
        self._backward += backward

    def _laps(self, count: int) -> tuple[list[float], list[float]]:
        """Seconds of forward and of backward passes."""
        forward, backward = [], []
        for turn in range(count):
            ids, offsets = self._inputs[(len(self._forward) + turn) % _BATCHES]
            output, lap = self._watch.time(partial(self._embeddings, ids, offsets))
            forward.append(lap)
            _, lap = self._watch.time(partial(output.backward, self._gradient))
            backward.append(lap)
        self._watch.finish()
        return [lap() for lap in forward], [lap() for lap in backward]

    def rows(self, implementation: Implementation) -> list[Row]:
        """Return a row for each table, with the medians of all laps."""
        launch = self._launch
        forward_seconds, _ = median_and_spread(self._forward)
        backward_seconds, _ = median_and_spread(self._backward)
        _, spread_seconds = median_and_spread(
            [one + other for one, other in zip(self._forward, self._backward, strict=True)]
        )
        timed: Row = {
            "kind": "lookup",
            "task": launch.task,
            "library": implementation.library,
            "implementation": implementation.name,
            "num_ranks": 1,
            "ranks_per_host": 1,
            "repeats": len(self._forward),
            "forward_seconds": rounded(forward_seconds),
            "backward_seconds": rounded(backward_seconds),
            "seconds": rounded(forward_seconds + backward_seconds),
            "spread_seconds": rounded(spread_seconds),
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
            | reuse_columns(batches)
            for table, batches in zip(launch.tables, self._batches, strict=True)
        ]


def _input(batches: list[Batch]) -> tuple[Any, Any]:
    """Ids and offsets of all tables, table by table."""
    lengths = torch.cat([batch.lengths for batch in batches])
    offsets = torch.cat([torch.zeros(1, dtype=torch.long, device=lengths.device), lengths.cumsum(0)])
    return torch.cat([batch.ids for batch in batches]), offsets
