"""DLRM-DCNv2 under a plan of HugeCTR's: pieces, replicas, nodes, and the kernels of HugeCTR."""

from dataclasses import replace

import pytest

from benchmarks.prices.reality.mlperf.hugectr_planner import Holdings, held_as
from benchmarks.prices.reality.mlperf.model import TABLES, Job, backward_share, evaluated, planned_by_us, steps_of
from cost_models.vocabulary import Phase, Tier
from planner.domain.plan.plan import Evaluation

JOB = Job(profile="dgx-h100-80g", num_hosts=1, ranks_per_host=4, global_batch=4096, is_mixed_precision=True)
WHOLE = held_as([list(range(26)), [], [], []], 26)


def seconds(evaluation: Evaluation, phase: Phase) -> float:
    return next(load.seconds for load in evaluation.phases if load.phase is phase)


def test_pieces_of_a_table_share_its_lookups_and_each_sends_rows() -> None:
    """Table 20 has 100 of 214 lookups per sample."""
    cut = replace(WHOLE, holders=(*WHOLE.holders[:20], (0, 1, 2, 3), *WHOLE.holders[21:]))
    whole, pieces = evaluated(JOB, WHOLE), evaluated(JOB, cut)
    lookups = [rank.lookups or 0.0 for rank in pieces.ranks]
    assert sum(lookups) == pytest.approx(sum(rank.lookups or 0.0 for rank in whole.ranks))
    assert lookups[1] == pytest.approx(25 * 4096)
    assert seconds(pieces, Phase.FORWARD_COMPUTE) < seconds(whole, Phase.FORWARD_COMPUTE)


def test_tables_that_nothing_holds_are_replicated() -> None:
    evaluation = evaluated(JOB, Holdings(holders=((), *WHOLE.holders[1:]), is_by_node=False))
    held = [rank.bytes[Tier.HBM] for rank in evaluation.ranks]
    assert min(held) >= 8 * TABLES[0].num_rows * TABLES[0].num_columns
    assert evaluation.whole_step is not None


def test_nodes_share_the_rows_of_their_tables() -> None:
    job = replace(JOB, num_hosts=2, ranks_per_host=8)
    by_node = held_as([list(range(0, 26, 2)), list(range(1, 26, 2))], 26, is_by_node=True)
    evaluation = evaluated(job, by_node)
    lookups = [rank.lookups or 0.0 for rank in evaluation.ranks]
    assert lookups[0] == pytest.approx(lookups[6], rel=1e-3)
    assert lookups[0] > 1.5 * lookups[8]  # table 20 is on the first node
    assert all(0 <= rank.bytes[Tier.HBM] < 1e12 for rank in evaluation.ranks)


def test_the_kernels_of_hugectr_take_a_share_of_the_backward_seconds() -> None:
    evaluation = evaluated(JOB, WHOLE)
    full, half = steps_of(evaluation, 1.0), steps_of(evaluation, 0.5)
    saved = seconds(evaluation, Phase.BACKWARD_COMPUTE) / 2
    assert full.whole - half.whole == pytest.approx(saved)
    assert full.sparse - half.sparse == pytest.approx(saved)
    assert evaluation.whole_step is not None
    assert full.whole == evaluation.whole_step.seconds
    assert 0 < backward_share() <= 1


def test_a_plan_of_ours_beats_all_tables_on_one_gpu() -> None:
    job = replace(JOB, ranks_per_host=8)
    ours = planned_by_us(job, time_limit_seconds=1.0)
    assert ours is not None
    one_gpu = evaluated(job, held_as([list(range(26)), *[[]] * 7], 26))
    assert steps_of(ours, 1.0).whole < steps_of(one_gpu, 1.0).whole
