"""Memory that a lap has freed, kept for the next one, as training jobs keep it.

The C library maps every block of more than 32 MiB again and gives it back at once, so that the system clears its pages
lap after lap: outputs of 33 MiB then take ten times as long as those of 31. Accelerators have allocators that keep
what was freed, and so have tuned jobs on CPUs (jemalloc, tcmalloc). Kernels are what is measured here.
"""

import ctypes
import sys

#: Of <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = -1


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, until it ends; ``False`` if its C library has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _NEVER))
