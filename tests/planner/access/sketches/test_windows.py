"""Windows: distinct rows by hand, and runs that end with their trace."""

import numpy as np

from planner.access.sketches.collector import Collector
from planner.access.sketches.hashing import row_hashes
from planner.access.sketches.windows import NUM_PARTS, Runs, distinct_in_parts
from tests.support.planning.id_streams import in_batches, zipf


def parts_of(ids: list[int]) -> list[list[int]]:
    order = np.argsort(np.array(ids), kind="stable")
    return distinct_in_parts(order, np.diff(np.array(ids)[order], prepend=-1) != 0).tolist()


def test_parts_of_a_batch_by_hand() -> None:
    # quarters 7 7 7 7 | 1 2 1 2 | 7 3 3 3 | 4 5 6 7 have 1 + 2 + 2 + 4 distinct rows
    sums = parts_of([7, 7, 7, 7, 1, 2, 1, 2, 7, 3, 3, 3, 4, 5, 6, 7])
    assert sums[-1] == [4, 16, 9]
    assert sums[:-1] == [[0, 0, 0]] * (NUM_PARTS - 1)  # parts of less than 4 lookups say nothing


def test_what_is_left_at_the_end_of_a_batch_is_in_no_window() -> None:
    assert parts_of([1] * 19)[-1] == [4, 16, 4]


def test_all_parts_against_a_plain_count() -> None:
    ids = zipf(1.0, 300, 5_000)
    for size, sums in enumerate(parts_of(ids.tolist())):
        width = 5_000 // 4 ** (NUM_PARTS - size)
        windows = [len(np.unique(part)) for part in in_batches(ids, width) if len(part) == width] if width >= 4 else []
        assert sums == [len(windows), len(windows) * width, sum(windows)]


def test_runs_of_batches() -> None:
    runs = Runs()
    for start in range(0, 1_700, 100):  # 17 batches of 100 rows that overlap by half
        runs.add(row_hashes(np.arange(start // 2, start // 2 + 100), 0), 100)
    assert runs.sums[0, :2].tolist() == [4, 1_600]
    assert runs.sums[1, :2].tolist() == [1, 1_600]
    assert abs(runs.sums[0, 2] - 4 * 250) < 20
    assert abs(runs.sums[1, 2] - 850) < 20


def test_no_run_goes_on_into_another_trace() -> None:
    collector = Collector("t")
    for trace in range(3):
        for batch in range(3):
            collector.add(np.array([trace, batch]))
        collector.end_trace()
    assert collector.sketch().windows[NUM_PARTS:].tolist() == [[0, 0, 0]] * 6
