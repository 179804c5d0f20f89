"""How routes describe their bodies and errors in the OpenAPI document."""

from typing import Any

from api.http.protocol.problem_details import MEDIA_TYPE
from api.schemas.error_kinds import ERROR_KINDS

Responses = dict[int | str, dict[str, Any]]

#: What a route with a body, and one that takes an ``Idempotency-Key``, may answer.
BODY_ERRORS = ("request-timeout", "body-too-large", "unsupported-media-type", "invalid-problem")
KEY_ERRORS = ("key-in-flight", "key-reused")
HAS_IT = {"description": "The caller has it."}

_PROBLEM = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}


def error_responses(*codes: str) -> Responses:
    """Describe the problems that a route answers with."""
    responses: Responses = {}
    for code in (*codes, "internal"):
        kind = ERROR_KINDS[code]
        known = responses.get(kind.status)
        description = f"{known['description']}; {kind.title}" if known else kind.title
        responses[kind.status] = {"description": description, "content": {MEDIA_TYPE: _PROBLEM}}
    return responses


def json_body(*schemas: str, examples: dict[str, object] | None = None, required: bool = True) -> dict[str, Any]:
    """Describe a body that the route reads as raw bytes; any of the schemas."""
    references = [{"$ref": f"#/components/schemas/{schema}"} for schema in schemas]
    content: dict[str, Any] = {"schema": references[0] if len(references) == 1 else {"anyOf": references}}
    if examples:
        content["examples"] = {name: {"summary": name, "value": value} for name, value in examples.items()}
    return {"requestBody": {"required": required, "content": {"application/json": content}}}


def json_answer(description: str, schema: str) -> dict[str, Any]:
    """Describe an answer whose bytes the route writes itself."""
    reference = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    return {"description": description, "content": {"application/json": reference}}
