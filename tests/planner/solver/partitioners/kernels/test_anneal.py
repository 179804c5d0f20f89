"""One proposal of the compiled search against the same proposal in plain numpy, which counts everything again."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.partitioners.kernels.anneal import propose
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.moves.move_table import MOVES, Move
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.moves import with_move
from tests.support.planning.proposing import begun, plan_of, slots_of
from tests.support.search_oracle import ejection, everyday_moves, picks, redistributions, whole_tables
from tests.support.search_oracle.plain_search import HOST, RANK, STEEPEST, Ambiguous, PlainSearch
from tests.support.thorough import THOROUGH

PlainMove = Callable[[PlainSearch, int, float], PlainSearch | None]


def of_item(cut: Callable[[PlainSearch, int, float], PlainSearch | None]) -> PlainMove:
    return lambda search, _, bar: cut(search, picks.pick_item(search), bar)


PLAIN: dict[Move, PlainMove] = {
    Move.MOVE_PIECE: everyday_moves.move_piece,
    Move.SWAP_PIECES: everyday_moves.swap_pieces,
    Move.SHIFT_COLUMNS: of_item(everyday_moves.shift_columns),
    Move.SPLIT_PIECE: of_item(everyday_moves.split_piece),
    Move.MERGE_PIECES: of_item(everyday_moves.merge_pieces),
    Move.REPLACE_ITEM: lambda search, _, bar: whole_tables.replace_item(search, bar),
    Move.SEND_HOME: lambda search, _, bar: whole_tables.send_home(search, bar),
    Move.EJECT_PIECE: lambda search, _, bar: ejection.eject_piece(search, bar),
    Move.CUT_AND_REDISTRIBUTE: lambda search, _, bar: redistributions.cut_and_redistribute(search, bar),
    Move.REDISTRIBUTE_THREE: redistributions.redistribute_three,
    Move.REDISTRIBUTE_TWO: redistributions.redistribute_two,
}


def ranks() -> SolverProblem:
    return random_priced(1, num_tables=10, ranks_per_host=3, same_host=True)


def tight() -> SolverProblem:
    """Little memory, and some tables that must keep apart or off a rank."""
    priced = random_priced(2, num_tables=12, ranks_per_host=3, fill=0.9, equal_capacity=False)
    allowed = priced.table_rank_allowed.copy()
    allowed[0, 0] = allowed[3, 2] = False
    return replace(priced, table_rank_allowed=allowed, apart=(np.array([1, 2]), np.array([4, 5, 6])))


def hosts() -> SolverProblem:
    """Pieces on whole hosts, and some on ranks."""
    priced = random_priced(3, num_tables=10, num_hosts=4, host_pieces=True)
    return restrict(priced, (priced.family_scope == Scope.HOST) | (priced.family_table % 3 == 0))


def unequal() -> SolverProblem:
    return random_priced(4, num_tables=10, num_hosts=3, slowdown=True)


def hidden() -> SolverProblem:
    return random_priced(5, num_tables=10, ranks_per_host=3, windows=True)


def one_phase() -> SolverProblem:
    priced = random_priced(6, num_tables=14, ranks_per_host=3, objective=Objective.MAX_RANK_TIME)
    return restrict(priced, (priced.family_scope == Scope.RANK))


def moving() -> SolverProblem:
    """A plan runs already, a byte that moves costs something, and few may move."""
    priced = random_priced(7, num_tables=8, ranks_per_host=3)
    return with_move(priced, plan_of(begun(priced)), seconds_per_byte=1e-2, max_bytes=150.0)


PROBLEMS = {made.__name__: functools.cache(made) for made in (ranks, tight, hosts, unequal, hidden, one_phase, moving)}
SMOOTHNESS = (30.0, 200.0, 1000.0, 4000.0)
PROPOSALS = 60 if THOROUGH else 12  # of each move, scope and smoothness on each problem
#: Times as many, of moves that are rarely possible.
TIMES = {Move.CUT_AND_REDISTRIBUTE: 5, Move.REDISTRIBUTE_THREE: 2, Move.SHIFT_COLUMNS: 2}


def compare(chain: Chain, move: Move, scope: int, bar: float) -> bool | None:
    """Propose once in both; return whether the change was kept, or nothing where rounding decides."""
    data, state, arrays = chain._data, chain._state, chain._arrays  # noqa: SLF001
    plain = PlainSearch(chain)
    before = cost(data, state)
    assert before == pytest.approx(plain.cost(), rel=1e-9)
    accepted = bool(propose(data, state, int(move), scope, before, bar))
    try:
        changed = PLAIN[move](plain, scope, bar)
    except Ambiguous:
        return None
    finally:
        if accepted:
            reprice(data, state)
        check(chain, PlainSearch(chain))
    assert accepted is (changed is not None)
    expected = plain if changed is None else changed
    assert int(arrays.seed[0]) == plain.random.state  # both drew equally often
    now = PlainSearch(chain)
    assert list(now.pieces()) == list(expected.pieces())
    assert slots_of(arrays) == [sorted(slots) for slots in expected.places]
    return accepted


def check(chain: Chain, plain: PlainSearch) -> None:
    """Everything that the compiled search counts along is as counted again from where its pieces are."""
    arrays, data, world = chain._arrays, chain._view.data, plain.world_seconds()  # noqa: SLF001
    loads = plain.loads()
    assert np.allclose(arrays.loads + arrays.world_loads, loads, rtol=1e-9, atol=1e-12)
    assert np.allclose(arrays.world_loads, world, rtol=1e-9, atol=1e-12)
    assert np.allclose(arrays.bytes + arrays.world_bytes, plain.bytes(), atol=1e-6)
    assert arrays.counters["overflow"][0] == pytest.approx(plain.overflow(), abs=1e-9)
    assert arrays.counters["moved_bytes"][0] == pytest.approx(plain.moved_bytes(), abs=1e-6)
    assert not plain.moves_cost or np.array_equal(arrays.columns_here, plain.columns())
    weights = np.exp(np.minimum((loads - world - arrays.reference) / arrays.tau, STEEPEST))
    assert np.allclose(arrays.weights, weights, rtol=1e-8)
    assert np.allclose(arrays.price * np.sum(weights, axis=0), data.weight, rtol=1e-6)
    assert cost(chain._data, chain._state) == pytest.approx(plain.cost(), rel=1e-8)  # noqa: SLF001


def outcomes(priced: SolverProblem, move: Move, scope: int, proposals: int) -> list[bool | None]:
    """Propose from states that random moves lead to, under bars that often let the cost grow."""
    chain, seen = begun(priced), []
    data, state = chain._data, chain._state  # noqa: SLF001
    rng = np.random.default_rng(int(move))
    for smoothness in SMOOTHNESS:
        for _ in range(proposals):
            for other in rng.choice([Move.MOVE_PIECE, Move.SWAP_PIECES, Move.REPLACE_ITEM], 2):
                propose(data, state, int(other), int(rng.integers(2)), cost(data, state), 0.1 * cost(data, state))
            refresh(data, state, smoothness, 50.0)
            reprice(data, state)
            growth = rng.choice([0.0, 1e-3, 0.1, 0.4]) * min(1.0, 300.0 / smoothness)
            seen.append(compare(chain, move, scope, growth * cost(data, state)))
    return seen


def scopes(move: Move) -> tuple[int, ...]:
    return (RANK, HOST) if MOVES[move].on_hosts else (RANK,)


@pytest.mark.parametrize("move", Move, ids=lambda move: move.name.lower())
def test_a_proposal_is_what_plain_numpy_makes_of_it(move: Move) -> None:
    """Same draws, same decision, same pieces on the same sites, same cost; on every kind of problem."""
    seen = []
    names = ["moving"] if move == Move.SEND_HOME else list(PROBLEMS)
    for name, scope in itertools.product(names, scopes(move)):
        seen += outcomes(PROBLEMS[name](), move, scope, TIMES.get(move, 1) * PROPOSALS * len(PROBLEMS) // len(names))
    decided = [outcome for outcome in seen if outcome is not None]
    assert len(decided) > len(seen) / 2
    assert PROPOSALS / 3 < sum(decided) < len(decided) - PROPOSALS
