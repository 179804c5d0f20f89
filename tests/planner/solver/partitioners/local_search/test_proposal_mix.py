"""How often ranks and hosts are dealt anew, and that what is proposed counts as work."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.anneal import ProposalRates, anneal
from planner.solver.partitioners.local_search import chain as chains
from planner.solver.partitioners.local_search.chain import Stage, annealing, settle
from planner.solver.partitioners.local_search.proposal_mix import (
    expected_redistribution_seconds,
    looks_of,
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

    def noted(*arguments: Any) -> int:
        seen.append((arguments[4], arguments[7], effort.fraction))
        return anneal(*arguments)

    monkeypatch.setattr(chains, "anneal", noted)
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
    assert rates == proposal_rates(still, pieces, 200.0, pair=1e-3, cuts=True)
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
        parts = {"after_cuts": 0.0, "ejection": 0.0, "replacement": 0.0} | more
        rates = ProposalRates(pair=0.0, three_rank=three_rank, on_hosts=on_hosts, **parts)
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
    chunks: list[tuple[ProposalRates, int, float, float]] = []

    def noted(*arguments: Any) -> int:
        proposals = anneal(*arguments)
        looked = float(chain._arrays.looked[0])  # noqa: SLF001
        chunks.append((arguments[7], proposals, looked, effort.fraction))
        return proposals

    monkeypatch.setattr(chains, "anneal", noted)
    chain.run(SHARP, effort, 0.5, 0.0)
    view, before = search_view(equal_tables()), [fraction for *_, fraction in chunks]
    for (rates, proposals, looked, at), until in zip(chunks, [*before[1:], effort.fraction], strict=True):
        work = proposals * work_seconds(view, rates, cuts=False) + looked / looks_of(1.0)
        assert until - at == pytest.approx(work)
    assert chunks[-1][0].three_rank != pytest.approx(chunks[0][0].three_rank, rel=0.1)
    assert sum(looked for _, _, looked, _ in chunks) > looks_of(0.05)


def test_redistributions_that_look_at_too_much_end_a_chunk() -> None:
    chain, rates = begun(equal_tables()), ProposalRates(0.0, 0.5, 0.0, 0.0, 0.0, 0.0)
    arguments = chain._data, chain._state, 5000, 1e-3, 200.0, 1e3, False, rates  # noqa: SLF001
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
