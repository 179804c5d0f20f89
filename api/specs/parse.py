"""A spec becomes a planning problem in stages, and all that is wrong with it is in one answer.

    read -> resolve_references -> check -> to_domain -> check_domain -> warn

Every stage but the checks returns the state of the spec with what it found, and reports what is wrong to one collector
of issues. A spec with issues goes through all stages, as far as it is sound. A stored spec was checked when it was
accepted: what a solve needs of it comes from ``read``, ``resolve_references`` and ``to_domain`` alone.
"""

from dataclasses import replace

from api.schemas.plan import MAX_SHARDS_OF_BODY, CompactEvaluationRequest, EvaluationRequest, PlanDocument
from api.specs.checks.check import check, check_domain
from api.specs.checks.warn import warn
from api.specs.input.json import RejectedDocument, parse_document, read_json
from api.specs.input.read import read_evaluation, read_spec
from api.specs.issues import IssueCollector
from api.specs.plans.document import GivenPlan, given_plan, read_plan
from api.specs.plans.registry import foreign_text, is_foreign, rewritten_plan
from api.specs.plans.rewritten import PlannedJob
from api.specs.references.resolve import PACKAGE, Library, resolve_references
from api.specs.request import SolveInputs, SolveRequest, inputs_of, request_of
from api.specs.state import SpecState
from api.specs.to_domain.to_domain import to_domain
from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.problem import Problem


def parse_spec(raw: bytes, library: Library = PACKAGE, *, cost_model: str | None = None) -> SolveRequest:
    """Check a spec; ``cost_model`` replaces its own, and ``library`` has what it names by digest.

    Raises
    ------
    InvalidProblem
        (as ``RejectedDocument``) with every broken rule, at most 50 of them.
    """
    issues = IssueCollector()
    return _checked(read_spec(raw, issues), library, issues, cost_model)


def _checked(state: SpecState, library: Library, issues: IssueCollector, cost_model: str | None) -> SolveRequest:
    is_over_http = library.find_plan is not None
    most_shards = MAX_SHARDS_OF_BODY if is_over_http else None
    state = resolve_references(state, library, issues, cost_model=cost_model, most_inline_shards=most_shards)
    check(state, issues)
    state = to_domain(state, issues)
    check_domain(state, issues)
    issues.raise_if_any()
    return request_of(state, tuple(warning.below(issues.base) for warning in warn(state)), issues.base)


def parse_stored_spec(raw: bytes, library: Library = PACKAGE) -> SolveInputs:
    """Return what a solve needs of a stored spec, which is normalised and was checked when it was accepted.

    Raises
    ------
    InvalidProblem
        Another release accepted the spec, and this one does not.
    """
    issues = IssueCollector()
    state = read_spec(raw, issues)
    state = resolve_references(state, library, issues)
    issues.raise_if_any()
    try:
        state = to_domain(state, issues)
    except (LookupError, ValueError):
        parse_spec(raw, library)  # reports the rule that was another then
        raise
    issues.raise_if_any()
    return inputs_of(state)


def parse_evaluation(
    raw: bytes, library: Library = PACKAGE, *, cost_model: str | None = None
) -> tuple[SolveRequest, GivenPlan]:
    """Check a request to score a plan; raises like ``parse_spec``, with pointers below /spec and /plan."""
    issues = IssueCollector("/spec")
    read = read_evaluation(raw, issues)
    request = _checked(read.state, library, issues, cost_model)
    if isinstance(read.request, EvaluationRequest | CompactEvaluationRequest):
        device_tier = request.problem.cluster.device_tier
        return request, given_plan(read.request.plan, read.content["plan"], device_tier=device_tier)
    plan = read.content["plan"]
    return request, _rewritten(plan, canonical_bytes(plan), request.problem, "/plan")


def parse_plan(raw: bytes, problem: Problem | None = None) -> GivenPlan:
    """Check a plan document from anywhere; for a ``problem`` also one in the form of others, or as it was printed.

    Raises
    ------
    InvalidProblem
        It is none, or says what cannot be.
    """
    if problem is not None and (text := foreign_text(raw)) is not None:
        return _rewritten(text, raw, problem, "")
    content = read_json(raw)
    if problem is not None and is_foreign(content):
        return _rewritten(content, raw, problem, "")
    device_tier = Tier.HBM if problem is None else problem.cluster.device_tier
    return read_plan(raw, content, device_tier=device_tier)


def is_well_formed(raw: bytes) -> bool:
    """Whether every field of a spec can be read, whatever it means; raises ``InvalidProblem`` if none can."""
    issues = IssueCollector()
    read_spec(raw, issues)
    return issues.num_issues == 0


def _rewritten(content: object, raw: bytes, problem: Problem, base: str) -> GivenPlan:
    cluster = problem.cluster
    job = PlannedJob(
        tables=problem.tables,
        world_size=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        pod_size=cluster.pod_size,
        device_tier=cluster.device_tier,
    )
    try:
        read = rewritten_plan(content, raw, job)
    except RejectedDocument as error:
        raise RejectedDocument([issue.below(base) for issue in error.issues], error.num_issues) from None
    plan = parse_document(canonical_bytes(read.document), PlanDocument)
    given = given_plan(plan, read.document, device_tier=job.device_tier)
    return replace(given, warnings=read.warnings, pointers=read.pointers, printed_memory=read.printed_memory)
