"""Where solves run: one place for one solve at a time, here or elsewhere."""

import threading
from concurrent.futures import Future
from typing import Protocol

from api.execution.processes.slot import ProcessSlot
from api.execution.processes.solve import SolveAnswer, SolveJob, run_solve, start_solver


class NotNow(Exception):
    """Nothing can run here for a while, which says nothing about the solve; the message is for people."""


class SolverSlot(Protocol):
    """A place for one solve at a time, made again whenever it is gone."""

    def check(self) -> None:
        """Raise ``EngineUnavailable`` where nothing could run here."""
        ...

    def warm_up(self) -> None:
        """Make ready, so that the first solve need not wait."""
        ...

    def wait_until_ready(self, stopping: threading.Event) -> None:
        """Wait until a solve would begin at once, or will say why it cannot; not once all is to stop."""
        ...

    def solve(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Begin a solve, which is killed at the limit (``TimeoutError``) or when the future is cancelled.

        Improvements are in the job's file as soon as they are found. The future raises ``ProcessExpired`` where the
        solve took its process down, ``BrokenExecutor`` where the place was lost, and ``NotNow``.
        """
        ...

    def discard(self) -> None:
        """Kill what runs, and let go."""
        ...


class LocalSlot(ProcessSlot):
    """A solver process of this machine."""

    def __init__(self, memory_bytes: int | None) -> None:
        super().__init__(memory_bytes, start_solver)

    def check(self) -> None:
        """Nothing to check."""

    def solve(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Begin a solve."""
        return self.schedule(run_solve, job, limit_seconds)
