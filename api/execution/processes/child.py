"""How processes begin that the server works with: they yield to it, and die with it.

They are forked from one process, which has loaded what they need (``api.cli.service.forkserver_preload``). That one
dies with the server, and they die with that one.
"""

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_NICENESS = 19


class _Parent:
    """The process that others are forked from: set there, and known to them."""

    pid: int | None = None


def start_parent() -> None:
    """Prepare the process that others are forked from: it and they yield to the server, and die with it.

    Linux sends the signal when the *thread* ends that has started the process.
    """
    os.setsid()
    os.nice(_NICENESS)
    _die_with_parent()
    _Parent.pid = os.getpid()


def start_process(memory_bytes: int | None) -> None:
    """Prepare a process that is forked from the parent, with so much address space."""
    os.setsid()
    _die_with_parent()
    if _Parent.pid not in (os.getppid(), None):  # the parent died before the line above
        os._exit(1)
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def warm_up() -> None:
    """Nothing to do: that the process runs it has loaded what it begins with."""


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
