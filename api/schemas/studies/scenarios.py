"""What is asked of a study of scenarios: one plan for traffic that differs by the hour, the season or the day."""

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from api.schemas.base import StrictModel, Title, fields_disagree
from api.schemas.studies.base import FieldPath, StudySpec

MAX_SCENARIOS = 100
Weight = Annotated[float, Field(gt=0, le=1e9)]


class ScenarioSpec(StrictModel):
    """Traffic that the plan has to do with."""

    label: Title = Field(description="How people know the scenario.", examples=["hour 20"])
    weight: Weight = Field(
        default=1.0, description="How often or how long it occurs, against the others.", examples=[3.0]
    )
    set: dict[FieldPath, JsonValue] = Field(
        default_factory=dict,
        description="What is otherwise than in the spec, by dotted field: pooling factors, statistics, the batch. "
        "Tables and ranks stay as they are. Empty: the spec itself.",
        examples=[{"model.tables.item_id.features.recent_items.pooling_factor": 40.0}],
    )


class SpreadSpec(StrictModel):
    """Scenarios that are drawn around the spec."""

    number: Annotated[int, Field(ge=1, le=MAX_SCENARIOS)] = Field(
        description="How many are drawn. Unit: scenarios.", examples=[10]
    )
    factor: Annotated[float, Field(gt=1, le=100)] = Field(
        description="Every pooling factor is multiplied by factor ** u, u drawn from -1 to 1 evenly for each feature.",
        examples=[1.5],
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=0, description="Of the draws.", examples=[0])
    weight: Weight = Field(default=1.0, description="Of each of them.", examples=[1.0])


class QuantileSpec(StrictModel):
    """A share of the scenarios' weight."""

    quantile: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="Scenarios with this share of the weight are no slower than what is minimised.", examples=[0.9]
    )


class ScenariosSpec(StudySpec):
    """Asks for one plan that does well in several scenarios of traffic."""

    kind: Literal["scenarios"] = Field(description="Kind of study.", examples=["scenarios"])
    scenarios: Annotated[list[ScenarioSpec], Field(max_length=MAX_SCENARIOS)] = Field(
        default_factory=list,
        description="Traffic that is known.",
        examples=[[{"label": "day"}, {"label": "night", "set": {"model.batch_size_per_rank": 1024}}]],
    )
    spread: SpreadSpec | None = Field(
        default=None, description="Further scenarios, drawn around the spec.", examples=[None]
    )
    objective: Literal["worst"] | QuantileSpec = Field(
        default="worst", description="What is minimised over scenarios.", examples=["worst"]
    )
    measure: Literal["step_seconds", "ratio_to_own"] = Field(
        default="step_seconds",
        description="What of a scenario counts: its step, or its step over that of the best plan for it alone.",
        examples=["ratio_to_own"],
    )
    memory_probability: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="Share of the scenarios' weight in which the plan must fit into memory.",
        examples=[0.99],
    )
    num_rounds: Annotated[int, Field(ge=0, le=100)] = Field(
        default=8,
        description="Rounds of the search over all scenarios together, each with the limits of the spec's solver. 0: "
        "only plans of single scenarios, of the mean and of the largest traffic are compared.",
        examples=[8],
    )

    @property
    def quantile(self) -> float:
        """What is minimised as a quantile: 1 is the worst."""
        return 1.0 if isinstance(self.objective, str) else self.objective.quantile

    @model_validator(mode="after")
    def _has_two(self) -> Self:
        number = len(self.scenarios) + (0 if self.spread is None else self.spread.number)
        if not 2 <= number <= MAX_SCENARIOS:
            raise fields_disagree(
                f"{number} scenarios are given; a study has 2 to {MAX_SCENARIOS}, those drawn by spread included",
                "scenarios",
                "spread",
            )
        return self
