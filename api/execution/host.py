"""Everything that runs work in one process, started and stopped in the right order."""

import contextlib
from collections.abc import Callable, Iterator

from opentelemetry.trace import Tracer

from api.execution.base import FITS, SOLVES, STUDIES, EngineUnavailable, Runner
from api.execution.executor_identity import identity_of
from api.execution.fits.runner import FitRunner
from api.execution.maintenance.retention import RetentionJob
from api.execution.maintenance.takeover import EngineWatch
from api.execution.processes.fit import FitFunction
from api.execution.processes.solve import PlanFunction
from api.execution.queue.dbos import DbosEngine
from api.execution.solves.runner import SolveRunner
from api.observability.metrics import WorkMetrics
from api.settings import Settings
from api.store.database import Database


class EngineHost:
    """The engine of a server or worker, its runners, and what looks after them."""

    def __init__(
        self,
        store: Database,
        settings: Settings,
        *,
        plan: PlanFunction,
        fit: FitFunction,
        on_end: Callable[[str], None],
        on_change: Callable[[str], None],
        metrics: WorkMetrics,
        tracer: Tracer,
        studies: Runner | None = None,
    ) -> None:
        """``on_end`` hears the id of every solve and fit that ended here, ``on_change`` of every solve that begins or
        finds something; from any thread. ``studies`` runs studies; a process without it leaves them to others.
        """
        identity = identity_of(settings.data_dir)
        self._settings = settings
        self.solves = SolveRunner(
            store,
            settings,
            plan,
            executor_id=identity.id,
            on_end=on_end,
            on_change=on_change,
            metrics=metrics,
            tracer=tracer,
        )
        self.fits = FitRunner(store, settings, fit, on_end=on_end, metrics=metrics)
        url = settings.database_url
        self.engine = DbosEngine(
            identity.id,
            {SOLVES: self.solves, FITS: self.fits, **({} if studies is None else {STUDIES: studies})},
            file=settings.queue_file,
            url=None if url is None else url.get_secret_value(),
        )
        self._studies = studies
        self._retention = RetentionJob(store, settings, metrics)
        self._watch = EngineWatch(store, self.engine, identity, metrics, is_shared=url is not None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run work until the end of the block; what runs then is run again, at the next start or elsewhere.

        Raises
        ------
        EngineUnavailable
            The queue or the Ray cluster cannot be used, another process has this executor's id, or no process would run
            anything.
        """
        if self._settings.database_url is None and self._settings.solver_processes == 0:
            raise EngineUnavailable(
                "SHARDPLAN_SOLVER_PROCESSES is 0, and without SHARDPLAN_DATABASE_URL no worker can join:"
                " no process would solve"
            )
        with contextlib.ExitStack() as stack:
            stack.callback(self.solves.close)
            self.solves.start()
            self._watch.enter()
            stack.callback(self._watch.leave)
            self.engine.start()
            stack.callback(self.engine.stop)
            stack.callback(self.solves.stop)
            stack.callback(self.fits.stop)
            if self._studies is not None:
                stack.callback(self._studies.stop)
            self._watch.start()
            stack.callback(self._watch.stop)
            self._retention.start()
            stack.callback(self._retention.stop)
            yield
