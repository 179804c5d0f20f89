"""What deduplication takes on every rank: hidden where dense compute hides it, and the same for every plan."""

import numpy as np
import pytest

from cost_models.vocabulary import NUM_PHASES, Phase
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.orchestration.placement.to_placement import to_placement
from planner.pipeline import plan
from planner.pricing.memory.ledger import index_dedup_bytes, reserved_bytes
from planner.pricing.price_options import price
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.pricing.step.index_dedup import exposed_dedup_seconds, free_windows, index_dedup_seconds
from planner.pricing.step.starts import starts_of_families
from planner.solver.evaluate import step_seconds_of
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exhaustive import assignments_in_order

TABLES = (
    make_table("sequence", 4000, 64, pooling="none", access=ZipfAccess(alpha=1.05), module_path="s"),
    make_table("bags", 3000, 64, access=ZipfAccess(alpha=0.5), module_path="b"),
)


def problem(**changes: object) -> Problem:
    return make_problem(*TABLES, cluster=make_cluster(1, 2), **{"use_index_dedup": True, **changes})


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
@pytest.mark.parametrize("window_seconds", [0.0, 1e-9, 1e-6, 1.0])
def test_searches_and_scores_agree_on_every_plan(objective: str, window_seconds: float) -> None:
    dense = Dense(forward_seconds=window_seconds, backward_seconds=0.0)
    of = problem(objective=objective, dense=dense, pipeline="train_sparse_dist", counts_starts=False)
    families = enumerate_families(of)
    priced = price(of, families, ROOFLINE)
    found = 0
    for seconds, assignment in assignments_in_order(priced):
        placement = to_placement(of, families, priced, assignment)
        believed = step_seconds_of(priced, assignment)
        assert seconds == pytest.approx(believed)
        scored = score(of, placement, ROOFLINE).objective_seconds
        assert believed + seconds_without_shards(of, believed) == pytest.approx(scored, rel=1e-12)
        found += 1
        if found == 20:
            break
    assert found == 20


def test_dense_compute_hides_ids_and_no_rows() -> None:
    taken, _ = index_dedup_seconds(problem(), problem().cluster.hardware)
    assert taken[Phase.INPUT_COMM] > 0
    hidden = problem(pipeline="train_sparse_dist", dense=Dense(forward_seconds=1.0, backward_seconds=0.0))
    assert free_windows(hidden)[Phase.INPUT_COMM] == pytest.approx(1.0 - taken[Phase.INPUT_COMM])
    assert exposed_dedup_seconds(hidden) == pytest.approx(taken.sum() - taken[Phase.INPUT_COMM])
    assert exposed_dedup_seconds(problem()) == pytest.approx(taken.sum())


def test_nothing_is_taken_where_ids_are_not_deduplicated() -> None:
    off = problem(use_index_dedup=False)
    taken, _ = index_dedup_seconds(off, off.cluster.hardware)
    assert np.array_equal(taken, np.zeros(NUM_PHASES))
    assert exposed_dedup_seconds(off) == 0
    assert "index_dedup" not in reserved_bytes(off, 1e9)
    assert score(off, planned(off), ROOFLINE).index_dedup is None


def planned(of: Problem) -> object:
    found = plan(of, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=60))
    assert found.plan is not None
    assert found.reason in (Reason.OPTIMAL, Reason.FEASIBLE)
    return found.plan.placement


def test_a_score_states_both_settings() -> None:
    on = problem()
    placement = planned(on)
    found = score(on, placement, ROOFLINE)
    load = found.index_dedup
    assert load is not None
    assert load.objective_seconds_with == found.objective_seconds
    without = score(problem(use_index_dedup=False), placement, ROOFLINE)
    assert load.objective_seconds_without == pytest.approx(without.objective_seconds)
    assert load.batch_ids == 64 * 4
    assert load.unique_ids < load.batch_ids
    assert load.removed_share == pytest.approx(1 - load.unique_ids / load.batch_ids)
    taken, _ = index_dedup_seconds(on, on.cluster.hardware)
    assert load.unique_seconds + load.repeat_seconds + load.merge_seconds == pytest.approx(taken.sum())


def test_buffers_are_reserved_for_every_batch_on_the_way() -> None:
    unique = score(problem(), planned(problem()), ROOFLINE).index_dedup.unique_ids
    one = np.ceil(8 * (64 * 4 + unique))
    assert index_dedup_bytes(problem()) == one
    assert index_dedup_bytes(problem(pipeline="train_sparse_dist")) == 2 * one
    assert reserved_bytes(problem(), 1e9)["index_dedup"] == one


def test_the_memory_of_a_step_has_all_rows_and_sends_unique_ones() -> None:
    on, off = problem(), problem(use_index_dedup=False)
    placement = planned(on)
    with_dedup, without = (score(of, placement, ROOFLINE).ranks[0].step_memory for of in (on, off))
    dense = "dense_forward"
    rows = [{p.label: lines for p, lines in one.buffer_bytes.items()} for one in (with_dedup, without)]
    assert rows[0][dense]["pooled_rows"] == pytest.approx(rows[1][dense]["pooled_rows"])
    received = [one["forward_comm"]["received_rows"] for one in rows]
    load = score(on, placement, ROOFLINE).index_dedup
    assert received[1] - received[0] == pytest.approx((load.batch_ids - load.unique_ids) * 64 * 4)
    assert with_dedup.persistent_bytes["index_dedup"] == index_dedup_bytes(on)


def test_kinds_of_sequences_launch_more() -> None:
    hardware = {"kernel_launch_seconds": 1e-6}
    on, off = (
        make_problem(*TABLES, cluster=make_cluster(1, 2, **hardware), use_index_dedup=used) for used in (True, False)
    )
    families = [(family.table, family.scheme) for family in enumerate_families(on).families]
    kinds, with_dedup = starts_of_families(on, families, ROOFLINE)
    _, without = starts_of_families(off, families, ROOFLINE)
    is_sequence = np.zeros(len(without), dtype=bool)
    is_sequence[[kind for kind, (table, _) in zip(kinds.tolist(), families, strict=True) if table == 0]] = True
    more = with_dedup - without
    assert more[~is_sequence].sum() == 0
    assert more[is_sequence].sum(axis=1) == pytest.approx(25e-6)
