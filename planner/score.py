"""What a placement costs, computed from its geometry alone, whoever made it.

Starts from the shards of a plan, not from the options of a search: the same numbers must
come out, which the pipeline checks for every plan before it leaves.
"""

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase, Tier
from planner.domain.placement import Placement
from planner.domain.plan import Evaluation, PhaseLoad, RankLoad
from planner.domain.problem import Problem
from planner.memory import LINES, LedgerRules, capacity_bytes, ledger_rules, reserved_bytes, shard_ledger
from planner.phases import phase_windows
from planner.work import build_work, table_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def score(problem: Problem, placement: Placement, cost_model: CostModel) -> Evaluation:
    """Price every shard of ``placement`` and add up ranks, phases and bytes.

    The placement must name only tables of the problem and only ranks that exist (``verify``
    says whether it does); it may come from anywhere.
    """
    work, table, stored_rows, rank = placement_work(problem, placement)
    hardware, read = problem.cluster.hardware.recorded()
    predicted = cost_model.predict(work, hardware)
    ledger = shard_ledger(problem, work, table=table, stored_rows=stored_rows, rules=ledger_rules(cost_model.ledger))
    seconds = np.zeros((problem.world_size, NUM_PHASES))
    np.add.at(seconds, rank, predicted.seconds)
    seconds *= problem.cluster.phase_slowdown()
    lines = np.zeros((problem.world_size, len(LINES)))
    np.add.at(lines, rank, ledger)
    evidence = np.max(predicted.evidence, axis=0, initial=0)
    counted, windows = cost_model.counted_phases, phase_windows(problem)
    slowest = seconds.max(axis=0)
    step_time = float(np.sum(np.where(counted, np.maximum(slowest - windows, 0.0), 0.0)))
    max_rank_time = float(np.max(seconds @ counted.astype(np.float64)))
    sizes = iter(ledger.sum(axis=1).tolist())
    return Evaluation(
        objective=problem.objective,
        objective_seconds=step_time if problem.objective == "step_time" else max_rank_time,
        step_time_seconds=step_time,
        max_rank_time_seconds=max_rank_time,
        ranks=_rank_loads(problem, seconds, lines),
        phases=tuple(
            PhaseLoad(
                phase=phase,
                slowest_rank=int(np.argmax(seconds[:, phase])),
                seconds=float(slowest[phase]),
                mean_seconds=float(seconds[:, phase].mean()),
                hidden_seconds=float(min(slowest[phase], windows[phase])),
                counted=bool(counted[phase]),
                evidence=Evidence(int(evidence[phase])),
            )
            for phase in Phase
        ),
        shard_bytes=tuple(tuple(next(sizes) for _ in placed.shards) for placed in placement.tables),
        cost_model=f"{cost_model.name}@{cost_model.version}",
        hardware_numbers=frozenset(
            read | {f"{problem.cluster.device_tier.label}_bytes", "hbm_bytes_by_rank", "relative_speed_by_rank"}
        ),
    )


def placement_work(problem: Problem, placement: Placement) -> tuple[ShardWork, Ints, Ints, Ints]:
    """Return the work of all shards in order, with each one's table, stored rows and rank."""
    index = {table.name: i for i, table in enumerate(problem.tables)}
    flat = [(index[placed.name], placed, shard) for placed in placement.tables for shard in placed.shards]
    table = np.array([t for t, _, _ in flat], dtype=np.int64)
    work = build_work(
        problem,
        table_columns(problem),
        table=table,
        scheme=np.array([placed.sharding_type for _, placed, _ in flat], dtype=np.int8),
        kernel=np.array([placed.compute_kernel for _, placed, _ in flat], dtype=np.int8),
        shard_columns=np.array([shard.num_columns for _, _, shard in flat], dtype=np.int64),
    )
    stored_rows = np.array([shard.num_rows for _, _, shard in flat], dtype=np.int64)
    rank = np.array([shard.rank for _, _, shard in flat], dtype=np.int64)
    return work, table, stored_rows, rank


def device_bytes(problem: Problem, placement: Placement, rules: LedgerRules) -> Floats:
    """Return the bytes that tables take on every rank's device tier, shape (num_ranks,)."""
    work, table, stored_rows, rank = placement_work(problem, placement)
    total = np.zeros(problem.world_size)
    np.add.at(total, rank, shard_ledger(problem, work, table=table, stored_rows=stored_rows, rules=rules).sum(axis=1))
    return total


def _rank_loads(problem: Problem, seconds: Floats, lines: Floats) -> tuple[RankLoad, ...]:
    cluster, tier = problem.cluster, problem.cluster.device_tier
    capacity = capacity_bytes(problem)
    tiers = [t for t in Tier if t is tier or capacity[:, t].any()]
    return tuple(
        RankLoad(
            rank=rank,
            host=cluster.host_of(rank),
            seconds={phase: float(seconds[rank, phase]) for phase in Phase},
            bytes={t: float(lines[rank].sum()) if t is tier else 0.0 for t in tiers},
            capacity_bytes={t: float(capacity[rank, t]) for t in tiers},
            ledger_bytes=dict(zip(LINES, lines[rank].tolist(), strict=True)),
            reserved_bytes=reserved_bytes(problem, cluster.tier_bytes(rank, tier)),
        )
        for rank in range(problem.world_size)
    )
