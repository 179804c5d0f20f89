"""The OpenAPI document of the service."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from api.access.scopes import is_open, scope_of
from api.routes.documentation import problems
from api.schemas.access import CreatedKey, KeyRequest
from api.schemas.certificate import CertificateDocument
from api.schemas.channel import ChannelDocument, ChannelHistory, ChannelRollback, ChannelUpdate
from api.schemas.cost_models import (
    ActivationDocument,
    ActivationUpdate,
    CostModelDocument,
    CostModelRequest,
    ModelComparison,
)
from api.schemas.evaluation import EvaluationDocument
from api.schemas.events import ProgressEvent, StateEvent
from api.schemas.explanation import ExplanationDocument
from api.schemas.measurements import JobTimes, MeasuredRows, MeasurementsDocument, MeasurementsSummary
from api.schemas.plan import EvaluationRequest, PlanDocument, PlanSlice, TorchRecEvaluationRequest
from api.schemas.plan_list import PlanDifferenceDocument, PlanPage
from api.schemas.solve import ProblemDocument, SolveDocument, ValidationDocument
from api.schemas.spec import SpecDocument
from api.schemas.statistics import DriftDocument, StatisticsDocument, StatisticsSummary
from api.schemas.webhooks import CreatedWebhook, DeliveryDocument, WebhookDocument, WebhookRequest

DESCRIPTION = """Decides how the embedding tables of a recommendation model are cut and placed on a training cluster.

Send a spec to **POST /v1/solves**, wait for the solve, fetch the plan by its digest, point a channel at it.
All numbers are SI seconds and plain bytes. Every error is a problem document (RFC 9457).
"""

#: Documents that routes read or write as raw bytes.
_RAW_DOCUMENTS = (
    SpecDocument,
    PlanDocument,
    PlanSlice,
    PlanPage,
    PlanDifferenceDocument,
    EvaluationRequest,
    TorchRecEvaluationRequest,
    EvaluationDocument,
    CertificateDocument,
    ExplanationDocument,
    StatisticsDocument,
    StatisticsSummary,
    DriftDocument,
    MeasuredRows,
    JobTimes,
    MeasurementsSummary,
    MeasurementsDocument,
    CostModelRequest,
    CostModelDocument,
    ModelComparison,
    ActivationUpdate,
    ActivationDocument,
    KeyRequest,
    CreatedKey,
    WebhookRequest,
    WebhookDocument,
    CreatedWebhook,
    DeliveryDocument,
    ChannelUpdate,
    ChannelRollback,
    ChannelHistory,
    ChannelDocument,
    SolveDocument,
    ProgressEvent,
    StateEvent,
    ValidationDocument,
    ProblemDocument,
)


#: How callers say who they are; a server that asks nobody takes requests without, too.
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key: shardplan_..., made by shardplan keys create; or a token (JWT) of the issuer of the server.",
}

#: What routes that ask for keys may answer beside their own problems.
_REFUSALS = {
    str(status): answer for status, answer in problems("unauthorized", "forbidden", "too-many-requests").items()
}


def add_openapi(app: FastAPI, *, asks_for_keys: bool) -> None:
    """Let the app describe the bodies that it reads as raw bytes, and who may send them, too."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi_document(app, asks_for_keys=asks_for_keys)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def openapi_document(app: FastAPI, *, asks_for_keys: bool) -> dict[str, Any]:
    """Return the OpenAPI document of an app."""
    document = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes, tags=app.openapi_tags
    )
    _, schemas = models_json_schema(
        [(model, "validation") for model in _RAW_DOCUMENTS], ref_template="#/components/schemas/{model}"
    )
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
    document["components"]["securitySchemes"] = {"key": _KEY}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _drop_framework_errors(operation)
            if not is_open(path):
                scope = scope_of(method.upper(), path)
                operation["security"] = [{"key": [scope]}, *([] if asks_for_keys else [{}])]
                operation["responses"] = {**_REFUSALS, **operation["responses"]}
    document["components"]["schemas"].pop("HTTPValidationError", None)
    document["components"]["schemas"].pop("ValidationError", None)
    return document


def _drop_framework_errors(operation: dict[str, Any]) -> None:
    """Parameters that are wrong are answered with a problem, not with the framework's own document."""
    answer = operation["responses"].get("422", {})
    if "application/json" in answer.get("content", {}):
        del operation["responses"]["422"]


def openapi_text(app: FastAPI) -> str:
    """Return the document as the file holds it."""
    return json.dumps(app.openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
