"""The OpenAPI document of the service."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

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
from api.schemas.plan import EvaluationRequest, PlanDocument, PlanSlice
from api.schemas.plan_list import PlanDifferenceDocument, PlanPage
from api.schemas.solve import ProblemDocument, SolveDocument, ValidationDocument
from api.schemas.spec import SpecDocument
from api.schemas.statistics import DriftDocument, StatisticsDocument, StatisticsSummary

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
    EvaluationDocument,
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


def add_openapi(app: FastAPI) -> None:
    """Let the app describe the bodies that it reads as raw bytes, too."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi_document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an app."""
    document = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes, tags=app.openapi_tags
    )
    _, schemas = models_json_schema(
        [(model, "validation") for model in _RAW_DOCUMENTS], ref_template="#/components/schemas/{model}"
    )
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas["$defs"])
    for operations in document["paths"].values():
        for operation in operations.values():
            _drop_framework_errors(operation)
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
