"""Runs one solve in a solver process: begins, watches, kills; ``solve_writer`` keeps its best plan and its end.

The thread waits and watches; the work is done in the process, which can be killed at any moment: when a solve
overruns its limit, when somebody cancels it, or by the operating system. Whatever happens to a process, only its own
solve ends, and the best plan that it had left behind is kept: in a file of this server while the process runs, and in
the store, so that it outlives the server, too.
"""

import contextlib
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError

from opentelemetry.trace import Tracer
from pebble import ProcessExpired
from sqlalchemy.exc import SQLAlchemyError

from api.execution.base import Interrupted, NotNow
from api.execution.maintenance.retry import retried
from api.execution.processes.compile_ahead import Compiling
from api.execution.processes.solve import Incumbent, PlanFunction, SolveAnswer, SolveJob
from api.execution.ray.slot import RaySlot, place_of
from api.execution.solves.result_writer import SolveRun, SolveWriter
from api.execution.solves.results import Stop
from api.execution.solves.slot import SolverSlot
from api.execution.solves.slots import Slots
from api.execution.solves.time_limits import spec_in_time
from api.observability.metrics import WorkMetrics
from api.observability.tracing import NO_TRACING, solve_span
from api.settings import Settings
from api.specs.references.cost_model import learned_digest
from api.specs.references.stored_models import StoredModels
from api.store.database import Database, TenantStore
from api.store.solves.records import ENDED, QUEUED, SolveRecord

_POLL_SECONDS = 0.02
#: How long it takes to hear of a cancel that another server answered.
_LOOK_SECONDS = 0.5
_MAX_STARTS = 2
_PAUSE_SECONDS = 5.0
#: A solve that was begun so often takes down whatever runs it, as far as can be known.
MAX_ATTEMPTS = 20
_INCUMBENT_FOLDER = "running"

log = logging.getLogger(__name__)


class SolveRunner:
    """Fulfils ``api.execution.base.Runner`` for solves."""

    def __init__(
        self,
        store: Database,
        settings: Settings,
        plan: PlanFunction,
        *,
        executor_id: str,
        on_end: Callable[[str], None],
        on_change: Callable[[str], None],
        metrics: WorkMetrics,
        tracer: Tracer = NO_TRACING.tracer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._plan, self._clock = store, settings, plan, clock
        self._executor_id, self._on_end, self._on_change = executor_id, on_end, on_change
        self._metrics, self._tracer = metrics, tracer
        self._stopping = threading.Event()
        self._writer = SolveWriter(
            store, stopping=self._stopping, on_change=on_change, metrics=metrics, tracer=tracer, clock=clock
        )
        self._runs: dict[str, SolveRun] = {}
        self._folder = settings.data_dir / _INCUMBENT_FOLDER
        self._slots = Slots(settings.solver_processes, self._new_slot)
        self._compiling = Compiling()

    @property
    def num_slots(self) -> int:
        return self._settings.solver_processes

    def start(self) -> None:
        """Clear away what a dead server left, and start the processes. Raises ``EngineUnavailable``."""
        self._slots.check()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        runs_here = self._settings.runner == "local" and self.num_slots > 0
        if not (runs_here and self._compiling.begin()):  # else each starts with its first solve, and has what it needs
            self._slots.warm_up()

    def stop(self) -> None:
        """Kill what runs; it runs again, here after the next start or elsewhere."""
        self._stopping.set()

    def close(self) -> None:
        """Kill the processes, once nothing runs any more."""
        self._compiling.stop()
        self._slots.discard()

    def cancel(self, solve_id: str) -> None:
        """Stop a solve that is marked so, where it runs here; end it where it waits and has a plan."""
        run = self._runs.get(solve_id)
        if run is not None:
            run.cancelled.set()
            return
        solve = self._store.any_solve(solve_id)
        best = self._writer.saved_incumbent(solve_id)
        if solve is not None and solve.state == QUEUED and best is not None:
            self._writer.end(self._new_run(solve_id, None, best), None, Stop.CANCELLED)

    def run(self, work_id: str) -> None:
        """Run one solve to its end; what fails on the way ends this solve and no other."""
        with self._slots.acquire(self._stopping) as process:
            if process is not None:
                # A solve is begun where it runs at once: a server that is gone before that has not tried it, and what
                # must be compiled first takes nothing of its time.
                self._compiling.wait(self._stopping)
                if not self._stopping.is_set():  # else it would be started to be stopped
                    process.wait_until_ready(self._stopping)
            if process is None or self._stopping.is_set():
                raise Interrupted
            solve = retried(
                lambda: self._store.begin(work_id, executor_id=self._executor_id, now=self._clock()), self._stopping
            )
            if solve is not None:
                with solve_span(self._tracer, solve):
                    self._run(solve, process)
        if self._stopping.is_set() and not self._has_ended(work_id):
            raise Interrupted

    def _has_ended(self, solve_id: str) -> bool:
        """Whether a solve has ended; False if the store cannot say."""
        try:
            record = self._store.any_solve(solve_id)
        except SQLAlchemyError:
            return False
        return record is None or record.state in ENDED

    def _run(self, solve: SolveRecord, process: SolverSlot) -> None:
        run = self._new_run(solve.id, solve.attempts, None)
        self._runs[run.id] = run
        if solve.attempts == 1:
            self._metrics.solve_began(self._clock() - solve.created_at)
        self._on_change(run.id)
        answer: SolveAnswer | None = None
        stop: Stop | None
        try:
            # A server that stopped may have left a plan behind.
            run.best = retried(lambda: self._writer.saved_incumbent(run.id), self._stopping)
            if solve.cancel_requested:
                run.cancelled.set()
            answer, stop = self._attempt(run, solve, process)
        except Exception:
            log.exception("the solve could not be run", extra={"solve_id": run.id})
            stop = Stop.DEFECT
            with _logged("the solver process did not stop", run.id):
                process.discard()
        try:
            if stop not in (Stop.SERVER, Stop.SUPERSEDED):
                self._writer.end(run, answer, stop)
        finally:
            if self._runs.get(run.id) is run:
                del self._runs[run.id]
            with _logged("its files stay until the next start", run.id):
                for path in self._folder.glob(f"{run.incumbent_file.stem}.*"):
                    path.unlink(missing_ok=True)
        if stop is not Stop.SERVER:
            self._on_end(run.id)

    def _new_slot(self) -> SolverSlot:
        if self._settings.runner == "ray":
            return RaySlot(place_of(self._settings))
        return SolverSlot(self._settings.solver_memory_bytes)

    def _new_run(self, solve_id: str, attempt: int | None, best: Incumbent | None) -> SolveRun:
        file = self._folder / f"{solve_id}-{attempt}.plan"
        return SolveRun(id=solve_id, attempt=attempt, incumbent_file=file, best=best)

    def _attempt(
        self, run: SolveRun, solve: SolveRecord, process: SolverSlot
    ) -> tuple[SolveAnswer | None, Stop | None]:
        """Return the answer, or why there is none."""
        if run.cancelled.is_set():
            return None, Stop.CANCELLED
        if solve.attempts > MAX_ATTEMPTS:
            return None, Stop.ATTEMPTS
        store = self._store.for_tenant(solve.tenant)
        spec_bytes = retried(lambda: store.spec(solve.request_digest), self._stopping)
        if spec_bytes is None:
            return None, Stop.SERVER
        learned_model = retried(lambda: _learned_model(store, spec_bytes), self._stopping)
        if self._stopping.is_set():  # and the model may not have been read
            return None, Stop.SERVER
        num_lost = 0
        while num_lost < _MAX_STARTS:
            # Each time again: it may have waited for its turn elsewhere.
            now = self._clock()
            in_time = spec_in_time(spec_bytes, deadline_at=solve.deadline_at, now=now)
            if in_time is None:
                return None, Stop.DEADLINE
            job = SolveJob(
                spec_bytes=in_time,
                spec_digest=solve.spec_digest,
                assumptions=[{key: str(value) for key, value in item.items()} for item in solve.assumptions],
                incumbent_file=run.incumbent_file,
                plan=self._plan,
                learned_model=learned_model,
                seconds_left=None if solve.deadline_at is None else solve.deadline_at - now,
            )
            limit_seconds = self._limit_seconds(in_time)
            try:
                future = process.solve(job, limit_seconds)
                stop = self._watch(run, future)
                if stop is not None:
                    return None, stop
                answer = future.result()
            except FutureTimeoutError:
                return None, Stop.TIME
            except ProcessExpired as error:
                log.warning("the process ended with code %s", error.exitcode, extra={"solve_id": run.id})
                return None, Stop.KILLED
            except (BrokenExecutor, CancelledError) as error:
                # The process died before the solve began, or was lost with a machine that was lent: this says
                # nothing about the solve.
                log.warning("what ran the solve is lost: %s", error, extra={"solve_id": run.id})
                num_lost += 1
                process.discard()
            except NotNow as error:
                log.warning("the solve waits: %s", error, extra={"solve_id": run.id})
                stop = self._pause(run, solve.deadline_at)
                if stop is not None:
                    return None, stop
            except Exception:
                log.exception("the solve raised", extra={"solve_id": run.id})
                return None, Stop.DEFECT
            else:
                return answer, Stop.MEMORY if answer.is_out_of_memory else None
        return None, Stop.KILLED

    def _limit_seconds(self, spec_bytes: bytes) -> float:
        """When a solve is stopped by force: its own limit, preparation by size, and some grace."""
        spec = json.loads(spec_bytes)  # checked, and its defaults filled in, before it was stored
        settings = self._settings
        preparation_seconds = settings.solver_preparation_seconds_per_table * len(spec["model"]["tables"])
        limit_seconds: float = spec["solver"]["time_limit_seconds"]
        return limit_seconds + preparation_seconds + settings.solver_grace_seconds

    def _watch(self, run: SolveRun, future: "Future[SolveAnswer]") -> Stop | None:
        """Wait for the end of a solve, keep improvements; return why it was cut off, if it was."""
        seen = 0
        looked = time.monotonic()
        while True:
            done, _ = wait([future], timeout=_POLL_SECONDS)
            with contextlib.suppress(FileNotFoundError):
                changed = run.incumbent_file.stat().st_mtime_ns
                if changed != seen:
                    seen = changed
                    self._writer.improve(run, Incumbent.of_file(run.incumbent_file.read_bytes()))
            if done:
                return None
            stop = Stop.SERVER if self._stopping.is_set() else Stop.CANCELLED if run.cancelled.is_set() else None
            if stop is None and time.monotonic() - looked > _LOOK_SECONDS:
                stop = self._look(run)
                looked = time.monotonic()
            if stop is not None:
                future.cancel()
                return stop

    def _pause(self, run: SolveRun, deadline_at: float | None) -> Stop | None:
        """Wait a while before the next try, and not beyond the deadline; return why there is none, if so."""
        until = time.monotonic() + _PAUSE_SECONDS
        while time.monotonic() < until:
            if deadline_at is not None and self._clock() >= deadline_at:
                return Stop.DEADLINE
            if self._stopping.wait(_LOOK_SECONDS):
                return Stop.SERVER
            stop = Stop.CANCELLED if run.cancelled.is_set() else self._look(run)
            if stop is not None:
                return stop
        return None

    def _look(self, run: SolveRun) -> Stop | None:
        """Return why a solve is to be stopped that another server has heard of: a cancel, or a later attempt."""
        try:
            solve = self._store.any_solve(run.id)
        except SQLAlchemyError:
            return None
        if solve is None or solve.state in ENDED or solve.attempts != run.attempt:
            return Stop.SUPERSEDED
        return Stop.CANCELLED if solve.cancel_requested else None


def _learned_model(store: TenantStore, spec_bytes: bytes) -> bytes | None:
    """Return the document of the learned model that a spec names."""
    digest = learned_digest(json.loads(spec_bytes)["cost_model"])
    found = None if digest is None else StoredModels(store).of_digest(digest)
    return None if found is None else found.canonical


@contextlib.contextmanager
def _logged(message: str, solve_id: str) -> Iterator[None]:
    """Write down what fails, and go on."""
    try:
        yield
    except Exception:
        log.exception(message, extra={"solve_id": solve_id})
