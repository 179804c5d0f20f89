"""A plan that a spec refers to: given as it is, or by its digest."""

from pydantic import Field, JsonValue, model_validator

from api.schemas.base import Digest, PrintOut, StrictModel, fields_disagree
from planner.domain.problem.checkpoint_plan import Keep


class ReferencedPlanSpec(StrictModel):
    """The plan or its digest."""

    plan: dict[str, JsonValue] | PrintOut | None = Field(
        default=None,
        description="A plan document: its tables and the cluster that it was made for; or what TorchRec's planner"
        " printed.",
        examples=[None],
    )
    digest: Digest | None = Field(
        default=None, description="Digest of a plan that this service keeps.", examples=["sha256:" + 64 * "0"]
    )

    @model_validator(mode="after")
    def _plan_or_digest(self) -> "ReferencedPlanSpec":
        if (self.plan is None) == (self.digest is None):
            raise fields_disagree("give either plan or digest", "plan", "digest")
        return self


class CheckpointPlanSpec(ReferencedPlanSpec):
    """The plan of the checkpoint that the job starts from, and what of it a plan may not lose."""

    keep: Keep = Field(
        default="state",
        description="state: all optimizer state is loaded; schemes: that, and every table keeps its sharding type.",
        examples=["state"],
    )


class WarmStartSpec(ReferencedPlanSpec):
    """A plan of a neighbouring problem, at which the search begins."""
