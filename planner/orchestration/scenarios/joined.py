r"""Several scenarios of traffic as one problem: one plan, evaluated by the weighted sum of its steps.

The scenarios ``s`` of a problem have the same tables, cuts and ranks, and prices ``f_s`` of their own. A step is a sum
over phases of the slowest rank, so that

.. math:: \sum_s w_s f_s(x)

is a step, too: that of a problem with the phases of every scenario side by side, their seconds multiplied by ``w_s``.
Searches and bounds of one problem serve for all scenarios together. For any weights that add up to 1 the least weighted
sum is a lower bound on the worst scenario of every plan (the Lagrangian bound of the minimax problem).

A slowest rank's sum over phases is a step of one phase if ranks are slow in all phases alike.

Plans that no weights lead to are found by targets. A phase that is hidden up to its target costs what it is longer:

.. math:: \sum_{s,p} \max(0, e_{sp}(x) - T_{sp})

is 0 of a plan whose exposed phases ``e`` keep all targets: no scenario is longer than the sum of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats
from planner.solver.evaluate import rank_seconds
from planner.solver.problem import Assignment, Objective, SolverProblem


class NotAdditive(ValueError):
    """The steps of scenarios are no step together; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the phases of a scenario may take for nothing."""

    scenario: int
    phase_seconds: Floats  # (P,) of the phases that its objective counts, beyond what is hidden of each
    weight: float  # of what they take beyond


def joined(
    scenarios: Sequence[SolverProblem], weights: Floats, must_fit: Bools, targets: Sequence[Target] = ()
) -> SolverProblem:
    """Return the problem of the weighted sum of steps; ``weights`` are of the scenarios, 0 or more, not all 0.

    The problems have all shapes of the same families. Plans fit into the memory of the scenarios ``must_fit``, (S,),
    whatever their weights. What phases of scenarios with a target take beyond it is added.

    Raises
    ------
    NotAdditive
        If ranks are slow in one phase and not in another while the slowest rank's sum over phases is minimised.
    """
    first = scenarios[0]
    weighted = zip(scenarios, weights.tolist(), strict=True)
    parts = [_weighted(_in_phases(one), weight) for one, weight in weighted if weight > 0]
    parts += [_weighted(_beyond(_in_phases(scenarios[one.scenario]), one), one.weight) for one in targets]
    bytes_, totals, rooms = _memory([scenarios[index] for index in np.flatnonzero(must_fit).tolist()])
    return replace(
        first,
        objective=Objective.STEP_TIME,
        shape_seconds=np.concatenate([one.shape_seconds for one in parts], axis=1),
        rank_slowdown=np.concatenate([one.rank_slowdown for one in parts], axis=1),
        phase_weight=np.concatenate([one.phase_weight for one in parts]),
        phase_window_seconds=np.concatenate([one.phase_window_seconds for one in parts]),
        kind_start_seconds=np.concatenate([one.kind_start_seconds for one in parts], axis=1),
        shape_bytes=bytes_,
        shape_total_bytes=totals,
        capacity_bytes=rooms,
        shape_busy_seconds=None,
    )


def target_of(
    scenarios: Sequence[SolverProblem], scenario: int, assignment: Assignment, *, seconds: float, weight: float
) -> Target:
    """Return a target for a step of so many seconds: the phases of an assignment, all shorter or longer alike."""
    counted = _in_phases(scenarios[scenario])
    exposed = np.maximum(np.max(rank_seconds(counted, assignment), axis=0) - counted.phase_window_seconds, 0.0)
    step = float(exposed.sum())
    phase_seconds: Floats = exposed * (seconds / step) if step > 0 else np.full(len(exposed), seconds)
    return Target(scenario=scenario, phase_seconds=phase_seconds, weight=weight)


def _beyond(priced: SolverProblem, target: Target) -> SolverProblem:
    return replace(priced, phase_window_seconds=priced.phase_window_seconds + target.phase_seconds)


def _in_phases(priced: SolverProblem) -> SolverProblem:
    """Return a problem whose objective is a sum over the phases that it counts."""
    if priced.objective is Objective.STEP_TIME:
        counted = np.flatnonzero(priced.phase_weight)
        starts = priced.kind_start_seconds[:, counted] if priced.num_kinds else np.zeros((0, len(counted)))
        return replace(
            priced,
            shape_seconds=priced.shape_seconds[:, counted],
            rank_slowdown=priced.rank_slowdown[:, counted],
            phase_weight=priced.phase_weight[counted],
            phase_window_seconds=priced.phase_window_seconds[counted],
            kind_start_seconds=starts,
        )
    slowdown = priced.rank_slowdown[:, priced.phase_weight > 0]
    if not np.array_equal(slowdown, np.broadcast_to(slowdown[:, :1], slowdown.shape)):
        raise NotAdditive("ranks are slow in one phase and not in another: steps of max_rank_time do not add up then")
    starts = priced.kind_start_seconds @ priced.phase_weight if priced.num_kinds else np.zeros(0)
    return replace(
        priced,
        objective=Objective.STEP_TIME,
        shape_seconds=(priced.shape_seconds @ priced.phase_weight)[:, None],
        rank_slowdown=slowdown[:, :1],
        phase_weight=np.ones(1),
        phase_window_seconds=np.zeros(1),
        kind_start_seconds=starts[:, None],
    )


def _weighted(priced: SolverProblem, weight: float) -> SolverProblem:
    return replace(
        priced,
        shape_seconds=priced.shape_seconds * weight,
        phase_window_seconds=priced.phase_window_seconds * weight,
        kind_start_seconds=priced.kind_start_seconds * weight,
    )


def _memory(scenarios: Sequence[SolverProblem]) -> tuple[Floats, Floats, Floats]:
    """Return bytes of shapes, on a rank and on all, and capacities: each tier as often as scenarios differ in it."""
    columns: dict[tuple[bytes, bytes, bytes], tuple[Floats, Floats, Floats]] = {}
    for one in scenarios:
        for tier in range(one.num_tiers):
            column = (one.shape_bytes[:, tier], one.shape_total_bytes[:, tier], one.capacity_bytes[:, tier])
            held, total, room = (values.tobytes() for values in column)
            columns.setdefault((held, total, room), column)
    held_, total_, room_ = (np.stack(parts, axis=1) for parts in zip(*columns.values(), strict=True))
    return held_, total_, room_
