"""What a placement costs, computed from its geometry alone, whoever made it.

Starts from the shards of a plan, not from the options of a search: the same numbers must
come out, which the pipeline checks for every plan before it leaves.
"""

import functools
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import NUM_TIERS, STEP_PHASES, Evidence, Tier
from planner.checkpoint import checkpoint_load, price_work
from planner.domain.placement import Placement
from planner.domain.plan import Evaluation, PhaseLoad, RankLoad, TierLoad
from planner.domain.problem import Problem
from planner.memory import LINES, LedgerRules, ShardLedger, capacity_bytes, ledger_rules, reserved_bytes, shard_ledger
from planner.phases import phase_windows, phases_of
from planner.serving import message_evidence, message_loads, serving_load
from planner.traffic import Traffic, shard_traffic
from planner.work import build_work, data_type_code, table_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def score(problem: Problem, placement: Placement, cost_model: CostModel) -> Evaluation:
    """Price every shard of ``placement`` and add up ranks, phases and bytes.

    The placement must name only tables of the problem and only ranks that exist (``verify``
    says whether it does); it may come from anywhere.
    """
    placed = _PlacedWork.of(problem, placement)
    hardware, read = problem.cluster.hardware.recorded()
    predicted = price_work(problem, placed.work, table=placed.table, cost_model=cost_model, hardware=hardware)
    ledger = placed.ledger(problem, ledger_rules(cost_model.ledger))
    seconds = placed.by_rank(problem, predicted.seconds) * problem.cluster.phase_slowdown()
    seconds += message_loads(problem, seconds)
    lines = placed.by_rank(problem, ledger.by_tier_and_line())
    used = {problem.cluster.device_tier, *(Tier(int(tier)) for tier in np.unique(ledger.tier[ledger.bytes > 0]))}
    evidence = np.maximum(np.max(predicted.evidence, axis=0, initial=0), message_evidence(problem))
    counted, windows = cost_model.counted_phases, phase_windows(problem)
    slowest = seconds.max(axis=0)
    exposed = np.where(counted, np.maximum(slowest - windows, 0.0), 0.0)
    step_time = float(np.sum(exposed))
    # A step takes its dense part, too, and checkpoints are no part of it.
    step_seconds = float(np.sum(exposed[list(STEP_PHASES)])) + problem.dense.window_seconds
    rank_time = seconds @ counted.astype(np.float64)
    max_rank_time = float(np.max(rank_time))
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
        objective_seconds=step_time if problem.objective == "step_time" else max_rank_time,
        step_time_seconds=step_time if is_step else None,
        max_rank_time_seconds=max_rank_time if is_step else None,
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
            for phase in phases_of(problem)
        ),
        tiers=_tier_loads(problem, placed, traffic, step_seconds),
        shard_bytes=placed.shard_bytes(ledger),
        cost_model=f"{cost_model.name}@{cost_model.version}",
        hardware_numbers=frozenset(
            read | {f"{tier.label}_bytes" for tier in used} | {"hbm_bytes_by_rank", "relative_speed_by_rank"}
        ),
        checkpoint=checkpoint,
        serving=serving_load(problem.serving, rank_time),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlacedWork:
    """The shards of a placement by kind: neighbours of one table with equal rows and columns do the same."""

    work: ShardWork  # of each kind
    table: Ints  # (num_kinds,)
    stored_rows: Ints  # (num_kinds,)
    kind: Ints  # (num_shards,) of every shard, in order
    rank: Ints  # (num_shards,)
    is_hot: Bools  # (num_shards,) the hot rows of a table of which another shard stands for all

    @classmethod
    def of(cls, problem: Problem, placement: Placement) -> Self:
        """Tell kinds apart: a plan of a million shards has some thousands."""
        tables, shards, placed = placement.tables, placement.all_shards(), placement.table_of_shards()
        is_new = np.ones(len(shards), dtype=np.bool_)
        different = (placed, shards.num_rows, shards.num_columns, shards.tier)
        is_new[1:] = np.any([np.diff(one) != 0 for one in different], axis=0)
        # Of a table split by heat, the shard of the cold rows stands for both, that of the hot ones for nothing.
        hot_rows = np.array([one.hot_rows for one in tables], dtype=np.int64)
        is_hot = (hot_rows[placed] > 0) & (shards.tier != Tier.DDR)
        of_kind = placed[is_new]
        index = {table.name: i for i, table in enumerate(problem.tables)}
        table = np.array([index[one.name] for one in tables], dtype=np.int64)[of_kind]
        types = [one.data_type or problem.tables[index[one.name]].data_type.name for one in tables]
        shares = [np.nan if one.cache_load_factor is None else one.cache_load_factor for one in tables]
        work = build_work(
            problem,
            table_columns(problem),
            table=table,
            scheme=np.array([one.sharding_type for one in tables], dtype=np.int8)[of_kind],
            kernel=np.array([one.compute_kernel for one in tables], dtype=np.int8)[of_kind],
            shard_columns=shards.num_columns[is_new],
            cache_load_factor=np.array(shares, dtype=np.float64)[of_kind],
            data_type=np.array([data_type_code(name) for name in types], dtype=np.int8)[of_kind],
            hot_row_share=(hot_rows / [problem.tables[index[one.name]].num_embeddings for one in tables])[of_kind],
        )
        return cls(
            work=work,
            table=table,
            stored_rows=np.where(hot_rows[of_kind] > 0, work.table_rows, shards.num_rows[is_new]),
            kind=np.cumsum(is_new) - 1,
            rank=shards.rank,
            is_hot=is_hot,
        )

    def ledger(self, problem: Problem, rules: LedgerRules) -> ShardLedger:
        """Return the bytes of one shard of each kind."""
        return shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, rules=rules)

    def by_rank(self, problem: Problem, of_kind: Floats) -> Floats:
        """Add up over each rank's shards what one of each kind has, shape (num_ranks, number of columns)."""
        total = np.zeros((problem.world_size, of_kind.shape[1]))
        kind, rank = self.kind[~self.is_hot], self.rank[~self.is_hot]
        for column in np.flatnonzero(of_kind.any(axis=0)):
            total[:, column] = np.bincount(rank, weights=of_kind[kind, column], minlength=len(total))
        return total

    def shard_bytes(self, ledger: ShardLedger) -> Floats:
        """Return the bytes of every shard in all tiers together, shape (num_shards,)."""
        hot = ledger.bytes[:, LINES.index("hot_rows")]
        rest = ledger.bytes.sum(axis=1) - hot
        return np.where(self.is_hot, hot[self.kind], rest[self.kind])


def _tier_loads(problem: Problem, placed: _PlacedWork, traffic: Traffic, step_seconds: float) -> tuple[TierLoad, ...]:
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


def bytes_by_tier(problem: Problem, placement: Placement, rules: LedgerRules) -> Floats:
    """Return the bytes that tables take on every rank, shape (num_ranks, NUM_TIERS)."""
    placed = _PlacedWork.of(problem, placement)
    return placed.by_rank(problem, placed.ledger(problem, rules).by_tier())


def _rank_loads(problem: Problem, seconds: Floats, lines: Floats) -> tuple[RankLoad, ...]:
    """Name what every rank has; ``lines`` are its bytes by tier and line, shape (num_ranks, NUM_TIERS x len(LINES))."""
    cluster, device = problem.cluster, problem.cluster.device_tier
    capacity = capacity_bytes(problem)
    tiers = [t for t in Tier if t is device or capacity[:, t].any()]
    by_tier = lines.reshape(len(lines), NUM_TIERS, len(LINES))
    return tuple(
        RankLoad(
            rank=rank,
            host=cluster.host_of(rank),
            seconds={phase: float(seconds[rank, phase]) for phase in phases_of(problem)},
            bytes={t: float(by_tier[rank, t].sum()) for t in tiers},
            capacity_bytes={t: float(capacity[rank, t]) for t in tiers},
            ledger_bytes={t: dict(zip(LINES, by_tier[rank, t].tolist(), strict=True)) for t in tiers},
            reserved_bytes={device: reserved_bytes(problem, cluster.tier_bytes(rank, device))},
        )
        for rank in range(problem.world_size)
    )
