"""Intervals, contention and ranges, by hand."""

import numpy as np
import pytest

from cost_models.learned.lookups.contention import Contention
from cost_models.learned.reach.intervals import Interval
from cost_models.learned.reach.ranges import Range


def test_reach_by_hand() -> None:
    # sigma = 0.1 whatever the launch; quantiles 2 and 4 where 4 and 8 ranks were measured
    interval = Interval(
        coverage=0.9, contentions=(0.0, 1.0), quantiles=(2.0, 4.0), log_width=(np.log(0.1).item(), 0.0, 0.0, 0.0)
    )
    seconds, shards = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    np.testing.assert_allclose(interval.reach(seconds, shards, 0.0), 0.2)
    np.testing.assert_allclose(interval.reach(seconds, shards, 0.5), 0.3)
    np.testing.assert_allclose(interval.reach(seconds, shards, np.array([0.0, 1.0])), [0.2, 0.4])


def test_widths_stay_within_bounds() -> None:
    for given, wide in ((50.0, 1.0), (-50.0, 0.005)):
        interval = Interval(coverage=0.9, contentions=(0.0,), quantiles=(1.0,), log_width=(given, 0.0, 0.0, 0.0))
        np.testing.assert_allclose(interval.reach(np.ones(1), np.ones(1), 0.0), wide)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"coverage": 0.0}, "0 < coverage < 1"),
        ({"quantiles": (-1.0,)}, "quantiles from 0"),
        ({"quantiles": ()}, "as many quantiles"),
        ({"contentions": (1.0, 0.0), "quantiles": (1.0, 1.0)}, "increasing contentions"),
        ({"log_width": (0.0,)}, "4 finite numbers"),
    ],
)
def test_what_is_no_interval_is_refused(change: dict[str, object], reason: str) -> None:
    known: dict[str, object] = {
        "coverage": 0.9,
        "contentions": (0.0,),
        "quantiles": (1.0,),
        "log_width": (0.0, 0.0, 0.0, 0.0),
    }
    with pytest.raises(ValueError, match=reason):
        Interval(**(known | change))  # type: ignore[arg-type]


def test_contention_is_doublings_beyond_the_fewest_and_ends_where_measurements_do() -> None:
    contention = Contention(4, 8)
    assert [contention.of(ranks) for ranks in (2, 4, 8, 16)] == [0.0, 0.0, 1.0, 1.0]
    assert [contention.doublings_beyond(ranks) for ranks in (2, 4, 8, 32)] == [1.0, 0.0, 0.0, 2.0]
    assert [contention.holds(ranks) for ranks in (1, 2, 8, 16, 32)] == [False, True, True, True, False]


def test_one_number_of_ranks_says_nothing_of_others() -> None:
    contention = Contention(1, 1)
    assert contention.of(8) == 0.0
    assert contention.holds(8)


def test_ranges_have_a_tolerance() -> None:
    measured = Range(10.0, 100.0)
    assert measured.holds(np.array([8.9, 9.0, 110.0, 111.0])).tolist() == [False, True, True, False]
    assert measured.excess(np.array([50.0, 110.0, 220.0])).tolist() == pytest.approx([0.0, 0.0, 1.0])
    assert Range(0.0, 0.0).holds(np.array([0.0, 1.0])).tolist() == [True, False]
    with pytest.raises(ValueError, match="low <= high"):
        Range(2.0, 1.0)
