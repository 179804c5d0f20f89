"""Deduplicated ids: what the plan asks of the job, and whether its sharders do so."""

from .plan_types import PlanDocument
from .verdicts import Difference, refuse


def embedding_collection_sharder_arguments(document: PlanDocument) -> dict[str, bool]:
    """Return what ``EmbeddingCollectionSharder`` gets of a plan."""
    return {"use_index_dedup": bool(document.get("use_index_dedup"))}


def index_dedup_differences(document: PlanDocument, used: bool | None) -> list[Difference]:
    """Return where the plan and the job's sharder disagree; ``used`` is ``None`` where the job has no sequences."""
    planned = embedding_collection_sharder_arguments(document)["use_index_dedup"]
    if used is None or used == planned:
        return []
    return [
        refuse(
            f"the plan is for use_index_dedup {planned}, the job's EmbeddingCollectionSharder has {used}; make it with"
            f" use_index_dedup={planned}, or plan with model.use_index_dedup {'on' if used else 'off'}"
        )
    ]
