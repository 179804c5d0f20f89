"""Requests from the problem to the plan: latency by hand, messages, rates, bytes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cost_models.queues.md1 import highest_rate, time_quantile
from cost_models.vocabulary import Evidence, Kernel, Phase, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.diagnosis.fixes.ranks import hosts_ladder, ranks_ladder
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Plan, PlanResult
from planner.domain.problem.checkpoint import Checkpoint
from planner.domain.problem.problem import Problem
from planner.domain.problem.serving import Serving
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.output.explain.explanation import explain
from planner.pipeline import plan
from planner.pricing.price_options import price, prune
from planner.pricing.serving import REQUEST_RATE, overrun
from planner.pricing.shard_work import build_work
from planner.solver.bounds.chain import lower_bound
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Objective, Reason, Scope
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import brute_force, make_table
from tests.support.planning.long_plans import to_document
from tests.support.planning.serving_problems import SERVING, cards, serving_problem
from tests.support.planning.whole_tables import on_ranks

LIMITS = SolveLimits(time_limit_seconds=20.0, relative_gap=0.0, work_limit_seconds=4.0)
MESSAGE = 1e-5


def solved(problem: Problem) -> Plan:
    result = plan(problem, cost_model=SERVING, partitioner=Portfolio(), limits=LIMITS)
    assert result.plan is not None
    return result.plan


def test_a_request_takes_as_long_as_its_slowest_card() -> None:
    """60 samples of 4 ids, 128 columns of fp32.

    ids 240 x 8 = 1,920 B at 2 GB/s: 0.96 us; rows 240 x 512 = 122,880 B, ids and 60 x 512 = 30,720 B of outputs at
    100 GB/s: 1.5552 us; outputs back at 1 GB/s: 30.72 us; a message each way 20 us: 53.2352 us on a card with one
    table, 20 + 2 x 33.2352 us on a card with two.
    """
    problem = serving_problem(*(make_table(name, dim=128) for name in "abc"))
    one, two = 33.2352e-6 + 2 * MESSAGE, 2 * 33.2352e-6 + 2 * MESSAGE
    apart, together = (score(problem, on_ranks(problem, *ranks), SERVING) for ranks in ((0, 1, 2), (0, 4, 4)))
    assert apart.objective_seconds == pytest.approx(one)
    assert together.objective_seconds == pytest.approx(two)
    assert apart.objective == "request_latency"
    assert apart.step_time_seconds is apart.max_rank_time_seconds is None  # a request has no step


def test_replicas_share_whole_samples() -> None:
    """A replica cannot look up a part of a sample: of one sample one card does all, of seven on six the slowest two."""
    seconds = {}
    for samples in (1, 6, 7, 12):
        problem = serving_problem(make_table("a", dim=128), samples=samples)
        work = build_work(
            problem,
            table_columns(problem),
            table=np.array([0]),
            scheme=np.array([Scheme.DATA_PARALLEL], dtype=np.int8),
            kernel=np.array([Kernel.DENSE], dtype=np.int8),
            shard_columns=np.array([128]),
        )
        seconds[samples] = float(SERVING.predict(work, problem.cluster.hardware).seconds.sum())
        assert work.lookups[0] == 4 * math.ceil(samples / problem.world_size)
    assert seconds[1] == seconds[6]
    assert seconds[7] == seconds[12] == pytest.approx(2 * seconds[1])


def test_idle_cards_get_no_message() -> None:
    problem = serving_problem(make_table("a", dim=128), make_table("b", dim=128))
    scored = score(problem, on_ranks(problem, 1, 1), SERVING)
    assert scored.serving is not None
    assert scored.serving.num_messages == 2
    assert [sum(rank.seconds.values()) > 0 for rank in scored.ranks] == [False, True, False, False, False, False]
    assert scored.ranks[1].seconds[Phase.INPUT_COMM] == pytest.approx(2 * 0.96e-6 + MESSAGE)
    assert scored.ranks[1].seconds[Phase.FORWARD_COMM] == pytest.approx(2 * 30.72e-6 + MESSAGE)


def test_messages_are_known_no_better_than_their_number() -> None:
    """All other numbers are measured."""
    cluster = cards()
    numbers = {
        name: replace(number, evidence=Evidence.ESTIMATED if "message" in name else Evidence.MEASURED)
        for name, number in cluster.hardware.numbers.items()
    }
    problem = serving_problem(
        make_table("a", dim=128), cluster=replace(cluster, hardware=replace(cluster.hardware, numbers=numbers))
    )
    evidence = {load.phase: load.evidence for load in score(problem, on_ranks(problem, 0), SERVING).phases}
    assert evidence[Phase.INPUT_COMM] is evidence[Phase.FORWARD_COMM] is Evidence.ESTIMATED
    assert evidence[Phase.FORWARD_COMPUTE] is Evidence.MEASURED


def test_only_a_forward_pass_counts() -> None:
    problem = serving_problem(make_table("a", dim=128))
    scored = score(problem, on_ranks(problem, 0), SERVING)
    assert [load.phase for load in scored.phases if load.counted] == [
        Phase.INPUT_COMM,
        Phase.FORWARD_COMPUTE,
        Phase.FORWARD_COMM,
        Phase.PREFETCH,
    ]
    assert "host_link_message_seconds" in scored.hardware_numbers


def test_a_table_that_nothing_is_asked_of_needs_no_message() -> None:
    problem = serving_problem(make_table("a", pooling_factor=0.0, pooling="none"))
    found = solved(problem)
    assert found.evaluation.objective_seconds == 0
    assert found.lower_bound_seconds == 0
    assert found.evaluation.serving is not None
    assert found.evaluation.serving.sustained_requests_per_second is None


def test_a_replica_halves_what_two_cards_do() -> None:
    """One hot table: whole, its card takes 33.2352 us; with replicas each card serves 30 of the 60 samples."""
    hot = make_table("hot", dim=128, constraints=TableConstraints(sharding_types=frozenset({Scheme.DATA_PARALLEL})))
    problem = serving_problem(hot, cluster=cards(2))
    assert solved(problem).evaluation.objective_seconds == pytest.approx(33.2352e-6 / 2 + 2 * MESSAGE)


def test_the_best_plan_is_that_of_brute_force() -> None:
    """All legal cuts of three tables on three cards; 8 columns leave one width to cut at."""
    tables = (make_table("a", 4000, 8, pooling_factor=30.0), make_table("b", 1000, 8), make_table("c", 10, 8))
    problem = serving_problem(*tables, cluster=cards(3, hbm_bytes=180_000.0))
    priced = prune(price(problem, enumerate_families(problem), SERVING))
    assert priced.objective is Objective.MAX_RANK_TIME
    best = brute_force(priced)
    assert best is not None
    result = plan(problem, cost_model=SERVING, partitioner=CpSat(), limits=LIMITS)
    assert result.plan is not None
    assert result.plan.evaluation.objective_seconds == pytest.approx(best + 2 * MESSAGE, rel=1e-5)
    assert lower_bound(priced).seconds <= best
    assert result.plan.lower_bound_seconds <= result.plan.evaluation.objective_seconds
    assert result.plan.lower_bound_seconds > 2 * MESSAGE  # the messages are part of every bound, too


def test_bounds_and_gaps_are_those_of_the_latency() -> None:
    problem = serving_problem(*(make_table(name, dim=64) for name in "abcdefg"))
    found = solved(problem)
    latency = found.evaluation.objective_seconds
    assert found.relative_gap == pytest.approx(latency / found.lower_bound_seconds - 1)
    assert found.lower_bound_seconds >= 2 * MESSAGE


def test_the_document_reports_requests_and_no_step() -> None:
    problem = serving_problem(make_table("a", dim=128), requests_per_second=1_000.0, utilization_limit=0.5)
    document = to_document(solved(problem), name="x", spec_digest="sha256:0", hardware_profile="test")
    objective, serving = document["objective"], document["serving"]
    assert isinstance(objective, dict)
    assert isinstance(serving, dict)
    assert objective["name"] == "request_latency"
    assert objective["step_time_seconds"] is objective["max_rank_time_seconds"] is None
    assert serving["utilization"] == pytest.approx(1_000 * objective["seconds"])
    assert serving["sustained_requests_per_second"] == pytest.approx(0.5 / objective["seconds"])


def test_an_explanation_has_the_latency_of_the_plan() -> None:
    problem = serving_problem(make_table("a", dim=128), make_table("b", dim=64))
    found = solved(problem)
    reported = explain(problem, found.placement, SERVING)
    assert reported.objective_seconds == pytest.approx(found.evaluation.objective_seconds)
    assert 2 * MESSAGE < reported.bound_seconds <= reported.objective_seconds * (1 + 1e-9)


def rated(rate: float) -> PlanResult:
    """One table of 53.2352 us that may only be whole: 15,027 requests per second at a limit of 0.8."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    problem = serving_problem(make_table("a", dim=128, constraints=whole), requests_per_second=rate)
    return plan(problem, cost_model=SERVING, partitioner=Greedy(), limits=LIMITS)


def test_a_rate_that_is_sustained() -> None:
    result = rated(15_000.0)
    assert result.plan is not None
    load = result.plan.evaluation.serving
    assert load is not None
    assert load.sustained_requests_per_second == pytest.approx(0.8 / 53.2352e-6)
    assert load.utilization == pytest.approx(15_000 * 53.2352e-6)
    assert not list(overrun(result.plan.evaluation))


def test_a_rate_that_no_plan_sustains_is_infeasible() -> None:
    result = rated(15_100.0)
    assert result.plan is None
    assert result.reason == Reason.INFEASIBLE
    assert result.limit == REQUEST_RATE
    assert "15,100 requests per second" in result.detail
    assert "at most 15,000 requests per second" in result.detail  # of 15,027
    assert result.diagnosis is None  # no constraint is to blame


def test_a_rate_that_only_this_plan_misses_is_no_proof() -> None:
    """Seven equal tables on six cards: one card holds two, while a bound of no work spreads them evenly."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = [make_table(name, dim=128, constraints=wanted) for name in "abcdefg"]
    problem = serving_problem(*tables, requests_per_second=0.8 / 80e-6)
    limits = replace(LIMITS, work_limit_seconds=1e-3)
    result = plan(problem, cost_model=SERVING, partitioner=Greedy(), limits=limits)
    assert result.plan is None
    assert (result.reason, result.limit) == (Reason.NO_SOLUTION_FOUND, REQUEST_RATE)
    assert "relative_gap" in result.detail
    proven = plan(problem, cost_model=SERVING, partitioner=Greedy(), limits=LIMITS)
    assert (proven.plan, proven.reason) == (None, Reason.INFEASIBLE), "boxes count two on one card"


def late(p99_seconds: float, rate: float = 10_000.0) -> PlanResult:
    """One table of 53.2352 us that may only be whole: at 10,000 per second 99 of 100 take up to 248.52 us."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    table = make_table("a", dim=128, constraints=whole)
    problem = serving_problem(table, requests_per_second=rate, p99_seconds=p99_seconds)
    return plan(problem, cost_model=SERVING, partitioner=Greedy(), limits=LIMITS)


def test_a_limit_on_the_99th_percentile_that_is_met() -> None:
    result = late(249e-6)
    assert result.plan is not None
    load = result.plan.evaluation.serving
    assert load is not None
    assert load.p50_seconds == pytest.approx(time_quantile(10_000.0, 53.2352e-6, 0.5))
    assert load.p99_seconds == pytest.approx(248.524e-6, rel=1e-5)
    assert load.p99_limit_seconds == 249e-6
    # The highest rate is what the tighter limit allows: a little above the one that was asked for.
    assert load.sustained_requests_per_second == pytest.approx(highest_rate(53.2352e-6, 249e-6, 0.99))
    assert 10_000 < load.sustained_requests_per_second < 0.8 / 53.2352e-6


def test_a_limit_on_the_99th_percentile_that_no_plan_meets_is_infeasible() -> None:
    result = late(248e-6)
    assert (result.plan, result.reason, result.limit) == (None, Reason.INFEASIBLE, REQUEST_RATE)
    assert "99 of 100 requests that come at random at 10,000 per second are answered within 249 us" in result.detail
    assert "within 248 us is asked" in result.detail
    assert "serve at most 9,980 requests per second on a host" in result.detail


def test_a_limit_below_the_request_itself_is_met_at_no_rate() -> None:
    result = late(50e-6, rate=1.0)
    assert result.reason is Reason.INFEASIBLE
    assert "serve at most" not in result.detail
    assert "use more cards, or allow a longer serving.p99_seconds" in result.detail


def test_waiting_is_that_of_all_cards_together() -> None:
    """A request is answered when all cards are done: runs of their queues, one of 53.2 us and one of 86.5 us."""
    problem = serving_problem(*(make_table(name, dim=128) for name in "abc"), requests_per_second=8_000.0)
    scored = score(problem, on_ranks(problem, 0, 4, 4), SERVING)
    assert scored.serving is not None
    busy = np.array([sum(rank.seconds.values()) for rank in scored.ranks])
    gaps = np.random.default_rng(3).exponential(1 / 8_000.0, 400_000)
    answered = np.zeros(len(gaps))
    for seconds in busy[busy > 0]:
        sums = np.concatenate([[0.0], np.cumsum(seconds - gaps[1:])])
        answered = np.maximum(answered, sums - np.minimum.accumulate(sums) + seconds)
    assert len(busy[busy > 0]) == 2
    assert scored.serving.p50_seconds == pytest.approx(np.quantile(answered, 0.5), rel=0.02)
    assert scored.serving.p99_seconds == pytest.approx(np.quantile(answered, 0.99), rel=0.05)


def test_a_search_meets_the_limit_though_its_first_plan_does_not() -> None:
    """Two tables on one card are late, on two cards they are not."""
    problem = serving_problem(
        *(make_table(name, dim=128) for name in "ab"), requests_per_second=9_000.0, p99_seconds=230e-6
    )
    together, apart = (list(overrun(score(problem, on_ranks(problem, *ranks), SERVING))) for ranks in ((0, 0), (0, 1)))
    assert [issue.code for issue in together] == ["request-p99"]
    assert apart == []
    found = solved(problem).evaluation.serving
    assert found is not None
    assert found.p99_seconds is not None
    assert found.p99_seconds <= 230e-6


def test_no_percentile_without_a_rate_or_an_end() -> None:
    for asked in ({}, {"requests_per_second": 1e5, "utilization_limit": 1.0}):
        load = score(
            problem := serving_problem(make_table("a", dim=128), **asked), on_ranks(problem, 0), SERVING
        ).serving
        assert load is not None
        assert load.p50_seconds is load.p99_seconds is None


def test_more_cards_sustain_more() -> None:
    rates = []
    for count in (2, 4):
        problem = serving_problem(*(make_table(name, dim=64) for name in "abcd"), cluster=cards(count))
        load = solved(problem).evaluation.serving
        assert load is not None
        assert load.sustained_requests_per_second is not None
        rates.append(load.sustained_requests_per_second)
    assert rates[0] < rates[1]


@pytest.mark.parametrize(
    ("data_type", "dim", "row_bytes"),
    [("int8", 128, 144), ("int4", 96, 64), ("int2", 64, 32), ("fp16", 4, 16), ("fp32", 128, 512)],
)
def test_rows_are_padded_to_16_bytes(data_type: str, dim: int, row_bytes: int) -> None:
    """128 + 4, 48 + 4, 16 + 4 and 8 bytes; 512 need no padding."""
    problem = serving_problem(make_table("a", 1000, dim, data_type=data_type, optimizer="none"))
    ledger = score(problem, on_ranks(problem, 0), SERVING).ranks[0].ledger_bytes[Tier.HBM]
    assert ledger["weights"] == 1000 * row_bytes


def test_replicas_of_untrained_tables_have_no_gradients() -> None:
    problem = serving_problem(make_table("a", dim=64), cluster=cards(2))
    piece = Piece(scope=Scope.WORLD, column_offset=0, num_columns=64, replicated=True)
    shards = expand(problem.tables[0], piece, 0, problem.cluster, Tier.HBM)
    copies = TablePlacement(name="a", sharding_type=Scheme.DATA_PARALLEL, compute_kernel=Kernel.DENSE, shards=shards)
    scored = score(problem, Placement(world_size=2, ranks_per_host=2, tables=(copies,)), SERVING)
    assert scored.ranks[1].ledger_bytes[Tier.HBM]["gradients"] == 0
    assert scored.ranks[1].ledger_bytes[Tier.HBM]["weights"] == 1000 * 256


def test_a_fix_that_does_not_sustain_the_rate_is_none() -> None:
    """256,000 bytes on cards of 200,000: more memory is a fix, unless requests come too fast for one card."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    table = make_table("a", dim=64, constraints=whole)
    for rate, has_fix in ((None, True), (1e6, False)):
        asked = {} if rate is None else {"requests_per_second": rate}
        problem = serving_problem(table, cluster=cards(hbm_bytes=200_000.0), **asked)
        result = plan(problem, cost_model=SERVING, partitioner=Greedy(), limits=LIMITS)
        assert result.plan is None
        assert result.diagnosis is not None
        assert any(fix.kind == "memory" for fix in result.diagnosis.fixes) is has_fix


def test_fixes_add_cards_and_no_hosts() -> None:
    problem = serving_problem(make_table("a"), cluster=cards(4))
    assert hosts_ladder(problem, ()) is None
    ladder = ranks_ladder(problem, ())
    assert ladder is not None
    assert "for the same request" in ladder.step(1).message
    assert ladder.step(1).problem.samples_per_rank == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size_per_rank": 64},
        {"serving": None},
        {"objective": "step_time"},
        {"pipeline": "train_sparse_dist"},
        {"cluster": replace(cards(2), num_hosts=2)},
        {"tables": (make_table("a"),)},
        {"checkpoint": Checkpoint(interval_steps=10)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_belongs_to_training_is_refused(changes: dict[str, object]) -> None:
    problem = serving_problem(make_table("a"))
    with pytest.raises(ValueError, match="Expected"):
        replace(problem, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"samples_per_request": 0},
        {"requests_per_second": 0.0},
        {"requests_per_second": math.nan},
        {"utilization_limit": 0.0},
        {"utilization_limit": 1.1},
        {"p99_seconds": 0.0, "requests_per_second": 1.0},
        {"p99_seconds": math.inf, "requests_per_second": 1.0},
        {"p99_seconds": 0.01},
    ],
    ids=str,
)
def test_numbers_of_requests_are_checked(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Serving(**({"samples_per_request": 1} | changes))  # type: ignore[arg-type]


def test_cards_share_a_request_that_does_not_divide_evenly() -> None:
    """100 samples on 6 cards: replicas do 100 / 6 samples each on average, whole tables all of them."""
    problem = serving_problem(make_table("a", dim=128), samples=100)
    assert problem.samples_per_rank * 6 == pytest.approx(100)
    seconds = score(problem, on_ranks(problem, 0), SERVING).ranks[0].seconds
    assert seconds[Phase.INPUT_COMM] == pytest.approx(100 * 4 * 8 / 2e9 + MESSAGE)
    assert np.isfinite(sum(seconds.values()))
