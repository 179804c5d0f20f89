"""Compiled functions: the inner loops of searches, in machine code through numba.

The machine code is kept in a folder named after a digest of all sources that it is made of, so that only the first
run of a version compiles (about half a minute; ``python -m planner.partitioners.warm`` does it ahead).
numba itself would look only at the file of a function, and not at the functions that it calls
in others. No fast-math: equal inputs give equal bits.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_folder() -> Path:
    """Return the folder of this version's machine code: under NUMBA_CACHE_DIR, else the user's cache."""
    digest = hashlib.sha256()
    for source in _sources():
        digest.update(source.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(home, "shardplan", "compiled")
    return Path(base) / digest.hexdigest()[:16]


def checkout_mark() -> str:
    """Return a name for these very files: numba finds machine code by path and time, so that a copy has none."""
    facts = [f"{source.resolve()} {source.stat().st_mtime_ns}" for source in _sources()]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _sources() -> list[Path]:
    """Return the files that compiled code is made of, in a fixed order."""
    folder = Path(__file__).parent
    return [p for p in sorted(folder.rglob("*.py")) if p.samefile(__file__) or b"@compiled" in p.read_bytes()]


# Where the folder cannot be written, numba falls back to one beside the sources, and then to none.
numba.config.CACHE_DIR = str(cache_folder())


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers; it runs without the interpreter lock."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
