"""Files that are generated from the service, which tests compare with it.

``make generated`` runs this module with the paths of the files: the OpenAPI document, which clients of other languages
are made from, and what the launcher's client has of the planner.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from api.http.app import create_app
from api.http.openapi.client_types import client_types_text, compact_form_text, reshard_bands_text
from api.http.openapi.document import openapi_text
from api.settings import Settings

_WRITERS: dict[str, Callable[[], str]] = {
    "openapi.json": lambda: openapi_text(create_app(Settings())),
    "plan_types.py": client_types_text,
    "compact_form.py": compact_form_text,
    "reshard_bands.py": reshard_bands_text,
}

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        text = _WRITERS[path.name]()
        path.write_text(text, encoding="utf-8")
