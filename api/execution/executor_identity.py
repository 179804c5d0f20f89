"""Who a server or worker is: one id for each data folder, a new life for every start."""

import contextlib
import os
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

_FILE = "executor-id"
_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class Identity:
    """One executor."""

    id: str  # stays with the data folder, so that a restarted process takes up its own work at once
    life: str  # of this process
    host: str  # for people


def identity_of(folder: Path) -> Identity:
    """Return who works in a data folder, which no other process does at the same time."""
    path = folder / _FILE
    found = ""
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        found = path.read_text(encoding="utf-8").strip()
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:60]
    if _PATTERN.fullmatch(found) is None:
        found = f"{host}-{secrets.token_hex(6)}"
        partial_path = path.with_suffix(".part")
        partial_path.write_text(found + "\n", encoding="utf-8")
        os.replace(partial_path, path)
    return Identity(id=found, life=secrets.token_hex(8), host=host)
