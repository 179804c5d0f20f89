"""Documents from outside become values of the domain: the only place where the two meet.

bytes --json_input--> SpecDocument --spec_checks, table_checks--> issues, or a SolveRequest
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from api.schemas.base import StrictModel
from api.schemas.plan import EvaluationRequest, PlanDocument, TorchRecEvaluationRequest
from api.schemas.shard import Rectangle
from api.schemas.spec import SpecDocument
from api.schemas.table import PinnedSpec
from api.specs.assumptions import assumptions_of, statistics_of_caches, unused_tables
from api.specs.checks.cluster import check_groups, check_memory, check_spec
from api.specs.checks.hardware_numbers import missing_numbers
from api.specs.checks.names import (
    check_names_of_parts,
    check_overrides,
    single_fields,
)
from api.specs.checks.serving import check_serving
from api.specs.checks.tables import check_tables
from api.specs.checks.warnings import outgrown_memory, unlikely_numbers
from api.specs.input.json import UNREADABLE, RejectedDocument, is_plan, is_spec, parse_document, read_json
from api.specs.plans.document import GivenPlan, given_plan
from api.specs.plans.torchrec import PlannedJob, is_torchrec, plan_of_torchrec
from api.specs.references.cost_model import ChosenModel, FindModel, ShippedModels, choose_model, is_reference
from api.specs.references.statistics import FindStatistics, inline_statistics
from api.specs.to_domain.checkpoint import normalised_checkpoint
from api.specs.to_domain.pinned_tables import pin_tables
from api.specs.to_domain.previous_plan import FindPlan, previous_of, previous_warnings
from api.specs.to_domain.problem import problem_of
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.protocol import CostModel
from cost_models.registry import cost_model_names
from planner.domain.formats.canonical_json import canonical_bytes, canonical_members, digest_of, of_members
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import Assumption
from planner.domain.problem.problem import (
    Problem,
)
from planner.errors import Issue
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.registry import make_partitioner

Checked = TypeVar("Checked", bound=StrictModel)

#: Keys of a spec that determine the problem, and so what its plans mean.
SPEC_DIGEST_KEYS = (
    "schema_version",
    "model",
    "hardware",
    "constraints",
    "runtime",
    "objective",
    "cost_model",
    "checkpoint",
    "serving",
)
#: What a normalised spec writes in another way than it was given.
_SPELLED_OUT: Mapping[str, Mapping[str, Mapping[str, bool | Mapping[str, bool]]]] = {
    "tables": {"__all__": {"pooling_factor": True, "features": True, "constraints": {"pinned": True}}}
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest:
    """A spec that passed every check, as values of the domain."""

    name: str
    problem: Problem
    cost_model: CostModel
    partitioner_name: str
    limits: SolveLimits
    previous: PreviousPlan | None
    spec: dict[str, object]  # the normalised document: defaults filled in, shorthand spelled out
    members: Mapping[str, bytes]  # canonical bytes of its values: large ones take long
    spec_digest: str  # of the keys of the spec in SPEC_DIGEST_KEYS
    stated_spec_digest: str  # the same before another cost model was chosen than the spec's
    assumptions: tuple[Assumption, ...]
    warnings: tuple[Issue, ...]
    model_warnings: tuple[Issue, ...]  # those of them that any use of the cost model has

    @property
    def partitioner(self) -> Partitioner:
        """The partitioner, made anew; the first one of a process loads the solvers."""
        return make_partitioner(self.partitioner_name)

    hardware_profile: str


def parse_spec(
    raw: bytes,
    *,
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
    find_model: FindModel | None = None,
) -> SolveRequest:
    """Check a spec; ``cost_model`` replaces its own; ``find_plan``, ``find_statistics`` have what is named by digest.

    ``find_model`` has learned cost models; without it there are those of the package.

    Raises
    ------
    InvalidProblem
        (as ``RejectedDocument``) with every broken rule, at most 50 of them.
    """
    spec = _checked(raw, SpecDocument)
    return to_request(
        spec, cost_model=cost_model, find_plan=find_plan, find_statistics=find_statistics, find_model=find_model
    )


def parse_plan(raw: bytes, problem: Problem | None = None) -> GivenPlan:
    """Check a plan document from anywhere; for a ``problem`` also one of TorchRec's. Raises ``InvalidProblem``."""
    content = read_json(raw)
    if problem is not None and is_torchrec(content):
        return _of_torchrec(raw, problem, "")
    return given_plan(parse_document(raw, PlanDocument), content)


def _of_torchrec(raw: bytes, problem: Problem, base: str) -> GivenPlan:
    try:
        read = plan_of_torchrec(raw, PlannedJob.of_problem(problem))
    except RejectedDocument as error:
        raise RejectedDocument([issue.below(base) for issue in error.issues], error.num_issues) from None
    given = given_plan(parse_document(canonical_bytes(read.document), PlanDocument), read.document)
    return replace(given, warnings=read.warnings, pointers=read.pointers)


def parse_evaluation(
    raw: bytes,
    *,
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
    find_model: FindModel | None = None,
) -> tuple[SolveRequest, GivenPlan]:
    """Check a request to score a plan; raises like ``parse_spec``, with pointers below /spec and /plan."""
    content = read_json(raw)
    is_of_torchrec = isinstance(content, dict) and is_torchrec(content.get("plan"))
    document: EvaluationRequest | TorchRecEvaluationRequest
    if is_of_torchrec:
        document = _checked(raw, TorchRecEvaluationRequest, spec_key="spec")
    else:
        document = _checked(raw, EvaluationRequest, spec_key="spec")
    request = to_request(
        document.spec,
        base="/spec",
        cost_model=cost_model,
        find_plan=find_plan,
        find_statistics=find_statistics,
        find_model=find_model,
    )
    if isinstance(document, EvaluationRequest):
        return request, given_plan(document.plan, content["plan"])
    return request, _of_torchrec(canonical_bytes(content["plan"]), request.problem, "/plan")


def _checked(raw: bytes, model: type[Checked], *, spec_key: str | None = None) -> Checked:
    """Check the form of a document; where it is broken, say too what else is wrong with its spec."""
    try:
        return parse_document(raw, model)
    except RejectedDocument as error:
        if error.issues[0].code in UNREADABLE:
            raise
        content = json.loads(raw)
        if misplaced := [*_misplaced(content, spec_key)]:
            raise RejectedDocument(misplaced) from None
        further = _further_issues(content, error.issues, spec_key)
        raise RejectedDocument([*error.issues, *further], error.num_issues + len(further)) from None


def _misplaced(document: object, spec_key: str | None) -> Iterator[Issue]:
    """Yield a plan in the place of a spec, and a spec in that of a plan: every field of it would be told as unknown."""
    members = document if isinstance(document, dict) else {}
    if is_plan(document if spec_key is None else members.get(spec_key)):
        message, hint = "this is a plan, and a spec is asked for", "send the spec that the plan was made for"
        yield Issue(code="not-a-spec", pointer="" if spec_key is None else f"/{spec_key}", message=message, hint=hint)
    if spec_key is not None and is_spec(members.get("plan")):
        message, hint = "this is a spec, and a plan is asked for", "plan it first, and send the plan that comes of it"
        yield Issue(code="not-a-plan", pointer="/plan", message=message, hint=hint)


def _further_issues(document: object, found: tuple[Issue, ...], spec_key: str | None) -> list[Issue]:
    if spec_key is None:
        further = single_fields(document, "")
    else:
        further = single_fields(document.get(spec_key) if isinstance(document, dict) else None, f"/{spec_key}")
    told = {issue.pointer for issue in found}
    return [issue for issue in further if issue.pointer not in told]


def check_form(raw: bytes) -> None:
    """Check that a spec is well formed, whatever it means; raises ``InvalidProblem``."""
    _checked(raw, SpecDocument)


def _digest_of_problem(members: Mapping[str, bytes]) -> str:
    """Return the digest of what determines the problem of a normalised spec."""
    return digest_of(of_members({key: members[key] for key in SPEC_DIGEST_KEYS if key in members}))


def to_request(
    spec: SpecDocument,
    *,
    base: str = "",
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
    find_model: FindModel | None = None,
) -> SolveRequest:
    """Cross-check a spec and turn it into values of the domain."""
    stated_cost_model = None
    if cost_model is not None:
        stated_cost_model = _pinned(spec, base, find_model or ShippedModels())
        spec = spec.model_copy(update={"cost_model": cost_model})
    hardware, issues = _hardware(spec, base)
    chosen = _chosen_model(spec, base, find_model or ShippedModels())
    if isinstance(chosen, Issue):
        issues.append(chosen)
    elif chosen is not None and chosen.name != spec.cost_model:  # a default that stays is still told as one
        spec = spec.model_copy(update={"cost_model": chosen.name})
    spec, wrong_references, measured, mismatches = inline_statistics(spec, base, find_statistics)
    issues.extend(wrong_references)
    issues.extend(check_spec(spec, hardware, base))
    tables, wrong_tables = check_tables(spec, hardware, base)
    issues.extend(wrong_tables)
    issues.extend(check_groups(spec, base))
    issues.extend(check_serving(spec, hardware, base))
    previous = None
    if spec.previous_plan is not None:
        job = None if hardware is None else PlannedJob.of_spec(spec, hardware)
        previous, wrong = previous_of(spec.previous_plan, base, find_plan, job)
        issues.extend(wrong)
    if issues:
        raise RejectedDocument(issues)
    assert hardware is not None
    assert isinstance(chosen, ChosenModel)
    problem, wrong_pins = pin_tables(problem_of(spec, tables, hardware), spec, base)
    model = chosen.model
    issues = [*check_memory(problem, base), *wrong_pins]
    if not wrong_pins:  # else it would be asked what prices of other cuts need
        issues.extend(missing_numbers(problem, model, base))
    if issues:
        raise RejectedDocument(issues)
    normalised = _normalised(spec, problem)
    warnings = [
        *chosen.warnings,
        *unused_tables(problem, base),
        *statistics_of_caches(spec, base),
        *outgrown_memory(problem, model.ledger, base),
        *unlikely_numbers(spec, hardware, base),
        *mismatches,
    ]
    if previous is not None:
        normalised["previous_plan"] = previous.document
        warnings.extend((*previous.warnings, *previous_warnings(previous.plan, problem, spec, base)))
    members = canonical_members(normalised)
    spec_digest = _digest_of_problem(members)
    return SolveRequest(
        name=spec.name,
        problem=problem,
        cost_model=model,
        partitioner_name=spec.solver.partitioner,
        limits=SolveLimits(
            time_limit_seconds=spec.solver.time_limit_seconds,
            relative_gap=spec.solver.relative_gap,
            seed=spec.solver.seed,
            reproducible=spec.solver.reproducible,
            work_limit_seconds=spec.solver.work_limit_seconds,
        ),
        previous=None if previous is None else previous.plan,
        spec=normalised,
        members=members,
        spec_digest=spec_digest,
        stated_spec_digest=spec_digest
        if stated_cost_model in (None, spec.cost_model)
        else _digest_of_problem(members | {"cost_model": canonical_bytes(stated_cost_model)}),
        assumptions=(*assumptions_of(spec, problem), *chosen.assumptions, *measured),
        warnings=tuple(warnings),
        model_warnings=chosen.warnings,
        hardware_profile=spec.hardware.profile,
    )


def _chosen_model(spec: SpecDocument, base: str, find: FindModel) -> ChosenModel | Issue | None:
    """Return the cost model of a spec, or why there is none; ``None`` where a name is wrong, as told elsewhere."""
    known = spec.cost_model in cost_model_names() or is_reference(spec.cost_model)
    if not known or spec.hardware.profile not in profile_ids():
        return None
    return choose_model(spec.cost_model, spec.hardware.profile, base, find)


def _pinned(spec: SpecDocument, base: str, find: FindModel) -> str:
    """Return the name that the cost model of a spec has for ever; its own where it means none."""
    chosen = _chosen_model(spec, base, find)
    return chosen.name if isinstance(chosen, ChosenModel) else spec.cost_model


def _hardware(spec: SpecDocument, base: str) -> tuple[Hardware | None, list[Issue]]:
    """Return the hardware with the numbers that the user states, ``None`` where it is unknown, and what is wrong."""
    values: Mapping[str, float] = spec.hardware.overrides.__pydantic_extra__
    wrong_overrides = list(check_overrides(values, base))
    names = (spec.hardware.profile, spec.cost_model, spec.solver.partitioner)
    issues = [*wrong_overrides, *check_names_of_parts(*names, base)]
    if spec.hardware.profile not in profile_ids():
        return None, issues
    profile = load_profile(spec.hardware.profile)
    units = {name: field.unit for name, field in FIELDS.items()}
    return (profile if wrong_overrides else profile.with_overrides(values, units)), issues


def _normalised(spec: SpecDocument, problem: Problem) -> dict[str, object]:
    """Return the spec with defaults filled in, shorthand spelled out and sets sorted."""
    document: dict[str, object] = spec.model_dump(mode="json", exclude_none=True, exclude={"model", "hardware"})
    model = spec.model.model_dump(mode="json", exclude_none=True, exclude=_SPELLED_OUT)  # at once: twice as fast
    for written, table, checked in zip(model["tables"], spec.model.tables, problem.tables, strict=True):
        written["features"] = [
            {"name": f.name, "pooling_factor": f.pooling_factor, "num_poolings": f.num_poolings}
            for f in checked.features
        ]
        written["constraints"] = _normalised_constraints(written["constraints"], table.constraints.pinned)
    document["model"] = model
    document["hardware"] = spec.hardware.model_dump(mode="json", exclude_none=True) | {
        "ranks_per_host": problem.cluster.ranks_per_host
    }
    if spec.checkpoint is not None:
        document["checkpoint"] = normalised_checkpoint(spec.checkpoint)
    return document


def _normalised_constraints(written: Mapping[str, object], pinned: PinnedSpec | None) -> dict[str, object]:
    """Return the constraints with sets sorted, and of a pin what says where the table goes."""
    document = {key: sorted(set(value)) if isinstance(value, list) else value for key, value in written.items()}
    if pinned is not None:
        shards = pinned.model_dump(mode="json", include={"shards": {"__all__": set(Rectangle.model_fields)}})
        document["pinned"] = {
            "sharding_type": pinned.sharding_type,
            "compute_kernel": pinned.compute_kernel,
            **({} if pinned.cache_load_factor is None else {"cache_load_factor": pinned.cache_load_factor}),
            "shards": sorted(shards["shards"], key=lambda shard: (shard["column_offset"], shard["rank"])),
        }
    return document
