"""A sharp search that proposes one move after the other, and what it is at."""

import itertools
from collections.abc import Callable
from typing import Any

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import by_choice_rule
from planner.solver.partitioners.local_search.search_data import search_view, to_assignment
from planner.solver.problem import Assignment, SolverProblem
from tests.support.contracts.partitioner import LIMITS

SHARP = 200.0  # slowest load / tau
Proposal = Callable[[Any, Any, float, float], bool]


def begun(priced: SolverProblem, start: Assignment | None = None) -> Chain:
    """A sharp search that is about to propose."""
    view = search_view(priced)
    if start is None:
        (chain,) = itertools.islice(by_choice_rule(view, None, 1, itertools.count(), Effort(LIMITS)), 1)
    else:
        chain = Chain(view, 0)
        assert chain.load(start)
    refresh(chain._data, chain._state, SHARP, 1e3)  # noqa: SLF001
    reprice(chain._data, chain._state)  # noqa: SLF001
    return chain


def propose(chain: Chain, proposal: Proposal, bar: float) -> bool:
    """Propose once; the cost may grow by the bar. What is kept sets prices again, as in a search."""
    data, state = chain._data, chain._state  # noqa: SLF001
    preserved = bool(proposal(data, state, cost(data, state), bar))
    if preserved:
        reprice(data, state)
    return preserved


def plan_of(chain: Chain) -> Assignment:
    """What a chain is at, whether it fits or not."""
    arrays = chain._arrays  # noqa: SLF001
    return to_assignment(chain._view, arrays.slot_shape, arrays.slot_site, arrays.num_pieces)  # noqa: SLF001


def slots_of(arrays: State) -> list[list[int]]:
    """Slots of every rank, then of every host; their order means nothing."""
    return [sorted(slots[:count]) for slots, count in zip(arrays.site_slots, arrays.site_count, strict=True)]
