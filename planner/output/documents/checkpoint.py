"""What a plan document states of checkpoints."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class CheckpointSizeDocument(TypedDict):
    """One kind of checkpoint under a plan."""

    bytes: Annotated[int, "Of all hosts together. Unit: bytes."]
    snapshot_seconds: Annotated[float, "Training stands still until the slowest rank is done. Unit: seconds."]
    slowest_rank: Annotated[int, "The rank that the snapshot waits for."]
    upload_seconds: Annotated[float, "Of the slowest host, during training. Unit: seconds."]
    slowest_host: Annotated[int, "The host that uploads longest."]
    mean_upload_seconds: Annotated[float, "Over all hosts. Unit: seconds."]


class RankCheckpointDocument(TypedDict):
    """What one rank stores."""

    rank: Annotated[int, "Rank."]
    full_bytes: Annotated[int, "In a full checkpoint. Unit: bytes."]
    incremental_bytes: Annotated[int | None, "In the largest increment. Unit: bytes."]


class HostCheckpointDocument(TypedDict):
    """What one host stores."""

    host: Annotated[int, "Host."]
    full_bytes: Annotated[int, "In a full checkpoint. Unit: bytes."]
    incremental_bytes: Annotated[int | None, "In the largest increment. Unit: bytes."]


class CheckpointFactsDocument(TypedDict):
    """What checkpoints take under a plan, of all ranks together."""

    policy: Annotated[str, "As in the spec.", Example("intermittent")]
    full_every: Annotated[int, "Checkpoints from one full one to the next.", Example(7)]
    interval_steps: Annotated[int, "As in the spec. Unit: steps."]
    interval_seconds: Annotated[float, "Under the plan's step time, with the dense part. Unit: seconds."]
    full: CheckpointSizeDocument
    incremental: Annotated[CheckpointSizeDocument | None, "The largest one; null where all are full."]
    mean_bytes: Annotated[int, "Of a checkpoint, average over those from one full one to the next. Unit: bytes."]
    mean_write_bytes_per_second: Annotated[float, "Of all hosts, average. Unit: bytes per second."]
    stored_bytes: Annotated[int, "That a restore needs at most: a full one and increments. Unit: bytes."]
    full_fp32_bytes: Annotated[int, "Of a full checkpoint with weights in fp32. Unit: bytes."]
    write_reduction: Annotated[
        float | None, "full_fp32_bytes over mean_bytes; null where nothing is written.", Example(8.5)
    ]
    stored_reduction: Annotated[
        float | None, "full_fp32_bytes over stored_bytes; null where nothing is stored.", Example(2.9)
    ]
    restore_seconds: Annotated[float, "Slowest host's reading of all that it needs. Unit: seconds."]
    lost_seconds_per_step: Annotated[
        float, "Expected: snapshots, and what failures lose to uploads and restores. Unit: seconds."
    ]
    balanced: Annotated[bool, "Whether the objective counts them."]
    snapshot_evidence: Annotated[str, "The weakest rate behind the snapshots.", Example("measured")]
    fits: Annotated[bool, "Whether a full checkpoint is stored before the next one is due."]
    warning: Annotated[str | None, "Where it is not: by how much, and the way out."]


class CheckpointDocument(CheckpointFactsDocument):
    """What checkpoints take under a plan."""

    by_rank: list[RankCheckpointDocument]
    by_host: list[HostCheckpointDocument]
