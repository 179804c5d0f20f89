"""How far a machine agrees with itself."""

import numpy as np
import pytest

from cost_models.fitting.launches import launches
from cost_models.fitting.model import fit_model
from cost_models.fitting.repeats import repeats_document
from cost_models.measurements.schema import Measurements, joined
from tests.support.cost_models.launches import made_up_rows


def again(rows: Measurements, launch: int, factors: list[float]) -> Measurements:
    """The rows, and one launch so many times more, each time by a factor slower."""
    same, parts = rows.take(np.flatnonzero(rows.counts("launch") == launch)), [rows]
    for i, factor in enumerate(factors):
        changed = {"launch": np.full(same.num_rows, 10_000 + i), "seconds": same.numbers("seconds") * factor}
        parts.append(Measurements({**same.columns, **changed}))
    return joined(parts)


def test_the_same_launch_many_times_reports_how_far_times_lie_apart() -> None:
    rows = again(made_up_rows(30), 7, [0.9, 1.1, 0.8, 1.2])
    found = repeats_document(launches(rows))
    assert found is not None
    assert found["launches"] == 5
    assert found["mean_relative_difference"] == pytest.approx((0 + 0.1 + 0.1 + 0.2 + 0.2) / 5)
    assert fit_model(rows, name="m")["trained_on"]["repeats"] == found  # type: ignore[index]


def test_launches_that_are_not_the_same_report_nothing() -> None:
    assert repeats_document(launches(made_up_rows(30))) is None
    rows = again(made_up_rows(30), 7, [1.0, 1.0, 1.0, 1.0])
    lookups = rows.numbers("lookups").copy()
    further = rows.num_rows - made_up_rows(30).num_rows
    lookups[-further:] += 1 + np.arange(further)
    assert repeats_document(launches(Measurements({**rows.columns, "lookups": lookups}))) is None
