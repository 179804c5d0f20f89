"""What the service answers about solves, specs and evaluations."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from api.schemas.base import BytesTaken, BytesThere, Document, Moment, StrictModel
from api.schemas.described import PublishedAs, described_by
from api.store.solves.records import SolveRecord
from planner.output.documents import plan as plan_document
from planner.output.documents import search as search_document

StateName = Literal["queued", "running", "succeeded", "failed", "cancelled"]
SpecDigest = Annotated[
    str,
    Field(
        description="Digest of what determines the problem: model, hardware, constraints, runtime, objective and "
        "cost model, with defaults filled in; not the name and not the solver."
    ),
]


class IssueDocument(Document):
    """One thing that is wrong, or worth knowing."""

    code: str = Field(description="Stable code.", examples=["invalid-value"])
    pointer: str = Field(description="JSON pointer into the document.", examples=["/model/tables/0/num_embeddings"])
    message: str = Field(description="What is wrong, with the number.")
    hint: str = Field(default="", description="The way out.")
    severity: str = Field(default="error", description="error or warning.", examples=["warning"])


@described_by(search_document.EvidenceDocument)
class AssumptionDocument(Document):
    """Something that the spec left open, or a number and how well it is known."""

    subject: str = Field(description="Field.", examples=["hardware.hbm_bytes_per_second"])
    value: str
    evidence: str
    source: str = ""


@described_by(plan_document.PlanTerminationDocument)
class TerminationDocument(Document):
    """Why the search ended."""

    reason: Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "NO_SOLUTION_FOUND"] = Field(
        description="INFEASIBLE is an answer: no plan exists, and shortfalls say why.", examples=["OPTIMAL"]
    )
    limit: str | None = None
    detail: str = ""


class ShortfallDocument(Document):
    """A resource that is short."""

    resource: str = Field(description="A tier (hbm, ddr, scm or ssd), options or constraints.", examples=["hbm"])
    required_bytes: BytesTaken = Field(description="Unit: bytes.", examples=[900_000_000_000])
    available_bytes: BytesThere = Field(description="Unit: bytes.", examples=[600_000_000_000])
    scope: str = Field(description="cluster, rank or table.", examples=["cluster"])
    message: str = Field(description="What is short, by how much.")
    hint: str = Field(description="The cheapest way out.")
    table: str | None = Field(default=None, description="Table that it is about.")


class ConflictingConstraintDocument(Document):
    """One of the spec's own constraints."""

    pointer: str = Field(
        description="JSON pointer into the spec.", examples=["/model/tables/0/constraints/sharding_types"]
    )
    message: str = Field(description="What it asks for.", examples=['table "cat_0" may only use table_wise'])


class ConflictDocument(Document):
    """Constraints that leave no plan together, whatever the spec's others are."""

    constraints: list[ConflictingConstraintDocument] = Field(description="With all of them there is no plan.")
    is_irreducible: bool = Field(
        description="Whether a plan was found, and verified, without any one of them;"
        " else the work ran out before all were tried, and some may play no part."
    )
    is_proven: bool = Field(description="Whether they are proven to leave no plan; else a short search found none.")


class SpecChangeDocument(Document):
    """One field of the spec and what it becomes."""

    pointer: str = Field(description="JSON pointer into the spec.", examples=["/hardware/overrides/hbm_bytes"])
    value: str | int | float | list[str] | list[int] | list[float] | None = Field(
        description="The new value; null leaves the field, or the entry of a list, out.", examples=[96_000_000_000]
    )


class VerifiedPlanDocument(Document):
    """The memory under the plan that was found, and verified, for the fixed spec."""

    used_bytes: BytesTaken = Field(
        description="What tables take of all ranks. Unit: bytes.", examples=[550_000_000_000]
    )
    capacity_bytes: BytesThere = Field(
        description="What all ranks have left for tables. Unit: bytes.", examples=[620_000_000_000]
    )
    fullest_rank_fraction: float = Field(description="Used share of the fullest rank.", examples=[0.98])


class FixDocument(Document):
    """A change of the spec that gives it a plan: the changed spec was solved, and its plan verified."""

    kind: Literal["constraint", "reservation", "memory", "ranks", "pods", "data_type", "optimizer", "combined"] = Field(
        description="What is changed; combined: hardware or the reservation, and constraints.", examples=["memory"]
    )
    message: str = Field(description="The change, in words.")
    changes: list[SpecChangeDocument] = Field(description="To be made together, one after the other.")
    plan: VerifiedPlanDocument


class DiagnosisDocument(Document):
    """What short solves of changed specs say about a spec without a plan."""

    conflict: ConflictDocument | None = Field(
        default=None, description="Which constraints are to blame; null where none are, or where it was not settled."
    )
    has_plan_without_constraints: bool | None = Field(
        default=None,
        description="Whether a plan was found without any of the spec's constraints; null where it was not settled.",
    )
    fixes: list[FixDocument] = Field(default_factory=list, description="Those that change least first.")
    num_solves: int = Field(description="Short solves made. Unit: solves.", examples=[17])
    limit: str | None = Field(
        default=None, description="What cut the diagnosis short; a smaller fix may exist.", examples=[None]
    )


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
    objective: Annotated[dict[str, object] | None, PublishedAs(plan_document.ObjectiveDocument | None)] = Field(
        default=None, description="As in the plan. Unit: seconds."
    )
    lower_bound_seconds: float = Field(default=0.0, description="No plan is better than this. Unit: seconds.")
    movement: Annotated[dict[str, object] | None, PublishedAs(search_document.MovementDocument | None)] = Field(
        default=None, description="What moves from the previous plan; null without one. Unit: bytes."
    )
    partitioner: str | None = Field(default=None, description="Who found the plan.", examples=["cp_sat"])
    shortfalls: list[ShortfallDocument] = Field(default_factory=list, description="Why no plan exists.")
    diagnosis: DiagnosisDocument | None = Field(
        default=None, description="Where no plan was found: constraints in conflict, and fixes that were solved."
    )


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
    spec_digest: SpecDigest
    priority: int = Field(default=0, description="Waiting solves of higher priority start first.", examples=[0])
    deadline: Moment | None = Field(default=None, description="When its answer is wanted at the latest.")
    tags: list[str] = Field(default_factory=list, description="Of the request.", examples=[["team=ads"]])
    created_at: Moment = Field(description="When it was asked for.")
    started_at: Moment | None = Field(default=None, description="When a solver process took it.")
    ended_at: Moment | None = Field(default=None, description="When it ended.")
    progress: ProgressDocument | None = Field(default=None, description="Best plan so far.")
    result: ResultDocument | None = Field(default=None, description="What it came to; null until it ends.")
    warnings: list[IssueDocument] = Field(default_factory=list, description="What is odd about the spec.")
    assumptions: list[AssumptionDocument] = Field(default_factory=list, description="What was assumed.")
    error: SolveErrorDocument | None = Field(default=None, description="Why it failed.")


def solve_document(record: SolveRecord) -> SolveDocument:
    """Return the document of a solve."""
    result = dict(record.result) if record.result else None
    if result and result["plan_digest"]:
        result["plan_url"] = f"/v1/plans/{result['plan_digest']}"
    return SolveDocument.of(record, deadline=record.deadline_at, result=result)


class SolvePatch(StrictModel):
    """A solve, and what its spec is changed to."""

    solve: Annotated[str, Field(pattern="^[0-9a-f]{1,64}$")] = Field(
        description="Id of the solve whose spec is changed, whatever became of the solve.",
        examples=["019aa1b2c3d4e5f60718293a4b5c"],
    )
    patch: dict[str, JsonValue] = Field(
        description="JSON merge patch (RFC 7396) of the spec: objects are merged, null takes a field back to its"
        " default, and everything else, lists too, takes the place of what was there.",
        examples=[{"hardware": {"num_hosts": 2}}],
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
    weight_bytes: BytesTaken = Field(
        description="Weights of all tables, held once. Unit: bytes.", examples=[104_000_000_000]
    )
    optimizer_bytes: BytesTaken = Field(
        description="Optimizer state of whole rows. Unit: bytes.", examples=[820_000_000]
    )
    ids_per_sample: float = Field(description="Lookups of one sample. Unit: ids.", examples=[214.0])
    world_size: int = Field(description="Of the job. Unit: ranks.", examples=[8])
    sharding_group_size: int | None = Field(
        default=None,
        description="Of the largest sharding group that there may be; null without hardware.replica_groups."
        " Unit: ranks.",
        examples=[8],
    )
    available_bytes: BytesThere = Field(
        description="Memory for tables on all ranks, or on those of one sharding group, which holds all tables."
        " Unit: bytes.",
        examples=[540_000_000_000],
    )


class ValidationDocument(Document):
    """A spec that may be solved; one that may not is answered with a problem."""

    valid: Literal[True] = True
    spec_digest: SpecDigest
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
