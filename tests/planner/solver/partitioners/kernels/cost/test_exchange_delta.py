"""What an exchange between two sites adds to the cost, foreseen and made."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.partitioners.kernels.cost.exchange_delta import (
    Exchange,
    can_foresee,
    is_hopeless,
    least_growth,
    make,
    try_out,
    weigh_sites,
)
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.state.undo_log import undo
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.problem import Scope, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.moves import with_move
from tests.support.planning.proposing import begun, plan_of


def roomy(scope: Scope, **changes: Any) -> SolverProblem:
    """Forty tables, each on one rank or one host, of eight ranks on four hosts that could hold all of them."""
    priced = random_priced(2, num_tables=40, num_hosts=4, **changes)
    return replace(restrict(priced, priced.family_scope == scope), capacity_bytes=np.full((8, 1), 1e9))


ERROR_KINDS = {
    "ranks": (Scope.RANK, roomy(Scope.RANK)),
    "ranks of unequal speed": (Scope.RANK, roomy(Scope.RANK, slowdown=True)),
    "hosts": (Scope.HOST, roomy(Scope.HOST)),
    "time that is hidden": (Scope.HOST, roomy(Scope.HOST, windows=True)),
}


def smooth(chain: Chain, smoothness: float) -> Chain:
    refresh(chain._data, chain._state, smoothness, 1e3)  # noqa: SLF001
    reprice(chain._data, chain._state)  # noqa: SLF001
    return chain


def exchanges(chain: Chain, scope: Scope) -> Iterator[Exchange]:
    """Moves of one piece, then swaps of two, between all pairs of sites."""
    arrays = chain._arrays  # noqa: SLF001
    first, sites = (0, 8) if scope == Scope.RANK else (8, 4)
    listed = [arrays.site_slots[first + site, : arrays.site_count[first + site]] for site in range(sites)]
    shapes = [arrays.slot_shape[slots] for slots in listed]
    for here, there in itertools.permutations(range(sites), 2):
        for out in shapes[here].tolist():
            yield Exchange(scope, here, there, out, -1, -1, out)
            for into in shapes[there].tolist()[:2]:
                yield Exchange(scope, here, there, out, into, into, out)


def growth_of(chain: Chain, exchange: Exchange) -> float:
    """What it adds when it is made; then it is undone."""
    data, state = chain._data, chain._state  # noqa: SLF001
    before = cost(data, state)
    assert try_out(data, state, exchange, before, np.inf)
    growth = cost(data, state) - before
    undo(data, state)
    assert cost(data, state) == before
    return float(growth)


@pytest.mark.parametrize("smoothness", [0.05, 30.0, 400.0])
@pytest.mark.parametrize("name", ERROR_KINDS)
def test_what_is_foreseen_is_what_comes(name: str, smoothness: float) -> None:
    """Refused is what adds more than the bar, and nothing else; slopes say less, and hardly less where all is flat."""
    scope, priced = ERROR_KINDS[name]
    chain = smooth(begun(priced), smoothness)
    data, state = chain._data, chain._state  # noqa: SLF001
    assert can_foresee(data, state, scope)
    value, below = cost(data, state), []
    for exchange in itertools.islice(exchanges(chain, scope), 300):
        growth = growth_of(chain, exchange)
        weigh_sites(data, state, scope, exchange.here, exchange.there)
        least = least_growth(data, state, exchange)
        rounding = 1e-9 * value
        assert least <= growth + rounding
        assert not is_hopeless(data, state, least, growth + rounding)
        assert is_hopeless(data, state, least, growth - rounding)
        below.append((growth - least) / value)
    assert len(below) > 100
    slopes_are_all = smoothness == 0.05 or name == "time that is hidden"
    assert max(below) > 1e-3 or slopes_are_all
    assert max(below) < 1e-2 or smoothness > 0.05


@pytest.mark.parametrize("scope", [Scope.RANK, Scope.HOST])
def test_bytes_that_move_cost_what_they_will(scope: Scope) -> None:
    priced = roomy(scope)
    start = plan_of(begun(priced))
    chain = smooth(begun(with_move(priced, start, seconds_per_byte=1e-3)), 30.0)
    data, state = chain._data, chain._state  # noqa: SLF001
    for exchange in itertools.islice(exchanges(chain, scope), 100):
        growth = growth_of(chain, exchange)
        weigh_sites(data, state, scope, exchange.here, exchange.there)
        least = least_growth(data, state, exchange)
        assert not is_hopeless(data, state, least, growth + 1e-9)
        assert is_hopeless(data, state, least, growth - 1e-9)


@pytest.mark.parametrize("scope", [Scope.RANK, Scope.HOST])
def test_it_is_made_where_it_adds_no_more_than_the_bar(scope: Scope) -> None:
    chain = begun(roomy(scope))
    data, state, arrays = chain._data, chain._state, chain._arrays  # noqa: SLF001
    refused = made = 0
    for exchange in itertools.islice(exchanges(chain, scope), 60):
        before, loads = cost(data, state), arrays.loads.copy()
        growth = growth_of(chain, exchange)
        if make(data, state, exchange, before, 0.0):
            assert growth <= 1e-9 * before
            made += 1
            undo(data, state)
        else:
            assert growth >= -1e-9 * before
            refused += 1
        assert np.array_equal(arrays.loads, loads)
    assert refused > 0
    assert made > 0


def test_what_does_not_fit_any_more_is_seen_when_it_is_made() -> None:
    """Slopes and weights know no bytes; a move that overflows a rank is refused all the same."""
    scope, priced = ERROR_KINDS["ranks"]
    start = plan_of(begun(priced))
    used = np.zeros(8)
    np.add.at(used, start.piece_site, priced.shape_bytes[start.piece_shape, 0])
    full = begun(replace(priced, capacity_bytes=used[:, None]), start)
    data, state = full._data, full._state  # noqa: SLF001
    assert full._arrays.counters["overflow"][0] == 0  # noqa: SLF001
    assert can_foresee(data, state, scope)
    move = next(exchanges(full, scope))
    growth = growth_of(full, move)
    weigh_sites(data, state, scope, move.here, move.there)
    least = least_growth(data, state, move)
    assert not is_hopeless(data, state, least, growth / 2)  # by seconds alone
    assert not make(data, state, move, cost(data, state), growth / 2)


def test_nothing_is_foreseen_where_bytes_do_not_fit_as_it_is_or_ranks_of_a_host_differ() -> None:
    for scope, changes, foreseen in (
        (Scope.RANK, {"capacity_bytes": np.full((8, 1), 1.0)}, False),
        (Scope.HOST, {"capacity_bytes": np.full((8, 1), 1.0)}, False),
        (Scope.HOST, {"rank_slowdown": np.repeat([[1.0], [2.0]], [7, 1], axis=0) * np.ones((1, 2))}, False),
        (Scope.RANK, {"rank_slowdown": np.repeat([[1.0], [2.0]], [7, 1], axis=0) * np.ones((1, 2))}, True),
    ):
        chain = begun(replace(roomy(scope), **changes))
        assert can_foresee(chain._data, chain._state, scope) is foreseen  # noqa: SLF001
