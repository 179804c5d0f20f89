"""Points that compare plans: from a comparison to the job of a process, and from its answer to an outcome."""

import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, wait
from concurrent.futures import TimeoutError as FutureTimeoutError

from pebble import ProcessExpired

from api.execution.processes.scenarios import ScenariosAnswer, ScenariosJob, run_scenarios
from api.execution.processes.slot import ProcessSlot
from api.execution.processes.solve import start_solver
from api.services.studies.rules import outcomes
from api.services.studies.rules.base import PointOutcome
from api.services.studies.rules.comparison import Comparison
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import InvalidProblem, UnsupportedRequest

#: Next to searches: plans that are evaluated, and problems that are listed and priced.
_REST_SECONDS = 1_800.0
#: A round takes its time limit, and what comes before and after a search.
_SLACK = 3.0
_POLL_SECONDS = 0.1

FindPlan = Callable[[str], bytes | None]


class PlanGone(LookupError):
    """A plan of a comparison is not there any more."""


class Comparer:
    """Compares plans for the studies of a server, one comparison at a time, each in a process of its own."""

    def __init__(self, memory_bytes: int | None) -> None:
        self._memory_bytes, self._turn = memory_bytes, threading.Lock()

    def outcome(
        self, comparison: Comparison, library: Library, find_plan: FindPlan, is_wanted: Callable[[], bool]
    ) -> PointOutcome | None:
        """Return what a comparison comes to; ``None`` once it is not wanted any more."""
        try:
            job, limit_seconds = job_of(comparison, library, find_plan)
        except (InvalidProblem, UnsupportedRequest) as error:
            return outcomes.impossible(str(error))
        except PlanGone as error:
            return outcomes.failed(str(error), "run the study again")
        while not self._turn.acquire(timeout=_POLL_SECONDS):
            if not is_wanted():
                return None
        try:
            return self._outcome(job, limit_seconds, is_wanted)
        finally:
            self._turn.release()

    def _outcome(self, job: ScenariosJob, limit_seconds: float, is_wanted: Callable[[], bool]) -> PointOutcome | None:
        with ProcessSlot(self._memory_bytes, start_solver) as process:
            try:
                future = process.schedule(run_scenarios, job, limit_seconds)
                while not wait([future], timeout=_POLL_SECONDS).done:
                    if not is_wanted():
                        future.cancel()
                        return None
                return outcome_of(future.result())
            except FutureTimeoutError:
                return outcomes.failed(f"plans were compared for more than {limit_seconds:,.0f} s")
            except (ProcessExpired, BrokenExecutor, CancelledError):
                return outcomes.failed("the process that compared plans was ended from outside", "run the study again")


def job_of(comparison: Comparison, library: Library, find_plan: FindPlan) -> tuple[ScenariosJob, float]:
    """Return a comparison as a process gets it, and the seconds after which it is ended.

    Raises ``InvalidProblem`` and ``UnsupportedRequest`` as specs are checked, and ``PlanGone``.
    """
    requests = {label: parse_spec(canonical_bytes(spec), library) for label, spec in comparison.specs.items()}
    plans = {name: find_plan(digest) for name, digest in comparison.plans.items()}
    found = {name: raw for name, raw in plans.items() if raw is not None}
    if len(found) < len(plans):
        raise PlanGone("a plan of the study was deleted")
    job = ScenariosJob(
        specs={label: canonical_bytes(request.spec) for label, request in requests.items()},
        plans=found,
        search=comparison.search,
        moves=comparison.moves,
    )
    num_rounds = 0 if comparison.search is None else comparison.search.num_rounds
    longest = max(request.limits.time_limit_seconds for request in requests.values())
    return job, _REST_SECONDS + _SLACK * num_rounds * longest


def outcome_of(answer: ScenariosAnswer) -> PointOutcome:
    """Return what became of a point, of its process's answer."""
    if answer.compared is None:
        error = answer.error or {}
        return outcomes.failed(str(error.get("message", "the comparison failed")), str(error.get("hint", "")))
    return outcomes.outcome_of_comparison(answer.compared)
