"""What is wrong with a parameter of an address, and the way out, in words."""

import re
from typing import Any

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem

DIGEST = "sha256:" + "0" * 64
_DIGEST_HINT = "a digest is sha256: and 64 digits 0-9 a-f"


@pytest.mark.parametrize(
    ("method", "url", "pointer", "hint"),
    [
        ("GET", "/v1/plans/sha256:abc", "/digest", _DIGEST_HINT),
        ("GET", "/v1/solves?page_token=x!", "/page_token", "take next_page_token of the page before"),
        ("GET", "/v1/solves?page_size=0", "/page_size", "use at least 1"),
        ("GET", "/v1/solves?tag=A%20B", "/tag", "a tag is 1 to 64 of a-z 0-9"),
        ("POST", "/v1/solves?deadline=tomorrow", "/deadline", "write a time as in 2026-11-23T18:00:00Z"),
        (
            "POST",
            "/v1/plans:evaluate?cost_model=guess",
            "/cost_model",
            "take a reference that GET /v1/cost-models lists",
        ),
        ("GET", "/v1/solves?state=lost", "/state", "use 'queued', "),
        ("GET", f"/v1/plans/{DIGEST}/reshard/{DIGEST}?rank=x", "/rank", "write digits alone"),
        ("GET", f"/v1/plans/{DIGEST}/reshard/{DIGEST}?rank=1.5", "/rank", "write digits alone"),
        ("GET", "/v1/solves/00000000-0000-0000-0000-000000000000?wait=soon", "/wait", "write digits"),
    ],
)
def test_the_way_out_is_reported(live: Live, method: str, url: str, pointer: str, hint: str) -> None:
    (issue,) = assert_problem(live.request(method, url, json={}), 400, "invalid-parameter")["errors"]
    assert issue["pointer"].endswith(pointer)
    assert issue["hint"].startswith(hint)
    assert "pattern" not in issue["message"]


@pytest.mark.parametrize("text", ["1_0", "\uff11", "%201", "nan", "inf", "1e400"])
def test_only_what_people_write_as_a_number_is_one(live: Live, text: str) -> None:
    """Every whole and every decimal number of a query, whatever the route."""
    document = live.get("/openapi.json").json()
    asked = [
        (method.upper(), path, parameter["name"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and {"integer", "number"} & _types(parameter["schema"])
    ]
    assert len(asked) > 10
    for method, path, name in asked:
        address = re.sub(r"\{[^}]*digest\}", "sha256:" + "0" * 64, path)
        address = re.sub(r"\{[^}]*\}", "x", address)
        problem = live.request(method, f"{address}?{name}={text}", json={}).json()
        found = [issue for issue in problem["errors"] if issue["pointer"].endswith(f"/{name}")]
        assert found, (path, name)
        assert all(issue["hint"] for issue in found), (path, name)


def _types(schema: dict[str, Any]) -> set[str]:
    return {str(one.get("type")) for one in (schema, *schema.get("anyOf", ()))}
