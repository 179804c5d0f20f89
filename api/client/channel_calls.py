"""Channels of a service: lists, histories, and rollbacks that are safe to repeat although each makes a new version."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import cast
from urllib.parse import quote

import httpx

from .documents import canonical_bytes, parse_object
from .errors import ProblemError
from .transport import Transport


class ChannelCalls:
    """Looks at the channels of a service and at what they pointed at."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_all(self) -> list[dict[str, object]]:
        """Return the documents of all channels, by name."""
        return [dict(channel) for channel in _pages(self._transport, "/v1/channels", "channels")]

    def newest_versions(self, name: str, num_versions: int) -> list[dict[str, object]]:
        """Return what a channel pointed at, newest first."""
        return [dict(one) for one in islice(_versions(self._transport, channel_path(name)), num_versions)]

    def restored(self, name: str, *, at: int, version: int | None = None) -> Mapping[str, object] | None:
        """Return the version whose plans a rollback from version ``at`` brings back; ``None`` if there is none.

        Parameters
        ----------
        version
            The version whose plan comes back; ``None``: the last with another plan, as :meth:`PlannerClient.rollback`.
        """
        path = channel_path(name)
        if version is None:
            return _version_before(self._transport, path, at)
        return next((one for one in _versions(self._transport, path) if one.get("version") == version), None)


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
    before = _version_before(transport, path, at)
    return None if before is None else _plans_of(before)


def _version_before(transport: Transport, path: str, at: int) -> Mapping[str, object] | None:
    """Return the version whose plans a rollback from a version brings back; ``None`` where nothing is before."""
    plan, below = None, 0
    for one in _versions(transport, path):
        version = cast("int", one.get("version"))
        if version == at:
            plan, below = _plans_of(one), cast("int", one.get("restored_version") or at)
        elif version < below and _plans_of(one) != plan:
            return one
    return None


def _versions(transport: Transport, path: str) -> Iterator[Mapping[str, object]]:
    """Yield the versions of a channel, newest first."""
    return _pages(transport, f"{path}/history", "versions")


def _pages(transport: Transport, path: str, key: str) -> Iterator[Mapping[str, object]]:
    """Yield the items of all pages of a list."""
    params: dict[str, str | list[str]] = {"page_size": "500"}
    while True:
        response = transport.request("GET", path, params=params)
        page = parse_object(response.content, f"a page of {path}")
        yield from cast("list[Mapping[str, object]]", page.get(key) or [])
        token = page.get("next_page_token")
        if not isinstance(token, str):
            return
        params["page_token"] = token
