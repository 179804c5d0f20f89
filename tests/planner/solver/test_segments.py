"""Things that lie side by side by owner."""

import numpy as np

from planner.solver.segments import by_owner, ends, first_least, side_by_side


def test_the_first_of_equally_cheap_things_is_taken() -> None:
    cost, owner = np.array([3.0, 1.0, 1.0, np.inf, np.inf, 2.0]), np.array([0, 0, 0, 1, 1, 2])
    assert first_least(cost, np.array([0, 3, 5]), owner).tolist() == [1, 3, 5]


def test_things_are_numbered_from_where_their_owner_begins() -> None:
    owner, thing = side_by_side(np.array([7, 0, 4]), np.array([2, 0, 3]))
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert thing.tolist() == [7, 8, 4, 5, 6]
    assert ends(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]


def test_only_the_things_asked_for_are_given_to_their_owners() -> None:
    owner = np.array([5, 2, 5, 2, 9])
    found = {one: things.tolist() for one, things in by_owner(owner, np.array([0, 2, 3]))}
    assert found == {2: [3], 5: [0, 2]}
    assert list(by_owner(owner, np.zeros(0, dtype=np.int64))) == []
