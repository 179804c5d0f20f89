"""Compiles the searches' machine code once on a machine, in a process of its own, before any solve needs it."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from planner.solver.partitioners.kernels.cache import is_warm

_COMPILE = (sys.executable, "-m", "api.execution.processes.compile_searches")
#: It takes half a minute, several times that on a machine that does other things; then solves go on without.
_MOST_SECONDS = 600.0
_LOOK_SECONDS = 0.1
_STOP_SECONDS = 5.0
_NICE = 10

log = logging.getLogger(__name__)


class Compiling:
    """The compiler at work, or nothing where nothing is to be compiled. Thread safe once begun."""

    def __init__(self, command: Sequence[str] = _COMPILE) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0
        self._settling = threading.Lock()

    def begin(self) -> bool:
        """Begin to compile, and return whether there is anything to wait for."""
        if is_warm():
            return False
        log.info("compiling the searches for this machine, once; solves of the next half minute wait for it")
        try:
            # A session of its own: Ctrl-C is for the server, which ends it.
            # Its input ends when the server does, and the compiler with that.
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            log.warning("the compiler did not start: %s; solver processes compile what they need", error)
            return False
        with contextlib.suppress(OSError):  # it may have ended; fetches go first
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
        self._deadline = time.monotonic() + _MOST_SECONDS
        return True

    def wait(self, stopping: threading.Event) -> None:
        """Wait until it has ended, however it did; no longer once all is to stop."""
        process = self._process
        if process is None:
            return
        while process.poll() is None and time.monotonic() < self._deadline:
            if stopping.wait(_LOOK_SECONDS):
                return
        with self._settling:
            if self._process is None:  # somebody else who waited has settled it
                return
            self.stop()
            self._process = None
            if not is_warm():
                log.warning("the searches could not be compiled ahead; solver processes compile what they need")

    def stop(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
        if process.stdin is not None:
            process.stdin.close()
