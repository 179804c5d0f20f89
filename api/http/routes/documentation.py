"""How routes describe their bodies and errors in the OpenAPI document."""

from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel

from api.http.protocol.problem_details import MEDIA_TYPE
from api.schemas.error_kinds import ERROR_KINDS

Responses = dict[int | str, dict[str, Any]]

#: What a route with a body, and one that takes an ``Idempotency-Key``, may answer.
BODY_ERRORS = (
    "request-timeout",
    "body-too-large",
    "unsupported-media-type",
    "invalid-problem",
    "too-many-requests",
    "caller-bodies-full",
    "bodies-full",
)
KEY_ERRORS = ("key-in-flight", "key-reused")
HAS_IT = {"description": "The caller has it."}
#: Of every route that answers 304.
IfNoneMatch = Annotated[
    str, Header(description="ETag of what the caller has, or a list of them: 304 if the answer is one of these.")
]


def error_responses(*codes: str) -> Responses:
    """Describe the problems that a route answers with."""
    responses: Responses = {}
    for code in (*codes, "internal"):
        kind = ERROR_KINDS[code]
        known = responses.get(kind.status)
        description = f"{known['description']}; {kind.title}" if known else kind.title
        responses[kind.status] = {
            "description": description,
            "content": {MEDIA_TYPE: {"schema": reference("ProblemDocument")}},
        }
    return responses


def reference(*schemas: str, choice: str = "anyOf") -> dict[str, Any]:
    """Refer to a schema, or to a choice of several."""
    references = [{"$ref": f"#/components/schemas/{schema}"} for schema in schemas]
    return references[0] if len(references) == 1 else {choice: references}


def json_body(
    *schemas: str, choice: str = "anyOf", examples: dict[str, object] | None = None, required: bool = True
) -> dict[str, Any]:
    """Describe a body that the route reads as raw bytes, of one of the schemas."""
    content: dict[str, Any] = {"schema": reference(*schemas, choice=choice)}
    if examples:
        content["examples"] = {name: {"summary": name, "value": value} for name, value in examples.items()}
    return {"requestBody": {"required": required, "content": {"application/json": content}}}


def json_answer(description: str, model: type[BaseModel]) -> dict[str, Any]:
    """Describe an answer whose bytes the route writes itself."""
    return {"description": description, "model": model}
