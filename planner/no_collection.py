"""A pause of the garbage collector: it would look through a million shards, again and again, and find nothing."""

import contextlib
import gc
from collections.abc import Iterator


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
