"""What the service says about why a plan is as it is."""

from typing import Literal

from pydantic import Field

from api.schemas.base import BytesTaken, Document


class ExplainedObjective(Document):
    """What the plan costs, by the cost model of its spec as it is now."""

    name: str = Field(description="Name of the objective.", examples=["step_time"])
    seconds: float = Field(description="Of the plan. Unit: seconds.")
    relaxation_seconds: float = Field(
        description="Lower bound of the relaxation; the solve may have proven more. Unit: seconds."
    )


class BindingPhaseDocument(Document):
    """One phase that the objective counts, and who is waited for."""

    name: str = Field(description="Phase.", examples=["forward_compute"])
    seconds: float = Field(description="Of the slowest rank. Unit: seconds.")
    mean_seconds: float = Field(description="Over all ranks. Unit: seconds.")
    hidden_seconds: float = Field(description="Hidden under dense compute. Unit: seconds.")
    exposed_seconds: float = Field(description="What the objective has of it. Unit: seconds.")
    objective_share: float = Field(description="Exposed seconds over the objective.", examples=[0.31])
    ranks: list[int] = Field(description="Ranks within 1% of the slowest.", examples=[[3, 7]])
    relaxed_seconds: float | None = Field(
        description="What the objective has of this phase with the relaxation's mix of cuts, beyond what dense compute "
        "hides; only the sum over phases is a bound. null for max_rank_time. Unit: seconds."
    )
    evidence: str = Field(description="The weakest number in it.", examples=["measured"])
    rate: str | None = Field(
        description="Rate of the hardware of which 10% more shortens the phase most; null where no rate does.",
        examples=["scm_write_bytes_per_second"],
    )


class BindingDocument(Document):
    """What the plan waits for."""

    rate: str | None = Field(
        description="Rate of the hardware of which 10% more saves most; null where none saves any.",
        examples=["host_link_bytes_per_second"],
    )
    tiers: list[str] = Field(description="Tiers whose bytes have a price in the relaxation.", examples=[["hbm", "scm"]])


class TierUseDocument(Document):
    """How full and how busy one memory tier is."""

    tier: str = Field(description="Memory tier.", examples=["scm"])
    fullest_rank: int = Field(description="Rank on which the tier is fullest.", examples=[3])
    used_bytes: BytesTaken = Field(description="On that rank. Unit: bytes.")
    capacity_bytes: BytesTaken = Field(description="Of that rank, after reservations. Unit: bytes.")
    busiest_rank: int | None = Field(
        description="Rank on which the tier is busiest; null for the device's own memory.", examples=[0]
    )
    busy_seconds: float = Field(description="Of one step, on that rank. Unit: seconds.")
    rate: str | None = Field(
        description="Rate that takes most of the busy time; null where there is no busiest rank.",
        examples=["scm_write_bytes_per_second"],
    )


class MemoryPeakDocument(Document):
    """When the device of the rank with the highest peak holds most in a training step."""

    rank: int = Field(description="The rank that holds most at once.", examples=[3])
    peak_phase: str = Field(description="The first phase in which it does.", examples=["dense_backward"])
    peak_bytes: BytesTaken = Field(description="What it holds then. Unit: bytes.")
    buffer_bytes: BytesTaken = Field(description="Of these, buffers of the phase. Unit: bytes.")
    largest_buffer: str | None = Field(
        description="The largest of these buffers; null where there are none.", examples=["activations"]
    )
    device_bytes: BytesTaken = Field(description="Of the whole device. Unit: bytes.")


class ShadowPriceDocument(Document):
    """What one change of the hardware would save."""

    resource: str = Field(description="A number of the hardware.", examples=["inter_host_bytes_per_second"])
    change: str = Field(description="The change, in words.", examples=["10% more"])
    saved_seconds: float | None = Field(description="Of the objective; null if it is not known. Unit: seconds.")
    direction: Literal["at_most", "at_least"] = Field(description="Whether more or less than that may be saved.")
    method: Literal["relaxation", "re_evaluation"] = Field(
        description="relaxation: the dual price of the lower bound; re_evaluation: this placement on the changed "
        "hardware."
    )
    evidence: str | None = Field(description="The weakest number it rests on; null where nothing was computed.")
    note: str = Field(description="What the number means, or why there is none.")
    phase_seconds: dict[str, float] = Field(
        description="Of the saved seconds, what each phase exposes less; empty for prices of memory. Unit: seconds.",
        examples=[{"prefetch": 0.0004}],
    )


class AlternativeDocument(Document):
    """The best cut of one other way to shard a table, all other tables staying where they are."""

    sharding_type: str = Field(description="Scheme.", examples=["column_wise"])
    compute_kernel: str = Field(description="Kernel.", examples=["fused"])
    tier: str = Field(description="Memory that the rows lie in.", examples=["hbm"])
    cache_load_factor: float | None = Field(default=None, description="Cached share of the rows.", examples=[None])
    hot_row_fraction: float | None = Field(
        default=None, description="Share of the rows, the hottest ones, apart from the others.", examples=[None]
    )
    data_type: str = Field(description="Type of the weights.", examples=["fp32"])
    columns: list[int] = Field(description="Columns of each piece.", examples=[[64, 64]])
    ranks: list[int] = Field(description="Ranks that would hold a part of the table.", examples=[[0, 3]])
    objective_seconds: float = Field(description="Of the whole plan with this cut. Unit: seconds.")
    change_seconds: float = Field(description="Of the objective; negative where it would be better. Unit: seconds.")
    excess_bytes: BytesTaken = Field(description="By which the fullest rank would exceed its memory. Unit: bytes.")
    is_best_of_kind: bool = Field(
        description="Whether no listed cut of this kind, on no ranks, is better; else the change is an upper bound."
    )
    opened_start_seconds: float = Field(
        description="Starts of a sharding type that the plan does not use in the table's module; 0 if it does. "
        "Unit: seconds."
    )
    closed_start_seconds: float = Field(
        description="Starts of a sharding type that the plan would use no more. Unit: seconds."
    )


class ExplainedTable(Document):
    """Why one table is cut as it is."""

    name: str = Field(description="Name of the table.", examples=["cat_0"])
    sharding_type: str = Field(description="Scheme.", examples=["row_wise"])
    compute_kernel: str = Field(description="Kernel.", examples=["fused"])
    tier: str = Field(description="Memory that the rows lie in.", examples=["hbm"])
    cache_load_factor: float | None = Field(default=None, description="Cached share of the rows.", examples=[None])
    hot_row_fraction: float | None = Field(
        default=None, description="Share of the rows, the hottest ones, apart from the others.", examples=[None]
    )
    data_type: str = Field(description="Type of the weights.", examples=["fp32"])
    columns: list[int] = Field(description="Columns of each piece.", examples=[[128]])
    binding_seconds: float = Field(description="On the slowest ranks of the exposed phases. Unit: seconds.")
    reason: str = Field(description="In words; every number in it was computed.")
    alternatives: list[AlternativeDocument] = Field(description="Those that fit first, cheapest first.")


class ExplanationDocument(Document):
    """Why a plan is as it is."""

    plan_digest: str | None = Field(
        description="Digest of the plan; null where the plan lacks what a digest covers.",
        examples=["sha256:" + "0" * 64],
    )
    spec_digest: str = Field(description="Digest of the spec that it is explained by.")
    cost_model: str = Field(description="Model and version.", examples=["roofline@2"])
    objective: ExplainedObjective
    binding: BindingDocument
    tiers: list[TierUseDocument] = Field(description="Tiers that hold or serve any rows, the nearest first.")
    memory: MemoryPeakDocument | None = Field(
        description="When memory is fullest in a step; null where requests are served."
    )
    phases: list[BindingPhaseDocument] = Field(description="Counted phases that take any time.")
    shadow_prices: list[ShadowPriceDocument] = Field(description="What more memory or faster links would buy.")
    num_tables: int = Field(description="Tables of the plan.", examples=[26])
    tables: list[ExplainedTable] = Field(description="Those that weigh most on the slowest ranks, heaviest first.")
