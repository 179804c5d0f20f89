"""What a plan document states of a step: phases, ranks, tiers, memory."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class StepMemoryDocument(TypedDict):
    """What the device memory of a rank holds over a training step."""

    device_bytes: Annotated[int, "Of the whole memory. Unit: bytes.", Example(80_000_000_000)]
    peak_bytes: Annotated[int, "The most that it holds in any phase. Unit: bytes.", Example(61_000_000_000)]
    peak_phase: Annotated[str, "The first phase with that.", Example("dense_backward")]
    persistent_bytes: Annotated[dict[str, int], "What stays through the step, line by line. Unit: bytes."]
    buffer_bytes: Annotated[
        dict[str, dict[str, int]], "What is held in one phase besides, by phase and there line by line. Unit: bytes."
    ]
    phase_bytes: Annotated[dict[str, int], "Of both together, by phase. Unit: bytes."]


class RankDocument(TypedDict):
    """One rank under a plan."""

    rank: Annotated[int, "Rank.", Example(0)]
    host: Annotated[int, "Its host.", Example(0)]
    seconds: Annotated[dict[str, float], "By phase. Unit: seconds."]
    bytes: Annotated[dict[str, int], "Taken by tables, by tier. Unit: bytes."]
    capacity_bytes: Annotated[dict[str, int], "After reservations, by tier. Unit: bytes."]
    ledger_bytes: Annotated[
        dict[str, dict[str, int]], "What takes the bytes of the tables, by tier and there line by line. Unit: bytes."
    ]
    reserved_bytes: Annotated[
        dict[str, dict[str, int]], "What tables may not use, by tier and there line by line. Unit: bytes."
    ]
    lookups: Annotated[
        float | None,
        "Of one step (or request), of the rows that it holds: all ranks are priced as the heaviest block of a table"
        " that is cut by rows, and these are its own.",
        Example(262_144),
    ]
    id_bytes: Annotated[int | None, "Of the ids that reach it in one step. Unit: bytes.", Example(2_097_152)]
    torchrec_bytes: Annotated[
        dict[str, int] | None,
        "Taken by tables as TorchRec's own planner estimates, by tier; null with other cost models. Unit: bytes.",
    ]
    step_memory: Annotated[
        StepMemoryDocument | None, "The accelerator's memory over a step; null where requests are served."
    ]


class PhaseDocument(TypedDict):
    """One phase over all ranks."""

    name: Annotated[str, "Phase.", Example("forward_compute")]
    slowest_rank: Annotated[int, "The rank that all wait for.", Example(3)]
    seconds: Annotated[float, "Of the slowest rank. Unit: seconds."]
    mean_seconds: Annotated[float, "Over all ranks. Unit: seconds."]
    hidden_seconds: Annotated[float, "Hidden under dense compute. Unit: seconds."]
    counted: Annotated[bool, "Whether the objective counts it."]
    evidence: Annotated[str, "The weakest number in it.", Example("measured")]
    lower_seconds: Annotated[
        float | None, "Lower limit of the seconds; null where the cost model knows none. Unit: seconds."
    ]
    upper_seconds: Annotated[
        float | None, "Upper limit of the seconds; null where the cost model knows none. Unit: seconds."
    ]


class StartDocument(TypedDict):
    """What a step pays once for the tables of a module that have one sharding type."""

    module: Annotated[str, "Path of the embedding module; empty where the spec gives none.", Example("model.sparse")]
    sharding_type: Annotated[str, "How the tables are cut.", Example("table_wise")]
    phase_seconds: Annotated[dict[str, float], "Starts of collectives and launches, by phase. Unit: seconds."]
    seconds: Annotated[float, "Of all phases, on every rank. Unit: seconds.", Example(0.000084)]


class TierDocument(TypedDict):
    """A tier next to the accelerator's memory, on the rank where it is busiest."""

    name: Annotated[str, "Tier.", Example("ddr")]
    busiest_rank: Annotated[int, "The rank that keeps it busy for longest.", Example(3)]
    read_bytes: Annotated[int, "In one step. Unit: bytes."]
    written_bytes: Annotated[int, "In one step. Unit: bytes."]
    operations: Annotated[int, "Of block storage, in one step."]
    busy_seconds: Annotated[float, "In one step. Unit: seconds."]
    utilization: Annotated[float, "Busy share of a step with its dense part; at most 1 in a plan."]


class ServingDocument(TypedDict):
    """What requests ask of the cards of a host, and what the host sustains."""

    samples_per_request: Annotated[int, "Unit: samples.", Example(168)]
    num_messages: Annotated[int, "Between the host and all its cards, for one request.", Example(12)]
    busiest_rank: Annotated[int, "The card that is busy for longest.", Example(3)]
    busy_seconds: Annotated[float, "Of that card, with one request. Unit: seconds."]
    requests_per_second: Annotated[float | None, "As asked; null where no rate was.", Example(500)]
    utilization: Annotated[float | None, "Busy share of that card's time at this rate.", Example(0.4)]
    utilization_limit: Annotated[float, "Largest busy share that is allowed.", Example(0.8)]
    sustained_requests_per_second: Annotated[
        float | None, "Highest rate within the limits; null where nothing is looked up.", Example(1000)
    ]
    p99_limit_seconds: Annotated[float | None, "As asked; null without a limit. Unit: seconds.", Example(0.005)]
    p50_seconds: Annotated[
        float | None,
        "Half of all requests that come at random at this rate are answered within it; null without a rate, or if the"
        " card is busy all the time. Unit: seconds.",
        Example(0.0011),
    ]
    p99_seconds: Annotated[float | None, "99 of 100 of them are. Unit: seconds.", Example(0.0031)]


class WholeStepDocument(TypedDict):
    """A training step with its dense part: what sticks out of the phases of embeddings, dense compute and the rest."""

    seconds: Annotated[float, "Of one step. Unit: seconds.", Example(0.004)]
    samples_per_second: Annotated[float, "Of all ranks together. Unit: samples per second.", Example(16_000_000.0)]
    sparse_seconds: Annotated[float, "Phases of embeddings that dense compute does not hide. Unit: seconds."]
    hidden_sparse_seconds: Annotated[float, "Of the same phases, hidden under dense compute. Unit: seconds."]
    dense_forward_seconds: Annotated[float, "Unit: seconds."]
    dense_backward_seconds: Annotated[float, "Unit: seconds."]
    dense_all_reduce_seconds: Annotated[float, "All-reduce of dense gradients, hidden or not. Unit: seconds."]
    hidden_all_reduce_seconds: Annotated[float, "Of the all-reduce, under the dense backward pass. Unit: seconds."]
    overhead_seconds: Annotated[float, "step_overhead_seconds of the hardware; 0 where not known. Unit: seconds."]
    stash_wait_seconds: Annotated[float, "Dense compute waits for copies of stashed weights. Unit: seconds."]
    evidence: Annotated[str, "The weakest number in it.", Example("measured")]


class StashDocument(TypedDict):
    """Weights that leave the device between the lookups of a step and their backward pass."""

    num_tables: Annotated[int, "Tables that are stashed, each with all its shards.", Example(12)]
    busiest_rank: Annotated[int, "The rank with the most stashed bytes.", Example(3)]
    stashed_bytes: Annotated[int, "Of that rank. Unit: bytes.", Example(9_600_000_000)]
    all_ranks_bytes: Annotated[int, "Of all ranks together. Unit: bytes."]
    host_bytes: Annotated[int, "Pinned host memory of that rank, at most. Unit: bytes."]
    to_host_seconds: Annotated[float, "That rank's copies to the host. Unit: seconds."]
    to_device_seconds: Annotated[float, "That rank's copies back. Unit: seconds."]
    forward_wait_seconds: Annotated[float, "Longest wait of dense compute for copies to the host. Unit: seconds."]
    backward_wait_seconds: Annotated[float, "Longest wait of the backward pass for copies back. Unit: seconds."]
