"""The cores and the memory of this machine."""

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pause the collector of reference cycles, unless it is off already; objects without cycles go as ever."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def return_free_memory() -> None:
    """Give the system back what was freed in the middle of the heap, where the C library can (glibc, but not musl).

    Columns of large problems lie there, up to 32 MB each, among others that stay in use.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
