"""The file in ``docs/`` that clients are made from.

``python -m api.http.openapi.write_file docs/openapi.json`` writes it; a test compares it with the service.
"""

import sys
from pathlib import Path

from api.http.app import create_app
from api.http.openapi.document import openapi_text
from api.settings import Settings

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(openapi_text(create_app(Settings())), encoding="utf-8")
