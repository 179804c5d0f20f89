"""Which phases and ranks a plan waits for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats
from cost_models.vocabulary import Evidence, Phase
from planner.solver.evaluate import objective_seconds
from planner.solver.problem import Assignment, Objective, RelaxationHint, SolverProblem

#: Ranks this close to the slowest one bind, too: to speed up one of them alone gains next to nothing.
NEAR_SLOWEST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingPhase:
    """One phase that the objective counts.

    For step_time the seconds are those of the phase's own slowest rank, and every phase has its own binding
    ranks. For max_rank_time they are those of the rank whose phases add up to most, and all phases share its ranks.
    """

    phase: Phase
    seconds: float
    mean_seconds: float  # over all ranks
    hidden_seconds: float  # of ``seconds``, hidden under dense compute
    exposed_seconds: float  # what the objective has of them
    objective_share: float  # exposed over the objective; 0 where that is 0
    ranks: tuple[int, ...]  # within NEAR_SLOWEST of the slowest
    #: what the relaxation's objective has of this phase, beyond what is hidden; only the sum over phases is a bound
    relaxed_seconds: float | None
    evidence: Evidence  # the weakest number in it


def binding_phases(
    priced: SolverProblem,
    seconds: Floats,
    evidence: NDArray[np.int8],
    hint: RelaxationHint | None,
    relaxed_starts: Floats,
) -> tuple[BindingPhase, ...]:
    """Return the counted phases that take any time, in their order.

    Parameters
    ----------
    seconds
        What the ranks take, shape (R, P).
    evidence
        Weakest evidence code of each phase, shape (P,).
    hint
        What the relaxation says, where it was solved.
    relaxed_starts
        Starts that it charges besides, shape (P,).
    """
    objective = objective_seconds(priced, seconds)
    rank_time = seconds @ priced.phase_weight
    of_one_rank = priced.objective is Objective.MAX_RANK_TIME
    slowest, hidden = _slowest_and_hidden(priced, seconds)
    exposed = exposed_seconds(priced, seconds)
    relaxed = None
    if hint is not None and not of_one_rank:
        beyond = np.maximum(hint.slowest_seconds + relaxed_starts - priced.phase_window_seconds, 0.0)
        relaxed = beyond * priced.phase_weight
    found = []
    for p in np.flatnonzero((priced.phase_weight > 0) & (slowest > 0)).tolist():
        load = rank_time if of_one_rank else seconds[:, p]
        near = np.flatnonzero(load >= np.max(load) * (1 - NEAR_SLOWEST))
        found.append(
            BindingPhase(
                phase=Phase(p),
                seconds=float(slowest[p]),
                mean_seconds=float(np.mean(seconds[:, p])),
                hidden_seconds=float(hidden[p]),
                exposed_seconds=float(exposed[p]),
                objective_share=float(exposed[p]) / objective if objective > 0 else 0.0,
                ranks=tuple(near.tolist()),
                relaxed_seconds=None if relaxed is None else float(relaxed[p]),
                evidence=Evidence(int(evidence[p])),
            )
        )
    return tuple(found)


def exposed_seconds(priced: SolverProblem, seconds: Floats) -> Floats:
    """Return what the objective has of every phase, shape (P,), which adds up to it; ``seconds`` are (R, P)."""
    slowest, hidden = _slowest_and_hidden(priced, seconds)
    exposed: Floats = (slowest - hidden) * priced.phase_weight
    return exposed


def _slowest_and_hidden(priced: SolverProblem, seconds: Floats) -> tuple[Floats, Floats]:
    """Return the seconds of every phase's slowest rank and what of them is hidden, (P,) each."""
    if priced.objective is Objective.MAX_RANK_TIME:
        slowest = seconds[int(np.argmax(seconds @ priced.phase_weight))]
        return slowest, np.zeros_like(slowest)
    slowest = np.max(seconds, axis=0)
    return slowest, np.minimum(slowest, priced.phase_window_seconds)


def seconds_on_binding_ranks(priced: SolverProblem, assignment: Assignment, seconds: Floats) -> Floats:
    """Return what each table puts on the slowest ranks of the exposed phases, seconds, shape (T,).

    ``seconds`` are what the ranks take, shape (R, P). For step_time every phase has its own slowest rank, and
    one that dense compute hides in full weighs nothing; for max_rank_time one rank is the slowest.
    """
    if priced.objective is Objective.MAX_RANK_TIME:
        slowest = np.full(priced.num_phases, np.argmax(seconds @ priced.phase_weight))
        weight = priced.phase_weight
    else:
        slowest = np.argmax(seconds, axis=0)
        weight = priced.phase_weight * (np.max(seconds, axis=0) > priced.phase_window_seconds)
    shape, site = assignment.piece_shape, assignment.piece_site
    scope, table = priced.shape_scope[shape], priced.shape_table[shape]
    result = np.zeros(priced.num_tables)
    for p in np.flatnonzero(weight > 0).tolist():
        rank = int(slowest[p])
        here = np.array([rank, int(priced.host_of_rank[rank]), 0])[scope] == site
        amounts = priced.shape_seconds[shape[here], p] * priced.rank_slowdown[rank, p] * weight[p]
        result += np.bincount(table[here], weights=amounts, minlength=priced.num_tables)
    return result
