"""What the phases of every rank consist of: seconds by sharding type, as prices know them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from cost_models.protocol import AssignmentModel, CostModel
from cost_models.vocabulary import Phase
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.output.documents.step import RankDocument
from planner.pricing.placed_work import PlacedWork
from planner.pricing.price_work import price_work
from planner.pricing.step.phases import in_phases_of
from planner.pricing.step.starts import starts_of_placement

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseParts:
    """Seconds of the tables of a module with one sharding type, of every such pair."""

    module: str
    sharding_type: str
    seconds: Floats  # (num_ranks, num_phases), with starts


def phase_parts(problem: Problem, placement: Placement, cost_model: CostModel) -> tuple[PhaseParts, ...]:
    """Return the parts of the seconds of every rank, in the order in which tables name them.

    They add up to the seconds of ranks, but for what belongs to no table: messages of a request, the search for
    repeated ids, starts of averages over replicas. A cost model that prices whole ranks knows no parts: ``()``.
    """
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    if isinstance(cost_model, AssignmentModel):
        return ()
    placed, hardware = PlacedWork.of(problem, placement), problem.cluster.hardware
    priced = price_work(problem, placed.work, table=placed.table, cost_model=cost_model, hardware=hardware)
    slowdown = in_phases_of(problem, problem.cluster.phase_slowdown(), 1.0)
    modules = [table.module_path for table in problem.tables]
    keys = [
        (modules[table], scheme)
        for table, scheme in zip(placed.table.tolist(), placed.work.scheme.tolist(), strict=True)
    ]
    of_key = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    owner = np.array([of_key[key] for key in keys], dtype=np.int64)
    labels = {int(one.sharding_type): one.sharding_type.label for one in placement.tables}
    seconds = [
        placed.by_rank(problem, np.where((owner == index)[:, None], priced.seconds, 0.0)) * slowdown
        for index in of_key.values()
    ]
    starts = starts_of_placement(problem, placement, cost_model, hardware)
    for kind, of_kind in zip(starts.kinds, starts.seconds, strict=True):
        seconds[of_key[kind.module_path, int(kind.scheme)]] += of_kind
    return tuple(
        PhaseParts(module=module, sharding_type=labels[scheme], seconds=held)
        for (module, scheme), held in zip(of_key, seconds, strict=True)
    )


def fitting(parts: tuple[PhaseParts, ...], loads: Sequence[RankDocument]) -> tuple[PhaseParts, ...]:
    """Return parts that fit into the seconds of their ranks; none if prices have changed since the plan was made."""
    for phase in Phase:
        stated = np.array([load["seconds"].get(phase.label, 0.0) for load in loads])
        found = sum((part.seconds[:, phase] for part in parts if phase < part.seconds.shape[1]), np.zeros(len(loads)))
        if (found > stated * (1 + _TOLERANCE) + 1e-12).any():
            return ()
    return parts


def seconds_of_phase(part: PhaseParts, phase: str) -> Floats:
    """Return what a part takes of a phase on every rank, (num_ranks,)."""
    number = Phase.from_label(phase)
    if number >= part.seconds.shape[1]:
        return np.zeros(len(part.seconds))
    found: Floats = part.seconds[:, number]
    return found
