"""Solves of a service: lists, and what becomes of a solve."""

import secrets
from typing import cast
from urllib.parse import quote

from .documents import parse_object
from .transport import Transport


class SolveCalls:
    """Looks at the solves of a service, stops solves and tries them again."""

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
