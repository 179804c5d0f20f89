"""Proposals that deal ranks or hosts again: what they reach, what they keep to, and that refused ones leave nothing."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.kernels.anneal import anneal
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.moves.ejection_chain import start_ejection_chain
from planner.solver.partitioners.kernels.moves.piece import move_piece, swap_pieces
from planner.solver.partitioners.kernels.moves.redistribution_proposals import (
    cut_and_redistribute,
    redistribute_three_sites,
    redistribute_two_sites,
)
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.proposal_mix import ProposalRates, cumulative_mix
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.planning.builders import make_assignment, random_priced
from tests.support.planning.proposing import SHARP, Proposal, begun, plan_of, propose, slots_of
from tests.support.thorough import thorough

LOCAL = 2  # ranks of a host of the small problems


def on(scope: Scope, redistribution: Any) -> Proposal:
    return lambda data, state, before, bar: redistribution(data, state, scope, before, bar)


REDISTRIBUTIONS = {
    scope: (on(scope, redistribute_two_sites), on(scope, redistribute_three_sites))
    for scope in (Scope.RANK, Scope.HOST)
}


def whole_tables(scope: Scope, *loads: list[float]) -> tuple[SolverProblem, Assignment]:
    """Whole tables of one phase, as they lie on ranks of one host, or on hosts."""
    tables = [load for site in loads for load in site]
    hosts, local = (1, len(loads)) if scope == Scope.RANK else (len(loads), LOCAL)
    priced = random_priced(0, num_tables=len(tables), num_hosts=hosts, ranks_per_host=local, num_phases=1)
    whole = restrict(priced, (priced.family_scope == scope) & (priced.family_max_pieces == 1))
    seconds = np.array(tables)[whole.shape_table][:, None]
    roomy = replace(whole, shape_seconds=seconds, capacity_bytes=np.full((hosts * local, 1), 1e6))
    sites = [site for site, pieces in enumerate(loads) for _ in pieces]
    return replace(roomy, objective=Objective.MAX_RANK_TIME), make_assignment(list(enumerate(sites)))


@thorough
@pytest.mark.parametrize("scope", [Scope.RANK, Scope.HOST])
def test_three_sites_reach_what_no_two_do(scope: Scope) -> None:
    """22, 26 and 22 seconds, of which no two can be dealt better; all three can, to 24, 24 and 22."""
    priced, start = whole_tables(scope, [4, 12, 6], [16, 10], [10, 12])
    for redistribution, reached in zip(REDISTRIBUTIONS[scope], (26.0, 24.0), strict=True):
        chain = begun(priced, start)
        preserved = [propose(chain, redistribution, 0.0) for _ in range(50)]
        assert any(preserved) is (reached < 26)
        assert objective_of(priced, plan_of(chain)) == pytest.approx(reached)


@thorough
def test_many_ranks_have_room_for_what_no_three_have() -> None:
    """61 seconds on a rank of 60 and 1, the least piece of all, and 60.6 on seven: 60.74 is in reach of eight."""
    rng = np.random.default_rng(0)
    others = [pieces / pieces.sum() * 60.6 for pieces in rng.uniform(9.6, 10.6, (7, 6))]
    priced, start = whole_tables(Scope.RANK, [60.0, 1.0], *(pieces.tolist() for pieces in others))
    for proposal, is_better in ((on(Scope.RANK, redistribute_three_sites), False), (start_ejection_chain, True)):
        chain = begun(priced, start)
        refresh(chain._data, chain._state, 2000.0, 1e3)  # noqa: SLF001
        reprice(chain._data, chain._state)  # noqa: SLF001
        for _ in range(1000):
            propose(chain, proposal, 0.0)
        assert (objective_of(priced, plan_of(chain)) < 60.9) is is_better


@pytest.mark.parametrize("scope", [Scope.RANK, Scope.HOST])
def test_two_sites_reach_what_no_swap_does(scope: Scope) -> None:
    """Eight and six seconds; seven each take two pieces for one."""
    priced, start = whole_tables(scope, [5, 3], [4, 1, 1])
    for redistribution in REDISTRIBUTIONS[scope]:  # where there are no three, two are dealt
        chain = begun(priced, start)
        assert any(propose(chain, redistribution, 0.0) for _ in range(50))
        assert objective_of(priced, plan_of(chain)) == pytest.approx(7.0)


@thorough
def test_hosts_swap_their_pieces_where_no_move_helps() -> None:
    """Ten and seven seconds; whichever piece moves, one host has more than ten."""
    priced, start = whole_tables(Scope.HOST, [5, 5], [4, 3])
    for proposal, reached in ((on(Scope.HOST, move_piece), 10.0), (on(Scope.HOST, swap_pieces), 9.0)):
        chain = begun(priced, start)
        for _ in range(50):
            propose(chain, proposal, 0.0)
        assert objective_of(priced, plan_of(chain)) == pytest.approx(reached)


def test_a_piece_moves_to_a_host_that_has_none() -> None:
    priced, start = whole_tables(Scope.HOST, [5, 4], [])
    chain = begun(priced, start)
    assert not any(propose(chain, on(Scope.HOST, swap_pieces), np.inf) for _ in range(20))
    assert any(propose(chain, on(Scope.HOST, move_piece), 0.0) for _ in range(20))
    assert objective_of(priced, plan_of(chain)) == pytest.approx(5.0)


def limited(seed: int, scope: Scope) -> SolverProblem:
    """Forty tables on six ranks, or half of them on four hosts; some must keep apart or off a rank."""
    settings: dict[str, Any] = {"num_tables": 40, "same_host": seed % 2 == 0}
    if scope == Scope.RANK:
        priced = random_priced(seed, ranks_per_host=3, fill=0.9, **settings)
    else:
        priced = random_priced(seed, num_hosts=4, fill=0.7, host_pieces=True, **settings)
        priced = restrict(priced, (priced.family_scope != Scope.RANK) | (priced.family_table % 2 == 0))
    allowed = priced.table_rank_allowed.copy()
    allowed[0, 0] = allowed[3, 2] = False
    return replace(priced, table_rank_allowed=allowed, apart=(np.array([1, 2]), np.array([4, 5])))


@functools.cache
def pieces_on_hosts(seed: int) -> SolverProblem:
    """Tables that are cut into column pieces on hosts, all of them."""
    priced = random_priced(seed, num_tables=24, num_hosts=4, host_pieces=True)
    return restrict(priced, (priced.family_scope == Scope.HOST) & (priced.family_max_pieces > 1))


PROPOSALS = {
    "two ranks": (Scope.RANK, REDISTRIBUTIONS[Scope.RANK][0]),
    "three ranks": (Scope.RANK, REDISTRIBUTIONS[Scope.RANK][1]),
    "after cuts": (Scope.RANK, cut_and_redistribute),
    "driven out": (Scope.RANK, start_ejection_chain),
    "two hosts": (Scope.HOST, REDISTRIBUTIONS[Scope.HOST][0]),
    "three hosts": (Scope.HOST, REDISTRIBUTIONS[Scope.HOST][1]),
    "move to a host": (Scope.HOST, on(Scope.HOST, move_piece)),
    "swap of hosts": (Scope.HOST, on(Scope.HOST, swap_pieces)),
}


@pytest.mark.parametrize("name", PROPOSALS)
@pytest.mark.parametrize("seed", range(4))
def test_preserved_proposals_break_no_rule_and_leave_everything_counted_right(name: str, seed: int) -> None:
    """Loads, bytes and lists of slots are as counted again from where the pieces are."""
    scope, proposal = PROPOSALS[name]
    assert check_preserved(begun(limited(seed, scope)), proposal) > 2


@pytest.mark.parametrize("name", ["two hosts", "three hosts", "after cuts"])
def test_pieces_of_one_table_on_several_hosts(name: str) -> None:
    chain = begun(pieces_on_hosts(0))
    before = plan_of(chain).piece_shape
    assert check_preserved(chain, PROPOSALS[name][1]) > 2
    assert (name == "after cuts") is not np.array_equal(before, plan_of(chain).piece_shape)


def check_preserved(chain: Chain, proposal: Proposal) -> int:
    """Propose a while, at first also what makes the plan dearer; return how often something was kept."""
    arrays, priced = chain._arrays, chain._view.priced  # noqa: SLF001
    assert arrays.counters["overflow"][0] == 0
    preserved, value = 0, cost(chain._data, chain._state)  # noqa: SLF001
    bars = np.repeat([0.1 * value, 0.0], [300, 700])
    for bar in bars:
        preserved += propose(chain, proposal, bar)
        before, value = value, cost(chain._data, chain._state)  # noqa: SLF001
        assert value <= before + bar * (1 + 1e-9)
    assert violations(priced, plan_of(chain)) == []
    again = Chain(chain._view, 0)  # noqa: SLF001
    assert again.load(plan_of(chain))
    assert np.allclose(arrays.loads, again._arrays.loads, rtol=1e-9, atol=1e-12)  # noqa: SLF001
    assert np.allclose(arrays.bytes, again._arrays.bytes, atol=1e-6)  # noqa: SLF001
    assert slots_of(arrays) == slots_of(again._arrays)  # noqa: SLF001
    return preserved


@pytest.mark.parametrize("bar", [0.0, -np.inf])
@pytest.mark.parametrize("name", PROPOSALS)
def test_a_refused_proposal_leaves_no_trace(name: str, bar: float) -> None:
    """Not a bit of what is counted, whether it was seen to be hopeless at once or after pieces had moved."""
    scope, proposal = PROPOSALS[name]
    chain = begun(limited(1, scope))
    arrays = chain._arrays  # noqa: SLF001
    refused = 0
    for _ in range(300):
        counted = [each.copy() for each in (arrays.loads, arrays.bytes, arrays.weights, arrays.sums, arrays.over)]
        plan, slots, over = plan_of(chain), slots_of(arrays), arrays.counters["overflow"][0]
        if propose(chain, proposal, bar):
            assert bar == 0.0
            continue
        refused += 1
        now = (arrays.loads, arrays.bytes, arrays.weights, arrays.sums, arrays.over)
        assert all(np.array_equal(one, other) for one, other in zip(counted, now, strict=True))
        assert np.array_equal(plan.piece_shape, plan_of(chain).piece_shape)
        assert np.array_equal(plan.piece_site, plan_of(chain).piece_site)
        assert (slots, over) == (slots_of(arrays), arrays.counters["overflow"][0])
    assert refused > 20


@pytest.mark.parametrize("scope", [Scope.RANK, Scope.HOST])
def test_what_a_table_gains_by_another_cut_shows_once_sites_are_redistributed(scope: Scope) -> None:
    """A search that only cuts ends above one that deals the ranks, or hosts, that a cut touches."""
    better = 0
    for seed in range(4):
        priced = random_priced(seed, num_tables=24, num_hosts=4) if scope == Scope.RANK else pieces_on_hosts(seed)
        reached = []
        for after_cuts in (0.0, 0.05):
            chain = begun(priced)
            mix = cumulative_mix(
                ProposalRates(after_cuts=after_cuts, replacement=0.01, on_hosts=float(scope), cuts=True)
            )
            for _ in range(20):
                anneal(chain._data, chain._state, 2000, 1e-9, SHARP, 1e3, mix, np.inf)  # noqa: SLF001
            reached.append(objective_of(priced, plan_of(chain)))
        better += reached[1] < reached[0]
    assert better >= 3


def test_pieces_of_hosts_trade_places_only_where_proposals_ask_for_it() -> None:
    priced, start = whole_tables(Scope.HOST, [5, 5], [4, 3])
    for on_hosts, reached in ((0.0, 10.0), (1.0, 9.0)):
        chain = begun(priced, start)
        mix = cumulative_mix(ProposalRates(on_hosts=on_hosts))
        anneal(chain._data, chain._state, 2000, 1e-9, SHARP, 1e3, mix, np.inf)  # noqa: SLF001
        assert objective_of(priced, plan_of(chain)) == pytest.approx(reached)
