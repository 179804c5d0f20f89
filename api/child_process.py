"""How processes begin that the server works with: they yield to it, and die with it."""

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
NICENESS = 19


def start_process(parent_pid: int, memory_bytes: int | None) -> None:
    """Prepare a process: it yields to the server, dies with it, and has so much address space."""
    os.setsid()
    os.nice(NICENESS)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the server died before the line above
        os._exit(1)
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def warm_up() -> None:
    """Nothing to do: that the process runs it has loaded what it begins with."""
