"""What a request takes besides what its shards take: the messages to each card, and the rate that a plan sustains.

Every card that is asked gets one message of ids and returns one of rows, so that its messages take the same time
whatever lies there. With ``l(r)`` the seconds of the shards of card r and ``m`` those of its messages, the latency is

.. math:: \\max_{r:\\, l(r) > 0} (l(r) + m) = m + \\max_r l(r)

where anything is looked up at all. Searches and bounds therefore leave ``m`` out, and nothing is lost: it is added to
both once a plan is finished.

A card works on one request at a time, so that it is busy for ``l(r) + m`` of each; ``q`` requests per second keep it
busy for ``q (l(r) + m)`` of every second. The slowest card is the busiest: the plan of least latency is also the one
that sustains the highest rate, ``utilization_limit / latency``, and a rate that the bound on the latency does not
allow, no plan sustains.

A cache of users' keys and values (:class:`planner.domain.problem.kv_cache.KvCache`) takes as much of every card, and
what it misses is recomputed on all of them. With ``h`` the share of hits and ``c`` the seconds of a miss, a request has
``(1 - h) c`` more on average, whatever lies where, which is added in the end like ``m``.

Requests that come at random wait. All cards that are asked see the same arrivals, and a card that is busy for longer
with each request waits for longer before each, too (Lindley's recursion grows with the service): so a request is
answered when the busiest card is done with it, and its time is that of a queue M/D/1 with the latency as its service
(:mod:`cost_models.queues.md1`). That time grows with the latency. A limit on its 99th percentile is therefore, as the
limit on utilization, one on the latency. With a cache of keys and values requests are of two lengths, and no percentile
is stated.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cost_models.analytic.serving import MESSAGE_PHASES, message_seconds
from cost_models.arrays import Floats
from cost_models.queues.md1 import highest_rate, longest_service, time_quantile
from cost_models.text.number_text import at_most_text, number_text
from cost_models.vocabulary import Evidence, Phase
from planner.domain.formats.units import format_seconds
from planner.domain.plan.kv_cache import KvCacheLoad
from planner.domain.plan.plan import Evaluation, PlanResult, ServingLoad
from planner.domain.problem.problem import Problem
from planner.domain.problem.serving import Serving
from planner.errors import Issue
from planner.pricing.step.phases import num_phases
from planner.solver.problem import Reason

REQUEST_RATE = "requests_per_second"  # a limit of the user's
_ROUNDING = 1e-9
P50, P99 = 0.5, 0.99  # of all requests


def longest_request_seconds(serving: Serving) -> float:
    """Return for how long a request may keep a card busy so that the limits hold; infinite without a rate."""
    return _longest(serving.requests_per_second, serving.utilization_limit, serving.p99_seconds)


def _longest(rate: float | None, utilization_limit: float, p99_limit_seconds: float | None) -> float:
    if rate is None:
        return np.inf
    by_rate = utilization_limit / rate
    return by_rate if p99_limit_seconds is None else min(by_rate, longest_service(rate, p99_limit_seconds, P99))


def sustained_rate(busy_seconds: float, utilization_limit: float, p99_limit_seconds: float | None) -> float:
    """Return the requests per second at which the limits hold, of a card that each one keeps busy for so long."""
    by_rate = utilization_limit / busy_seconds
    return by_rate if p99_limit_seconds is None else min(by_rate, highest_rate(busy_seconds, p99_limit_seconds, P99))


def answered_seconds(rate: float | None, busy_seconds: float, fraction: float) -> float | None:
    """Return the seconds within which this fraction of requests is answered; None if there is no rate or no end."""
    if rate is None or rate * busy_seconds >= 1:
        return None
    return time_quantile(rate, busy_seconds, fraction)


def latency_without_shards(problem: Problem, shard_seconds: float) -> float:
    """Return what a plan takes in addition to the slowest sum of its shards' seconds; 0 for training steps."""
    if problem.serving is None or shard_seconds <= 0:
        return 0.0
    messages = len(MESSAGE_PHASES) * message_seconds(problem.cluster.hardware).value
    return messages + _recompute_seconds(problem)


def request_loads(problem: Problem, shard_seconds: Floats) -> Floats:
    """Return what a request takes of every rank and phase beyond shards; both arrays are (world_size, num_phases)."""
    loads = np.zeros_like(shard_seconds)
    if problem.serving is not None:
        is_asked = shard_seconds.any(axis=1)
        for phase in MESSAGE_PHASES:
            loads[is_asked, phase] = message_seconds(problem.cluster.hardware).value
        if problem.kv_cache is not None:
            loads[is_asked, Phase.KV_RECOMPUTE] = _recompute_seconds(problem)
    return loads


def request_evidence(problem: Problem) -> NDArray[np.int8]:
    """Return how well the seconds of :func:`request_loads` are known, Evidence codes of shape (num_phases,)."""
    evidence = np.zeros(num_phases(problem), dtype=np.int8)
    if problem.serving is not None:
        evidence[list(MESSAGE_PHASES)] = message_seconds(problem.cluster.hardware).evidence
        if problem.kv_cache is not None:
            evidence[Phase.KV_RECOMPUTE] = Evidence.GIVEN
    return evidence


def kv_cache_load(problem: Problem) -> KvCacheLoad | None:
    """Return what the cache of keys and values takes and saves; ``None`` without one."""
    cache, num_ranks = problem.kv_cache, problem.world_size
    if cache is None:
        return None
    return KvCacheLoad(
        bytes=cache.least_bytes,
        users=cache.users(num_ranks),
        hit_rate=cache.hit_rate(num_ranks),
        recompute_seconds=cache.recompute_seconds,
        seconds_per_request=cache.seconds_per_request(num_ranks),
    )


def _recompute_seconds(problem: Problem) -> float:
    """Return the seconds by which a request is longer on average for what the cache misses."""
    return 0.0 if problem.kv_cache is None else problem.kv_cache.seconds_per_request(problem.world_size)


def serving_load(serving: Serving | None, busy_seconds: Floats) -> ServingLoad | None:
    """Return what a plan sustains whose cards are busy for so long with each request, shape (world_size,)."""
    if serving is None:
        return None
    rank, rate = int(np.argmax(busy_seconds)), serving.requests_per_second
    busiest = float(busy_seconds[rank])
    rate_of_equals = rate if serving.kv_cache is None else None  # requests that hit and miss take different times
    return ServingLoad(
        samples_per_request=serving.samples_per_request,
        num_messages=len(MESSAGE_PHASES) * int(np.count_nonzero(busy_seconds)),
        busiest_rank=rank,
        busy_seconds=busiest,
        requests_per_second=rate,
        utilization=None if rate is None else rate * busiest,
        utilization_limit=serving.utilization_limit,
        sustained_requests_per_second=_rate_of(serving, busiest),
        p99_limit_seconds=serving.p99_seconds,
        p50_seconds=answered_seconds(rate_of_equals, busiest, P50),
        p99_seconds=answered_seconds(rate_of_equals, busiest, P99),
    )


def _rate_of(serving: Serving, busy_seconds: float) -> float | None:
    return sustained_rate(busy_seconds, serving.utilization_limit, serving.p99_seconds) if busy_seconds > 0 else None


def overrun(evaluation: Evaluation) -> Iterator[Issue]:
    """Yield an issue where requests come faster than the plan sustains, or wait for longer than is asked."""
    load = evaluation.serving
    if load is None or load.utilization is None:
        return
    if load.utilization <= load.utilization_limit * (1 + _ROUNDING):
        yield from _late(load)
        return
    rate, sustained = load.requests_per_second, load.sustained_requests_per_second
    assert rate is not None  # as there is a utilization
    assert sustained is not None  # as it is above 0
    yield Issue(
        code="request-rate",
        pointer=f"/ranks/{load.busiest_rank}",
        message=(
            f"{number_text(rate)} requests per second keep rank {load.busiest_rank} busy for"
            f" {load.utilization:.4g} of every second, {format_seconds(load.busy_seconds)} each, and at most"
            f" {load.utilization_limit:g} is allowed"
        ),
        hint=f"serve at most {at_most_text(sustained)} requests per second on a host, or use more cards",
    )


def _late(load: ServingLoad) -> Iterator[Issue]:
    """Yield an issue where requests wait for longer than is asked."""
    rate, limit, p99 = load.requests_per_second, load.p99_limit_seconds, load.p99_seconds
    if rate is None or limit is None:
        return
    if load.busy_seconds <= _longest(rate, load.utilization_limit, limit) * (1 + _ROUNDING):
        return
    found = "no limit" if p99 is None else format_seconds(p99)
    slower = load.sustained_requests_per_second
    fewer = f"serve at most {at_most_text(slower)} requests per second on a host, " if slower else ""
    yield Issue(
        code="request-p99",
        pointer=f"/ranks/{load.busiest_rank}",
        message=(
            f"99 of 100 requests that come at random at {number_text(rate)} per second are answered within {found}, and"
            f" within {format_seconds(limit)} is asked; each keeps rank {load.busiest_rank} busy for"
            f" {format_seconds(load.busy_seconds)}"
        ),
        hint=f"{fewer}use more cards, or allow a longer serving.p99_seconds",
    )


def within_rate(result: PlanResult) -> PlanResult:
    """Return the result without a plan where its plan does not sustain the rate; INFEASIBLE where none can."""
    issue = None if result.plan is None else next(overrun(result.plan.evaluation), None)
    if result.plan is None or issue is None:
        return result
    load = result.plan.evaluation.serving
    assert load is not None
    longest = _longest(load.requests_per_second, load.utilization_limit, load.p99_limit_seconds)
    is_proven = result.lower_bound_seconds > longest * (1 + _ROUNDING)
    open_end = "" if is_proven else "; the bound does not rule it out: search for longer, or to a smaller relative_gap"
    return replace(
        result,
        plan=None,
        reason=Reason.INFEASIBLE if is_proven else Reason.NO_SOLUTION_FOUND,
        limit=REQUEST_RATE,
        detail=f"{issue.message}; {issue.hint}{open_end}",
    )
