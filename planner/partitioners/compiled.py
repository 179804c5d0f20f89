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
    sources = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        text = source.read_bytes()
        if b"@compiled" in text or source.samefile(__file__):
            sources.update(text)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(home, "shardplan", "compiled")
    return Path(base) / sources.hexdigest()[:16]


# Where the folder cannot be written, numba falls back to one beside the sources, and then to none.
numba.config.CACHE_DIR = str(cache_folder())


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers; it runs without the interpreter lock."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
