"""JSON merge patches (RFC 7396)."""

from collections.abc import Mapping
from typing import Any


def merged(document: Any, patch: object) -> Any:
    """Return a document with a patch applied; the document stays as it is.

    Members of objects are merged, ``null`` takes a member out, and everything else, lists too, takes the place of what
    was there (RFC 7396, section 2).
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
