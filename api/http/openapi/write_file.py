"""Files that are generated from the service, which tests compare with it.

``python -m api.http.openapi.write_file docs/openapi.json api/client/plan_types.py`` writes the OpenAPI document, which
clients of other languages are made from, and the types of the launcher's client.
"""

import sys
from pathlib import Path

from api.http.app import create_app
from api.http.openapi.client_types import client_types_text
from api.http.openapi.document import openapi_text
from api.settings import Settings

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        text = client_types_text() if path.suffix == ".py" else openapi_text(create_app(Settings()))
        path.write_text(text, encoding="utf-8")
