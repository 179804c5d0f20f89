"""Which release this is, and what it runs on."""

import platform
from importlib.metadata import PackageNotFoundError, version

PARTS = ("fastapi", "numpy", "ortools", "pydantic", "sqlalchemy", "uvicorn")


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


#: "not installed" where the code runs from a checkout that is on the path.
VERSION = _installed("shardplan")


def versions() -> dict[str, str]:
    """Return the versions of what the service is made of."""
    return {"shardplan": VERSION, "python": platform.python_version(), **{name: _installed(name) for name in PARTS}}
