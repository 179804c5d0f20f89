"""Studies of a service: questions that take many plans."""

import secrets
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from .documents import canonical_bytes, parse_object
from .solve_calls import MAX_SERVER_WAIT_SECONDS
from .transport import Transport


class StudyCalls:
    """Asks for studies and looks at them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, study: Mapping[str, object]) -> dict[str, object]:
        """Ask for a study; returns its document at once. An attempt that is repeated asks for the same study."""
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        response = self._transport.request("POST", "/v1/studies", headers=headers, content=canonical_bytes(study))
        return parse_object(response.content, "the study")

    def get(self, study_id: str, *, wait_seconds: float = 0.0) -> dict[str, object]:
        """Return a study, when it has ended or after some time."""
        wait = min(wait_seconds, MAX_SERVER_WAIT_SECONDS)
        params: dict[str, str | list[str]] = {"wait": f"{wait:g}"} if wait > 0 else {}
        response = self._transport.request("GET", _path(study_id), params=params, server_wait_seconds=wait)
        return parse_object(response.content, "the study")

    def newest(self, num_studies: int) -> list[dict[str, object]]:
        """Return the newest studies, at most 500, without their answers."""
        params: dict[str, str | list[str]] = {"page_size": str(num_studies)}
        response = self._transport.request("GET", "/v1/studies", params=params)
        return cast("list[dict[str, object]]", parse_object(response.content, "the list of studies")["studies"])

    def points(self, study_id: str) -> list[dict[str, object]]:
        """Return the points of a study, as far as there are any yet."""
        response = self._transport.request("GET", f"{_path(study_id)}/points")
        points = parse_object(response.content, "the points of the study").get("points")
        return cast("list[dict[str, object]]", points or [])

    def front(self, study_id: str) -> dict[str, object]:
        """Return the Pareto front of the points of a study that have ended."""
        response = self._transport.request("GET", f"{_path(study_id)}/front")
        return parse_object(response.content, "the front of the study")

    def cancel(self, study_id: str) -> dict[str, object]:
        """Stop a study and the solves that it submitted; returns its document."""
        response = self._transport.request("POST", f"{_path(study_id)}:cancel")
        return parse_object(response.content, "the study")


def _path(study_id: str) -> str:
    return f"/v1/studies/{quote(study_id, safe='')}"
