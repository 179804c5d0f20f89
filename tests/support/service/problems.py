"""What every error of the service must look like."""

import httpx

KEYS = {"type", "title", "status", "code", "detail", "request_id", "retryable"}


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict[str, object]:
    """Check the one shape of errors, and return the document."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 64 * 1024
    document = answer.json()
    assert set(document) - {"errors", "num_errors"} == KEYS
    assert document["status"] == status
    assert document["code"] == code
    assert document["type"] == f"/problems/{code}"
    assert document["request_id"] == answer.headers["x-request-id"]
    errors = document.get("errors", [])
    assert len(errors) <= 50
    for error in errors:
        assert set(error) == {"pointer", "code", "message", "hint"}
        assert error["pointer"] == "" or error["pointer"].startswith("/")
    return document
