"""Requests next to a cache of keys and values: what it takes of every card, and what misses add to a request."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Evidence, Phase, Tier
from planner.pricing.memory.ledger import capacity_bytes, reserved_by_tier
from planner.pricing.serving import overrun
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import make_table
from tests.support.planning.kv_caches import with_kv_cache
from tests.support.planning.serving_problems import SERVING, cards, serving_problem
from tests.support.planning.whole_tables import on_ranks

TABLES = (make_table("a", 1_000, 64), make_table("b", 2_000, 64))
PLAIN = serving_problem(*TABLES, cluster=cards(2, hbm_bytes=1e7))


def test_a_request_has_what_misses_take_on_average() -> None:
    """2 MB on each of two cards hold 40 users of 100 kB: 40% hit, and 60% of 1 ms are recomputed on both cards."""
    problem = with_kv_cache(PLAIN, 2e6)
    before, after = (score(one, on_ranks(one, 0, 1), SERVING) for one in (PLAIN, problem))
    assert after.objective_seconds == pytest.approx(before.objective_seconds + 0.6e-3, abs=1e-12)
    assert [phase.phase for phase in after.phases][-1] is Phase.KV_RECOMPUTE
    assert after.phases[-1].seconds == after.phases[-1].mean_seconds == pytest.approx(0.6e-3)
    assert after.phases[-1].counted
    assert after.phases[-1].evidence is Evidence.GIVEN
    for rank in after.ranks:
        assert sum(rank.seconds.values()) <= after.objective_seconds * (1 + 1e-9)
    assert after.kv_cache is not None
    assert (after.kv_cache.users, after.kv_cache.hit_rate) == (pytest.approx(40), pytest.approx(0.4))
    assert before.kv_cache is None
    assert Phase.KV_RECOMPUTE not in {phase.phase for phase in before.phases}
    prediction = after.prediction
    assert prediction is not None
    assert prediction.lower_seconds <= after.objective_seconds <= prediction.upper_seconds


def test_cards_of_which_nothing_is_asked_recompute_nothing() -> None:
    evaluation = score(with_kv_cache(PLAIN, 2e6), on_ranks(PLAIN, 0, 0), SERVING)
    assert [rank.seconds[Phase.KV_RECOMPUTE] > 0 for rank in evaluation.ranks] == [True, False]


def test_the_cache_is_taken_off_every_card() -> None:
    problem = with_kv_cache(PLAIN, 2e6)
    assert reserved_by_tier(problem, 1)[Tier.HBM]["kv_cache"] == 2e6
    assert (capacity_bytes(PLAIN) - capacity_bytes(problem))[:, Tier.HBM].tolist() == [2e6, 2e6]
    assert "kv_cache" not in reserved_by_tier(PLAIN, 0)[Tier.HBM]
    tight = with_kv_cache(PLAIN, 9.9e6)
    assert {issue.code for issue in verify(tight, on_ranks(tight, 0, 1))} == {"memory"}
    assert verify(problem, on_ranks(problem, 0, 1)) == ()


def test_recomputation_keeps_cards_busy() -> None:
    """At 1,000 requests per second 0.6 ms are 60% of the time, and messages and lookups some more."""
    asked = replace(PLAIN.serving, requests_per_second=1_000.0, utilization_limit=0.62)
    plain = replace(PLAIN, serving=asked)
    problem = with_kv_cache(plain, 2e6)
    assert not list(overrun(score(plain, on_ranks(plain, 0, 1), SERVING)))
    (issue,) = overrun(score(problem, on_ranks(problem, 0, 1), SERVING))
    assert issue.code == "request-rate"


def test_the_cache_that_a_plan_states_counts() -> None:
    problem = with_kv_cache(PLAIN, 2e6, 4e6)
    placement = on_ranks(problem, 0, 1)
    for stated, bytes_ in ((4e6, 4e6), (2e6, 2e6), (None, 2e6), (3e6, 2e6)):
        evaluation = score(problem, replace(placement, kv_cache_bytes=stated), SERVING)
        assert evaluation.kv_cache is not None
        assert evaluation.kv_cache.bytes == bytes_
    (issue,) = verify(problem, replace(placement, kv_cache_bytes=3e6))
    assert (issue.code, issue.pointer) == ("kv-cache", "/kv_cache_bytes")
    assert "3.0 MB" in issue.message
    assert "2.0 MB" in issue.message
    (issue,) = verify(PLAIN, replace(placement, kv_cache_bytes=3e6))
    assert "no such cache" in issue.message
