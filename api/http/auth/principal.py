"""Who sends a request."""

import ipaddress
from dataclasses import dataclass

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


def bad_token(detail: str) -> ApiError:
    """Return the error of a request that shows no key or token of this service, or one that is no longer valid."""
    return ApiError("unauthorized", detail, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


def set_principal(scope: Scope, caller: Principal | ApiError) -> None:
    """Note who sends a request, or why that is not known."""
    scope.setdefault("state", {})[_STATE] = caller


def caller_of(scope: Scope) -> Principal | ApiError | None:
    """Return who sends a request, or why that is not known; ``None`` if no key is required."""
    found = scope.get("state", {}).get(_STATE)
    assert found is None or isinstance(found, Principal | ApiError)
    return found


def tenant_of(scope: Scope) -> str:
    """Return whose things a request is about. Raises if that is not known."""
    caller = caller_of(scope)
    if isinstance(caller, ApiError):
        raise caller
    return DEFAULT_TENANT if caller is None else caller.tenant


def name_of_caller(scope: Scope) -> str:
    """Return the name that limits count a caller by: its key or token, else its address (of IPv6 the /64 network)."""
    caller = caller_of(scope)
    if isinstance(caller, Principal):
        return f"caller {caller.who}"
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def actor_of(request: Request) -> Actor:
    """Return who asks for a change, as the audit trail has it."""
    caller = caller_of(request.scope)
    who = caller.who if isinstance(caller, Principal) else LOCAL.who
    return Actor(who=who, request_id=request_id_of(request.scope))
