"""Conditions of requests: entity tags that a caller names."""


def matches(etags: str, etag: str) -> bool:
    """Whether a header such as ``If-None-Match`` lists an ETag, or ``*``."""
    listed = [item.strip().removeprefix("W/") for item in etags.split(",")]
    return etag in listed or "*" in listed
