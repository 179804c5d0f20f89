"""What a learned cost model says of its own prediction."""

from pydantic import Field

from api.schemas.base import Document


class SharesDocument(Document):
    """Parts of the seconds of all ranks; they add up to 1."""

    learned: float = Field(description="Learned from measurements of shards and collectives.", examples=[0.8])
    measured: float = Field(description="Analytic, from measured rates of the hardware alone.", examples=[0.15])
    analytic: float = Field(description="Analytic, from at least one rate that was not measured.", examples=[0.05])


class FallbackDocument(Document):
    """Shards outside the range that the model was trained on, priced by its analytic model."""

    table: str = Field(description="Name of the table.", examples=["cat_0"])
    num_shards: int = Field(description="Number of its shards.", examples=[8])
    reason: str = Field(
        description="What is outside, and the range.", examples=["shard_columns 1024; measured: 4 to 256"]
    )


class AnalyticPhaseDocument(Document):
    """A phase with a collective that the model does not price, and that its analytic model priced."""

    phase: str = Field(description="Name of the phase.", examples=["forward_comm"])
    reason: str = Field(
        description="Which collective, and why.", examples=["all_to_all over several hosts was not measured"]
    )


class PredictionDocument(Document):
    """How well a learned model knows the seconds of a plan."""

    coverage: float = Field(
        description="Probability that each rank's time in each phase lies within its own interval.", examples=[0.9]
    )
    lower_seconds: float = Field(description="The objective with all of them at their lower limit. Unit: seconds.")
    upper_seconds: float = Field(description="The objective with all of them at their upper limit. Unit: seconds.")
    shares: SharesDocument
    num_fallbacks: int = Field(description="Tables and reasons outside the measured range.", examples=[0])
    fallbacks: list[FallbackDocument] = Field(description="The first 50 of them.")
    analytic_phases: list[AnalyticPhaseDocument] = Field(
        description="In the order of a step; a phase stands there once for each reason."
    )
