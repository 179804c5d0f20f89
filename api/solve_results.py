"""How the end of a solve is told: its result, its error, its progress."""

from collections.abc import Sequence

from api.solver_process import Incumbent
from api.store.base import Json

STOPPED: dict[str, Json] = {
    "time": {
        "code": "time-limit",
        "message": "no plan was found before the solve had to be stopped",
        "hint": "raise solver.time_limit_seconds",
    },
    "killed": {
        "code": "solver-killed",
        "message": "the solver process ended before it had found a plan, most likely for lack of memory",
        "hint": "try again with ?fresh=true; the log of the server has the exit code",
    },
    "defect": {
        "code": "solver-defect",
        "message": "the solver failed; this is a defect",
        "hint": "the log of the server has the details",
    },
}
_STOP_DETAIL = {
    "time": ("time", "stopped by force after its limit; this is the best plan until then"),
    "killed": ("killed", "the solver process ended early; this is the best plan until then"),
    "defect": ("killed", "the solver failed; this is the best plan until then"),
    "cancelled": ("cancelled", "cancelled; this is the best plan until then"),
}


def result_of_stopped(best: Incumbent | None, stop: str) -> dict[str, object]:
    limit, detail = _STOP_DETAIL[stop]
    if best is None:
        return result_of(None, "NO_SOLUTION_FOUND", limit, "stopped before a plan was found", ())
    return result_of(best, "FEASIBLE", limit, detail, ())


def result_of(
    best: Incumbent | None, reason: str, limit: str | None, detail: str, shortfalls: Sequence[Json]
) -> dict[str, object]:
    return {
        "termination": {"reason": reason, "limit": limit, "detail": detail},
        "plan_digest": None if best is None else best.digest,
        "objective": None if best is None else best.objective,
        "partitioner": None if best is None else best.partitioner,
        "lower_bound_seconds": 0.0 if best is None else best.objective["lower_bound_seconds"],
        "shortfalls": [dict(shortfall) for shortfall in shortfalls],
    }


def progress_of(incumbent: Incumbent) -> dict[str, object]:
    return {
        "incumbent_seconds": incumbent.objective["seconds"],
        "bound_seconds": incumbent.objective["lower_bound_seconds"],
        "relative_gap": incumbent.objective["relative_gap"],
        "partitioner": incumbent.partitioner,
    }
