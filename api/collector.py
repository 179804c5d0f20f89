"""How Python's cycle collector runs in a server: seldom, and not over what is there for ever.

Modules, routes and schemas are hundreds of thousands of objects that live as long as the process. With Python's own
thresholds, checking one spec of a thousand tables makes the collector walk all of them several times, which is a third
of its time.
"""

import gc

#: New containers after which the youngest generation is collected (Python's own number is 700 in 3.11).
_YOUNGEST = 50_000


def settle() -> None:
    """Leave all that exists now out of collections, and let them happen less often; call it once, after the start."""
    gc.collect()
    gc.freeze()
    _, middle, oldest = gc.get_threshold()
    gc.set_threshold(_YOUNGEST, middle, oldest)
