"""How the end of a solve is reported: why it stopped, its result, its error, its progress."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from api.execution.processes.solve import Incumbent, SolveAnswer
from api.store.plans.plans import PlanRecord, PlanSummary
from api.store.sql.blobs import Json


class Stop(StrEnum):
    """Why a solve ended without the answer of its search."""

    TIME = "time"  # stopped by force after its limit
    KILLED = "killed"  # its process ended
    ATTEMPTS = "attempts"  # what ran it, server or worker, was gone each time
    MEMORY = "memory"  # its process may not take more memory
    DEFECT = "defect"  # something failed that should not
    DEADLINE = "deadline"  # the deadline of its request had passed before it could start
    CANCELLED = "cancelled"  # somebody cancelled it
    SERVER = "server"  # the server stops; it runs again at the next start
    SUPERSEDED = "superseded"  # another executor has taken over, or it has ended


#: What a failed solve says, where no plan was found before it stopped.
STOPPED: dict[Stop, Json] = {
    Stop.TIME: {
        "code": "time-limit",
        "message": "no plan was found before the solve had to be stopped",
        "hint": "raise solver.time_limit_seconds",
    },
    Stop.KILLED: {
        "code": "solver-killed",
        "message": "the solver process ended before it had found a plan, most likely for lack of memory",
        "hint": "try again with ?fresh=true; the log of the server has the exit code",
    },
    Stop.ATTEMPTS: {
        "code": "too-many-attempts",
        "message": "the solve was begun as often as it may be, and each time what ran it was gone before it had found a"
        " plan",
        "hint": "find out what ended the servers and workers, as this solve may have, and try again with ?fresh=true",
    },
    Stop.MEMORY: {
        "code": "out-of-memory",
        "message": "the solver needed more memory than SHARDPLAN_SOLVER_MEMORY_BYTES",
        "hint": "raise the setting",
    },
    Stop.DEADLINE: {
        "code": "deadline-passed",
        "message": "the deadline of the request passed before the solve could start",
        "hint": "give it more time, or a higher priority",
    },
    Stop.DEFECT: {
        "code": "solver-defect",
        "message": "the solver failed; this is a defect",
        "hint": "the log of the server has the details",
    },
}
_UNTIL_THEN = "this is the best plan until then"
_DETAIL = {
    Stop.TIME: f"stopped by force after its limit; {_UNTIL_THEN}",
    Stop.KILLED: f"the solver process ended early; {_UNTIL_THEN}",
    Stop.ATTEMPTS: f"the solve was begun as often as it may be, and what ran it was gone each time; {_UNTIL_THEN}",
    Stop.MEMORY: f"the solver needed more memory than it may take; {_UNTIL_THEN}",
    Stop.DEFECT: f"the solver failed; {_UNTIL_THEN}",
    Stop.DEADLINE: f"the deadline passed before it could start again; {_UNTIL_THEN}",
    Stop.CANCELLED: f"cancelled; {_UNTIL_THEN}",
}


def result_of_stopped(best: Incumbent | None, stop: Stop) -> dict[str, object]:
    if best is None:
        return result_of(None, "NO_SOLUTION_FOUND", stop, "stopped before a plan was found")
    return result_of(best, "FEASIBLE", stop, _DETAIL[stop])


def result_of_answer(answer: SolveAnswer, best: Incumbent | None) -> dict[str, object]:
    """Return the result of a search that came to an end, with the best plan of it and of earlier attempts."""
    reason = "FEASIBLE" if best is not None and answer.best is None else answer.reason
    result = result_of(best, reason, answer.limit, answer.detail, answer.shortfalls, answer.diagnosis)
    if best is answer.best:
        result["lower_bound_seconds"] = answer.lower_bound_seconds
    return result


def result_of(
    best: Incumbent | None,
    reason: str,
    limit: str | None,
    detail: str,
    shortfalls: Sequence[Json] = (),
    diagnosis: Json | None = None,
) -> dict[str, object]:
    return {
        "termination": {"reason": reason, "limit": limit, "detail": detail},
        "plan_digest": None if best is None else best.digest,
        "objective": None if best is None else best.objective,
        "partitioner": None if best is None else best.partitioner,
        "movement": None if best is None else best.movement,
        "lower_bound_seconds": 0.0 if best is None else best.objective["lower_bound_seconds"],
        "shortfalls": [dict(shortfall) for shortfall in shortfalls],
        "diagnosis": None if best is not None or diagnosis is None else dict(diagnosis),
    }


def plan_record_of(best: Incumbent, *, solve_id: str, now: float) -> PlanRecord:
    summary = PlanSummary.of_document(best.head, solve_id=solve_id, created_at=now)
    return PlanRecord(digest=best.digest, canonical=best.document, created_at=now, summary=summary)


def progress_of(incumbent: Incumbent) -> dict[str, object]:
    return {
        "incumbent_seconds": incumbent.objective["seconds"],
        "bound_seconds": incumbent.objective["lower_bound_seconds"],
        "relative_gap": incumbent.objective["relative_gap"],
        "partitioner": incumbent.partitioner,
    }


def reason_of(result: Json | None, error: Json | None) -> str:
    """Return why a solve ended in one word: the reason of its termination, or the code of its error."""
    if result is not None:
        termination = result["termination"]
        assert isinstance(termination, Mapping)
        return str(termination["reason"])
    return "" if error is None else str(error["code"])
