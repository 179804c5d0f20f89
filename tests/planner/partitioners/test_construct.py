"""One construction by hand: which options, in which order, and what happens where they do not fit."""

import numpy as np
import pytest

from planner.evaluate import rank_loads, violations
from planner.partitioners.construct import choose_options, construct, even_share, scale_target
from tests.planner.partitioners.hand_priced import Option, everywhere, on_rank, view_of

#: Table 0: whole 8 s, halves of 5 s each, quarters everywhere of 3 s. Table 1: whole 2 s.
OPTIONS = (
    Option(0, (on_rank(8.0, num_bytes=8),)),
    Option(0, (on_rank(5.0, num_bytes=4), on_rank(5.0, num_bytes=4))),
    Option(0, (everywhere(3.0, num_bytes=2),)),
    Option(1, (on_rank(2.0, num_bytes=2),)),
)


def test_even_share() -> None:
    """Cheapest are 8 and 2 seconds in all: 10 over 4 ranks."""
    assert even_share(view_of(*OPTIONS)) == 2.5


@pytest.mark.parametrize(
    ("cap", "chosen"),
    [
        # priced per rank: whole 8/4 = 2, halves 10/4 = 2.5, everywhere 12/4 = 3
        (8.0, 0),  # nothing is over the cap: the cheapest
        (5.0, 1),  # whole costs 2 + 8 x 8/5; halves 2.5
        (3.0, 2),  # halves cost 2.5 + 5 x 5/3
        (1.0, 2),  # all are over: 2 + 64, 2.5 + 25, 3 + 9
    ],
)
def test_a_lower_cap_cuts_finer(cap: float, chosen: int) -> None:
    assert choose_options(view_of(*OPTIONS), cap, 0.0).tolist() == [chosen, 3]


def test_a_price_of_memory_chooses_what_is_small() -> None:
    """Copies cost 4 x 1 / 4 = 1 s per rank and 40 of 400 bytes, the whole 6 / 4 = 1.5 s and 10 of 400.

    The copies' share of memory is 0.075 larger, which outweighs half a second from 6.7 s on.
    """
    options = (Option(0, (on_rank(6.0, num_bytes=10),)), Option(0, (everywhere(1.0, num_bytes=10),)))
    view = view_of(*options)
    assert choose_options(view, 10.0, 6.0).tolist() == [1]
    assert choose_options(view, 10.0, 7.0).tolist() == [0]


def test_heaviest_first_where_it_hurts_least() -> None:
    """On two ranks 2, then 1 + 1; in the order given 1 and 1 would part, and the 2 would come on top of one."""
    options = tuple(Option(table, (on_rank(seconds),)) for table, seconds in enumerate((1.0, 1.0, 2.0)))
    view = view_of(*options, num_hosts=1)
    built = construct(view, np.arange(3))
    assert built is not None
    assert rank_loads(view.priced, built).seconds[:, 0].tolist() == [2, 2]


def test_what_is_everywhere_is_placed_first() -> None:
    """8 bytes everywhere fit only before 5 bytes on a rank of 12; then nothing has room for the 5."""
    options = (
        Option(0, (on_rank(9.0, num_bytes=5),)),
        Option(0, (on_rank(9.0, num_bytes=4), on_rank(9.0, num_bytes=4))),
        Option(1, (everywhere(1.0, num_bytes=8),)),
    )
    view = view_of(*options, capacity=12)
    built = construct(view, np.array([0, 2]))
    assert built is not None
    assert built.chosen_option.tolist() == [1, 2]  # the next option of table 0 that still fits
    assert violations(view.priced, built) == []


def test_nothing_that_fits() -> None:
    view = view_of(*OPTIONS, capacity=1)
    assert construct(view, np.array([0, 3])) is None


def test_a_same_rank_group_has_no_other_way() -> None:
    """Each fits alone, both do not fit on one rank."""
    options = (Option(0, (on_rank(1.0, num_bytes=6),)), Option(1, (on_rank(1.0, num_bytes=6),)))
    assert construct(view_of(*options, capacity=10), np.array([0, 1])) is not None
    assert construct(view_of(*options, capacity=10, same_rank=((0, 1),)), np.array([0, 1])) is None


def test_targets_are_nowhere_zero() -> None:
    """A phase of nothing gets a millionth of the largest."""
    assert scale_target(np.array([2.0, 0.0])).tolist() == [2.0, pytest.approx(2e-6)]
    assert (scale_target(np.zeros(2)) > 0).all()
