"""Names of points in their studies: the values of their axes, so that no two points have one name."""

import hashlib
import re
from collections.abc import Sequence

_MOST_CHARACTERS = 100
_ESCAPED = re.compile(r"[%/\x00-\x1f\x7f]")


def key_of(labels: Sequence[str]) -> str:
    """Join labels by slashes; those in labels are escaped as in addresses, and long labels end with their digest."""
    return "/".join(_part(label) for label in labels)


def _part(label: str) -> str:
    escaped = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", label)
    if len(escaped) <= _MOST_CHARACTERS:
        return escaped
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{escaped[: _MOST_CHARACTERS - len(digest) - 3]}...{digest}"
