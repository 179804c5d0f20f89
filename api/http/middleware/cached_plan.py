"""The short way of a fetch: what is in memory is answered in front of the routes, which cost many times as much.

GET and HEAD of ``/v1/plans/{digest}`` and ``/v1/channels/{name}/plan``, as they are or with ``?rank=K`` or ``?form=F``,
and of a channel with ``world_size=N`` after these, whose channel and plan are in memory. Everything else, whatever is
wrong with it included, goes on to the routes: they read the store, check names and parameters, and describe problems.
An answer is put together by the same function there and here.
"""

import re
from types import SimpleNamespace

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.auth.principal import Principal, caller_of
from api.http.auth.scopes import scope_of
from api.http.protocol.responses import IMMUTABLE, REVALIDATE, plan_answer
from api.http.services import Services
from api.services.plans.forms import COMPACT, LONG
from api.services.tenants import Tenants
from api.store.tenants import DEFAULT_TENANT

PLAN_ROUTE, CHANNEL_ROUTE = "/v1/plans/{digest}", "/v1/channels/{name}/plan"
_PLANS, _CHANNELS, _PLAN = "/v1/plans/", "/v1/channels/", "/plan"
#: As callers write it; other ways to write a number are left to the route.
_QUERY = re.compile(rb"(?:rank=(0|[1-9][0-9]{0,8})|form=(?:(compact)|long))?(?:(?:^|&)world_size=([1-9][0-9]{0,6}))?")
_NONE = (b"", b"0")


#: The scope of both routes.
(_FETCH,) = {scope_of("GET", template) for template in (PLAN_ROUTE, CHANNEL_ROUTE)}
#: What metrics and the log read of the route that would have answered.
_ROUTES = {template: SimpleNamespace(path_format=template) for template in (PLAN_ROUTE, CHANNEL_ROUTE)}


class FetchPathMiddleware:
    """Answers from what ``app.state.memory`` has of the caller's tenant, as soon as there is something."""

    def __init__(self, app: ASGIApp, *, asks_for_keys: bool) -> None:
        """``asks_for_keys`` says that callers were identified before, and that not everybody may read."""
        self._app, self._asks_for_keys = app, asks_for_keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if not path.startswith((_PLANS, _CHANNELS)) or not await self._answered(scope, path, send):
            await self._app(scope, receive, send)

    async def _answered(self, scope: Scope, path: str, send: Send) -> bool:
        """Answer where everything is in memory; False, and nothing happens, where the routes have to."""
        method = scope.get("method")
        tenants: Tenants[Services] | None = getattr(scope["app"].state, "memory", None)
        if method not in ("GET", "HEAD") or tenants is None or scope.get("root_path"):
            return False
        tenant = DEFAULT_TENANT
        if self._asks_for_keys:
            caller = caller_of(scope)
            if not isinstance(caller, Principal) or not caller.may(_FETCH):
                return False  # the route says why
            tenant = caller.tenant
        memory = tenants.peek(tenant)
        if memory is None:
            return False
        rank, form, world_size = None, LONG, None
        query = scope["query_string"]
        if query:
            found = _QUERY.fullmatch(query)
            if found is None:
                return False
            rank = None if found.group(1) is None else int(found.group(1))
            form = LONG if found.group(2) is None else COMPACT
            world_size = None if found.group(3) is None else int(found.group(3))
        if path.startswith(_PLANS):
            if world_size is not None:
                return False
            digest, route, cache_control = path[len(_PLANS) :], PLAN_ROUTE, IMMUTABLE
        else:
            if not path.endswith(_PLAN):
                return False
            channel = memory.channels.peek(path[len(_CHANNELS) : -len(_PLAN)])
            if channel is None:
                return False
            member = channel.plan_of(world_size)
            if member is None:
                return False
            digest, route, cache_control = member, CHANNEL_ROUTE, REVALIDATE
        served = memory.plans.peek(digest, rank, form=form)
        if served is None:
            return False
        accept_encoding = if_none_match = None
        for name, value in scope["headers"]:
            if name == b"accept-encoding":
                accept_encoding = value if accept_encoding is None else accept_encoding
            elif name == b"if-none-match":
                if_none_match = value if if_none_match is None else if_none_match
            elif name == b"transfer-encoding" or (name == b"content-length" and value not in _NONE):
                return False  # a body, which is refused or read elsewhere
        answer = plan_answer(
            served,
            method=method,
            accept_encoding=(accept_encoding or b"").decode("latin-1"),
            if_none_match=(if_none_match or b"").decode("latin-1"),
            plan_digest=digest,
            cache_control=cache_control,
        )
        scope["route"] = _ROUTES[route]
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})
        return True
