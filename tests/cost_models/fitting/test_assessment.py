"""Figures of held-out rows, by hand."""

import numpy as np
import pytest

from cost_models.fitting.assessment import HeldOutResult, figures, figures_by, kendall_tau, points, size_labels


def rated() -> HeldOutResult:
    """Measured 1, 2, 4 s; predicted 1.1, 1, 4; the second outside of its interval."""
    return HeldOutResult(
        measured_seconds=np.array([1.0, 2.0, 4.0]),
        predicted_seconds=np.array([1.1, 1.0, 4.0]),
        lower_seconds=np.array([0.55, 0.5, 2.0]),
        upper_seconds=np.array([2.2, 1.5, 8.0]),
    )


def test_figures_by_hand() -> None:
    found = figures("all", rated())
    assert found.num_rows == 3
    assert found.mean_relative_error == pytest.approx((0.1 + 0.5 + 0.0) / 3)
    assert found.median_relative_error == pytest.approx(0.1)
    # Pairs: (1, 2) in the wrong order, the other two in the right one.
    assert found.rank_correlation == pytest.approx(1 / 3)
    assert found.coverage == pytest.approx(2 / 3)
    assert found.mean_interval_ratio == pytest.approx((4 * 3 * 4) ** (1 / 3))


def test_groups_follow_all_in_order_of_their_first_row() -> None:
    found = figures_by(["b", "a", "b"], rated())
    assert [(one.group, one.num_rows) for one in found] == [("all", 3), ("b", 2), ("a", 1)]
    assert np.isnan(found[2].rank_correlation)


def test_ties_are_set_aside() -> None:
    # tau-b of (1, 1, 2) and (1, 2, 3): 2 of 3 pairs agree, one is tied on the left: 2 / sqrt(2 x 3)
    assert kendall_tau(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(2 / np.sqrt(6))


def test_sizes_have_names() -> None:
    assert size_labels(np.array([1, 2, 3, 4, 7, 8, 15, 16, 99])) == [
        "1 shard",
        "2-3 shards",
        "2-3 shards",
        "4-7 shards",
        "4-7 shards",
        "8-15 shards",
        "8-15 shards",
        "16 shards or more",
        "16 shards or more",
    ]


def test_points_are_pairs_and_no_more_than_asked_for() -> None:
    found = points(rated(), 2, seed=0)
    assert len(found) == 2
    assert set(found) <= {(1.0, 1.1), (2.0, 1.0), (4.0, 4.0)}
