"""The first stage: bytes become a document of the right form, or what can be read of one."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from api.schemas.base import StrictModel
from api.schemas.plan import (
    AnyEvaluationRequest,
    CompactEvaluationRequest,
    EvaluationRequest,
    HugeCtrEvaluationRequest,
    PrintedEvaluationRequest,
    TorchRecEvaluationRequest,
)
from api.schemas.spec import SpecDocument
from api.specs.input.json import (
    MAX_ISSUES,
    RejectedDocument,
    check_json,
    form_errors,
    form_issue,
    is_plan,
    is_spec,
    read_json,
)
from api.specs.input.recover import recover
from api.specs.issues import IssueCollector
from api.specs.plans.hugectr import is_hugectr
from api.specs.plans.torchrec import is_torchrec
from api.specs.state import Originals, SpecState
from planner.domain.formats.compact_form import is_compact
from planner.errors import Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvaluation:
    """A request to score a plan: what could be read of its spec, and the plan."""

    state: SpecState
    content: Mapping[str, Any]  # the request as it was sent
    request: AnyEvaluationRequest | None  # None if its form is broken


def read_spec(raw: bytes, issues: IssueCollector) -> SpecState:
    """Return what can be read of a spec, and report what is wrong with its form.

    Raises
    ------
    RejectedDocument
        Nothing can be read: the bytes are no JSON that can be trusted, or no spec; or there are more issues than are
        shown.
    """
    check_json(raw, SpecDocument)
    try:
        return _complete(SpecDocument.model_validate_json(raw, strict=True))
    except ValidationError as error:
        content = json.loads(raw)
        details = form_errors(error, content)
    if misplaced := [*_plan_as_spec(content, "")]:
        raise RejectedDocument(misplaced)
    _end_if_full(details, SpecDocument)
    return recover(content, details, SpecDocument, issues)


def read_evaluation(raw: bytes, issues: IssueCollector) -> ReadEvaluation:
    """Return a request to score a plan; reports and raises like ``read_spec``, of the spec and of the plan."""
    content = read_json(raw)
    model = _model_of(content.get("plan")) if isinstance(content, dict) else EvaluationRequest
    check_json(raw, model)
    try:
        request = model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        details = form_errors(error, content)
    else:
        return ReadEvaluation(state=_complete(request.spec), content=content, request=request)
    members = content if isinstance(content, dict) else {}
    if misplaced := [*_plan_as_spec(members.get("spec"), "/spec"), *_spec_as_plan(members.get("plan"))]:
        raise RejectedDocument(misplaced)
    _end_if_full(details, model)
    for detail in details:
        if detail["loc"][:1] != ("spec",):
            issues.add_beyond(form_issue(detail, model))
    of_spec = [detail for detail in details if detail["loc"][:1] == ("spec",)]
    return ReadEvaluation(state=recover(members.get("spec"), of_spec, model, issues), content=members, request=None)


def _model_of(plan: object) -> type[AnyEvaluationRequest]:
    """Return the form of a request whose plan has this shape."""
    if isinstance(plan, str):
        return PrintedEvaluationRequest
    if is_hugectr(plan):
        return HugeCtrEvaluationRequest
    if is_compact(plan):
        return CompactEvaluationRequest
    return TorchRecEvaluationRequest if is_torchrec(plan) else EvaluationRequest


def _complete(spec: SpecDocument) -> SpecState:
    return SpecState(spec=spec, originals=Originals.of(spec))


def _end_if_full(details: list[ErrorDetails], model: type[StrictModel]) -> None:
    """Raise ``RejectedDocument`` if no other issue could be shown in addition to these errors."""
    if len(details) >= MAX_ISSUES:
        raise RejectedDocument([form_issue(detail, model) for detail in details[:MAX_ISSUES]], len(details))


def _plan_as_spec(document: object, where: str) -> Iterator[Issue]:
    """Yield a plan in the place of a spec, of which every field would be reported as unknown."""
    if is_plan(document):
        message, hint = "this is a plan, and a spec is asked for", "send the spec that the plan was made for"
        yield Issue(code="not-a-spec", pointer=where, message=message, hint=hint)


def _spec_as_plan(document: object) -> Iterator[Issue]:
    if is_spec(document):
        message, hint = "this is a spec, and a plan is asked for", "plan it first, and send the plan that comes of it"
        yield Issue(code="not-a-plan", pointer="/plan", message=message, hint=hint)
