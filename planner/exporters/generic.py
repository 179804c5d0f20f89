"""The plan document of the contract: plain JSON, versioned, with its digest."""

import numpy as np

from planner.canonical import plan_digest
from planner.domain.movement import Movement
from planner.domain.placement import TablePlacement
from planner.domain.plan import Evaluation, Plan

SCHEMA_VERSION = 1
MOST_PAIRS = 1_000


def to_document(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> dict[str, object]:
    """Return the plan as the JSON document that launchers fetch."""
    evaluation = plan.evaluation
    document: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
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
        "termination": {"reason": plan.reason, "limit": plan.limit, "detail": plan.detail},
        "tables": [
            {
                "name": table.name,
                **_model_facts(table),
                "sharding_type": table.sharding_type.label,
                "compute_kernel": table.compute_kernel.label,
                "cache_load_factor": table.cache_load_factor,
                "shards": [
                    {
                        "rank": shard.rank,
                        "row_offset": shard.row_offset,
                        "num_rows": shard.num_rows,
                        "column_offset": shard.column_offset,
                        "num_columns": shard.num_columns,
                        "tier": shard.tier.label,
                        "bytes": round(size),
                    }
                    for shard, size in zip(table.shards, sizes, strict=True)
                ],
            }
            for table, sizes in zip(plan.placement.tables, evaluation.shard_bytes, strict=True)
        ],
        **loads(evaluation),
        "movement": None if plan.movement is None else movement_document(plan.movement),
        "provenance": {
            "cost_model": evaluation.cost_model,
            "hardware_profile": hardware_profile,
            "partitioner": plan.partitioner,
            "evidence": {
                item.subject: {"value": item.value, "evidence": item.evidence, "source": item.source}
                for item in plan.assumptions
            },
            "seed": plan.seed,
            "solver_seconds": plan.solver_seconds,
            "versions": dict(plan.versions),
        },
    }
    return {"plan_digest": plan_digest(document), **document}


def movement_document(movement: Movement) -> dict[str, object]:
    """Return ``movement`` of a plan document; of the pairs of ranks at most the largest ``MOST_PAIRS``."""
    most_sent = int(np.argmax(movement.sent_bytes))
    most_received = int(np.argmax(movement.received_bytes))
    largest = sorted(movement.pairs, key=lambda pair: (-pair.bytes, pair.source, pair.target))[:MOST_PAIRS]
    evidence = movement.link_evidence
    return {
        "previous_plan_digest": movement.previous_digest,
        "moved_bytes": round(movement.moved_bytes),
        "kept_bytes": round(movement.kept_bytes),
        "new_bytes": round(movement.new_bytes),
        "most_sent": {"rank": most_sent, "bytes": round(movement.sent_bytes[most_sent])},
        "most_received": {"rank": most_received, "bytes": round(movement.received_bytes[most_received])},
        "num_rank_pairs": len(movement.pairs),
        "by_rank_pair": [
            {"from": pair.source, "to": pair.target, "bytes": round(pair.bytes)}
            for pair in sorted(largest, key=lambda pair: (pair.source, pair.target))
        ],
        "seconds": movement.seconds,
        "link_evidence": None if evidence is None else evidence.label,
        "previous_objective_seconds": movement.previous_seconds,
        "previous_issue": movement.previous_issue or None,
        "saved_seconds_per_step": movement.saved_seconds_per_step,
        "break_even_steps": movement.break_even_steps,
        "charged_seconds_per_step": movement.charged_seconds,
        "remaining_steps": movement.remaining_steps,
        "max_moved_bytes": movement.max_moved_bytes,
    }


def loads(evaluation: Evaluation) -> dict[str, object]:
    """Return ``ranks`` and ``phases`` of a plan document, for the score of any placement."""
    return {
        "ranks": [
            {
                "rank": load.rank,
                "host": load.host,
                "seconds": {phase.label: value for phase, value in load.seconds.items()},
                "bytes": {tier.label: round(value) for tier, value in load.bytes.items()},
                "capacity_bytes": {tier.label: round(value) for tier, value in load.capacity_bytes.items()},
                "ledger_bytes": {line: round(value) for line, value in load.ledger_bytes.items()},
                "reserved_bytes": {line: round(value) for line, value in load.reserved_bytes.items()},
            }
            for load in evaluation.ranks
        ],
        "phases": [
            {
                "name": load.phase.label,
                "slowest_rank": load.slowest_rank,
                "seconds": load.seconds,
                "mean_seconds": load.mean_seconds,
                "hidden_seconds": load.hidden_seconds,
                "counted": load.counted,
                "evidence": load.evidence.label,
            }
            for load in evaluation.phases
        ],
    }


def _model_facts(table: TablePlacement) -> dict[str, str]:
    """What a launcher compares with its live model, where the spec gave it."""
    facts = {"module_path": table.module_path, "data_type": table.data_type, "pooling": table.pooling}
    return {key: value for key, value in facts.items() if value}
