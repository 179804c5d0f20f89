"""Conditions of requests: entity tags that a caller names (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2)."""

import re
from typing import Literal

from api.services.errors import ApiError

#: One element of a list, which may be empty, and what ends it. Commas may stand within a tag.
_ELEMENT = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")?[ \t]*(,|$)')
_WEAK = "W/"

Failed = Literal["If-Match", "If-None-Match", "missing"]


def matches(if_none_match: str, etag: str) -> bool:
    """Whether ``If-None-Match`` of a reader lists an ETag, or is ``*``. Tags are compared without ``W/``.

    What is no list of tags matches nothing: the reader gets the document.
    """
    if if_none_match == etag:  # what launchers send
        return True
    tags = _tags(if_none_match)
    return tags == "*" or etag.removeprefix(_WEAK) in [tag.removeprefix(_WEAK) for tag in tags or ()]


def failed_condition(etag: str | None, *, if_match: str | None, if_none_match: str | None) -> Failed | None:
    """Return which condition of a change does not hold for what has an ETag; ``None`` as the ETag of what is not there.

    ``If-Match`` compares with ``W/``, and weak tags match nothing. What is there is changed with ``If-Match`` alone.
    Raises ``ApiError`` if a header is no list of tags.
    """
    if if_match is not None:
        tags = _checked("If-Match", if_match)
        if etag is None or (tags != "*" and etag not in tags):
            return "If-Match"
    if if_none_match is not None:
        _checked("If-None-Match", if_none_match)
        if etag is not None and matches(if_none_match, etag):
            return "If-None-Match"
    return "missing" if etag is not None and if_match is None else None


def _checked(name: str, header: str) -> tuple[str, ...] | Literal["*"]:
    tags = _tags(header)
    if tags is None:
        detail = f'{name} is * or a list of tags as headers ETag have them, with their quotes: "v3-0123456789abcdef"'
        raise ApiError("invalid-parameter", detail)
    return tags


def _tags(header: str) -> tuple[str, ...] | Literal["*"] | None:
    """Return the tags that a header lists, or ``*``; ``None`` if it is neither."""
    if header.strip(" \t") == "*":
        return "*"
    tags, position = [], 0
    while (element := _ELEMENT.match(header, position)) is not None:
        tags += [element[1]] if element[1] else []
        position = element.end()
        if not element[2]:
            return tuple(tags) or None
    return None
