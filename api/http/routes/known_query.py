"""Parameters that no route reads are refused: a slip must not be taken for a wish that was granted."""

import difflib

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from api.services.errors import ApiError
from api.specs.input.json import is_quotable
from planner.errors import Issue


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a request whose query has keys that its route does not know."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = _names(route.dependant)
    unknown = [key for key in request.query_params if key not in known]
    if unknown:
        issues = tuple(_issue(key, known) for key in unknown[:10])
        raise ApiError("invalid-parameter", "the query has a parameter that this address does not know", issues=issues)


def _names(dependant: Dependant) -> list[str]:
    """Return the names of the parameters that a route reads, itself or through what it depends on."""
    own = [field.alias for field in dependant.query_params]
    return [*own, *(name for part in dependant.dependencies for name in _names(part))]


def _issue(key: str, known: list[str]) -> Issue:
    close = difflib.get_close_matches(key[:80], known, n=1, cutoff=0.7)
    usable = f"this address takes {', '.join(known)}" if known else "this address takes no parameters"
    return Issue(
        code="unknown-parameter",
        pointer=f"/query/{key}" if is_quotable(key) else "/query",
        message="unknown parameter",
        hint=f"did you mean {close[0]}?" if close else usable,
    )
