"""One request with patience: attempts, backoff, ``Retry-After``, and errors of our own."""

import email.utils
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from .documents import parse_object
from .errors import ProblemError, UnexpectedAnswer, Unreachable

#: Answers that say "not now": too many requests, bad gateway, unavailable, gateway time-out.
RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try again.

    The wait before attempt k + 1 is drawn from [d/2, d] with d = ``first_delay_seconds`` x 2**(k-1),
    so that thousands of ranks that lost one server do not return in one instant; a server's
    ``Retry-After`` is waited out in full, up to ``max_delay_seconds``.
    """

    attempts: int = 6
    first_delay_seconds: float = 0.25
    max_delay_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("Expected attempts >= 1.")
        if not 0 <= self.first_delay_seconds <= self.max_delay_seconds:
            raise ValueError("Expected 0 <= first_delay_seconds <= max_delay_seconds.")

    def delay_seconds(self, attempt: int, retry_after: str | None) -> float:
        """Seconds to wait after failed attempt number ``attempt`` (the first is 1)."""
        asked = _retry_after_seconds(retry_after)
        if asked is not None:
            return min(asked, self.max_delay_seconds)
        ceiling = min(self.first_delay_seconds * 2.0 ** (attempt - 1), self.max_delay_seconds)
        return ceiling * random.uniform(0.5, 1.0)


class Transport:
    """Requests to one service; every request it is given must be safe to repeat."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None,
        timeout_seconds: float,
        transport: httpx.BaseTransport | None,
        retry: RetryPolicy,
        sleep: Callable[[float], None],
    ) -> None:
        headers = {"User-Agent": "shardplan-client/1", "Accept": "application/json, application/problem+json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_checked(token)}"
        # Redirects are not followed, so that the token goes to this service alone.
        self._http = httpx.Client(
            base_url=base_url, timeout=timeout_seconds, transport=transport, headers=headers, follow_redirects=False
        )
        self._timeout_seconds = timeout_seconds
        self._retry = retry
        self._sleep = sleep

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | list[str]] | None = None,
        content: bytes | None = None,
        server_wait_seconds: float = 0.0,
    ) -> httpx.Response:
        """Send a request until it is answered, and return the answer.

        Parameters
        ----------
        server_wait_seconds
            How long the service was asked to hold the answer back; added to the time-out.

        Raises
        ------
        Unreachable
            No answer in all attempts.
        ProblemError
            A status of 400 or more; 429, 502, 503 and 504 only after the last attempt.
        """
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        request = self._http.build_request(
            method,
            path,
            headers=sent,
            params=params,
            content=content,
            timeout=self._timeout_seconds + server_wait_seconds,
        )
        attempt = 0
        while True:
            attempt += 1
            last = attempt == self._retry.attempts
            retry_after = None
            try:
                response = self._http.send(request)
            except httpx.UnsupportedProtocol as error:
                raise Unreachable(str(request.url), attempt, str(error)) from error
            except (httpx.TransportError, httpx.DecodingError) as error:
                if last:
                    raise Unreachable(str(request.url), attempt, f"{type(error).__name__}: {error}") from error
            else:
                if response.status_code < 400:
                    return response
                if last or response.status_code not in RETRIED_STATUSES:
                    raise problem_of(response)
                retry_after = response.headers.get("Retry-After")
            self._sleep(self._retry.delay_seconds(attempt, retry_after))


def _checked(token: str) -> str:
    """Return a token that can be a header; the error of another one does not repeat it."""
    stripped = token.strip()
    if not stripped or not all("!" <= character <= "~" for character in stripped):
        raise ValueError("Expected a token of printable ASCII characters without spaces.")
    return stripped


def problem_of(response: httpx.Response) -> ProblemError:
    """The error for an answer of 400 or more, with its problem document where it has one."""
    try:
        problem = parse_object(response.content, "the answer")
    except UnexpectedAnswer:
        problem = {"title": response.reason_phrase or "error without a problem document"}
    return ProblemError(response.status_code, problem)


def _retry_after_seconds(value: str | None) -> float | None:
    """``Retry-After`` as seconds: a whole number or an HTTP date (RFC 9110 section 10.2.3)."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
