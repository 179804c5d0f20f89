"""A timeline takes what its plan says it takes: the step, and every phase of every rank."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cost_models.protocol import CostModel
from cost_models.vocabulary import Scheme
from planner.domain.plan.plan import Plan
from planner.domain.problem.checkpoint import Checkpoint
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import TableConstraints
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.shard_groups import rank_loads
from planner.output.exporters.generic import to_document
from planner.output.timeline.bars import NESTED, BarKind, Timeline, Track
from planner.output.timeline.memory_course import memory_course
from planner.output.timeline.parts import phase_parts
from planner.output.timeline.plan_timeline import plan_timeline
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from tests.planner.pricing.step.test_starts import LATENCY
from tests.planner.test_stash import problem as stashing
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.serving_problems import SERVING, serving_problem


def mixed(**changes: object) -> Problem:
    """Tables of three sharding types in two modules, on two hosts of two ranks."""
    schemes = (Scheme.ROW_WISE, Scheme.TABLE_WISE, Scheme.DATA_PARALLEL, Scheme.TABLE_WISE)
    tables = [
        make_table(
            f"t{i}",
            100_000 * (i + 1),
            64,
            module_path=("towers.users", "towers.items")[i % 2],
            constraints=TableConstraints(sharding_types=frozenset({scheme})),
        )
        for i, scheme in enumerate(schemes)
    ]
    return make_problem(*tables, cluster=make_cluster(2, 2, **LATENCY), **changes)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "embeddings alone": mixed,
    "hidden in part": lambda: mixed(
        dense=Dense(forward_seconds=1e-5, backward_seconds=2e-5, parameter_bytes=3e7), pipeline="train_sparse_dist"
    ),
    "hidden whole": lambda: mixed(
        dense=Dense(forward_seconds=1e-2, backward_seconds=2e-2, parameter_bytes=3e7), pipeline=PREFETCH_PIPELINE
    ),
    "a stash": lambda: stashing(1.6e9, Stash()),
    "a stash that is waited for": lambda: replace(
        stashing(1.6e9, Stash(max_wait_seconds=0.05)),
        dense=Dense(forward_seconds=0.02, backward_seconds=0.02, activation_bytes=1e9),
    ),
    "balanced checkpoints": lambda: mixed(checkpoint=Checkpoint(interval_steps=1000, balance=True)),
    "requests": lambda: serving_problem(*(make_table(f"t{i}", 50_000 * (i + 1), 64) for i in range(5))),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


def model_of(problem: Problem) -> CostModel:
    return ROOFLINE if problem.serving is None else SERVING


@cache
def planned(name: str) -> tuple[Problem, Plan, CompactPlanDocument]:
    problem = PROBLEMS[name]()
    partitioner = make_partitioner("portfolio" if problem.stash is not None else "greedy")
    found = plan(
        problem, cost_model=model_of(problem), partitioner=partitioner, limits=SolveLimits(time_limit_seconds=1.0)
    ).plan
    assert found is not None
    return problem, found, to_document(found, name=name, spec_digest="sha256:spec", hardware_profile="test")


def timelines(name: str) -> tuple[Timeline, Timeline]:
    """Without what prices know of phases, and with it."""
    problem, found, document = planned(name)
    return plan_timeline(document), plan_timeline(document, phase_parts(problem, found.placement, model_of(problem)))


@every_problem
def test_the_last_bar_ends_with_the_step_of_the_plan(name: str) -> None:
    _, found, _ = planned(name)
    whole = found.evaluation.whole_step
    step = found.evaluation.objective_seconds if whole is None else whole.seconds
    for timeline in timelines(name):
        assert timeline.seconds == pytest.approx(step, rel=1e-12)
        assert max(bar.end_seconds.max() for bar in timeline.bars) == pytest.approx(step, rel=1e-9)
        assert min(bar.start_seconds.min() for bar in timeline.bars) == 0.0


@every_problem
def test_phases_of_every_rank_take_their_seconds(name: str) -> None:
    _, found, document = planned(name)
    for timeline in timelines(name):
        for phase in found.evaluation.phases:
            if phase.phase.label == "checkpoint" and document["whole_step"] is not None:
                continue
            label = phase.phase.label
            own = [rank.seconds[phase.phase] for rank in found.evaluation.ranks]
            np.testing.assert_allclose(timeline.seconds_of(label, BarKind.PHASE), own, rtol=1e-9, atol=1e-15)
            if timeline.unit == "step":
                waited = timeline.seconds_of(label, BarKind.PHASE, BarKind.WAIT)
                hidden = sum(
                    bar.duration_seconds
                    for bar in timeline.bars
                    if bar.track is Track.NEXT_BATCH and bar.phase == label and bar.kind is BarKind.PHASE
                )
                np.testing.assert_allclose(waited - hidden, phase.seconds - phase.hidden_seconds, rtol=1e-9, atol=1e-15)


@every_problem
def test_the_step_of_a_rank_has_no_hole_and_no_overlap(name: str) -> None:
    for timeline in timelines(name):
        for rank in range(timeline.num_ranks):
            for track in Track:
                ends = sorted(
                    (event.start_seconds, event.start_seconds + event.duration_seconds)
                    for event in timeline.events()
                    if event.rank == rank and event.bar.track is track and event.bar.kind not in NESTED
                )
                for (_, before), (after, _) in itertools.pairwise(ends):
                    assert after >= before - 1e-9 * timeline.seconds
                    assert track is not Track.STEP or after == pytest.approx(before, rel=1e-9)


@every_problem
def test_parts_lie_inside_their_phase_and_add_up_to_it(name: str) -> None:
    problem, found, document = planned(name)
    timeline = timelines(name)[1]
    for phase in found.evaluation.phases:
        label = phase.phase.label
        bars = [bar for bar in timeline.bars if bar.phase == label and bar.kind is BarKind.PHASE]
        parts = [bar for bar in timeline.bars if bar.phase == label and bar.kind is BarKind.SHARDING_TYPE]
        for part in parts:
            inside = [
                (part.start_seconds >= bar.start_seconds - 1e-15) & (part.end_seconds <= bar.end_seconds + 1e-12)
                for bar in bars
                if bar.track is part.track
            ]
            assert np.all(np.any(inside, axis=0) | (part.duration_seconds == 0))
        if bars and problem.serving is None and label != "checkpoint":
            total = timeline.seconds_of(label, BarKind.SHARDING_TYPE)
            np.testing.assert_allclose(total, timeline.seconds_of(label, BarKind.PHASE), rtol=1e-9, atol=1e-15)
    assert {(bar.name, bar.module) for bar in timeline.bars if bar.kind is BarKind.SHARDING_TYPE} == {
        (table["sharding_type"], table.get("module_path") or "") for table in document["tables"]
    }


def test_without_prices_phases_show_what_sharding_types_start() -> None:
    _, found, _ = planned("embeddings alone")
    timeline = timelines("embeddings alone")[0]
    assert len(found.evaluation.starts) == 3
    for start in found.evaluation.starts:
        of_kind = [bar for bar in timeline.bars if (bar.name, bar.module) == (start.sharding_type.label, start.module)]
        assert {bar.kind for bar in of_kind} == {BarKind.STARTS}
        assert sum(bar.duration_seconds[0] for bar in of_kind) == pytest.approx(start.seconds)


def test_the_all_reduce_is_hidden_as_far_as_the_plan_says() -> None:
    _, found, _ = planned("hidden in part")
    step = found.evaluation.whole_step
    assert step is not None
    bars = [bar for bar in timelines("hidden in part")[0].bars if bar.kind is BarKind.ALL_REDUCE]
    by_track = {bar.track: float(bar.duration_seconds[0]) for bar in bars}
    assert by_track[Track.STEP] == pytest.approx(step.dense_all_reduce_seconds - step.hidden_all_reduce_seconds)
    assert by_track.get(Track.ALL_REDUCE, 0.0) == pytest.approx(step.hidden_all_reduce_seconds)


@pytest.mark.parametrize("name", ["a stash", "a stash that is waited for"])
def test_copies_hide_under_the_dense_part(name: str) -> None:
    _, found, _ = planned(name)
    stash, timeline = found.evaluation.stash, timelines(name)[0]
    assert stash is not None
    copies = {bar.name: bar for bar in timeline.bars if bar.kind is BarKind.COPY}
    dense = [bar for bar in timeline.bars if bar.kind is BarKind.DENSE or bar.name.startswith("wait_for_")]
    first, last = min(bar.start_seconds[0] for bar in dense), max(bar.end_seconds[0] for bar in dense)
    rank = stash.busiest_rank
    assert copies["stash"].duration_seconds[rank] == pytest.approx(stash.to_host_seconds)
    assert copies["restore"].duration_seconds[rank] == pytest.approx(stash.to_device_seconds)
    assert copies["stash"].start_seconds[rank] == first
    assert copies["restore"].end_seconds[rank] == pytest.approx(last)
    assert (copies["stash"].end_seconds <= copies["restore"].start_seconds + 1e-12).all()
    waited = sum(bar.duration_seconds[rank] for bar in timeline.bars if bar.name.startswith("wait_for_"))
    assert waited == pytest.approx(stash.wait_seconds)
    assert (waited > 0) == (name != "a stash")


@pytest.mark.parametrize("name", ["hidden whole", "a stash"])
def test_memory_covers_the_step_and_has_the_peak_of_the_plan(name: str) -> None:
    _, _, document = planned(name)
    timeline = timelines(name)[0]
    for load in rank_loads(document):
        memory = load["step_memory"]
        assert memory is not None
        spans = memory_course(timeline, memory, load["rank"])
        assert spans[0].start_seconds == 0.0
        assert spans[-1].end_seconds == pytest.approx(timeline.seconds)
        assert all(a.end_seconds == b.start_seconds for a, b in itertools.pairwise(spans))
        held = [sum(lines.values()) for span in spans for lines in (span.start_bytes, span.end_bytes)]
        assert max(held) == pytest.approx(memory["peak_bytes"], rel=1e-6)
        assert {span.phase for span in spans} - {None} == set(memory["phase_bytes"])


def test_without_dense_times_memory_has_no_course() -> None:
    _, _, document = planned("embeddings alone")
    memory = rank_loads(document)[0]["step_memory"]
    assert memory is not None
    assert memory_course(timelines("embeddings alone")[0], memory, 0) == ()
