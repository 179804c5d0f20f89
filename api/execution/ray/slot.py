"""A place for solves on a Ray cluster, behind a process of this machine that talks to it."""

import threading
from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from pebble import ProcessExpired

from api.execution.base import EngineUnavailable
from api.execution.processes.slot import ProcessSlot
from api.execution.processes.solve import SolveAnswer, SolveJob
from api.execution.ray.solve import (
    RayJob,
    RayPlace,
    RayUnavailable,
    RayWorkerLost,
    check_cluster,
    connect,
    run_on_ray,
    start_driver,
)
from api.execution.solves.slot import NotNow
from api.settings import Settings

_START_SECONDS = 90.0


def place_of(settings: Settings) -> RayPlace:
    """Return where the cluster is. Raises ``EngineUnavailable`` where nothing says so."""
    if settings.ray_address is None:
        raise EngineUnavailable("SHARDPLAN_RUNNER is ray: set SHARDPLAN_RAY_ADDRESS, like head.internal:6379")
    return RayPlace(address=settings.ray_address, memory_bytes=settings.solver_memory_bytes)


class RaySlot:
    """Fulfils ``api.execution.solves.slot.SolverSlot``."""

    def __init__(self, place: RayPlace) -> None:
        self._place = place
        self._driver = ProcessSlot(None, start_driver)

    def check(self) -> None:
        """Refuse a cluster that does not answer."""
        self.found()

    def found(self) -> str:
        """Return what was found of the cluster, for people. Raises ``EngineUnavailable``."""
        try:
            return self._driver.schedule(check_cluster, self._place, _START_SECONDS).result()
        except RayUnavailable as error:
            raise EngineUnavailable(str(error)) from None
        except (FutureTimeoutError, ProcessExpired, BrokenExecutor, CancelledError):
            where = self._place.address
            raise EngineUnavailable(f"the Ray cluster at {where} gives no answer in {_START_SECONDS:g} s") from None

    def warm_up(self) -> None:
        """Connect."""
        self._driver.schedule(connect, self._place, _START_SECONDS)

    def wait_until_ready(self, stopping: threading.Event) -> None:
        """Wait for the process that talks to the cluster; a solve waits there for its turn."""
        self._driver.wait_until_ready(stopping)

    def solve(self, job: SolveJob, limit_seconds: float) -> "Future[SolveAnswer]":
        """Begin a solve; its limit counts from when it has a processor of the cluster, its deadline does not."""
        wanted = RayJob(job=job, place=self._place, limit_seconds=limit_seconds)
        return _Translated(self._driver.schedule(run_on_ray, wanted, None))

    def discard(self) -> None:
        """Let go of the cluster, which ends what runs there."""
        self._driver.discard()


class _Translated(Future[SolveAnswer]):
    """The future of the process that talks to the cluster, in words of ``SolverSlot``."""

    def __init__(self, driver: "Future[SolveAnswer]") -> None:
        super().__init__()
        self._driver = driver
        driver.add_done_callback(self._set_answer)

    def cancel(self) -> bool:
        """Have the solve killed."""
        return self._driver.cancel()

    def _set_answer(self, driver: "Future[SolveAnswer]") -> None:
        error = driver.exception()
        if error is None:
            self.set_result(driver.result())
        elif isinstance(error, RayUnavailable):
            self.set_exception(NotNow(str(error)))
        elif isinstance(error, ProcessExpired):
            self.set_exception(RayWorkerLost("the process that talks to Ray ended"))
        else:
            self.set_exception(error)
