"""Limits how many requests a caller may send, in the memory of one server."""

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.auth.principal import caller_of, name_of_caller
from api.http.auth.scopes import is_open
from api.http.protocol.problem_response import refuse
from api.services.errors import ApiError

#: Callers that are remembered; of more, those that have been silent for the longest are forgotten.
MAX_CALLERS = 100_000
_WINDOW_SECONDS = 60.0
_FETCHED = re.compile(r"/v1/(channels/.+/plan|plans/[^/]+)")


class RateLimit:
    """Lets a caller send so many requests at once, and then one for each share of a minute.

    For each caller one number is kept: the time at which all that it has sent would have been sent, had it kept to the
    rate (the generic cell rate algorithm).
    """

    def __init__(self, per_minute: int, *, ticks: Callable[[], float] = time.monotonic) -> None:
        self._interval = _WINDOW_SECONDS / per_minute
        self._slack = _WINDOW_SECONDS - self._interval
        self._ticks = ticks
        self._due: OrderedDict[str, float] = OrderedDict()

    def wait_seconds(self, caller: str) -> float:
        """Count a request, and return 0; or return how long its caller must wait, and count nothing."""
        now = self._ticks()
        due = max(self._due.get(caller, now), now)
        if due - now > self._slack + 1e-9:
            return due - now - self._slack
        self._due[caller] = due + self._interval
        self._due.move_to_end(caller)
        if len(self._due) > MAX_CALLERS:
            self._due.popitem(last=False)
        return 0.0


class RateLimitMiddleware:
    """Refuses requests beyond the limit. Fetches of plans are not counted, nor what is open to everybody.

    When a job starts, thousands of launchers fetch a plan in the same second, behind one key and often one address;
    a fetch costs no more than this middleware's refusal would. Those whose key is not valid are counted by address.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self._app, self._limit, self._per_minute = app, RateLimit(per_minute), per_minute

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait_seconds = self._limit.wait_seconds(name_of_caller(scope)) if _counts(scope) else 0.0
        if wait_seconds > 0:
            retry_after = math.ceil(wait_seconds)
            detail = (
                f"more than {self._per_minute} requests a minute (SHARDPLAN_RATE_LIMIT_PER_MINUTE);"
                f" the next one is answered in {retry_after} s"
            )
            await refuse(scope, receive, send, "too-many-requests", detail, {"retry-after": str(retry_after)})
            return
        await self._app(scope, receive, send)


def _counts(scope: Scope) -> bool:
    if scope["type"] != "http" or is_open(scope["path"]):
        return False
    caller = caller_of(scope)
    if isinstance(caller, ApiError) and caller.kind.code != "unauthorized":
        return False  # the caller is not known; many may share its address, and each is refused anyway
    is_fetch = scope["method"] in ("GET", "HEAD") and _FETCHED.fullmatch(scope["path"])
    return isinstance(caller, ApiError) or not is_fetch
