"""Boxes that are proven to hold no plan: what proves that is kept, and no better plan than a known one is left."""

from dataclasses import replace

import numpy as np
import pytest

from planner.solver.bounds import boxes
from planner.solver.bounds.boxes import branch
from planner.solver.bounds.master import Relaxed, solve_relaxation
from planner.solver.bounds.packing import PackingRow
from planner.solver.bounds.relaxation import relaxations
from tests.support.planning.builders import random_priced


@pytest.mark.parametrize(("known_seconds", "bound_seconds"), [(5.0, 5.0), (np.inf, 0.0)])
def test_where_no_plan_fits_none_is_better_than_a_known_one(known_seconds: float, bound_seconds: float) -> None:
    """The bound of a set of families without a plan does not hold down that of all sets."""
    (model,) = relaxations(random_priced(0, num_tables=3))
    found = branch(
        replace(model, cluster_bytes=0.0 * model.cluster_bytes - 1e9), max_boxes=4, known_seconds=known_seconds
    )
    assert found.box is None
    assert found.bound_seconds == bound_seconds


def test_a_box_without_a_plan_keeps_the_rows_that_prove_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were added to the box itself, not only those of the box that it was split from."""
    (model,) = relaxations(random_priced(0, num_tables=3))
    row = PackingRow(phase=0, room_seconds=1.0, parts=1, least_seconds=0.0, taken=np.zeros(len(model.choice_table)))
    solved = 0

    def no_plan_with_rows(*arguments: object) -> Relaxed | None:
        nonlocal solved
        solved += 1
        inside = arguments[0]
        assert isinstance(inside, type(model))
        return None if len(inside.cluster_bytes) > len(model.cluster_bytes) else solve_relaxation(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(boxes, "solve_relaxation", no_plan_with_rows)
    monkeypatch.setattr(boxes, "broken_rows", lambda *_: [row] if solved > 1 else [])
    nodes = branch(model, max_boxes=3).nodes
    assert len(nodes) > 1
    assert nodes[0].rows == ()
    assert all(node.prices is None and node.rows == (row,) for node in nodes[1:])
