"""What seconds of a plan are those of: a training step, or a request that is served."""

from planner.domain.problem.problem import REQUEST_LATENCY


def unit_of_work(objective: str) -> str:
    """Return ``"request"`` for the objective of serving, and ``"step"`` for those of training."""
    return "request" if objective == REQUEST_LATENCY else "step"
