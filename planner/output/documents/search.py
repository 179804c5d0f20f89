"""What a plan document states of the search: prices, gaps, ordered objectives, moves, provenance."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class SharesDocument(TypedDict):
    """Parts of the seconds of all ranks; they add up to 1."""

    learned: Annotated[float, "Learned from measurements of shards and collectives.", Example(0.8)]
    measured: Annotated[float, "Analytic, from measured rates of the hardware alone.", Example(0.15)]
    analytic: Annotated[float, "Analytic, from at least one rate that was not measured.", Example(0.05)]


class FallbackDocument(TypedDict):
    """Shards outside the range that the model was trained on, priced by its analytic model."""

    table: Annotated[str, "Name of the table.", Example("cat_0")]
    num_shards: Annotated[int, "Number of its shards.", Example(8)]
    reason: Annotated[str, "What is outside, and the range.", Example("shard_columns 1024; measured: 4 to 256")]


class AnalyticPhaseDocument(TypedDict):
    """A phase with a collective that the model does not price, and that its analytic model priced."""

    phase: Annotated[str, "Name of the phase.", Example("forward_comm")]
    reason: Annotated[str, "Which collective, and why.", Example("all_to_all over several hosts was not measured")]


class PredictionDocument(TypedDict):
    """How well the cost model knows the seconds of a plan."""

    coverage: Annotated[
        float, "Probability that each rank's time in each phase lies within its own interval.", Example(0.9)
    ]
    lower_seconds: Annotated[float, "The objective with all of them at their lower limit. Unit: seconds."]
    upper_seconds: Annotated[float, "The objective with all of them at their upper limit. Unit: seconds."]
    shares: SharesDocument
    num_fallbacks: Annotated[int, "Tables and reasons outside the measured range.", Example(0)]
    fallbacks: Annotated[list[FallbackDocument], "The first 50 of them."]
    analytic_phases: Annotated[
        list[AnalyticPhaseDocument], "In the order of a step; a phase stands there once for each reason."
    ]


class SurrogateDocument(TypedDict):
    """The additive model that a plan was searched with, where the cost model prices whole ranks only."""

    seconds: Annotated[float, "The plan's objective under it. Unit: seconds."]
    lower_bound_seconds: Annotated[float, "Of all plans, under it. Unit: seconds."]
    relative_gap: Annotated[float | None, "seconds / bound - 1; null where the bound is 0."]
    round: Annotated[int, "The search that found the plan; the first one has the model's own additive prices."]
    num_rounds: Annotated[int, "Searches at most."]
    moved_shards: Annotated[int, "That went to another rank after the search, as the model of whole ranks advised."]


class GapPartsDocument(TypedDict):
    """What lies between a plan and its bound. The first three add up to objective.seconds - lower_bound_seconds."""

    balance_seconds: Annotated[
        float, "The most that other ranks for the same shards can gain. Unit: seconds.", Example(0.00004)
    ]
    packing_seconds: Annotated[
        float, "Lost because the shards do not divide evenly among ranks. Unit: seconds.", Example(0.00005)
    ]
    choice_seconds: Annotated[
        float,
        "What the shards cost, divided evenly, above the mix of shardings that the bound assumes. Unit: seconds.",
        Example(0.00001),
    ]
    refuted_seconds: Annotated[float, "By which branching raised the bound. Unit: seconds.", Example(0.0002)]
    is_bound_final: Annotated[bool, "Whether a longer solve cannot raise the bound.", Example(False)]


class TradePointDocument(TypedDict):
    """What one search for an objective found: within its limits, no plan has a weighted sum below least_sum."""

    weights: Annotated[dict[str, float], "Weight of each objective in the sum that was minimised, per unit of it."]
    limits: Annotated[dict[str, float], "Largest values that were allowed, of objectives without a weight."]
    values: Annotated[dict[str, float] | None, "Of the plan with the least sum that was found; null without one."]
    least_sum: Annotated[float, "No plan within the limits has less."]


class OrderedObjectiveDocument(TypedDict):
    """One of the ordered objectives: its value in the plan, and what no plan within its limits goes below."""

    name: Annotated[str, "Name of the objective.", Example("fullest_rank")]
    unit: Annotated[str, "Unit of all its values: seconds, bytes or share.", Example("share")]
    value: Annotated[float, "In the plan.", Example(0.42)]
    value_before: Annotated[float, "In the plan that the objectives before it led to.", Example(0.61)]
    value_at_turn: Annotated[float, "After its turn; objectives that follow may worsen it.", Example(0.42)]
    lower_bound: Annotated[float, "No plan that keeps its limits has less.", Example(0.40)]
    limits: Annotated[dict[str, float], "Largest values of the objectives before it, by name."]
    points: Annotated[list[TradePointDocument], "The searches of its turn: other plans, and what they prove."]


class RankBytesDocument(TypedDict):
    """A rank and its bytes."""

    rank: Annotated[int, "Rank."]
    bytes: Annotated[int, "Unit: bytes."]


# Not a class, because ``from`` is a keyword of Python.
RankPairDocument = TypedDict(
    "RankPairDocument",
    {
        "from": Annotated[int, "The rank that sends."],
        "to": Annotated[int, "The rank that receives."],
        "bytes": Annotated[int, "Unit: bytes."],
    },
)
RankPairDocument.__doc__ = "Bytes that one rank sends another."


class MovementDocument(TypedDict):
    """What moves from the previous plan: weights and optimizer state."""

    previous_plan_digest: Annotated[str | None, "Digest of the previous plan; null where it states none."]
    moved_bytes: Annotated[int, "On other ranks before, or further copies. Unit: bytes."]
    kept_bytes: Annotated[int, "Where they were. Unit: bytes."]
    new_bytes: Annotated[int, "Of tables that the previous plan lacks or has in another shape. Unit: bytes."]
    most_sent: Annotated[RankBytesDocument, "The rank that sends most."]
    most_received: Annotated[RankBytesDocument, "The rank that receives most."]
    num_rank_pairs: Annotated[int, "Pairs of ranks of which one sends to the other."]
    by_rank_pair: Annotated[list[RankPairDocument], "The 1,000 pairs with the most bytes, by sender."]
    seconds: Annotated[float | None, "Of the busiest rank, all at once; null where no link is known. Unit: seconds."]
    link_evidence: Annotated[str | None, "The weakest link speed behind the seconds."]
    previous_objective_seconds: Annotated[float | None, "Of the previous plan now; null where it is no longer legal."]
    previous_issue: Annotated[str | None, "Why the previous plan is no longer legal."]
    saved_seconds_per_step: Annotated[float | None, "Previous objective less that of this plan. Unit: seconds."]
    saved_lower_seconds: Annotated[
        float | None, "Lower limit of the saved seconds; below 0 the move may cost time. null where not known."
    ]
    saved_upper_seconds: Annotated[float | None, "Upper limit of the saved seconds; null where not known."]
    break_even_steps: Annotated[int | None, "Steps until the move has paid; null where nothing is saved. Unit: steps."]
    charged_seconds_per_step: Annotated[float, "What the search added to the objective of a step. Unit: seconds."]
    remaining_steps: Annotated[int, "As in the spec: steps over which a move must pay. Unit: steps."]
    max_moved_bytes: Annotated[float | None, "As in the spec. Unit: bytes."]


class EvidenceDocument(TypedDict):
    """One number or default that a plan rests on."""

    value: Annotated[str, "What was assumed.", Example("2.68e+12 bytes_per_second")]
    evidence: Annotated[str, "measured, given, datasheet, estimated, default or note.", Example("measured")]
    source: Annotated[str, "Who says so."]


class ProvenanceDocument(TypedDict):
    """What a plan was made with."""

    cost_model: Annotated[str, "Model and version.", Example("roofline@2")]
    hardware_profile: Annotated[str, "Profile that it was planned for.", Example("dgx-h100-80g")]
    partitioner: Annotated[str, "Who found the plan.", Example("cp_sat")]
    evidence: Annotated[dict[str, EvidenceDocument], "By what it is about."]
    seed: Annotated[int, "Of the search."]
    solver_seconds: Annotated[float, "Of the whole search. Unit: seconds."]
    found_seconds: Annotated[float | None, "From its beginning until the plan was found. Unit: seconds."]
    late_gain_seconds: Annotated[
        float | None,
        "By which the second half of the solve improved the plan: 0 if by less than 0.1%, null if the first half found"
        " no plan. Unit: seconds.",
    ]
    versions: Annotated[dict[str, str], "Of shardplan and of the libraries that it searched with."]
