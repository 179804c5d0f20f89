"""Builds the plan document of the contract, :mod:`planner.output.documents.plan`, in compact form."""

from collections.abc import Iterator
from typing import TypedDict, cast

import numpy as np

from cost_models.arrays import Ints
from planner.domain.formats.canonical_json import plan_digest
from planner.domain.formats.compaction import columns_of, groups_of
from planner.domain.plan.baseline import Baseline
from planner.domain.plan.movement import Movement
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.plan import Evaluation, Plan, Prediction
from planner.domain.problem.checkpoint import CheckpointLoad
from planner.output.documents.checkpoint import CheckpointDocument
from planner.output.documents.compact_plan import CompactCheckpointDocument, CompactPlanDocument, CompactTableDocument
from planner.output.documents.growth import TableGrowthDocument
from planner.output.documents.index_dedup import IndexDedupDocument, IndexDedupSettingDocument
from planner.output.documents.kv_cache import KvCacheDocument, KvCacheSizeDocument
from planner.output.documents.plan import LoadsDocument, PlanTerminationDocument, ScoreDocument, StepLoadsDocument
from planner.output.documents.replica_groups import GroupSizeDocument, ReplicaGroupsDocument, ReplicaSyncDocument
from planner.output.documents.search import (
    EvidenceDocument,
    FallbackDocument,
    GapPartsDocument,
    MovementDocument,
    OrderedObjectiveDocument,
    PredictionDocument,
    SurrogateDocument,
)
from planner.output.documents.step import (
    PhaseDocument,
    RankDocument,
    ServingDocument,
    StartDocument,
    StashDocument,
    TierDocument,
    WholeStepDocument,
)
from planner.output.documents.verdict import BaselineDocument, PlanVerdictDocument
from planner.output.explain.text.verdict import verdict_text
from planner.output.explain.verdict import verdict_of
from planner.output.exporters.image import image_of
from planner.pricing.checkpoint import late_upload


class _Groups(TypedDict, total=False):
    """The member of a plan that only plans with sharding groups have."""

    replica_groups: ReplicaGroupsDocument


MOST_PAIRS = 1_000
MOST_FALLBACKS = 50


def to_document(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> CompactPlanDocument:
    """Return the plan as a JSON document in compact form.

    No shard becomes an object: :func:`planner.domain.formats.compact_form.long_parts` writes those of the long form.
    """
    evaluation = plan.evaluation
    tables = zip(plan.placement.tables, _bytes_by_table(plan), strict=True)
    document: CompactPlanDocument = {
        "form": "compact",
        "schema_version": 1,
        "plan_digest": "",
        "spec_digest": spec_digest,
        "name": name,
        "world_size": plan.placement.world_size,
        "ranks_per_host": plan.placement.ranks_per_host,
        **_replica_groups(evaluation),
        "objective": {
            "name": evaluation.objective,
            "seconds": evaluation.objective_seconds,
            "lower_bound_seconds": plan.lower_bound_seconds,
            "relative_gap": plan.relative_gap,
            "step_time_seconds": evaluation.step_time_seconds,
            "max_rank_time_seconds": evaluation.max_rank_time_seconds,
        },
        "termination": image_of(PlanTerminationDocument, plan),
        "tables": [_table(table, sizes) for table, sizes in tables],
        **_step_loads(evaluation, plan),  # type: ignore[typeddict-item]  # pod_size follows below
        "ranks": columns_of([image_of(RankDocument, load) for load in evaluation.ranks], "rank"),
        "checkpoint": None if evaluation.checkpoint is None else _compact_checkpoint(evaluation.checkpoint),
        "verdict": None,
        "baselines": [_baseline(one, evaluation.objective_seconds) for one in plan.baselines] or None,
        "surrogate": None if plan.surrogate is None else image_of(SurrogateDocument, plan.surrogate),
        "gap_parts": None if plan.gap_parts is None else image_of(GapPartsDocument, plan.gap_parts),
        "objectives": [image_of(OrderedObjectiveDocument, goal) for goal in plan.goals] or None,
        "movement": None if plan.movement is None else _movement(plan.movement),
        "provenance": {
            "cost_model": evaluation.cost_model,
            "hardware_profile": hardware_profile,
            "partitioner": plan.partitioner,
            "evidence": {item.subject: image_of(EvidenceDocument, item) for item in plan.assumptions},
            "seed": plan.seed,
            "solver_seconds": plan.solver_seconds,
            "found_seconds": plan.found_seconds,
            "late_gain_seconds": plan.late_gain_seconds,
            "versions": dict(plan.versions),
        },
    }
    if plan.placement.pod_size is not None:
        document["pod_size"] = plan.placement.pod_size
    if plan.placement.kv_cache_bytes is not None:
        document["kv_cache_bytes"] = round(plan.placement.kv_cache_bytes)
    if plan.placement.use_index_dedup:
        document["use_index_dedup"] = True
    verdict = verdict_of(document)
    document["verdict"] = image_of(PlanVerdictDocument, verdict, text=verdict_text(verdict))
    return {**document, "plan_digest": plan_digest(document)}


def score_document(evaluation: Evaluation) -> ScoreDocument:
    """Return what a placement from anywhere costs."""
    loads = _loads(evaluation)
    optional = dict.fromkeys(("replica_sync", "kv_cache", "index_dedup"))
    document = image_of(ScoreDocument, evaluation, **{**optional, **loads})
    return cast(
        "ScoreDocument", {name: value for name, value in document.items() if name in loads or name not in optional}
    )


def _replica_groups(evaluation: Evaluation) -> _Groups:
    """Return how groups divide the ranks, as a member of the plan where there are any."""
    groups = evaluation.replica_groups
    return {} if groups is None else {"replica_groups": image_of(ReplicaGroupsDocument, groups)}


def _table(table: TablePlacement, sizes: Ints) -> CompactTableDocument:
    """Return a table with its shards in groups; ``sizes`` are the bytes of each shard, of shape (num_shards,)."""
    document: CompactTableDocument = {
        "name": table.name,
        "sharding_type": table.sharding_type.label,
        "compute_kernel": table.compute_kernel.label,
        "cache_load_factor": table.cache_load_factor,
        "shards": groups_of(table.shards, sizes),
    }
    if table.stash_weights:
        document["stash_weights"] = True
    if table.cache_reserved_bytes is not None:
        document["cache_reserved_bytes"] = table.cache_reserved_bytes
    # What a launcher compares with its live model, if the spec gave it.
    if table.module_path:
        document["module_path"] = table.module_path
    if table.data_type:
        document["data_type"] = table.data_type
    if table.pooling:
        document["pooling"] = table.pooling
    if table.hash_table_mode:
        document["hash_table_mode"] = table.hash_table_mode
    return document


def _bytes_by_table(plan: Plan) -> Iterator[Ints]:
    """Yield the bytes of the shards of each table."""
    sizes, end = np.rint(plan.evaluation.shard_bytes).astype(np.int64), 0
    for table in plan.placement.tables:
        start, end = end, end + len(table.shards)
        yield sizes[start:end]


def _baseline(baseline: Baseline, plan_seconds: float) -> BaselineDocument:
    seconds = baseline.objective_seconds
    return image_of(
        BaselineDocument,
        baseline,
        ratio=None if seconds is None or plan_seconds <= 0 else seconds / plan_seconds,
        issue=baseline.issue or None,
        detail=baseline.detail or None,
    )


def _movement(movement: Movement) -> MovementDocument:
    """Return what moves; of the pairs of ranks at most the largest ``MOST_PAIRS``."""
    most_sent = int(np.argmax(movement.sent_bytes))
    most_received = int(np.argmax(movement.received_bytes))
    largest = sorted(movement.pairs, key=lambda pair: (-pair.bytes, pair.source, pair.target))[:MOST_PAIRS]
    return image_of(
        MovementDocument,
        movement,
        previous_plan_digest=movement.previous_digest,
        most_sent={"rank": most_sent, "bytes": round(movement.sent_bytes[most_sent])},
        most_received={"rank": most_received, "bytes": round(movement.received_bytes[most_received])},
        num_rank_pairs=len(movement.pairs),
        by_rank_pair=[
            {"from": pair.source, "to": pair.target, "bytes": round(pair.bytes)}
            for pair in sorted(largest, key=lambda pair: (pair.source, pair.target))
        ],
        previous_objective_seconds=movement.previous_seconds,
        previous_issue=movement.previous_issue or None,
        charged_seconds_per_step=movement.charged_seconds,
    )


def _loads(evaluation: Evaluation) -> LoadsDocument:
    return {
        **_step_loads(evaluation),
        "ranks": [image_of(RankDocument, load) for load in evaluation.ranks],
        "checkpoint": None if evaluation.checkpoint is None else _checkpoint(evaluation.checkpoint),
    }


def _step_loads(evaluation: Evaluation, plan: Plan | None = None) -> StepLoadsDocument:
    loads: StepLoadsDocument = {
        "phases": [image_of(PhaseDocument, load, name=load.phase.label) for load in evaluation.phases],
        "starts": [image_of(StartDocument, load) for load in evaluation.starts],
        "tiers": [image_of(TierDocument, load, name=load.tier.label) for load in evaluation.tiers],
        "serving": None if evaluation.serving is None else image_of(ServingDocument, evaluation.serving),
        "prediction": None if evaluation.prediction is None else _prediction(evaluation.prediction),
        "whole_step": None if evaluation.whole_step is None else image_of(WholeStepDocument, evaluation.whole_step),
        "stash": None if evaluation.stash is None else image_of(StashDocument, evaluation.stash),
    }
    if evaluation.growth:
        loads["growth"] = [image_of(TableGrowthDocument, one) for one in evaluation.growth]
    if evaluation.replica_groups is not None:
        considered = [image_of(GroupSizeDocument, size) for size in (() if plan is None else plan.group_sizes)]
        loads["replica_sync"] = image_of(ReplicaSyncDocument, evaluation.replica_groups, sizes=considered)
    if evaluation.kv_cache is not None:
        compared = [image_of(KvCacheSizeDocument, size) for size in (() if plan is None else plan.kv_cache_sizes)]
        loads["kv_cache"] = image_of(KvCacheDocument, evaluation.kv_cache, sizes=compared)
    if evaluation.index_dedup is not None:
        listed = [
            image_of(IndexDedupSettingDocument, one) for one in (() if plan is None else plan.index_dedup_settings)
        ]
        loads["index_dedup"] = image_of(IndexDedupDocument, evaluation.index_dedup, settings=listed)
    return loads


def _checkpoint(load: CheckpointLoad) -> CheckpointDocument:
    late, full, incremental = late_upload(load), load.full, load.incremental
    return image_of(
        CheckpointDocument,
        load,
        warning=None if late is None else f"{late.message}: {late.hint}",
        by_rank=_bytes_of("rank", full.bytes_by_rank, None if incremental is None else incremental.bytes_by_rank),
        by_host=_bytes_of("host", full.bytes_by_host, None if incremental is None else incremental.bytes_by_host),
    )


def _compact_checkpoint(load: CheckpointLoad) -> CompactCheckpointDocument:
    listed = _checkpoint(load)
    by_rank, by_host = columns_of(listed["by_rank"], "rank"), columns_of(listed["by_host"], "host")
    return {**listed, "by_rank": by_rank, "by_host": by_host}


def _bytes_of(holder: str, full: tuple[float, ...], incremental: tuple[float, ...] | None) -> list[dict[str, object]]:
    return [
        {
            holder: number,
            "full_bytes": round(num_bytes),
            "incremental_bytes": None if incremental is None else round(incremental[number]),
        }
        for number, num_bytes in enumerate(full)
    ]


def _prediction(prediction: Prediction) -> PredictionDocument:
    """Return what a learned model says of itself; of the fallbacks at most ``MOST_FALLBACKS``."""
    return image_of(
        PredictionDocument,
        prediction,
        shares={
            "learned": prediction.learned_share,
            "measured": prediction.measured_share,
            "analytic": prediction.analytic_share,
        },
        num_fallbacks=len(prediction.fallbacks),
        fallbacks=[image_of(FallbackDocument, one) for one in prediction.fallbacks[:MOST_FALLBACKS]],
    )
