"""What the service answers about a plan from anywhere."""

from pydantic import Field

from api.schemas.base import Document
from api.schemas.described import Defined
from api.schemas.solve import IssueDocument
from planner.output.documents.plan import ScoreDocument


class EvaluationDocument(Document):
    """Whether a plan may be used, and what it costs."""

    valid: bool = Field(
        description="Whether it breaks no rule of the runtime, of memory and of the spec, and states no false digest."
    )
    num_violations: int = Field(description="Broken rules in all.", examples=[0])
    violations: list[IssueDocument] = Field(description="Broken rules, at most 50.")
    warnings: list[IssueDocument] = Field(
        default_factory=list, description="What is odd and breaks no rule, such as a plan made for another spec."
    )
    score: Defined[ScoreDocument] | None = Field(
        description="null where the geometry is no partition of the tables, or where an invalid plan has no price."
    )
