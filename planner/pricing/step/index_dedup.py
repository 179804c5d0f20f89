"""What leaving out repeated ids takes on every rank, whatever lies where; what it saves is in the work of shards.

Searches and bounds leave these seconds out: they take them off what dense compute hides of a phase, and the rest, the
same for every plan, is added in the end (:mod:`planner.pricing.step.fixed_seconds`).
"""

from dataclasses import replace

import numpy as np

from cost_models.analytic.index_dedup import dedup_seconds
from cost_models.analytic.sizes import DEFAULT_ELEMENT_BYTES
from cost_models.arrays import Codes, Floats
from cost_models.hardware.hardware import Hardware, Limit
from cost_models.vocabulary import Evidence, Phase
from planner.access.table_columns import table_columns
from planner.domain.plan.index_dedup import IndexDedupLoad
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.pricing.step.phases import in_phases_of, num_phases, phase_windows


def index_dedup_seconds(problem: Problem, hardware: Hardware) -> tuple[Floats, Codes]:
    """Return what every rank spends in each phase, and the weakest number behind it, (num_phases,) each."""
    columns = table_columns(problem)
    unique = columns.deduplicated
    if unique is None:
        nothing = np.zeros(num_phases(problem))
        return nothing, np.full(nothing.shape, Evidence.MEASURED, dtype=np.int8)
    element = DEFAULT_ELEMENT_BYTES if problem.output_dtype is None else DATA_TYPES[problem.output_dtype].element_bytes
    some = unique.is_deduplicated
    row_bytes = columns.columns[some].astype(np.float64) * element
    found = dedup_seconds(unique.batch_ids[some], unique.unique_ids[some], row_bytes, hardware)
    return in_phases_of(problem, found.seconds, 0.0), in_phases_of(problem, found.evidence, Evidence.MEASURED)


def index_dedup_limits(problem: Problem) -> tuple[Floats, Floats]:
    """Return the lower and the upper seconds of every rank in each phase, (num_phases,) each."""
    lower, upper = (
        index_dedup_seconds(problem, problem.cluster.hardware.at_limit(limit))[0]
        for limit in (Limit.FASTEST, Limit.SLOWEST)
    )
    return lower, upper


def index_dedup_load(problem: Problem, *, seconds_with: float, seconds_without: float) -> IndexDedupLoad:
    """Return what deduplication saves, and what it takes, of a plan with these objectives with it and without."""
    with_dedup = replace(problem, use_index_dedup=True)
    unique = table_columns(with_dedup).deduplicated
    assert unique is not None
    some = unique.is_deduplicated
    taken, _ = index_dedup_seconds(with_dedup, problem.cluster.hardware)
    return IndexDedupLoad(
        batch_ids=float(unique.batch_ids[some].sum()),
        unique_ids=float(unique.unique_ids[some].sum()),
        unique_seconds=float(taken[Phase.INPUT_COMM]),
        repeat_seconds=float(taken[Phase.FORWARD_COMM]),
        merge_seconds=float(taken[Phase.BACKWARD_COMM]),
        objective_seconds_with=seconds_with,
        objective_seconds_without=seconds_without,
    )


def free_windows(problem: Problem) -> Floats:
    """Return the seconds of each phase that are hidden beyond those of deduplication, (num_phases,), never negative."""
    taken, _ = index_dedup_seconds(problem, problem.cluster.hardware)
    return np.maximum(phase_windows(problem) - taken, 0.0)


def exposed_dedup_seconds(problem: Problem) -> float:
    """Return what deduplication adds to the objective of every plan, apart from what it takes off hidden seconds."""
    if problem.objective == "step_time":
        return exposed_in_step(problem)
    taken, _ = index_dedup_seconds(problem, problem.cluster.hardware)
    return float(np.sum(taken))


def exposed_in_step(problem: Problem) -> float:
    """Return what deduplication adds to every step, apart from what it takes off hidden seconds.

    With ``c`` its seconds in a phase, ``w`` those that are hidden and ``s`` the slowest rank's others,
    ``max(s + c - w, 0) = max(s - max(w - c, 0), 0) + max(c - w, 0)``.
    """
    taken, _ = index_dedup_seconds(problem, problem.cluster.hardware)
    return float(np.sum(np.maximum(taken - phase_windows(problem), 0.0)))
