"""A place for solves on a Ray cluster, behind a process of this machine that talks to it."""

from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from pebble import ProcessExpired

from api.execution.base import EngineUnavailable, NotNow
from api.execution.processes.slot import Job
from api.execution.processes.solve import SolveAnswer, SolveJob
from api.execution.ray.solve import (
    RayJob,
    RayPlace,
    RayWorkerLost,
    check_cluster,
    connect,
    run_on_ray,
    start_driver,
)
from api.execution.solves.slot import SolverSlot
from api.settings import Settings

_START_SECONDS = 90.0


def place_of(settings: Settings) -> RayPlace:
    """Return where the cluster is. Raises ``EngineUnavailable`` if nothing says so."""
    if settings.ray_address is None:
        raise EngineUnavailable("SHARDPLAN_RUNNER is ray: set SHARDPLAN_RAY_ADDRESS, like head.internal:6379")
    return RayPlace(address=settings.ray_address, memory_bytes=settings.solver_memory_bytes)


class RaySlot(SolverSlot):
    """Has its process talk to the cluster; a solve waits there for its turn."""

    def __init__(self, place: RayPlace) -> None:
        self._place = place
        super().__init__(None, start_driver)

    def check(self) -> str:
        """Return a description of the cluster. Raises ``EngineUnavailable`` if it does not answer."""
        try:
            return self.schedule(check_cluster, self._place, _START_SECONDS).result()
        except NotNow as error:
            raise EngineUnavailable(str(error)) from None
        except (FutureTimeoutError, ProcessExpired, BrokenExecutor, CancelledError):
            where = self._place.address
            raise EngineUnavailable(f"the Ray cluster at {where} gives no answer in {_START_SECONDS:g} s") from None

    def warm_up(self) -> None:
        self.schedule(connect, self._place, _START_SECONDS)

    def solve(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Begin a solve; its limit counts from when it has a processor of the cluster, its deadline does not."""
        wanted = RayJob(job=job, place=self._place, limit_seconds=limit_seconds)
        return Job(self.schedule(run_on_ray, wanted, None), _error_of_solve)


def _error_of_solve(error: BaseException) -> BaseException:
    """Return what a solve makes of an error: where the process here is gone, that says nothing about the solve."""
    return RayWorkerLost("the process that talks to Ray ended") if isinstance(error, ProcessExpired) else error
