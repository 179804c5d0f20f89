"""What slopes say that a move adds at least, against what it adds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.partitioners.search.costs import cost, refresh, reprice
from planner.partitioners.search.growth import least_growth, slopes_tell, write_slopes
from planner.partitioners.search.shifts import begin, shift, undo
from planner.partitioners.search.state import HOST
from planner.priced import Scope
from planner.pricing import restrict
from tests.planner.builders import random_priced
from tests.planner.moves import with_move
from tests.planner.partitioners.test_dealing import whole_tables
from tests.planner.proposing import begun, plan_of


@pytest.mark.parametrize("smoothness", [0.05, 30.0])
def test_a_piece_that_changes_hosts_adds_at_least_what_slopes_say(smoothness: float) -> None:
    """And hardly more where the cost is nearly flat."""
    priced = random_priced(2, num_tables=40, num_hosts=4)
    chain = begun(restrict(priced, priced.family_scope == Scope.HOST))
    data, state, arrays = chain._data, chain._state, chain._arrays  # noqa: SLF001
    refresh(data, state, smoothness, 1e3)
    reprice(data, state)
    assert slopes_tell(data, state)
    before, least, added, grown = cost(data, state), [], [], []
    for source, target in itertools.permutations(range(4), 2):
        for host, slopes in ((source, arrays.slopes[0]), (target, arrays.slopes[1])):
            write_slopes(data, state, host, slopes)
        for slot in arrays.site_slots[8 + source, : arrays.site_count[8 + source]]:
            shape = arrays.slot_shape[slot]
            added.append(least_growth(data, arrays.slopes[1], shape))
            least.append(added[-1] - least_growth(data, arrays.slopes[0], shape))
            begin(state)
            shift(data, state, HOST, shape, source, -1.0)
            shift(data, state, HOST, shape, target, 1.0)
            grown.append(cost(data, state) - before)
            undo(data, state)
    above = np.array(grown) - np.array(least)
    assert len(above) > 20
    assert np.all(above >= -1e-12 * before)
    assert smoothness > 1 or np.max(above) < 0.05 * np.max(added)


def test_slopes_tell_nothing_where_more_than_seconds_counts() -> None:
    """Bytes that do not fit, ranks of several speeds, and bytes that cost something to move."""
    priced, start = whole_tables(Scope.HOST, [5, 4], [3, 2])
    chain = begun(priced, start)
    assert slopes_tell(chain._data, chain._state)  # noqa: SLF001
    unequal = replace(priced, rank_slowdown=np.array([[1.0], [1.0], [1.0], [2.0]]))
    tight = replace(priced, capacity_bytes=np.full((4, 1), 1.0))
    moving = with_move(priced, plan_of(chain), seconds_per_byte=1e-3)
    for other in (unequal, tight, moving):
        changed = begun(other, start)
        assert not slopes_tell(changed._data, changed._state)  # noqa: SLF001
