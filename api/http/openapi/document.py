"""The OpenAPI document of the service."""

import json
from enum import StrEnum
from functools import cache, partial
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from api.http.auth.scopes import is_open, scope_of
from api.http.routes.documentation import error_responses
from api.schemas.access import KeyRequest
from api.schemas.channel import ChannelRollback, ChannelUpdate
from api.schemas.cost_models import ActivationUpdate, CostModelRequest
from api.schemas.events import ProgressEvent, StateEvent
from api.schemas.measurements import JobTimes, MeasuredRows
from api.schemas.plan import AnyEvaluationRequest, CompactPlanDocument, PlanDocument, PlanSlice
from api.schemas.reshard import RankReads, ReshardMapDocument
from api.schemas.solve import ProblemDocument, SolvePatch
from api.schemas.spec import SpecDocument
from api.schemas.statistics import StatisticsDocument
from api.schemas.studies.fleet import SmallestFleetSpec
from api.schemas.studies.jobs import JobsSpec
from api.schemas.studies.portfolio import PortfolioSpec
from api.schemas.studies.scenarios import ScenariosSpec
from api.schemas.studies.sweep import SweepSpec
from api.schemas.webhooks import WebhookRequest

DESCRIPTION = """Decides how the embedding tables of a recommendation model are cut and placed on a training cluster.

Send a spec to **POST /v1/solves**, wait for the solve, fetch the plan by its digest, point a channel at it.
All numbers are SI seconds and plain bytes. Every error is a problem document (RFC 9457).
"""

#: Documents that routes name but do not declare: bodies, which they read as raw bytes, choices and streams.
_UNDECLARED = (
    SpecDocument,
    SolvePatch,
    PlanDocument,
    CompactPlanDocument,
    PlanSlice,
    ReshardMapDocument,
    RankReads,
    *get_args(AnyEvaluationRequest),
    SweepSpec,
    PortfolioSpec,
    SmallestFleetSpec,
    JobsSpec,
    ScenariosSpec,
    StatisticsDocument,
    MeasuredRows,
    JobTimes,
    CostModelRequest,
    ActivationUpdate,
    KeyRequest,
    WebhookRequest,
    ChannelUpdate,
    ChannelRollback,
    ProgressEvent,
    StateEvent,
    ProblemDocument,
)


class KeyRequirement(StrEnum):
    """Who is asked for a key, in the words of the document."""

    REQUIRED = "Routes with a lock need a key of this server (**Authorize**), of the scope that each names."
    OPEN = "This server requires no key: all routes are open."
    #: On the server: the committed document is of all of them.
    DEPENDS = "Servers with `SHARDPLAN_AUTH=keys` ask for a key, of the scope that each route names."


#: How callers say who they are.
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key: shardplan_..., made by shardplan keys create; or a token (JWT) of the issuer of the server.",
}

#: What servers answer in addition to the problems of a route, with and without keys.
_LIMITED = {str(status): answer for status, answer in error_responses("too-many-requests").items()}
_ACCESS_ERRORS = {str(status): answer for status, answer in error_responses("unauthorized", "forbidden").items()}


def add_openapi(app: FastAPI, *, asks_for_keys: bool) -> None:
    """Let the app describe the bodies that it reads as raw bytes, and who may send them, too."""
    asked = KeyRequirement.REQUIRED if asks_for_keys else KeyRequirement.OPEN
    app.openapi = cache(partial(openapi_document, app, asked=asked))  # type: ignore[method-assign]


def openapi_document(app: FastAPI, *, asked: KeyRequirement) -> dict[str, Any]:
    """Return the OpenAPI document of an app; if no key is required it has no word of them, and no locks."""
    document = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes, tags=app.openapi_tags
    )
    # Written again as pydantic does, defaults of null included, which the framework leaves out.
    routes = [route for route in app.state.routes if isinstance(route, APIRoute)]
    answers = [answer["model"] for route in routes for answer in route.responses.values() if "model" in answer]
    _, schemas = models_json_schema(
        [(model, "validation") for model in (*_UNDECLARED, *answers)], ref_template="#/components/schemas/{model}"
    )
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
    _name_after_components(document["components"]["schemas"])
    document["info"]["description"] += f"\n{asked}\n"
    if asked != KeyRequirement.OPEN:
        document["components"]["securitySchemes"] = {"key": _KEY}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _drop_framework_errors(operation)
            if is_open(path):
                continue
            operation["responses"] = {**_LIMITED, **operation["responses"]}
            if asked != KeyRequirement.OPEN:
                scope = scope_of(method.upper(), path)
                operation["security"] = [{"key": [scope]}, *([{}] if asked == KeyRequirement.DEPENDS else [])]
                operation["responses"] = {**_ACCESS_ERRORS, **operation["responses"]}
    document["components"]["schemas"].pop("HTTPValidationError", None)
    document["components"]["schemas"].pop("ValidationError", None)
    return document


def _name_after_components(schemas: dict[str, Any]) -> None:
    """Give every component its own content and its name as title: generators name classes after titles.

    A component that only refers to another one would be the same class twice.
    """
    for name, schema in list(schemas.items()):
        if "$ref" in schema:
            schemas[name] = {**schemas.pop(schema["$ref"].rpartition("/")[2]), "description": schema["description"]}
    for name, schema in schemas.items():
        schema["title"] = name


def _drop_framework_errors(operation: dict[str, Any]) -> None:
    """Parameters that are wrong are answered with a problem, not with the framework's own document."""
    answer = operation["responses"].get("422", {})
    if "application/json" in answer.get("content", {}):
        del operation["responses"]["422"]


def openapi_text(app: FastAPI) -> str:
    """Return the document as the file holds it: that of servers with keys and without."""
    return (
        json.dumps(openapi_document(app, asked=KeyRequirement.DEPENDS), indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
    )
