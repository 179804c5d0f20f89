"""What the service says about solves, specs and evaluations."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from api.schemas.base import Document
from api.store.base import SolveRecord

StateName = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class IssueDocument(Document):
    """One thing that is wrong, or worth knowing."""

    code: str = Field(description="Stable code.", examples=["invalid-value"])
    pointer: str = Field(description="JSON pointer into the document.", examples=["/model/tables/0/num_embeddings"])
    message: str = Field(description="What is wrong, with the number.")
    hint: str = Field(default="", description="The way out.")
    severity: str = Field(default="error", description="error or warning.", examples=["warning"])


class AssumptionDocument(Document):
    """Something that the spec left open, or a number and how well it is known."""

    subject: str = Field(description="Field.", examples=["hardware.hbm_bytes_per_second"])
    value: str = Field(description="What was assumed.", examples=["2.68e+12 bytes_per_second"])
    evidence: str = Field(description="measured, given, datasheet, estimated, default or note.", examples=["measured"])
    source: str = Field(default="", description="Who says so.")


class TerminationDocument(Document):
    """Why the search ended."""

    reason: Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"] = Field(
        description="INFEASIBLE is an answer: no plan exists, and shortfalls say why.", examples=["OPTIMAL"]
    )
    limit: str | None = Field(default=None, description="Limit that was hit.", examples=["time"])
    detail: str = Field(default="", description="In words.")


class ShortfallDocument(Document):
    """A resource that is short."""

    resource: str = Field(description="hbm, ddr, options or constraints.", examples=["hbm"])
    required_bytes: float = Field(description="Unit: bytes.", examples=[9e11])
    available_bytes: float = Field(description="Unit: bytes.", examples=[6e11])
    scope: str = Field(description="cluster, rank or table.", examples=["cluster"])
    message: str = Field(description="What is short, by how much.")
    hint: str = Field(description="The cheapest way out.")
    table: str | None = Field(default=None, description="Table that it is about.")


class ProgressDocument(Document):
    """How far a running solve is."""

    incumbent_seconds: float = Field(description="Objective of the best plan so far. Unit: seconds.", examples=[0.004])
    bound_seconds: float = Field(description="No plan is better than this. Unit: seconds.", examples=[0.0039])
    relative_gap: float | None = Field(description="incumbent / bound - 1; null where the bound is 0.", examples=[0.02])
    partitioner: str = Field(description="Who found it.", examples=["greedy"])


class ResultDocument(Document):
    """What a solve came to."""

    termination: TerminationDocument
    plan_digest: str | None = Field(default=None, description="The plan; null where there is none.")
    plan_url: str | None = Field(default=None, description="Where the plan is.", examples=["/v1/plans/sha256:..."])
    objective: dict[str, object] | None = Field(default=None, description="As in the plan. Unit: seconds.")
    lower_bound_seconds: float = Field(default=0.0, description="No plan is better than this. Unit: seconds.")
    partitioner: str | None = Field(default=None, description="Who found the plan.", examples=["cp_sat"])
    shortfalls: list[ShortfallDocument] = Field(default_factory=list, description="Why no plan exists.")


class SolveErrorDocument(Document):
    """Why a solve failed."""

    code: str = Field(description="Stable code.", examples=["solver-killed"])
    message: str = Field(description="What happened.")
    hint: str = Field(default="", description="The way out.")


class SolveDocument(Document):
    """One solve. Its state says how the work goes; its result says how good the answer is."""

    id: str = Field(description="Id of the solve.", examples=["019aa1b2c3d4e5f60718293a4b5c"])
    state: StateName = Field(description="queued, running, succeeded, failed or cancelled.", examples=["succeeded"])
    name: str = Field(description="Name of the spec.", examples=["dlrm-dcnv2"])
    spec_digest: str = Field(
        description="Digest of what determines the problem: model, hardware, constraints, runtime, objective and "
        "cost model, with defaults filled in; not the name and not the solver."
    )
    created_at: datetime = Field(description="When it was asked for.")
    started_at: datetime | None = Field(default=None, description="When a solver process took it.")
    ended_at: datetime | None = Field(default=None, description="When it ended.")
    progress: ProgressDocument | None = Field(default=None, description="Best plan so far.")
    result: ResultDocument | None = Field(default=None, description="What it came to; null until it ends.")
    warnings: list[IssueDocument] = Field(default_factory=list, description="What is odd about the spec.")
    assumptions: list[AssumptionDocument] = Field(default_factory=list, description="What was assumed.")
    error: SolveErrorDocument | None = Field(default=None, description="Why it failed.")

    @classmethod
    def of(cls, record: SolveRecord) -> "SolveDocument":
        """Return the document of a record."""
        result = dict(record.result) if record.result else None
        if result and result["plan_digest"]:
            result["plan_url"] = f"/v1/plans/{result['plan_digest']}"
        return cls.model_validate(
            {
                "id": record.id,
                "state": record.state,
                "name": record.name,
                "spec_digest": record.spec_digest,
                "created_at": _time(record.created_at),
                "started_at": _time(record.started_at),
                "ended_at": _time(record.ended_at),
                "progress": record.progress,
                "result": result,
                "warnings": record.warnings,
                "assumptions": record.assumptions,
                "error": record.error,
            }
        )


class SolvePage(Document):
    """A page of solves, newest first; assumptions and warnings are left out."""

    solves: list[SolveDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class TotalsDocument(Document):
    """The size of a spec."""

    num_tables: int = Field(description="Unit: tables.", examples=[26])
    num_features: int = Field(description="Unit: features.", examples=[26])
    num_rows: int = Field(description="Unit: rows.", examples=[204_184_588])
    weight_bytes: float = Field(description="Weights of all tables, held once. Unit: bytes.", examples=[1.04e11])
    optimizer_bytes: float = Field(description="Optimizer state of whole rows. Unit: bytes.", examples=[8.2e8])
    ids_per_sample: float = Field(description="Lookups of one sample. Unit: ids.", examples=[214.0])
    world_size: int = Field(description="Unit: ranks.", examples=[8])
    available_bytes: float = Field(description="Memory for tables on all ranks. Unit: bytes.", examples=[5.4e11])


class ValidationDocument(Document):
    """A spec that may be solved; one that may not is answered with a problem."""

    valid: Literal[True] = True
    spec_digest: str = Field(
        description="Digest of what determines the problem: model, hardware, constraints, runtime, objective and "
        "cost model, with defaults filled in; not the name and not the solver."
    )
    problems: list[IssueDocument] = Field(default_factory=list, description="Always empty here.")
    warnings: list[IssueDocument] = Field(default_factory=list, description="What is odd about the spec.")
    assumptions: list[AssumptionDocument] = Field(default_factory=list, description="What is assumed.")
    totals: TotalsDocument


class ProblemDocument(Document):
    """An error of any kind (RFC 9457)."""

    type: str = Field(description="Page of this kind of problem on this server.", examples=["/problems/not-found"])
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status.", examples=[404])
    code: str = Field(description="Stable code.", examples=["not-found"])
    detail: str = Field(description="What happened this time.")
    request_id: str = Field(description="Id of the request in the server's log.")
    retryable: bool = Field(description="Whether the same request may work later.")
    errors: list[IssueDocument] | None = Field(default=None, description="Broken rules, at most 50.")
    num_errors: int | None = Field(default=None, description="Broken rules in all.")


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
