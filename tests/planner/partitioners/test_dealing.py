"""Proposals that deal ranks anew: what they reach, what they keep to, and that refused ones leave no trace."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.evaluate import objective_of, violations
from planner.partitioners import chain as chains
from planner.partitioners.base import Effort
from planner.partitioners.chain import Chain, Stage, refine, settle
from planner.partitioners.constructions import by_taste
from planner.partitioners.search.costs import cost, refresh, reprice
from planner.partitioners.search.dealing import cut_and_deal, deal_three_ranks, deal_two_ranks
from planner.partitioners.search.moves import Deals, anneal
from planner.partitioners.search.state import OVER, State
from planner.partitioners.view import search_view, to_assignment
from planner.priced import Assignment, Objective, PricedOptions, Scope
from planner.pricing import restrict
from tests.contracts.partitioner import LIMITS
from tests.planner.builders import make_assignment, random_priced
from tests.planner.exhaustive import best_assignment
from tests.planner.moves import with_move

SHARP = 200.0  # slowest load / tau
Deal = Callable[[Any, Any, float, float], bool]


def begun(priced: PricedOptions, start: Assignment | None = None) -> Chain:
    """A sharp search that is about to propose."""
    view = search_view(priced)
    if start is None:
        (chain,) = itertools.islice(by_taste(view, None, 1, itertools.count(), Effort(LIMITS)), 1)
    else:
        chain = Chain(view, 0)
        assert chain.load(start)
    refresh(chain._data, chain._state, SHARP, 1e3)  # noqa: SLF001
    reprice(chain._data, chain._state)  # noqa: SLF001
    return chain


def propose(chain: Chain, deal: Deal, bar: float) -> bool:
    """Propose once; the cost may grow by the bar. What is kept sets prices anew, as in a search."""
    data, state = chain._data, chain._state  # noqa: SLF001
    kept = bool(deal(data, state, cost(data, state), bar))
    if kept:
        reprice(data, state)
    return kept


def plan_of(chain: Chain) -> Assignment:
    """What a chain is at, whether it fits or not."""
    arrays = chain._arrays  # noqa: SLF001
    return to_assignment(chain._view, arrays.slot_shape, arrays.slot_site, arrays.num_pieces)  # noqa: SLF001


def slots_of(arrays: State) -> list[list[int]]:
    """Slots of every rank; their order means nothing."""
    return [sorted(slots[:count]) for slots, count in zip(arrays.rank_slots, arrays.rank_count, strict=True)]


def on_three_ranks(*loads: list[float]) -> tuple[PricedOptions, Assignment]:
    """Whole tables of one phase, as they lie on three ranks of one host."""
    tables = [load for rank in loads for load in rank]
    priced = random_priced(0, num_tables=len(tables), num_hosts=1, ranks_per_host=3, num_phases=1)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    seconds = np.array(tables)[whole.shape_table][:, None]
    roomy = replace(whole, shape_seconds=seconds, capacity_bytes=np.full((3, 1), 1e6))
    sites = [rank for rank, pieces in enumerate(loads) for _ in pieces]
    return replace(roomy, objective=Objective.MAX_RANK_TIME), make_assignment(list(enumerate(sites)))


def test_three_ranks_reach_what_no_two_do() -> None:
    """22, 26 and 22 seconds, of which no two ranks can be dealt better; all three can, to 24, 24 and 22."""
    priced, start = on_three_ranks([4, 12, 6], [16, 10], [10, 12])
    for deal, reached in ((deal_two_ranks, 26.0), (deal_three_ranks, 24.0)):
        chain = begun(priced, start)
        kept = [propose(chain, deal, 0.0) for _ in range(50)]
        assert any(kept) is (reached < 26)
        assert objective_of(priced, plan_of(chain)) == pytest.approx(reached)


def limited(seed: int, **changes: Any) -> PricedOptions:
    """Forty tables on six ranks, some of which must keep apart or off a rank."""
    priced = random_priced(seed, num_tables=40, ranks_per_host=3, **changes)
    allowed = priced.table_rank_allowed.copy()
    allowed[0, 0] = allowed[3, 2] = False
    return replace(priced, table_rank_allowed=allowed, apart=(np.array([1, 2]), np.array([4, 5])))


@pytest.mark.parametrize("deal", [deal_three_ranks, cut_and_deal])
@pytest.mark.parametrize("seed", range(4))
def test_kept_deals_break_no_rule_and_leave_everything_counted_right(deal: Deal, seed: int) -> None:
    """Loads, bytes and lists of slots are as counted anew from where the pieces are."""
    priced = limited(seed, fill=0.9, same_host=seed % 2 == 0)
    chain = begun(priced)
    arrays = chain._arrays  # noqa: SLF001
    assert arrays.number[OVER] == 0
    kept, value = 0, cost(chain._data, chain._state)  # noqa: SLF001
    for _ in range(1000):
        kept += propose(chain, deal, 0.0)
        before, value = value, cost(chain._data, chain._state)  # noqa: SLF001
        assert value <= before
    assert kept > 2
    assert violations(priced, plan_of(chain)) == []
    anew = Chain(chain._view, 0)  # noqa: SLF001
    assert anew.load(plan_of(chain))
    assert np.allclose(arrays.loads, anew._arrays.loads, rtol=1e-9, atol=1e-12)  # noqa: SLF001
    assert np.allclose(arrays.bytes, anew._arrays.bytes, atol=1e-6)  # noqa: SLF001
    assert slots_of(arrays) == slots_of(anew._arrays)  # noqa: SLF001


@pytest.mark.parametrize("bar", [0.0, -np.inf])
@pytest.mark.parametrize("deal", [deal_three_ranks, cut_and_deal])
def test_a_refused_deal_leaves_no_trace(deal: Deal, bar: float) -> None:
    """Not a bit of what is counted, whether it was seen to be hopeless at once or after pieces had moved."""
    chain = begun(limited(1))
    arrays = chain._arrays  # noqa: SLF001
    refused = 0
    for _ in range(300):
        counted = [each.copy() for each in (arrays.loads, arrays.bytes, arrays.weights, arrays.sums, arrays.over)]
        plan, slots, over = plan_of(chain), slots_of(arrays), arrays.number[OVER]
        if propose(chain, deal, bar):
            assert bar == 0.0
            continue
        refused += 1
        now = (arrays.loads, arrays.bytes, arrays.weights, arrays.sums, arrays.over)
        assert all(np.array_equal(one, other) for one, other in zip(counted, now, strict=True))
        assert np.array_equal(plan.piece_shape, plan_of(chain).piece_shape)
        assert np.array_equal(plan.piece_site, plan_of(chain).piece_site)
        assert (slots, over) == (slots_of(arrays), arrays.number[OVER])
    assert refused > 20


def test_what_a_table_gains_by_another_cut_shows_once_ranks_are_dealt_anew() -> None:
    """A search that only cuts ends above one that deals the ranks that a cut touches."""
    better = 0
    for seed in range(4):
        reached = []
        for deals in (Deals(0.0, 0.0, 0.0), Deals(0.0, 0.0, after_cuts=0.05)):
            chain = begun(random_priced(seed, num_tables=24, num_hosts=4))
            for _ in range(20):
                anneal(chain._data, chain._state, 2000, 1e-9, SHARP, 1e3, True, deals)  # noqa: SLF001
            reached.append(objective_of(chain._view.priced, plan_of(chain)))  # noqa: SLF001
        better += reached[1] < reached[0]
    assert better >= 3


def dealt(monkeypatch: pytest.MonkeyPatch, priced: PricedOptions, stage: Stage) -> list[tuple[float, Deals, float]]:
    """Smoothness, deals and nominal work of every chunk of a stage."""
    chain, seen = begun(priced), []
    effort = Effort(replace(LIMITS, time_limit_seconds=600.0, work_limit_seconds=1.0))

    def noted(*arguments: Any) -> int:
        seen.append((arguments[4], arguments[7], effort.fraction))
        return int(anneal(*arguments))

    monkeypatch.setattr(chains, "anneal", noted)
    chain.run(stage, effort, effort.fraction + 0.2, 0.0)
    return [(smooth, deals, until - at) for (smooth, deals, at), (_, _, until) in itertools.pairwise(seen)]


@pytest.mark.parametrize("cuts", [True, False])
def test_three_ranks_are_dealt_once_the_search_is_sharp(monkeypatch: pytest.MonkeyPatch, cuts: bool) -> None:
    """Two before; tables are cut for it only in stages that may cut; and deals count as work."""
    seen = dealt(monkeypatch, limited(0), replace(refine(1e-4), cuts=cuts))
    assert seen[0][0] < 150 < seen[-1][0]
    for smoothness, deals, _ in seen:
        assert (deals.of_two > 0) is (smoothness < 150)
        assert (deals.of_three > 0) is (smoothness >= 150)
        assert (deals.after_cuts > 0) is (smoothness >= 150 and cuts)
    assert seen[0][2] != pytest.approx(seen[-1][2])
    assert min(work for _, _, work in seen) > 0


def test_two_ranks_are_dealt_where_there_are_no_more_and_where_moving_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    two_ranks = random_priced(0, num_tables=8, num_hosts=1)
    before = best_assignment(random_priced(100, num_tables=2))
    assert before is not None
    moving = with_move(random_priced(0, num_tables=2), before, seconds_per_byte=1e-3)
    for priced in (two_ranks, moving):
        seen = dealt(monkeypatch, priced, settle(8, 2.0, is_even=False))
        assert seen[-1][0] > 150
        assert all(deals.of_two > 0 == deals.of_three == deals.after_cuts for _, deals, _ in seen)
