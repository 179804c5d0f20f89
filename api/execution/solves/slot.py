"""Where solves run: one place for one solve at a time."""

from collections.abc import Callable
from concurrent.futures import Future

from api.execution.processes.slot import ProcessSlot
from api.execution.processes.solve import SolveAnswer, SolveJob, run_solve, start_solver


class SolverSlot(ProcessSlot):
    """A solver process of this machine, made again whenever it is gone; ``RaySlot`` is one on a cluster."""

    def __init__(self, memory_bytes: int | None, start: Callable[[int | None], None] = start_solver) -> None:
        super().__init__(memory_bytes, start)

    def check(self) -> str:
        """Return a description of what runs solves. Raises ``EngineUnavailable`` if nothing could run."""
        return "processes of this machine"

    def solve(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Begin a solve, which is killed at the limit (``TimeoutError``) or when the future is cancelled.

        Improvements are in the job's file as soon as they are found. The future raises ``ProcessExpired`` where the
        solve took its process down, ``BrokenExecutor`` where the place was lost, and ``NotNow``.
        """
        return self.schedule(run_solve, job, limit_seconds)
