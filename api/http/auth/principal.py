"""Who sends a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import Request
from starlette.types import Scope

from api.http.auth.scopes import ADMIN
from api.observability.request_id import request_id_of
from api.services.errors import ApiError
from api.store.access.audit import LOCAL, Actor
from api.store.tenants import DEFAULT_TENANT

_STATE = "caller"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody whose key or token was verified."""

    who: str  # id of the key; of a token "oidc:" and its subject
    scopes: frozenset[str]
    tenant: str = DEFAULT_TENANT

    def may(self, scope: str) -> bool:
        """Whether the key or token reaches as far; ``admin`` reaches everywhere."""
        return scope in self.scopes or ADMIN in self.scopes


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """Somebody whose key or token was not verified, and the problem that this is."""

    code: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def with_bad_token(cls, detail: str) -> "Unauthenticated":
        """Return somebody who shows something that is no key or token of this service, or none any more."""
        return cls("unauthorized", detail, {"WWW-Authenticate": 'Bearer error="invalid_token"'})


def set_principal(scope: Scope, caller: Principal | Unauthenticated) -> None:
    """Say who sends a request."""
    scope.setdefault("state", {})[_STATE] = caller


def caller_of(scope: Scope) -> Principal | Unauthenticated | None:
    """Return who sends a request; ``None`` where nobody asked for a key."""
    found = scope.get("state", {}).get(_STATE)
    assert found is None or isinstance(found, Principal | Unauthenticated)
    return found


def unauthenticated_error(unauthenticated: Unauthenticated) -> ApiError:
    """Return the answer to somebody who is not known."""
    return ApiError(unauthenticated.code, unauthenticated.detail, headers=unauthenticated.headers)


def tenant_of(scope: Scope) -> str:
    """Return whose things a request is about. Raises where nobody knows."""
    caller = caller_of(scope)
    if isinstance(caller, Unauthenticated):
        raise unauthenticated_error(caller)
    return DEFAULT_TENANT if caller is None else caller.tenant


def actor_of(request: Request) -> Actor:
    """Return who asks for a change, as the audit trail has it."""
    caller = caller_of(request.scope)
    who = caller.who if isinstance(caller, Principal) else LOCAL.who
    return Actor(who=who, request_id=request_id_of(request.scope))
