"""Cost models as documents: the analytic ones, versions of learned ones, and which is active."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from api.schemas.base import MODEL_ID, MODEL_NAME, Digest, Document, Moment, StrictModel
from api.schemas.measurements import Text

MAX_BATCHES = 1_000

ModelName = Annotated[str, Field(pattern=f"^{MODEL_NAME}$")]
ModelState = Literal["fitting", "ready", "failed"]


class CostModelRequest(StrictModel):
    """The body of ``POST /v1/cost-models``: what to fit a model to, or a fitted one."""

    name: ModelName | None = Field(default=None, description="Of a fit.", examples=["h100-prod"])
    measurements: Annotated[list[Digest], Field(min_length=1, max_length=MAX_BATCHES)] | None = Field(
        default=None, description="Batches to fit to, by digest."
    )
    device: Text | None = Field(
        default=None, description="In place of measurements: all batches of a device.", examples=["NVIDIA H200"]
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = Field(default=0, description="Random seed of a fit.")
    document: dict[str, JsonValue] | None = Field(
        default=None,
        description="In place of all others: a model that was fitted elsewhere, as shardplan fit wrote it.",
    )

    @model_validator(mode="after")
    def _fit_or_document(self) -> "CostModelRequest":
        if self.document is not None:
            if self.name is not None or self.measurements is not None or self.device is not None:
                raise ValueError("give either document, or name with measurements or device")
        elif self.name is None or (self.measurements is None) == (self.device is None):
            raise ValueError("give name with either measurements or device, or document alone")
        return self


class FailureDocument(Document):
    """Why a fit failed."""

    code: str = Field(description="Stable code.", examples=["time-limit"])
    message: str = Field(description="In words.")
    hint: str = Field(default="", description="The way out.")


class GroupFigures(BaseModel):
    """How a model does on some of the rows that were held out of its fit."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, frozen=True)

    kind: Literal["lookup", "collective", "copy"] = Field(description="Of which rows.")
    by: Literal["all", "shards", "bytes", "ranks", "phase", "collective"] = Field(
        description="What rows are grouped by."
    )
    group: Annotated[str, Field(pattern="^[ -~]{1,80}$")] = Field(description="Which rows.", examples=["4-7 shards"])
    num_rows: Annotated[int, Field(ge=0, le=2**53)] = Field(description="Unit: rows, each a launch or an exchange.")
    mean_relative_error: float | None = Field(description="Of predicted to measured seconds, less one.")
    median_relative_error: float | None = Field(description="The same, the median.")
    rank_correlation: float | None = Field(description="Kendall's tau-b of predicted and measured seconds.")
    coverage: float | None = Field(description="Share of the rows within their intervals.", examples=[0.9])
    mean_interval_ratio: float | None = Field(description="Upper to lower limit, the geometric mean.")


class VerdictDocument(BaseModel):
    """Whether the rows of one kind are enough to rely on a model."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    kind: Literal["lookup", "collective"] = Field(description="Of which rows.")
    enough: bool = Field(description="Whether mean errors are known and intervals hold as stated.")
    num_rows: int = Field(description="That were measured. Unit: rows.")
    num_held_out: int = Field(description="Launches, or exchanges of all ranks, that the errors are of.")
    detail: str = Field(description="What the rows let be known.")
    advice: str = Field(description="What to measure more; empty where there is enough.")


class HeldOutFigures(BaseModel):
    """How a model does on rows that were held out of its fit."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    split: Annotated[str, Field(pattern="^[ -~]{0,80}$")] = Field(default="", description="How rows were held out.")
    groups: Annotated[list[GroupFigures], Field(max_length=200)] = Field(
        default_factory=list, description="All rows first, then some of them; empty where none were held out."
    )
    verdicts: list[VerdictDocument] = Field(
        default_factory=list, description="Of lookups and of collectives, as far as there are; empty of old models."
    )


class CostModelDocument(Document):
    """A cost model."""

    id: str = Field(description="Its address.", examples=["roofline", "h100-prod@3"])
    kind: Literal["analytic", "learned"] = Field(description="Formulas, or fitted to measurements.")
    name: str = Field(description="What cost_model names; of a learned one, with learned: and @version around it.")
    version: str = Field(description="Changes whenever a prediction can change.", examples=["1"])
    reference: str = Field(description="What cost_model of a spec says.", examples=["learned:h100-prod@3"])
    counted_phases: list[str] = Field(description="Phases that its objective counts.")
    state: ModelState = Field(description="Only a ready one can be planned with.", examples=["ready"])
    digest: str | None = Field(default=None, description="Of a learned one that is ready.")
    document_url: str | None = Field(default=None, description="Where its document is.")
    report_url: str | None = Field(default=None, description="Where its report is, as a page.")
    device: str | None = Field(default=None, description="What it was fitted for.")
    figures: HeldOutFigures | None = Field(default=None, description="Of a learned one that is ready.")
    measurements: list[str] | None = Field(default=None, description="Digests of what it is fitted to.")
    seed: int | None = Field(default=None, description="Random seed of the fit.")
    error: FailureDocument | None = Field(default=None, description="Why it failed.")
    created_at: Moment | None = Field(default=None, description="When it was asked for.")
    ended_at: Moment | None = Field(default=None, description="When it was ready, or failed.")


class CostModelList(Document):
    """A page of cost models: the analytic ones first, then learned ones by name and version."""

    cost_models: list[CostModelDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class ComparedModel(Document):
    """One model on the rows of a comparison."""

    id: str = Field(description="Its address.")
    figures: dict[str, Any] = Field(description="Errors, rank correlation and coverage on these rows.")
    was_fitted_to: list[str] = Field(
        description="Batches among these that it was fitted to: of such rows figures say little."
    )


class ModelComparison(Document):
    """Two models on the same rows."""

    measurements: list[str] = Field(description="Digests of the batches whose rows these are.")
    num_rows: int = Field(description="Unit: rows.")
    models: list[ComparedModel] = Field(description="In the order of the address.")


class ActivationUpdate(StrictModel):
    """The body of ``PUT /v1/hardware-profiles/{profile_id}/cost-model``."""

    cost_model: Annotated[str, Field(pattern=f"^{MODEL_ID}$")] = Field(
        description="Name and version of a learned model that is ready.", examples=["h100-prod@3"]
    )


class ActivationVersion(Document):
    """What ``learned`` meant from some time on."""

    version: int = Field(description="From 1, one more for every change.", examples=[1])
    cost_model: str = Field(description="Name and version.", examples=["h100-prod@3"])
    digest: str = Field(description="What specs that were read since are pinned to.")
    updated_at: Moment = Field(description="Since when.")


class ActivationDocument(ActivationVersion):
    """The model that ``learned`` means for a hardware profile."""

    profile: str = Field(description="Hardware profile.", examples=["dgx-h100-80g"])
    history: list[ActivationVersion] = Field(description="All that were active, oldest first; the last 100.")
