"""Compiled functions: the inner loops of searches, in machine code through numba.

The machine code is kept in a folder named after a digest of all sources that it is made of, so that only the first
run of a version compiles (about half a minute; ``python -m planner.solver.partitioners.kernels.warm_up`` does it
ahead). numba itself would look only at the file of a function, and not at the functions that it calls in others. No
fast-math: equal inputs give equal bits.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from planner.solver.partitioners.kernels.cache import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])


# Where the folder cannot be written, numba falls back to one next to the sources, and then to none.
numba.config.CACHE_DIR = str(cache_folder())


def compiled(function: Function) -> Function:
    """Compile a function of arrays and numbers; it runs without the interpreter lock."""
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
