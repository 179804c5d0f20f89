"""What a placement costs, computed from its geometry alone, wherever it comes from.

Starts from the shards of a plan, not from the options of a search: the same numbers must
come out, which the pipeline checks for every plan before it leaves.
"""

import functools
from dataclasses import replace

import numpy as np

from cost_models.analytic.torchrec import TorchRecModel
from cost_models.arrays import Bools, Floats
from cost_models.protocol import AssignmentModel, CostModel, IntervalModel
from cost_models.vocabulary import Evidence, Phase, Tier
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Evaluation, PhaseLoad, RankLoad, StartLoad, TierLoad
from planner.domain.plan.step_memory import StepMemory
from planner.domain.problem.problem import Problem
from planner.pricing.checkpoint import checkpoint_load
from planner.pricing.hash_tables.dynamicemb import KEYED_LINES, has_keys
from planner.pricing.hash_tables.growth import table_growth
from planner.pricing.hash_tables.slot_columns import SLOT_LINES, has_slots
from planner.pricing.memory.ledger import LINES, capacity_bytes, reserved_by_tier
from planner.pricing.memory.stash_load import stash_load, stashed_by_rank
from planner.pricing.memory.step_memory import step_memory
from planner.pricing.memory.tier_traffic import Traffic, shard_traffic
from planner.pricing.placed_work import PlacedWork
from planner.pricing.predictions.analytic_prediction import analytic_prediction, rank_limits, start_limits
from planner.pricing.predictions.learned_prediction import prediction, rank_seconds
from planner.pricing.price_work import price_work
from planner.pricing.replicas.sync import replica_load, sync_limits, sync_price, sync_start_seconds
from planner.pricing.serving import kv_cache_load, request_evidence, request_loads, serving_load
from planner.pricing.step.index_dedup import index_dedup_limits, index_dedup_load, index_dedup_seconds
from planner.pricing.step.phases import (
    counted_phases,
    exposed_seconds,
    in_phases_of,
    objective_of_ranks,
    phase_windows,
    phases_of,
    step_phases_of,
)
from planner.pricing.step.starts import UsedStarts, starts_of_placement
from planner.pricing.step.whole_step import whole_step


def score(problem: Problem, placement: Placement, cost_model: CostModel) -> Evaluation:
    """Price every shard of ``placement`` and add up ranks, phases and bytes.

    The placement must name only tables of the problem and only ranks that exist (``verify``
    says whether it does); it may come from anywhere. Where ids may be deduplicated, it is also priced with and without.
    """
    found = _score(problem, placement, cost_model)
    if problem.use_index_dedup is False:
        return found
    is_used = placement.use_index_dedup if problem.use_index_dedup is None else problem.use_index_dedup
    other = replace(problem, use_index_dedup=not is_used)
    seconds = {is_used: found.objective_seconds, not is_used: _score(other, placement, cost_model).objective_seconds}
    return replace(
        found, index_dedup=index_dedup_load(problem, seconds_with=seconds[True], seconds_without=seconds[False])
    )


def _score(problem: Problem, placement: Placement, cost_model: CostModel) -> Evaluation:
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    placed = PlacedWork.of(problem, placement)
    hardware, read = problem.cluster.hardware.recorded()
    predicted = price_work(problem, placed.work, table=placed.table, cost_model=cost_model, hardware=hardware)
    ledger = placed.ledger(problem)
    slowdown = in_phases_of(problem, problem.cluster.phase_slowdown(), 1.0)
    seconds = placed.by_rank(problem, predicted.seconds) * slowdown
    starts = starts_of_placement(problem, placement, cost_model, hardware)
    known, plan_prediction, counted = predicted.evidence, None, counted_phases(problem, cost_model)
    limits: tuple[Floats, Floats] | None = None
    if isinstance(cost_model, AssignmentModel):
        together = rank_seconds(placed.shards(), cost_model, hardware)
        known = together.evidence
        seconds, lower, upper = (
            _with_checkpoints(one * slowdown, seconds)
            for one in (together.seconds, together.lower_seconds, together.upper_seconds)
        )
        limits = (lower + starts.by_phase, upper + starts.by_phase)
        plan_prediction = prediction(
            problem,
            placed.shards(),
            cost_model,
            together,
            limits=_of_objective(problem, counted, limits),
            hardware=hardware,
        )
    elif isinstance(cost_model, IntervalModel):
        lower, upper = (
            _with_checkpoints(in_phases_of(problem, one, 0.0) * slowdown, seconds)
            for one in rank_limits(problem, placed, cost_model)
        )
        if problem.is_replicated:
            lower[:, Phase.REPLICA_SYNC], upper[:, Phase.REPLICA_SYNC] = sync_limits(problem, placed)
        least, most = (
            of_starts + of_ids
            for of_starts, of_ids in zip(
                start_limits(problem, placement, placed, cost_model), index_dedup_limits(problem), strict=True
            )
        )
        limits = (lower + request_loads(problem, lower) + least, upper + request_loads(problem, upper) + most)
        plan_prediction = analytic_prediction(
            problem, placed, cost_model, predicted, limits=_of_objective(problem, counted, limits)
        )
    seconds += request_loads(problem, seconds)
    seconds += starts.by_phase
    deduplication, dedup_evidence = index_dedup_seconds(problem, hardware)
    seconds += deduplication
    used = {
        problem.cluster.device_tier,
        *(Tier(tier) for tier in np.flatnonzero(ledger.lines.any(axis=(0, 2))).tolist()),
    }
    by_torchrec = placed.torchrec_bytes(problem) if isinstance(cost_model, TorchRecModel) else None
    evidence = np.maximum.reduce(
        [np.max(known, axis=0, initial=0), request_evidence(problem), starts.evidence_by_phase, dedup_evidence]
    )
    sync = np.zeros(problem.world_size)
    if problem.is_replicated:
        sync_starts, sync_evidence = sync_start_seconds(problem, hardware)
        seconds[:, Phase.REPLICA_SYNC] += sync_starts
        evidence[Phase.REPLICA_SYNC] = max(evidence[Phase.REPLICA_SYNC], sync_evidence)
        sync = seconds[:, Phase.REPLICA_SYNC]
    windows, step_phases = phase_windows(problem), list(step_phases_of(problem))
    slowest = seconds.max(axis=0)
    exposed = exposed_seconds(problem, counted, seconds)
    hidden = np.minimum(slowest, windows)
    # A step takes its dense part, too, and checkpoints are no part of it.
    sparse_seconds = float(np.sum(exposed[step_phases]))
    step_seconds = sparse_seconds + problem.dense.window_seconds
    stashed = stashed_by_rank(problem, placement, placed)
    stash = stash_load(problem, placement, stashed, ledger.by_tier()[:, problem.cluster.device_tier])
    step = whole_step(
        problem,
        hardware,
        stash_wait_seconds=0.0 if stash is None else stash.wait_seconds,
        sparse_seconds=sparse_seconds,
        hidden_seconds={phase: float(hidden[phase]) for phase in step_phases if counted[phase]},
        sparse_evidence=Evidence(max(int(evidence[phase]) for phase in step_phases if counted[phase])),
    )
    rank_time = seconds @ counted.astype(np.float64)
    is_step = problem.serving is None
    traffic = shard_traffic(placed.work, problem.cluster.hardware)
    checkpoint = checkpoint_load(
        problem,
        placed.work,
        table=placed.table,
        stored_rows=placed.stored_rows,
        by_rank=functools.partial(placed.by_rank, problem),
        step_seconds=step_seconds,
        hardware=hardware,
    )
    return Evaluation(
        objective=problem.objective,
        objective_seconds=float(objective_of_ranks(problem, counted, seconds)),
        step_time_seconds=float(np.sum(exposed)) if is_step else None,
        max_rank_time_seconds=float(np.max(rank_time)) if is_step else None,
        ranks=_rank_loads(
            problem,
            seconds,
            ledger.lines,
            by_torchrec,
            placed.lookups_by_rank(problem),
            step_memory(problem, placed, ledger.lines, stashed),
        ),
        phases=tuple(
            PhaseLoad(
                phase=phase,
                slowest_rank=int(np.argmax(seconds[:, phase])),
                seconds=float(slowest[phase]),
                mean_seconds=float(seconds[:, phase].mean()),
                hidden_seconds=float(hidden[phase]),
                counted=bool(counted[phase]),
                evidence=Evidence(int(evidence[phase])),
                lower_seconds=None if limits is None else float(limits[0][:, phase].max()),
                upper_seconds=None if limits is None else float(limits[1][:, phase].max()),
            )
            for phase in phases_of(problem)
        ),
        tiers=_tier_loads(problem, placed, traffic, step_seconds),
        shard_bytes=ledger.shard_bytes,
        cost_model=f"{cost_model.name}@{cost_model.version}",
        hardware_numbers=frozenset(
            read
            | problem.dense.hardware_numbers
            | {f"{tier.label}_bytes" for tier in used}
            | {"hbm_bytes_by_rank", "relative_speed_by_rank"}
            | (set() if stash is None else {"host_link_bytes_per_second", "host_link_return_bytes_per_second"})
        ),
        checkpoint=checkpoint,
        serving=serving_load(problem.serving, rank_time),
        prediction=plan_prediction,
        whole_step=step,
        stash=stash,
        growth=table_growth(problem, placed, ledger.by_tier()),
        starts=_start_loads(starts),
        kv_cache=kv_cache_load(problem),
        replica_groups=replica_load(problem, _sync_bytes(problem, placed), sync),
    )


def _sync_bytes(problem: Problem, placed: PlacedWork) -> Floats:
    """Return the bytes of every rank that are averaged over its replicas each time, (num_ranks,)."""
    work = replace(placed.work, shard_rows=placed.stored_rows)
    held = sync_price(problem, work, problem.cluster.hardware).bytes
    by_rank: Floats = placed.by_rank(problem, held[:, None])[:, 0]
    return by_rank


def _start_loads(starts: UsedStarts) -> tuple[StartLoad, ...]:
    return tuple(
        StartLoad(
            module=kind.module_path,
            sharding_type=kind.scheme,
            phase_seconds={Phase(int(phase)): float(of_kind[phase]) for phase in np.flatnonzero(of_kind)},
            seconds=float(of_kind.sum()),
        )
        for kind, of_kind in zip(starts.kinds, starts.seconds, strict=True)
    )


def _of_objective(problem: Problem, counted: Bools, limits: tuple[Floats, Floats]) -> tuple[float, float]:
    """Return the objective with the seconds of every rank and phase at their limits."""
    lower, upper = (float(objective_of_ranks(problem, counted, one)) for one in limits)
    return lower, upper


def _with_checkpoints(seconds: Floats, added_up: Floats) -> Floats:
    """Return the seconds of ranks with those of checkpoints, which no cost model prices."""
    with_them = seconds.copy()
    with_them[:, Phase.CHECKPOINT] = added_up[:, Phase.CHECKPOINT]
    return with_them


def _tier_loads(problem: Problem, placed: PlacedWork, traffic: Traffic, step_seconds: float) -> tuple[TierLoad, ...]:
    """Return every tier that is read from, on its busiest rank."""
    read, written, operations, busy = (
        placed.by_rank(problem, amount)
        for amount in (traffic.read_bytes, traffic.written_bytes, traffic.operations, traffic.busy_seconds)
    )
    loads = []
    for tier in Tier:
        if read[:, tier].any():
            rank = int(np.argmax(busy[:, tier]))
            loads.append(
                TierLoad(
                    tier=tier,
                    busiest_rank=rank,
                    read_bytes=float(read[rank, tier]),
                    written_bytes=float(written[rank, tier]),
                    operations=float(operations[rank, tier]),
                    busy_seconds=float(busy[rank, tier]),
                    utilization=float(busy[rank, tier] / step_seconds) if step_seconds > 0 else np.inf,
                )
            )
    return tuple(loads)


def bytes_by_tier(problem: Problem, placement: Placement) -> Floats:
    """Return the bytes that tables take on every rank, shape (num_ranks, NUM_TIERS)."""
    return PlacedWork.of(problem, placement).ledger(problem).by_tier()


def _rank_loads(
    problem: Problem,
    seconds: Floats,
    by_tier: Floats,
    by_torchrec: Floats | None,
    lookups: tuple[Floats, Floats],
    memory: tuple[StepMemory, ...] | None,
) -> tuple[RankLoad, ...]:
    """Name what every rank has.

    ``by_tier`` are its bytes by tier and line, shape (num_ranks, NUM_TIERS, len(LINES)), ``by_torchrec`` those that
    TorchRec's planner believes in, (num_ranks, NUM_TIERS), and ``lookups`` its lookups and the bytes of the ids that
    reach it, (num_ranks,) each; ``memory`` is what its device holds in each phase of a step.
    """
    cluster, device = problem.cluster, problem.cluster.device_tier
    capacity = capacity_bytes(problem)
    tiers = [t for t in Tier if t is device or capacity[:, t].any()]
    left_out = {*(() if has_slots(problem) else SLOT_LINES), *(() if has_keys(problem) else KEYED_LINES)}
    return tuple(
        RankLoad(
            rank=rank,
            host=cluster.host_of(rank),
            seconds={phase: float(seconds[rank, phase]) for phase in phases_of(problem)},
            bytes={t: float(by_tier[rank, t].sum()) for t in tiers},
            capacity_bytes={t: float(capacity[rank, t]) for t in tiers},
            ledger_bytes={
                t: {
                    line: held
                    for line, held in zip(LINES, by_tier[rank, t].tolist(), strict=True)
                    if line not in left_out
                }
                for t in tiers
            },
            reserved_bytes=reserved_by_tier(problem, rank),
            lookups=float(lookups[0][rank]),
            id_bytes=float(lookups[1][rank]),
            torchrec_bytes=None if by_torchrec is None else {t: float(by_torchrec[rank, t]) for t in tiers},
            step_memory=None if memory is None else memory[rank],
        )
        for rank in range(problem.world_size)
    )
