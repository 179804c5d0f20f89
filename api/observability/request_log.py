"""One line for each request, in the format of the log.

The line is put together here and not by the logging of the standard library, which takes as long as the fetch of a plan
takes as a whole. Its fields need no quoting: ids are checked, methods and routes are those that there are.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from api.observability.metrics import method_of, route_of
from api.observability.request_id import request_id_of

_now = partial(datetime.now, UTC)


class AccessLog:
    """Writes a line about every request that is over. Fulfils ``api.http.middleware.request_observers.Observer``."""

    def __init__(self, write: Callable[[str], object], *, as_json: bool, clock: Callable[[], datetime] = _now) -> None:
        self._write, self._as_json, self._clock = write, as_json, clock

    def __call__(self, scope: Mapping[str, Any], status: int, seconds: float, num_bytes: int) -> None:
        at = self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
        request, method, route = request_id_of(scope), method_of(scope), route_of(scope)
        milliseconds = f"{seconds * 1000:.3f}"
        trace_id = scope["state"].get("trace_id")
        if self._as_json:
            trace = "" if trace_id is None else f'"trace_id": "{trace_id}", '
            line = (
                f'{{"event": "request", "request_id": "{request}", {trace}"method": "{method}", "route": "{route}", '
                f'"status": {status}, "milliseconds": {milliseconds}, "bytes": {num_bytes}, '
                f'"level": "info", "logger": "access", "timestamp": "{at}"}}\n'
            )
        else:
            trace = "" if trace_id is None else f" trace_id={trace_id}"
            line = f"{at} {method} {route} {status} {milliseconds} ms {num_bytes} bytes request_id={request}{trace}\n"
        self._write(line)
