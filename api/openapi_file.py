"""The file in ``docs/`` that clients are made from.

``python -m api.openapi_file docs/openapi.json`` writes it; a test compares it with the service.
"""

import sys
from pathlib import Path

from api.app import create_app
from api.openapi import openapi_text
from api.settings import Settings

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(openapi_text(create_app(Settings())), encoding="utf-8")
