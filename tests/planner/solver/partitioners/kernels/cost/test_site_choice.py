"""Ranks that an item must keep apart from: marked at once, they are those that a look at each of them finds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.cost.site_choice import is_marked, mark_taken, shares_rank
from planner.solver.partitioners.kernels.state.records import pack_data
from planner.solver.partitioners.local_search.constructions import by_choice_rule
from planner.solver.partitioners.local_search.search_data import search_view
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced


@pytest.mark.parametrize("seed", range(4))
def test_marks_are_where_other_items_of_the_groups_lie(seed: int) -> None:
    """Pieces on ranks, on hosts, and of items that are not placed; groups that overlap."""
    rng = np.random.default_rng(seed)
    groups = [rng.choice(12, size=4, replace=False) for _ in range(3)]
    view = search_view(random_priced(seed, num_tables=12, num_hosts=4, host_pieces=True))
    (chain,) = itertools.islice(by_choice_rule(view, None, 1, itertools.count(seed), Effort(LIMITS)), 1)
    apart = search_view(replace(view.priced, apart=tuple(groups))).data
    data = pack_data(view.data._replace(apart_first=apart.apart_first, apart_item=apart.apart_item))
    state, arrays = chain._state, chain._arrays  # noqa: SLF001
    arrays.num_pieces[rng.integers(12)] = 0
    found = 0
    for item in range(12):
        mark_taken(data, state, item)
        marked = [bool(is_marked(state, rank)) for rank in range(view.priced.num_ranks)]
        assert marked == [bool(shares_rank(data, state, item, rank)) for rank in range(view.priced.num_ranks)]
        found += sum(marked)
    assert found > 0
