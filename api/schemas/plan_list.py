"""Lists of plans, and what changed from one plan to another."""

from pydantic import Field

from api.schemas.base import Document, Moment
from api.schemas.described import described_by
from planner.output.documents.plan import ObjectiveDocument


@described_by(ObjectiveDocument)
class PlanObjective(Document):
    """How good a plan is."""

    name: str
    seconds: float
    lower_bound_seconds: float
    relative_gap: float | None


class PlanSummaryDocument(Document):
    """A plan without its tables."""

    plan_digest: str = Field(description="Digest of the plan.")
    name: str = Field(description="Name of its model.", examples=["dlrm-dcnv2"])
    created_at: Moment = Field(description="When it was published first.")
    world_size: int = Field(description="Of the plan, which is for one sharding group if there are any. Unit: ranks.")
    job_world_size: int = Field(description="Of the job, in all of its sharding groups. Unit: ranks.", examples=[8])
    hardware_profile: str = Field(description="Profile that it was planned for.", examples=["dgx-h100-80g"])
    cost_model: str = Field(description="Cost model that priced it.", examples=["roofline@2"])
    objective: PlanObjective
    solve_id: str | None = Field(description="Solve that published it; null where it was deleted.")
    url: str = Field(description="Where the plan is.", examples=["/v1/plans/sha256:..."])


class PlanPage(Document):
    """A page of plans, newest first."""

    plans: list[PlanSummaryDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class ComparedNumber(Document):
    """A number of both plans."""

    a: float = Field(description="Of the first plan.", examples=[0.004])
    b: float = Field(description="Of the other plan.", examples=[0.003])
    relative_change: float | None = Field(description="b / a - 1; null where a is 0.", examples=[-0.25])


class ComparedObjective(ComparedNumber):
    """An objective of both plans, and how well their difference is known."""

    lower_change_seconds: float | None = Field(
        description="Lower limit of b - a: a speed-up below 0. null where the cost model knows none. Unit: seconds.",
        examples=[-0.0012],
    )
    upper_change_seconds: float | None = Field(
        description="Upper limit of b - a; null where the cost model knows none. Unit: seconds.", examples=[-0.0008]
    )
    within_interval: bool | None = Field(
        description="Whether a and b differ by less than the cost model knows: measure both. null where not known.",
        examples=[False],
    )


class ComparedBytes(Document):
    """Bytes of both plans."""

    a: int = Field(description="Of the first plan. Unit: bytes.", examples=[12_884_901_888])
    b: int = Field(description="Of the other plan. Unit: bytes.", examples=[6_442_450_944])
    relative_change: float | None = Field(description="b / a - 1; null where a is 0.", examples=[-0.5])


class ChangedTables(Document):
    """Which tables changed."""

    unchanged: int = Field(description="Tables that are placed alike. Unit: tables.", examples=[24])
    changed: list[str] = Field(description="Tables of both plans that are cut, kept or placed otherwise.")
    new: list[str] = Field(description="Tables of the other plan alone.")
    gone: list[str] = Field(description="Tables of the first plan alone.")
    moved_bytes: int = Field(description="Shards that were not on their rank before. Unit: bytes.", examples=[0])


class PlanDifferenceDocument(Document):
    """What changed from the first plan, a, to the other, b: what shardplan compare writes."""

    same_plan: bool = Field(description="Whether the digests are equal.")
    same_spec: bool = Field(description="Whether they were made for one problem.")
    same_prices: bool = Field(description="Whether one cost model priced both; else seconds cannot be compared.")
    objectives: dict[str, ComparedObjective] = Field(description="Objectives that both plans have. Unit: seconds.")
    phases: dict[str, ComparedNumber] = Field(description="Phases that either plan has. Unit: seconds.")
    fullest_rank_bytes: dict[str, ComparedBytes] = Field(
        description="What tables take of the rank that is fullest in a tier, by tier. Unit: bytes."
    )
    tables: ChangedTables
