"""What a placement costs, computed from its geometry alone, whoever made it.

Starts from the shards of a plan, not from the options of a search: the same numbers must
come out, which the pipeline checks for every plan before it leaves.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import CostModel, ShardWork
from cost_models.vocabulary import Evidence, Phase, Tier
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
    placed = _PlacedWork.of(problem, placement)
    hardware, read = problem.cluster.hardware.recorded()
    predicted = cost_model.predict(placed.work, hardware)
    ledger = placed.ledger(problem, ledger_rules(cost_model.ledger))
    seconds = placed.by_rank(problem, predicted.seconds) * problem.cluster.phase_slowdown()
    lines = placed.by_rank(problem, ledger)
    evidence = np.max(predicted.evidence, axis=0, initial=0)
    counted, windows = cost_model.counted_phases, phase_windows(problem)
    slowest = seconds.max(axis=0)
    step_time = float(np.sum(np.where(counted, np.maximum(slowest - windows, 0.0), 0.0)))
    max_rank_time = float(np.max(seconds @ counted.astype(np.float64)))
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
        shard_bytes=ledger.sum(axis=1)[placed.kind],
        cost_model=f"{cost_model.name}@{cost_model.version}",
        hardware_numbers=frozenset(
            read | {f"{problem.cluster.device_tier.label}_bytes", "hbm_bytes_by_rank", "relative_speed_by_rank"}
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlacedWork:
    """The shards of a placement by kind: neighbours of one table with equal rows and columns do the same."""

    work: ShardWork  # of each kind
    table: Ints  # (num_kinds,)
    stored_rows: Ints  # (num_kinds,)
    kind: Ints  # (num_shards,) of every shard, in order
    rank: Ints  # (num_shards,)

    @classmethod
    def of(cls, problem: Problem, placement: Placement) -> Self:
        """Tell kinds apart: a plan of a million shards has some thousands."""
        tables, shards, placed = placement.tables, placement.all_shards(), placement.table_of_shards()
        is_new = np.ones(len(shards), dtype=np.bool_)
        is_new[1:] = np.any([np.diff(one) != 0 for one in (placed, shards.num_rows, shards.num_columns)], axis=0)
        of_kind = placed[is_new]
        index = {table.name: i for i, table in enumerate(problem.tables)}
        table = np.array([index[one.name] for one in tables], dtype=np.int64)[of_kind]
        work = build_work(
            problem,
            table_columns(problem),
            table=table,
            scheme=np.array([one.sharding_type for one in tables], dtype=np.int8)[of_kind],
            kernel=np.array([one.compute_kernel for one in tables], dtype=np.int8)[of_kind],
            shard_columns=shards.num_columns[is_new],
        )
        return cls(
            work=work,
            table=table,
            stored_rows=shards.num_rows[is_new],
            kind=np.cumsum(is_new) - 1,
            rank=shards.rank,
        )

    def ledger(self, problem: Problem, rules: LedgerRules) -> Floats:
        """Return the bytes of one shard of each kind by line, shape (num_kinds, len(LINES))."""
        return shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, rules=rules)

    def by_rank(self, problem: Problem, of_kind: Floats) -> Floats:
        """Add up over each rank's shards what one of each kind has, shape (num_ranks, number of columns)."""
        columns = (np.bincount(self.rank, weights=one[self.kind], minlength=problem.world_size) for one in of_kind.T)
        return np.stack(list(columns), axis=1)


def device_bytes(problem: Problem, placement: Placement, rules: LedgerRules) -> Floats:
    """Return the bytes that tables take on every rank's device tier, shape (num_ranks,)."""
    placed = _PlacedWork.of(problem, placement)
    return placed.by_rank(problem, placed.ledger(problem, rules).sum(axis=1, keepdims=True))[:, 0]


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
