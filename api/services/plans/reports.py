"""What is said about a spec before it is solved, and about a plan from anywhere."""

import math

from api.schemas.evaluation import EvaluationDocument
from api.schemas.explanation import ExplanationDocument
from api.schemas.solve import AssumptionDocument, IssueDocument, TotalsDocument, ValidationDocument
from api.services.plans.other_spec import summarised
from api.services.plans.printed_memory import other_memory
from api.specs.checks.hardware_numbers import cost_model_issue
from api.specs.plans.document import SPEC_MISMATCH, GivenPlan
from api.specs.request import SolveInputs, SolveRequest
from cost_models.errors import CostModelError
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Evaluation
from planner.errors import InvalidProblem, Issue, UnsupportedRequest
from planner.orchestration.limits.tier_bandwidth import overloaded
from planner.output.certificate.certify import Document, certify
from planner.output.explain.explanation import Explanation, explain
from planner.output.exporters.generic import score_document
from planner.pricing.checkpoint import late_upload
from planner.pricing.memory.ledger import capacity_bytes
from planner.pricing.serving import overrun
from planner.verification.evaluate_placement import score
from planner.verification.narrow_pieces import narrow_pieces
from planner.verification.verify import NO_PARTITION, verify

_MAX_VIOLATIONS = 50
#: Nominal work on the bound of a certificate: what a solve of the same spec spends on its own, within reason.
WORK_SHARE, MOST_WORK_SECONDS = 0.25, 5.0


def validation_of(request: SolveRequest) -> ValidationDocument:
    problem = request.problem
    tables = problem.tables
    *_, largest = problem.of_each_group()
    return ValidationDocument(
        spec_digest=request.spec_digest,
        warnings=[IssueDocument.of(issue) for issue in request.warnings],
        assumptions=[AssumptionDocument.of(item) for item in request.assumptions],
        totals=TotalsDocument(
            num_tables=len(tables),
            num_features=sum(len(table.features) for table in tables),
            num_rows=sum(table.num_embeddings for table in tables),
            weight_bytes=math.ceil(sum(table.weight_bytes for table in tables)),
            optimizer_bytes=math.ceil(
                sum(table.optimizer.state_bytes(table.num_embeddings, table.embedding_dim) for table in tables)
            ),
            ids_per_sample=sum(table.ids_per_sample for table in tables),
            world_size=problem.all_ranks.world_size,
            sharding_group_size=None if problem.replica_groups is None else largest.world_size,
            available_bytes=math.floor(capacity_bytes(largest)[:, largest.cluster.device_tier].sum()),
        ),
    )


def evaluation_of(request: SolveRequest, plan: GivenPlan) -> EvaluationDocument:
    """Verify and score a plan from anywhere; one whose geometry is no partition gets no score.

    Raises
    ------
    UnsupportedRequest
        Nothing is wrong with the plan, but the cost model cannot price a part of it.
    """
    broken = verify(request.problem, plan.placement)
    violations = (*plan.false_digest(), *broken)
    is_partition = not any(issue.code in NO_PARTITION for issue in broken)
    scored = _scored(request, plan.placement, is_valid=not violations) if is_partition else None
    violations = (*violations, *(() if scored is None else (*overloaded(scored), *overrun(scored))))
    violations = summarised(violations, request.problem, plan, spec_digest=request.spec_digest)
    is_other_spec = any(issue.code == SPEC_MISMATCH for issue in violations)
    return EvaluationDocument(
        valid=not violations,
        num_violations=len(violations),
        violations=[_in_plan(plan.placed(issue)) for issue in violations[:_MAX_VIOLATIONS]],
        warnings=[
            *map(IssueDocument.of, request.model_warnings),
            *map(
                _in_plan,
                (
                    *plan.warnings,
                    *(() if is_other_spec else plan.other_spec(request.stated_spec_digest, request.spec_digest)),
                    *(other_memory(request.problem, plan) if is_partition else ()),
                    *(narrow_pieces(request.problem, plan.placement) if is_partition else ()),
                    *_late(scored),
                ),
            ),
        ],
        score=None if scored is None else score_document(scored),
    )


def explain_given(inputs: SolveInputs, plan: GivenPlan, *, spec_digest: str, max_tables: int) -> Explanation:
    """Explain a plan from anywhere.

    Raises
    ------
    InvalidProblem
        The plan breaks a rule, or states a false digest.
    UnsupportedRequest
        This version does not list a cut that the plan has.
    """
    if false := tuple(plan.false_digest()):
        raise InvalidProblem(false)
    try:
        return explain(inputs.problem, plan.placement, inputs.cost_model, max_tables=max_tables)
    except InvalidProblem as error:
        issues = summarised(error.issues, inputs.problem, plan, spec_digest=spec_digest)
        raise InvalidProblem(tuple(plan.placed(issue) for issue in issues)) from None
    except UnsupportedRequest as error:
        raise UnsupportedRequest(plan.placed(error.issue)) from error


def certificate_of(request: SolveRequest, plan: GivenPlan, *, spec_base: str = "", plan_base: str = "") -> Document:
    """Return the certificate of a plan from anywhere; the bases are where the request has its spec and its plan.

    Raises
    ------
    InvalidProblem
        The plan breaks a rule, or states a false digest.
    UnsupportedRequest
        The cost model prices whole ranks, or this version does not list a cut that the plan has.
    """
    if false := tuple(plan.false_digest()):
        raise InvalidProblem(tuple(plan.placed(issue).below(plan_base) for issue in false))
    try:
        return certify(
            request.problem,
            plan.placement,
            request.cost_model,
            head={"name": request.name, "spec_digest": _spec_of(request, plan), "plan_digest": plan.actual_digest},
            objective=plan.stated_objective,
            work_seconds=min(WORK_SHARE * request.limits.time_limit_seconds, MOST_WORK_SECONDS),
        )
    except InvalidProblem as error:
        issues = summarised(error.issues, request.problem, plan, spec_digest=request.spec_digest)[:_MAX_VIOLATIONS]
        raise InvalidProblem(tuple(plan.placed(issue).below(plan_base) for issue in issues)) from None
    except CostModelError as error:
        raise UnsupportedRequest(cost_model_issue(error, spec_base)) from error
    except UnsupportedRequest as error:
        base = spec_base if error.issue.pointer.startswith("/cost_model") else plan_base
        raise UnsupportedRequest(plan.placed(error.issue).below(base)) from error


def _spec_of(request: SolveRequest, plan: GivenPlan) -> str:
    """Return the digest of the certified spec as the plan names it, if it is the same but for the cost model chosen."""
    same = (request.stated_spec_digest, request.spec_digest)
    named = plan.stated_spec_digest
    return named if named is not None and named in same else request.stated_spec_digest


def explanation_document(spec_digest: str, plan: GivenPlan, explanation: Explanation) -> ExplanationDocument:
    return ExplanationDocument.model_validate(
        {"plan_digest": plan.actual_digest, "spec_digest": spec_digest, **explanation.to_document()}
    )


def _scored(request: SolveRequest, placement: Placement, *, is_valid: bool) -> Evaluation | None:
    try:
        return score(request.problem, placement, request.cost_model)
    except CostModelError as error:
        if not is_valid:  # what this version does not run need not have a price
            return None
        raise UnsupportedRequest(cost_model_issue(error, "/spec")) from error


def _late(scored: Evaluation | None) -> tuple[Issue, ...]:
    """A warning where checkpoints are not stored in time."""
    late = None if scored is None or scored.checkpoint is None else late_upload(scored.checkpoint)
    return () if late is None else (late,)


def _in_plan(issue: Issue) -> IssueDocument:
    return IssueDocument.of(issue, pointer=f"/plan{issue.pointer}")
