"""Rows of increments by hand, and how they grow."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.access.modified_rows import ModifiedRows, modified_rows
from planner.domain.problem.access import AccessStatistics, ZipfAccess
from planner.domain.problem.checkpoint import Checkpoint

UNIFORM = ZipfAccess(alpha=0.0)


def rows_of(
    policy: str, full_every: int, *, steps: int = 1, access: AccessStatistics | None = None, **changes: Any
) -> ModifiedRows:
    """One table of 1,000 rows with 100 lookups per step."""
    given: dict[str, Any] = {
        "accesses": [access],
        "num_rows": [1000],
        "lookups_per_step": np.array([100.0]),
        "is_trained": np.array([True]),
        "row_bytes": np.array([260.0]),
    }
    checkpoint = Checkpoint(interval_steps=steps, policy=policy, full_every=full_every)
    return modified_rows(checkpoint, **(given | changes))


def test_where_nothing_is_known_every_lookup_changes_another_row() -> None:
    """100 rows per step: after 3 and 6 steps 300 and 600, and after 12 all 1,000."""
    assert rows_of("one_shot", 4, steps=3).rows.tolist() == [[300, 600, 900]]
    assert rows_of("consecutive", 4, steps=3).rows.tolist() == [[300]]
    assert rows_of("consecutive", 4, steps=12).rows.tolist() == [[1000]]


def test_rows_that_are_looked_up_again_are_stored_once() -> None:
    """1,000 equally likely rows: 1000 (1 - 0.999^n) after n lookups."""
    found = rows_of("one_shot", 3, steps=5, access=UNIFORM)
    want = [1000 * (1 - 0.999**lookups) for lookups in (500, 1000)]
    np.testing.assert_allclose(found.rows, [want], rtol=1e-4)


def test_what_is_not_trained_is_not_modified() -> None:
    assert rows_of("one_shot", 3, is_trained=np.array([False])).rows.tolist() == [[0, 0]]


def test_full_checkpoints_have_no_increments() -> None:
    found = rows_of("full", 1)
    assert (found.full_every, found.rows.shape, found.num_increments.shape) == (1, (1, 0), (0,))
    assert rows_of("consecutive", 1).rows.shape == (1, 0)


def test_consecutive_increments_are_alike() -> None:
    found = rows_of("consecutive", 7)
    assert (found.full_every, found.num_increments.tolist()) == (7, [6])


def test_intermittent_stores_all_again_once_that_is_cheaper() -> None:
    """Nothing known, a tenth of the rows in each interval: S_i = i / 10.

    1 + sum of S against (i + 1) S_i: 1.1 > 0.2, 1.3 > 0.6, 1.6 > 1.2, 2.0 = 2.0: four increments, five checkpoints.
    """
    found = rows_of("intermittent", 20)
    assert found.full_every == 5
    assert found.rows.tolist() == [[100, 200, 300, 400]]
    assert rows_of("intermittent", 3).full_every == 3  # at the latest
    assert rows_of("intermittent", 20, steps=10).full_every == 2  # the first increment has all rows already


def test_tables_weigh_by_their_bytes() -> None:
    """A table that is never looked up and has three times the bytes: S_i = i / 40 up to 1 / 4, then the same."""
    found = rows_of(
        "intermittent",
        50,
        accesses=[None, None],
        num_rows=[1000, 1000],
        lookups_per_step=np.array([100.0, 0.0]),
        is_trained=np.array([True, True]),
        row_bytes=np.array([260.0, 780.0]),
    )
    # i (i + 1) / 80 = (i + 1) i / 40 - 1 at i (i + 1) = 80, so that 9 increments are needed: 1 + 45/40 <= 10 * 9/40.
    assert found.full_every == 10


@pytest.mark.parametrize("lookups", [3.0, 10.0, 37.0, 80.0])
def test_the_rule_is_decided_on_every_increment(lookups: float) -> None:
    """1,000 equally likely rows: S_i = 1 - 0.999^(i n), added up one by one."""
    found = rows_of("intermittent", 200, access=UNIFORM, lookups_per_step=np.array([lookups]))
    sizes, want = [], 200
    for i in range(1, 200):
        sizes.append(1 - 0.999 ** (i * lookups))
        if 1 + sum(sizes) <= (i + 1) * sizes[-1]:
            want = i + 1
            break
    assert found.full_every == want


@pytest.mark.parametrize("full_every", [2, 5, 9, 10, 40, 1000])
def test_some_increments_stand_for_all(full_every: int) -> None:
    found = rows_of("one_shot", full_every, access=UNIFORM)
    assert found.num_increments.sum() == pytest.approx(full_every - 1)
    exact = sum(1000 * (1 - 0.999 ** (100 * k)) for k in range(1, full_every))
    assert float(found.rows[0] @ found.num_increments) == pytest.approx(exact, rel=0.03)


@given(
    alpha=st.none() | st.floats(0, 2),
    steps=st.integers(1, 10**4),
    longer=st.integers(1, 10),
    policy=st.sampled_from(("one_shot", "consecutive")),
    full_every=st.integers(2, 30),
)
def test_longer_intervals_never_have_fewer_rows(
    alpha: float | None, steps: int, longer: int, policy: str, full_every: int
) -> None:
    access = None if alpha is None else ZipfAccess(alpha=alpha)
    short, long = (rows_of(policy, full_every, steps=n, access=access).rows for n in (steps, steps * longer))
    assert np.all(short <= long * (1 + 1e-9))
    assert np.all(long <= 1000)
    assert np.all(np.diff(short, axis=1) >= -1e-9)
