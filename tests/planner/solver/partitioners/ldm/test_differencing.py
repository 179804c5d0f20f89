import numpy as np
import pytest
from numpy.typing import NDArray

from planner.solver.partitioners.ldm.differencing import difference


def loads(pieces: NDArray[np.float64], fixed: NDArray[np.float64], sharpness: float = 15.0) -> NDArray[np.float64]:
    """What the ranks carry after differencing, every piece on one of them."""
    ranks = difference(pieces, fixed, sharpness)
    assert ranks.shape == (len(pieces),)
    assert np.all((ranks >= 0) & (ranks < len(fixed)))
    total = fixed.copy()
    np.add.at(total, ranks, pieces)
    return total


def test_karmarkar_and_karps_example() -> None:
    """8 - 7 = 1, 6 - 5 = 1, 4 - 1 = 3, 3 - 1 = 2: one rank carries 16 and one 14; placed heaviest first, 17 and 13."""
    pieces = np.array([[8.0], [7.0], [6.0], [5.0], [4.0]])
    assert sorted(loads(pieces, np.zeros((2, 1)))[:, 0]) == [14.0, 16.0]


def test_what_lies_on_the_ranks_already_is_evened_out() -> None:
    pieces = np.array([[1.0], [1.0], [1.0], [2.0]])
    assert loads(pieces, np.array([[3.0], [0.0], [1.0]]))[:, 0].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("sharpness", [1.0, 15.0, 60.0])
def test_every_coordinate_counts(sharpness: float) -> None:
    """Ranks of 2 in one coordinate and none in the other weigh as much in all as ranks of 1 and 1."""
    pieces = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert loads(pieces, np.zeros((2, 2)), sharpness).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_coordinate_in_which_nothing_weighs_does_no_harm() -> None:
    pieces = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert loads(pieces, np.zeros((2, 2)))[:, 0].tolist() == [2.0, 2.0]


def test_many_small_pieces_leave_almost_no_difference() -> None:
    """A thousand pieces on sixteen ranks: heaviest first leaves about the lightest piece between the ranks."""
    pieces = np.random.default_rng(0).uniform(0.05, 1.0, (1000, 1))
    total = loads(pieces, np.zeros((16, 1)))
    assert total.max() - total.min() < 0.01 * pieces.min()


def test_phases_that_are_not_alike_are_balanced_together() -> None:
    rng = np.random.default_rng(1)
    pieces = rng.uniform(0.0, 1.0, (400, 3))
    total = loads(pieces, rng.uniform(0.0, 1.0, (8, 3)))
    assert np.all(total.max(axis=0) < 1.03 * total.mean(axis=0))


def test_fewer_pieces_than_ranks_lie_alone() -> None:
    assert len(set(difference(np.ones((3, 2)), np.zeros((5, 2)), 4.0).tolist())) == 3
