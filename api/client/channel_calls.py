"""Rollbacks of channels, which are safe to repeat although each one makes a new version."""

from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import quote

import httpx

from .documents import canonical_bytes, parse_object
from .errors import ProblemError
from .transport import Transport


def channel_path(name: str) -> str:
    """Return the address of a channel.

    Raises
    ------
    ValueError
        This is no name of a channel.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"Expected a channel name such as ads/ranker/prod, not {name!r}.")
    return "/v1/channels/" + "/".join(quote(part, safe="") for part in parts)


def rolled_back(transport: Transport, name: str, *, if_match: str, version: int | None) -> dict[str, object]:
    """Point a channel at the plan of an earlier version; returns the channel's document.

    An attempt whose answer was lost may have moved the channel, and the next one is refused because of that:
    then the channel is one version further than it was, and points where it was asked to.
    """
    path = channel_path(name)
    response = transport.request("GET", path)
    before = parse_object(response.content, "the channel")
    known = response.headers.get("ETag") == if_match and isinstance(before.get("version"), int)
    body = {} if version is None else {"version": version}
    try:
        response = transport.request(
            "POST", f"{path}:rollback", headers={"If-Match": if_match}, content=canonical_bytes(body)
        )
    except ProblemError as error:
        if error.status != httpx.codes.PRECONDITION_FAILED or not known:
            raise
        at = cast("int", before["version"])
        again = transport.request("GET", path)
        after = parse_object(again.content, "the channel")
        wanted = _plan_before(transport, path, at) if version is None else _plan_of_version(transport, path, version)
        if after.get("version") != at + 1 or wanted is None or _plans_of(after) != wanted:
            raise
        return after
    return parse_object(response.content, "the channel")


def _plan_of_version(transport: Transport, path: str, version: int) -> object:
    """Return what a channel pointed at, at one of its versions; ``None`` where it has no such version."""
    return next((_plans_of(one) for one in _versions(transport, path) if one.get("version") == version), None)


def _plans_of(document: Mapping[str, object]) -> object:
    """Return what a channel, or a version of it, points at: its plan, and those by world size if it has several."""
    return document.get("plan_digest"), document.get("plan_digests") or {}


def _plan_before(transport: Transport, path: str, at: int) -> object:
    """Return what a rollback from a version comes to, as the service finds it; ``None`` where nothing is before."""
    plan, below = None, 0
    for one in _versions(transport, path):
        version = cast("int", one.get("version"))
        if version == at:
            plan, below = _plans_of(one), cast("int", one.get("restored_version") or at)
        elif version < below and _plans_of(one) != plan:
            return _plans_of(one)
    return None


def _versions(transport: Transport, path: str) -> Iterator[Mapping[str, object]]:
    """Yield the versions of a channel, newest first."""
    params: dict[str, str | list[str]] = {"page_size": "500"}
    while True:
        response = transport.request("GET", f"{path}/history", params=params)
        page = parse_object(response.content, "the history of the channel")
        yield from cast("list[Mapping[str, object]]", page.get("versions") or [])
        token = page.get("next_page_token")
        if not isinstance(token, str):
            return
        params["page_token"] = token
