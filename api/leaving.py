"""The end of a process that was told to stop, and cannot: what waits for a database that is frozen cannot be woken."""

import logging
import os
import threading

#: Three seconds for requests, the rest for what runs and for a last word to the database. Less than what those who
#: stop services wait before they kill: 30 s of Kubernetes, of which 5 have passed before it tells.
MOST_STOP_SECONDS = 15.0

log = logging.getLogger(__name__)


def leave_in_time() -> None:
    """Be gone soon, whatever happens; to be called by whoever hears that the process is to stop.

    Nothing is lost by it: to leave so is to be killed, and work is handed to others as that of one that was.
    """
    timer = threading.Timer(MOST_STOP_SECONDS, _leave)
    timer.daemon = True
    timer.start()


def _leave() -> None:
    log.warning("not stopped after %g s: leaving what does not answer", MOST_STOP_SECONDS)
    os._exit(0)
