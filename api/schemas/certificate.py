"""The certificate of a plan: what it claims is typed here, and what proves it is described in docs/certificates.md."""

from typing import Literal

from pydantic import Field, JsonValue

from api.schemas.base import Digest, Document


class CertifiedObjectiveDocument(Document):
    """What the plan document stated when it was certified; null where it stated nothing."""

    name: str | None = Field(description="Objective.", examples=["step_time"])
    seconds: float | None = Field(description="Unit: seconds.")
    lower_bound_seconds: float | None = Field(description="Of the solve; it may be above what is certified.")
    relative_gap: float | None = Field(description="Of the solve.", examples=[0.01])


class ClaimDocument(Document):
    """What the certificate claims, and a checker works out again."""

    objective_seconds: float = Field(description="Of the plan under the stated prices. Unit: seconds.")
    bound_seconds: float = Field(description="No legal plan over the stated options takes less. Unit: seconds.")
    relative_gap: float | None = Field(description="objective / bound - 1; null where the bound is 0.", examples=[0.01])
    plan_objective: CertifiedObjectiveDocument


class CertificateDocument(Document):
    """A plan, all options with their prices, and dual data that prove a lower bound."""

    schema_version: Literal[1] = Field(description="Version of this document.", examples=[1])
    certificate_digest: Digest = Field(description="Digest of all the rest.")
    plan_digest: Digest | None = Field(description="Digest of the plan; null where it has no spec digest.")
    spec_digest: Digest = Field(description="Digest of the spec that it was certified under.")
    name: str = Field(description="Name of the model.", examples=["dlrm-dcnv2"])
    cost_model: str = Field(description="Model and version whose prices are stated.", examples=["roofline@2"])
    claim: ClaimDocument
    problem: dict[str, JsonValue] = Field(description="Ranks, tables, options with prices, and rules.")
    plan: list[JsonValue] = Field(description="Of every table the option, and columns and site of its pieces.")
    proof: dict[str, JsonValue] = Field(description="A tree of splits whose leaves have prices of a relaxation.")
