"""Solves of a service: lists, and what becomes of a solve."""

import secrets
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import quote

import httpx

from .documents import canonical_bytes, parse_object
from .errors import UnexpectedAnswer
from .transport import Transport

#: The longest that the service holds an answer back, seconds (its ``Prefer: wait`` limit).
MAX_SERVER_WAIT_SECONDS = 60.0


class SolveCalls:
    """Looks at the solves of a service, stops solves, tries them again, and asks for those of changed specs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def newest(self, num_solves: int, *, state: str | None = None, tag: str | None = None) -> list[dict[str, object]]:
        """Return the newest solves, at most 500, without their assumptions and warnings.

        Parameters
        ----------
        state
            Only solves in this state: queued, running, succeeded, failed or cancelled.
        tag
            Only solves with this tag.
        """
        chosen = {"state": state, "tag": tag}
        params: dict[str, str | list[str]] = {
            "page_size": str(num_solves),
            **{name: value for name, value in chosen.items() if value is not None},
        }
        response = self._transport.request("GET", "/v1/solves", params=params)
        return cast("list[dict[str, object]]", parse_object(response.content, "the list of solves")["solves"])

    def from_patch(
        self, solve_id: str, patch: Mapping[str, object], *, wait_seconds: float = 0.0, tags: Sequence[str] = ()
    ) -> dict[str, object]:
        """Ask for a plan of the spec of another solve with changes; returns the new solve's document, ended or not.

        An equal spec gets the solve that is there already, so that an attempt may be repeated.

        Parameters
        ----------
        patch
            JSON merge patch of the spec (RFC 7396), such as ``{"hardware": {"num_hosts": 2}}``: objects are merged,
            ``None`` takes a field back to its default, and everything else, lists too, replaces what was there.
        wait_seconds
            How long the service may hold its answer back for the solve to end (at most 60).
        tags
            As of ``PlannerClient.submit``.

        Raises
        ------
        ProblemError
            404 without such a solve, 422 if the changed spec is not valid; pointers of ``errors`` are of that spec.
        """
        body = canonical_bytes({"solve": solve_id, "patch": patch})
        return submitted(self._transport, "/v1/solves:from-patch", body, wait_seconds=wait_seconds, tags=tags)

    def cancel(self, solve_id: str) -> dict[str, object]:
        """Stop a solve; the best plan that the solve has found stays. Returns its document, ended or not."""
        response = self._transport.request("POST", f"/v1/solves/{quote(solve_id, safe='')}:cancel")
        return parse_object(response.content, "the solve")

    def retry(self, solve_id: str) -> dict[str, object]:
        """Queue a new solve of the spec of a failed or cancelled solve; returns the document of the new solve.

        An attempt that is repeated asks for the same new solve.

        Raises
        ------
        ProblemError
            404 without such a solve, 409 if the solve has neither failed nor was cancelled.
        """
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        path = f"/v1/solves/{quote(solve_id, safe='')}:retry"
        return parse_object(self._transport.request("POST", path, headers=headers).content, "the solve")


def submitted(
    transport: Transport, path: str, body: bytes, *, wait_seconds: float, tags: Sequence[str]
) -> dict[str, object]:
    """Ask for a plan, and return the document of its solve."""
    wait = min(wait_seconds, MAX_SERVER_WAIT_SECONDS)
    headers = {"Prefer": f"wait={int(wait)}"} if wait >= 1 else {}
    params: dict[str, str | list[str]] | None = {"tag": list(tags)} if tags else None
    response = transport.request("POST", path, headers=headers, params=params, content=body, server_wait_seconds=wait)
    return solve_document(response)


def solve_document(response: httpx.Response) -> dict[str, object]:
    """Return the document of a solve.

    Raises
    ------
    UnexpectedAnswer
        The answer is something else.
    """
    document = parse_object(response.content, "the solve")
    if not isinstance(document.get("id"), str) or not isinstance(document.get("state"), str):
        raise UnexpectedAnswer("the answer is not the document of a solve: no id or no state")
    return document
