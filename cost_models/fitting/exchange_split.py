"""Which measured collectives a model is only judged by: whole tasks, of every kind and number of ranks."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cost_models.measurements.schema import Measurements

#: One task in so many is held out, of each kind and number of ranks that has so many.
TASKS_PER_HELD_OUT = 10


def held_out_exchanges(rows: Measurements, seed: int) -> NDArray[np.bool_]:
    """Say which rows of collectives to hold out, shape (num_rows,).

    Each operation, direction and reach has a curve of its own and is split by itself; there, a task lies on one side
    as a whole. A task is held out only where each of its numbers of ranks keeps nine tasks for every one held out.
    """
    spans = rows.counts("num_ranks") > rows.counts("ranks_per_host")
    kinds = [*zip(rows.text("operation").tolist(), rows.text("direction").tolist(), spans.tolist(), strict=True)]
    tasks, num_ranks = rows.text("task"), rows.counts("num_ranks")
    random = np.random.default_rng(seed)
    held = np.zeros(rows.num_rows, dtype=np.bool_)
    for kind in sorted(set(kinds)):
        here = np.flatnonzero([one == kind for one in kinds])
        chosen = _chosen_tasks(_ranks_by_task(tasks[here], num_ranks[here]), random)
        held[here] = np.isin(tasks[here], list(chosen))
    return held


def _ranks_by_task(tasks: NDArray[np.str_], num_ranks: NDArray[np.int64]) -> Mapping[str, set[int]]:
    found: dict[str, set[int]] = {}
    for task, count in sorted(set(zip(tasks.tolist(), num_ranks.tolist(), strict=True))):
        found.setdefault(task, set()).add(count)
    return found


def _chosen_tasks(ranks_by_task: Mapping[str, set[int]], random: np.random.Generator) -> set[str]:
    """Return the tasks to hold out of those of one kind."""
    names = list(ranks_by_task)
    part_of: dict[int, int] = {}
    for counts in ranks_by_task.values():
        for count in counts:
            part_of[count] = part_of.get(count, 0) + 1
    room = {count: number // TASKS_PER_HELD_OUT for count, number in part_of.items()}
    chosen = set()
    for place in random.permutation(len(names)).tolist():
        counts = ranks_by_task[names[place]]
        if all(room[count] > 0 for count in counts):
            chosen.add(names[place])
            for count in counts:
                room[count] -= 1
    return chosen
