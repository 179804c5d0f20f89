"""How often ranks and hosts are dealt again, and that what is proposed counts as work."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.anneal import SCOPES, anneal, draw
from planner.solver.partitioners.kernels.moves.move_table import MOVES, Move
from planner.solver.partitioners.kernels.state.state import HOST, RANK
from planner.solver.partitioners.local_search import chain as chains
from planner.solver.partitioners.local_search.chain import Stage, annealing, settle
from planner.solver.partitioners.local_search.proposal_mix import (
    ProposalRates,
    cumulative_mix,
    expected_redistribution_seconds,
    looks_of,
    move_shares,
    proposal_rates,
    redistribution_seconds,
    work_seconds,
)
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.problem import SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced
from tests.support.planning.exhaustive import best_assignment
from tests.support.planning.moves import with_move
from tests.support.planning.proposing import begun

RANKS, HOSTS = 6, 2


def redistributed(
    monkeypatch: pytest.MonkeyPatch, priced: SolverProblem, stage: Stage
) -> list[tuple[float, ProposalRates, float]]:
    """Smoothness, deals and nominal work of every chunk of a stage."""
    chain, seen = begun(priced), []
    effort = Effort(replace(LIMITS, time_limit_seconds=600.0, work_limit_seconds=1.0))

    def noted(*arguments: Any, **settings: Any) -> ProposalRates:
        rates = proposal_rates(*arguments, **settings)
        seen.append((arguments[2], rates, effort.fraction))
        return rates

    monkeypatch.setattr(chains, "proposal_rates", noted)
    chain.run(stage, effort, effort.fraction + 0.2, 0.0)
    return [(smooth, rates, until - at) for (smooth, rates, at), (_, _, until) in itertools.pairwise(seen)]


@pytest.mark.parametrize("cuts", [True, False])
def test_three_ranks_are_redistributed_once_the_search_is_sharp(monkeypatch: pytest.MonkeyPatch, cuts: bool) -> None:
    """Two before; tables are cut for it only in stages that may cut; and deals count as work."""
    seen = redistributed(
        monkeypatch, random_priced(0, num_tables=40, ranks_per_host=3), replace(annealing(1e-4), cuts=cuts)
    )
    assert seen[0][0] < 150 < seen[-1][0]
    for smoothness, rates, _ in seen:
        assert (rates.pair > 0) is (smoothness < 150)
        assert (rates.three_rank > 0) is (smoothness >= 150)
        assert (rates.after_cuts > 0) is (smoothness >= 150 and cuts)
    assert seen[0][2] != pytest.approx(seen[-1][2])
    assert min(work for _, _, work in seen) > 0


def test_two_ranks_are_redistributed_where_there_are_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    two_ranks = random_priced(0, num_tables=8, num_hosts=1)
    seen = redistributed(monkeypatch, two_ranks, settle(8, 2.0, is_even=False))
    assert seen[-1][0] > 150
    assert all(rates.pair > 0 == rates.three_rank == rates.after_cuts for _, rates, _ in seen)


def test_three_ranks_are_redistributed_where_moving_costs() -> None:
    before = best_assignment(random_priced(100, num_tables=2))
    assert before is not None
    view = search_view(with_move(random_priced(0, num_tables=2), before, seconds_per_byte=1e-3))
    still = search_view(random_priced(0, num_tables=2))
    pieces = np.ones(len(view.data.rank_class) + view.data.host_allowed.shape[1], dtype=np.int64)
    rates = proposal_rates(view, pieces, 200.0, pair=1e-3, cuts=True)
    assert rates == proposal_rates(still, pieces, 200.0, pair=1e-3, cuts=True)._replace(homing=0.05)
    assert rates.three_rank > 0 == rates.pair


def counts(*, per_rank: int, per_host: int = 0) -> np.ndarray:
    return np.repeat([per_rank, per_host], [RANKS, HOSTS])


def test_the_fewer_pieces_sites_have_the_more_often_three_are_redistributed() -> None:
    """As long as all of it takes no longer: from one proposal in a hundred to one in ten."""
    view = search_view(random_priced(0, num_tables=40, ranks_per_host=3))
    shares = []
    for per_rank in (20, 6, 5, 4, 3, 2, 1, 0):
        rates = proposal_rates(view, counts(per_rank=per_rank), 200.0, pair=0.0, cuts=True)
        assert rates.three_rank * redistribution_seconds(3 * per_rank) <= 0.01 * redistribution_seconds(60) * (1 + 1e-9)
        shares.append(rates.three_rank)
    assert shares == sorted(shares)
    assert shares[:2] == pytest.approx([0.01, 0.01])
    assert shares[-1] == pytest.approx(0.1)


def test_cuts_are_redistributed_as_far_as_ranks_are_alike_and_tables_are_cut() -> None:
    alike = random_priced(0, num_tables=40, ranks_per_host=3)
    whole = restrict(alike, alike.family_max_pieces == 1)
    of_all_speeds = random_priced(0, num_tables=40, ranks_per_host=3, slowdown=True)
    shares = [
        proposal_rates(search_view(priced), counts(per_rank=6), 200.0, pair=0.0, cuts=True).after_cuts
        for priced in (alike, of_all_speeds, whole)
    ]
    assert shares == pytest.approx([0.4, 0.4 / RANKS**2, 0.0])


def test_pieces_are_driven_out_where_one_phase_counts() -> None:
    for num_phases, is_one in ((1, True), (3, False)):
        view = search_view(random_priced(0, num_tables=40, ranks_per_host=3, num_phases=num_phases))
        for smoothness, is_sharp in ((50.0, False), (200.0, True)):
            rates = proposal_rates(view, counts(per_rank=6), smoothness, pair=0.0, cuts=False)
            assert (rates.ejection > 0) is (is_one and is_sharp)


def test_hosts_have_the_share_of_what_lies_on_them() -> None:
    view = search_view(random_priced(0, num_tables=40, ranks_per_host=3))
    for on_ranks, on_hosts, share in ((2, 6, 0.5), (3, 0, 0.0), (0, 1, 1.0), (0, 0, 0.0)):
        for smoothness in (50.0, 200.0):
            pieces = counts(per_rank=on_ranks, per_host=on_hosts)
            assert proposal_rates(view, pieces, smoothness, pair=1e-3, cuts=True).on_hosts == share


def test_what_lies_on_hosts_is_more_work_and_so_are_redistributions() -> None:
    view = search_view(random_priced(0, num_tables=40, ranks_per_host=3))

    def work(on_hosts: float, three_rank: float, per_rank: int, **more: float) -> float:
        rates = ProposalRates(three_rank=three_rank, on_hosts=on_hosts, **more)
        redistributions = expected_redistribution_seconds(view, counts(per_rank=per_rank, per_host=1), rates)
        return work_seconds(view, rates, cuts=True) + redistributions

    assert work(1.0, 0.0, 1) > 1.2 * work(0.0, 0.0, 1) > 0
    assert work(0.0, 0.02, 4) > work(0.0, 0.01, 4)
    assert work(0.0, 0.01, 6) > work(0.0, 0.01, 4)
    assert work(0.0, 0.01, 4, after_cuts=0.4) > work(0.0, 0.01, 4)
    assert work(0.0, 0.01, 4, ejection=0.02) > work(0.0, 0.01, 4)
    assert work(0.0, 0.01, 4, replacement=0.1) > work(0.0, 0.01, 4)
    after_cuts = [work(0.0, 0.01, pieces, after_cuts=0.4) - work(0.0, 0.01, pieces) for pieces in (3, 6)]
    assert 0 < 1.01 * after_cuts[0] < after_cuts[1]


def test_tables_are_placed_again_less_often_where_they_may_go_to_many_ranks() -> None:
    """And never in stages that do not cut."""

    def rate(num_hosts: int, *, cuts: bool = True) -> float:
        view = search_view(random_priced(0, num_tables=12, num_hosts=num_hosts))
        pieces = np.ones(len(view.data.rank_class) + num_hosts, dtype=np.int64)
        return proposal_rates(view, pieces, 50.0, pair=0.0, cuts=cuts).replacement

    assert rate(2) == pytest.approx(0.1)
    assert 0.1 > rate(32) > rate(64) > 0.0
    assert rate(2, cuts=False) == 0.0


def test_redistributions_that_take_more_work_are_proposed_less_often() -> None:
    view = search_view(random_priced(0, num_tables=40, ranks_per_host=3))
    usual, long = (
        proposal_rates(view, counts(per_rank=6), 200.0, pair=0.0, cuts=True, relative_work=times)
        for times in (1.0, 10.0)
    )
    assert long.three_rank == pytest.approx(usual.three_rank / 10)
    assert 0.1 * usual.after_cuts < long.after_cuts < usual.after_cuts


def equal_tables() -> SolverProblem:
    """24 whole tables, all the same, on four ranks: any redistribution of three ranks is as good as many others."""
    priced = random_priced(0, num_tables=24, num_hosts=2)
    whole = restrict(priced, priced.family_max_pieces == 1)
    return replace(
        whole,
        shape_seconds=np.ones_like(whole.shape_seconds),
        shape_bytes=np.ones_like(whole.shape_bytes),
        shape_total_bytes=np.ones_like(whole.shape_total_bytes),
        capacity_bytes=np.full_like(whole.capacity_bytes, 100.0),
    )


SHARP = Stage(first_temperature=1e-3, last_temperature=1e-3, first_smoothness=200.0, last_smoothness=200.0, cuts=False)


def test_redistributions_count_as_the_sets_that_they_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rate at which they are proposed follows that."""
    chain, effort = begun(equal_tables()), Effort(replace(LIMITS, time_limit_seconds=600.0, work_limit_seconds=1.0))
    chosen: list[ProposalRates] = []
    chunks: list[tuple[ProposalRates, int, float, float]] = []

    def noted_rates(*arguments: Any, **settings: Any) -> ProposalRates:
        chosen.append(proposal_rates(*arguments, **settings))
        return chosen[-1]

    def noted(*arguments: Any) -> int:
        proposals = anneal(*arguments)
        looked = float(chain._arrays.looked[0])  # noqa: SLF001
        chunks.append((chosen[-1], proposals, looked, effort.fraction))
        return proposals

    monkeypatch.setattr(chains, "proposal_rates", noted_rates)
    monkeypatch.setattr(chains, "anneal", noted)
    chain.run(SHARP, effort, 0.5, 0.0)
    view, before = search_view(equal_tables()), [fraction for *_, fraction in chunks]
    for (rates, proposals, looked, at), until in zip(chunks, [*before[1:], effort.fraction], strict=True):
        work = proposals * work_seconds(view, rates, cuts=False) + looked / looks_of(1.0)
        assert until - at == pytest.approx(work)
    assert chunks[-1][0].three_rank != pytest.approx(chunks[0][0].three_rank, rel=0.1)
    assert sum(looked for _, _, looked, _ in chunks) > looks_of(0.05)


def test_redistributions_that_look_at_too_much_end_a_chunk() -> None:
    chain, mix = begun(equal_tables()), cumulative_mix(ProposalRates(three_rank=0.5))
    arguments = chain._data, chain._state, 5000, 1e-3, 200.0, 1e3, mix  # noqa: SLF001
    assert 0 < anneal(*arguments, 1e4) < 5000
    assert 1e4 < chain._arrays.looked[0] < 5e4  # noqa: SLF001
    chain._arrays.looked[0] = 0.0  # noqa: SLF001
    assert anneal(*arguments, np.inf) == 5000


def test_a_short_stage_cools_as_a_long_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    chain = begun(random_priced(0, num_tables=40, ranks_per_host=3))
    effort = Effort(replace(LIMITS, time_limit_seconds=600.0, work_limit_seconds=1.0))

    def noted(*arguments: Any) -> int:
        seen.append(arguments[3])
        return anneal(*arguments)

    monkeypatch.setattr(chains, "anneal", noted)
    chain.run(replace(annealing(1e-2), cuts=False), effort, 0.01, 0.0)
    assert len(seen) >= 6
    assert seen[-1] < 0.01 * seen[0]


#: Stages of searches: pieces settle, tables are cut, sharp searches of several and of one phase, moves have a price.
MIXES = {
    "settle": ProposalRates(pair=5e-4, on_hosts=0.3),
    "cut": ProposalRates(pair=5e-4, replacement=0.1, on_hosts=0.25, cuts=True),
    "sharp": ProposalRates(three_rank=0.07, after_cuts=0.4, replacement=0.1, on_hosts=0.5, cuts=True),
    "one phase": ProposalRates(three_rank=0.01, after_cuts=0.2, ejection=0.02, replacement=0.04, cuts=True),
    "moving": ProposalRates(three_rank=0.1, homing=0.05, replacement=0.1, on_hosts=1.0, cuts=True),
    "often": ProposalRates(0.3, 0.2, 0.1, 0.4, 0.5, 0.6, 0.7, True),
}


def by_turns(rates: ProposalRates) -> dict[Move, float]:
    """Probabilities of a proposal that asks one move after the other whether the proposal is of it."""
    rarer = [
        (Move.REDISTRIBUTE_TWO, rates.pair),
        (Move.REDISTRIBUTE_THREE, rates.three_rank),
        (Move.CUT_AND_REDISTRIBUTE, rates.after_cuts),
        (Move.EJECT_PIECE, rates.ejection),
        (Move.SEND_HOME, rates.homing),
        (Move.REPLACE_ITEM, rates.replacement),
    ]
    found = {move: rate * np.prod([1 - other for _, other in rarer[:at]]) for at, (move, rate) in enumerate(rarer)}
    left = np.prod([1 - rate for _, rate in rarer])
    everyday = (47, 53, 0, 0, 0) if not rates.cuts else (32, 36, 15, 9, 8)
    moves = (Move.MOVE_PIECE, Move.SWAP_PIECES, Move.SHIFT_COLUMNS, Move.SPLIT_PIECE, Move.MERGE_PIECES)
    return found | {move: left * weight / 100 for move, weight in zip(moves, everyday, strict=True)}


@pytest.mark.parametrize("name", MIXES)
def test_moves_have_their_shares_of_the_proposals(name: str) -> None:
    shares, expected = move_shares(MIXES[name]), by_turns(MIXES[name])
    assert shares.sum() == pytest.approx(1.0)
    for move in Move:
        assert shares[move] == pytest.approx(expected[move], abs=1e-15)


@pytest.mark.parametrize("name", MIXES)
def test_moves_are_drawn_as_often_as_their_shares_say(name: str) -> None:
    """And those of ranks or hosts as often among hosts as pieces lie there; what has no share is never drawn."""
    rates, draws = MIXES[name], 40_000
    state, mix = begun(random_priced(0))._state, cumulative_mix(rates)  # noqa: SLF001
    counted = np.bincount([draw(state, mix) for _ in range(draws)], minlength=len(Move) * SCOPES)
    for move, share in by_turns(rates).items():
        among_hosts = rates.on_hosts if MOVES[move].on_hosts else 0.0
        for scope, part in ((RANK, 1 - among_hosts), (HOST, among_hosts)):
            probability, count = share * part, counted[move * SCOPES + scope]
            assert count <= (draws if probability > 0 else 0)
            assert abs(count - draws * probability) <= 4.5 * np.sqrt(draws * probability * (1 - probability))


def test_a_draw_ends_in_the_last_move_that_has_a_share() -> None:
    """Sums of probabilities may round to less than 1; a number just below 1 is drawn for none of the others."""
    for rates in MIXES.values():
        mix = cumulative_mix(rates)
        assert np.all(np.diff(mix) >= 0)
        last = int(np.flatnonzero(mix == 1.0)[0]) // SCOPES
        assert by_turns(rates)[Move(last)] > 0
        assert mix[-1] == 1.0


def test_everyday_moves_weigh_100_together() -> None:
    for name in ("weight_with_cuts", "weight_without_cuts"):
        assert sum(getattr(facts, name) for facts in MOVES.values()) == 100
    assert set(MOVES) == set(Move)


def test_tables_go_home_where_moving_has_a_price() -> None:
    """A share of 5% of what rarer moves leave, in searches that are sharp or not."""
    still = random_priced(0, num_tables=2)
    before = best_assignment(still)
    assert before is not None
    for priced, rate in ((still, 0.0), (with_move(still, before, seconds_per_byte=1e-3), 0.05)):
        view = search_view(priced)
        pieces = np.ones(len(view.data.rank_class) + view.data.host_allowed.shape[1], dtype=np.int64)
        for smoothness, cuts in itertools.product((50.0, 200.0), (True, False)):
            assert proposal_rates(view, pieces, smoothness, pair=0.0, cuts=cuts).homing == rate
