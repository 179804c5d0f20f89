"""The files that the pages are made of: read once, ready in every encoding, named by a digest of all of them."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from api.services.plans.cache import Representation, representations
from planner.options.schemes.geometry import PREFERRED_ORDER

#: Where the files are served: below it the digest of all of them, so that what an address holds never changes.
ADDRESS = "/ui/assets"
INDEX = "index.html"
_PLACE_OF_ADDRESS = b"{assets}"
#: By the end of the name; licences have none. A file of any other kind is a mistake.
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """One file in every encoding."""

    media_type: str
    by_encoding: Mapping[str, Representation]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFiles:
    """The index page, which loads all other files, and these by path."""

    address: str
    index: PageFile
    by_path: Mapping[str, PageFile]


@functools.cache
def page_files() -> PageFiles:
    folder = Path(__file__).with_name("assets")
    found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    bodies = dict(sorted(found.items()))
    bodies["schemes.js"] = _schemes_module()
    everything = hashlib.sha256()
    for path, body in bodies.items():
        everything.update(f"{path}\0{len(body)}\0".encode() + body)
    address = f"{ADDRESS}/{everything.hexdigest()[:16]}"
    index = bodies.pop(INDEX).replace(_PLACE_OF_ADDRESS, address.encode())
    return PageFiles(
        address=address,
        index=_page_file(INDEX, index),
        by_path={path: _page_file(path, body) for path, body in bodies.items()},
    )


def _schemes_module() -> bytes:
    """Return the planner's words about schemes as a JavaScript module, in the order of preference."""
    words = {scheme.label: scheme.facts.words.replace(" ({})", "") for scheme in PREFERRED_ORDER}
    return f"export const SCHEMES = new Map(Object.entries({json.dumps(words)}));\n".encode()


def _page_file(path: str, body: bytes) -> PageFile:
    return PageFile(media_type=_MEDIA_TYPES[PurePosixPath(path).suffix], by_encoding=representations(body))
