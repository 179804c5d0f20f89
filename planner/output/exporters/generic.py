"""Builds the plan document of the contract, :mod:`planner.output.plan_document`, and its canonical bytes."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import DIGEST_KEYS, digest_of
from planner.domain.plan.movement import Movement
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.plan import Evaluation, Plan, Prediction
from planner.domain.plan.shards import Shards
from planner.domain.problem.checkpoint import CheckpointLoad
from planner.output.exporters.image import image_of
from planner.output.exporters.shard_text import bare_list, filled_in, full_list, geometry_texts
from planner.output.plan_document import (
    CheckpointDocument,
    EvidenceDocument,
    FallbackDocument,
    GapPartsDocument,
    LoadsDocument,
    MovementDocument,
    PhaseDocument,
    PlanDocument,
    PredictionDocument,
    RankDocument,
    ScoreDocument,
    ServingDocument,
    ShardDocument,
    StartDocument,
    SurrogateDocument,
    TableDocument,
    TerminationDocument,
    TierDocument,
    WholeStepDocument,
)
from planner.pricing.checkpoint import late_upload

MOST_PAIRS = 1_000
MOST_FALLBACKS = 50


def to_document(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> PlanDocument:
    """Return the plan as the JSON document that launchers fetch."""
    document = _without_shards(plan, _geometry(plan), name, spec_digest, hardware_profile)
    for table, placed, sizes in zip(document["tables"], plan.placement.tables, _bytes_by_table(plan), strict=True):
        table["shards"] = _shards(placed.shards, sizes)
    return document


def to_bytes(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> tuple[PlanDocument, bytes]:
    """Return the document without its shards, and the canonical bytes of all of it: those of ``to_document``.

    Takes a fifth of the time, since no shard becomes an object.
    """
    geometry = _geometry(plan)
    document = _without_shards(plan, geometry, name, spec_digest, hardware_profile)
    full = (full_list(texts, sizes) for texts, sizes in zip(geometry, _bytes_by_table(plan), strict=True))
    return document, filled_in(document, full)


def score_document(evaluation: Evaluation) -> ScoreDocument:
    """Return what a placement from anywhere costs."""
    return image_of(ScoreDocument, evaluation, **_loads(evaluation))


def _geometry(plan: Plan) -> list[list[str]]:
    return [geometry_texts(table.shards) for table in plan.placement.tables]


def _digest(document: Mapping[str, object], geometry: Iterable[Iterable[str]]) -> str:
    """Return what :func:`planner.domain.formats.canonical_json.plan_digest` returns for the whole document."""
    core = {key: document[key] for key in DIGEST_KEYS}
    return digest_of(filled_in(core, (bare_list(texts) for texts in geometry)))


def _without_shards(
    plan: Plan, geometry: Iterable[Iterable[str]], name: str, spec_digest: str, hardware_profile: str
) -> PlanDocument:
    """Return the document with empty lists of shards; its digest covers the shards."""
    evaluation = plan.evaluation
    document: PlanDocument = {
        "schema_version": 1,
        "plan_digest": "",
        "spec_digest": spec_digest,
        "name": name,
        "world_size": plan.placement.world_size,
        "ranks_per_host": plan.placement.ranks_per_host,
        "objective": {
            "name": evaluation.objective,
            "seconds": evaluation.objective_seconds,
            "lower_bound_seconds": plan.lower_bound_seconds,
            "relative_gap": plan.relative_gap,
            "step_time_seconds": evaluation.step_time_seconds,
            "max_rank_time_seconds": evaluation.max_rank_time_seconds,
        },
        "termination": image_of(TerminationDocument, plan),
        "tables": [_table(table) for table in plan.placement.tables],
        **_loads(evaluation),
        "surrogate": None if plan.surrogate is None else image_of(SurrogateDocument, plan.surrogate),
        "gap_parts": None if plan.gap_parts is None else image_of(GapPartsDocument, plan.gap_parts),
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
    return {**document, "plan_digest": _digest(document, geometry)}


def _table(table: TablePlacement) -> TableDocument:
    """Return a table with an empty list of shards."""
    document: TableDocument = {
        "name": table.name,
        "sharding_type": table.sharding_type.label,
        "compute_kernel": table.compute_kernel.label,
        "cache_load_factor": table.cache_load_factor,
        "shards": [],
    }
    if table.cache_reserved_bytes is not None:
        document["cache_reserved_bytes"] = table.cache_reserved_bytes
    # What a launcher compares with its live model, if the spec gave it.
    if table.module_path:
        document["module_path"] = table.module_path
    if table.data_type:
        document["data_type"] = table.data_type
    if table.pooling:
        document["pooling"] = table.pooling
    return document


def _shards(shards: Shards, sizes: list[int]) -> list[ShardDocument]:
    labels = Tier.labels()
    return [
        {
            "rank": rank,
            "row_offset": row_offset,
            "num_rows": num_rows,
            "column_offset": column_offset,
            "num_columns": num_columns,
            "tier": labels[tier],
            "bytes": num_bytes,
        }
        for rank, row_offset, num_rows, column_offset, num_columns, tier, num_bytes in zip(
            *shards.columns.tolist(), sizes, strict=True
        )
    ]


def _bytes_by_table(plan: Plan) -> Iterator[list[int]]:
    """Yield the bytes of the shards of each table."""
    sizes, end = np.rint(plan.evaluation.shard_bytes).astype(np.int64), 0
    for table in plan.placement.tables:
        start, end = end, end + len(table.shards)
        yield sizes[start:end].tolist()


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
        "ranks": [image_of(RankDocument, load) for load in evaluation.ranks],
        "phases": [image_of(PhaseDocument, load, name=load.phase.label) for load in evaluation.phases],
        "starts": [image_of(StartDocument, load) for load in evaluation.starts],
        "tiers": [image_of(TierDocument, load, name=load.tier.label) for load in evaluation.tiers],
        "checkpoint": None if evaluation.checkpoint is None else _checkpoint(evaluation.checkpoint),
        "serving": None if evaluation.serving is None else image_of(ServingDocument, evaluation.serving),
        "prediction": None if evaluation.prediction is None else _prediction(evaluation.prediction),
        "whole_step": None if evaluation.whole_step is None else image_of(WholeStepDocument, evaluation.whole_step),
    }


def _checkpoint(load: CheckpointLoad) -> CheckpointDocument:
    late, full, incremental = late_upload(load), load.full, load.incremental
    return image_of(
        CheckpointDocument,
        load,
        warning=None if late is None else f"{late.message}: {late.hint}",
        by_rank=_bytes_of("rank", full.bytes_by_rank, None if incremental is None else incremental.bytes_by_rank),
        by_host=_bytes_of("host", full.bytes_by_host, None if incremental is None else incremental.bytes_by_host),
    )


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
