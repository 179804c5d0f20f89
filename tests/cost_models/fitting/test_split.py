"""Splits leak nothing."""

import numpy as np

from cost_models.fitting.launches import Launches, launches
from cost_models.fitting.split import groups, split_by_task
from cost_models.measurements.schema import Measurements
from tests.support.cost_models.launches import made_up_rows


def repeated() -> Launches:
    """50 launches, each measured again under another task and with its shards in another order."""
    rows = made_up_rows(50)
    again = dict(rows.take(np.arange(rows.num_rows)[::-1]).columns)
    again["launch"] = again["launch"] + 1000
    again["task"] = np.array([f"again {name}" for name in again["task"].tolist()])
    return launches(Measurements({name: np.concatenate([rows.columns[name], again[name]]) for name in again}))


def test_equal_launches_are_in_one_group() -> None:
    found = groups(repeated())
    assert found.max() == 49
    np.testing.assert_array_equal(found[:50], found[50:])


def test_launches_of_one_task_are_in_one_group() -> None:
    rows = made_up_rows(50)
    columns = {**rows.columns, "task": np.array([f"task {i % 5}" for i in rows.counts("launch").tolist()])}
    assert groups(launches(Measurements(columns))).max() == 4


def test_a_split_by_task_keeps_repeats_on_one_side_and_loses_nothing() -> None:
    rows = repeated()
    split = split_by_task(rows, 0)
    parts = [split.training, split.validation, split.test]
    assert [len(part) for part in parts] == [80, 10, 10]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(100))
    found = groups(rows)
    sides = [set(found[part].tolist()) for part in parts]
    assert sides[0].isdisjoint(sides[1] | sides[2])
    assert sides[1].isdisjoint(sides[2])


def test_a_split_is_the_same_for_a_seed() -> None:
    rows = repeated()
    np.testing.assert_array_equal(split_by_task(rows, 0).test, split_by_task(rows, 0).test)
    assert not np.array_equal(split_by_task(rows, 0).test, split_by_task(rows, 1).test)


def test_taken_launches_keep_their_shards() -> None:
    rows = launches(made_up_rows(20))
    taken = rows.take(np.array([7, 3]))
    assert taken.seconds[:, 0].tolist() == [rows.seconds[7, 0], rows.seconds[3, 0]]
    for position, launch in enumerate((7, 3)):
        np.testing.assert_array_equal(
            taken.columns.lookups[taken.launch == position], rows.columns.lookups[rows.launch == launch]
        )
