"""What a plan document states of deduplicated ids."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class IndexDedupSettingDocument(TypedDict):
    """Plans with deduplication, or plans without."""

    use_index_dedup: Annotated[bool, "Whether repeated ids of sequences are left out.", Example(True)]
    state: Annotated[
        str,
        "planned; ruled_out: no plan of this setting is better than the best one; infeasible: there is none; or"
        " not_searched: the time was over.",
        Example("planned"),
    ]
    objective_seconds: Annotated[float | None, "Of its best plan; null if none was searched for. Unit: seconds."]
    lower_bound_seconds: Annotated[float, "No plan of this setting is better; 0 where nothing is known. Unit: seconds."]
    detail: Annotated[str, "Why it has no plan."]


class IndexDedupDocument(TypedDict):
    """The plan with repeated ids of sequences left out before their exchange, and without."""

    batch_ids: Annotated[float, "Ids of all sequences in a rank's batch.", Example(204800.0)]
    unique_ids: Annotated[float, "Those left of them, table by table.", Example(75776.0)]
    removed_share: Annotated[float, "Share of ids, and of rows that come back, left out.", Example(0.63)]
    unique_seconds: Annotated[float, "That finding unique ids takes on every rank, in input_comm. Unit: seconds."]
    repeat_seconds: Annotated[float, "Of repeating the rows that come back, in forward_comm. Unit: seconds."]
    merge_seconds: Annotated[float, "Of adding up the gradients of repeats, in backward_comm. Unit: seconds."]
    objective_seconds_with: Annotated[float, "Of the same shards with deduplication. Unit: seconds."]
    objective_seconds_without: Annotated[float, "Of the same shards without. Unit: seconds."]
    saved_seconds: Annotated[float, "The second less the first; negative where it does not pay. Unit: seconds."]
    settings: Annotated[
        list[IndexDedupSettingDocument],
        "Plans without and with, as far as they were considered; empty where the spec states one, and of scores.",
    ]
