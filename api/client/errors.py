"""What the client raises on purpose; every error is a ``ClientError``."""

from collections.abc import Mapping, Sequence

from .verdicts import Verdict

#: Reasons that a message shows; the rest is counted.
_SHOWN = 8


class ClientError(Exception):
    """Base of everything that the client raises on purpose."""


class Unreachable(ClientError):
    """No answer from the service after every attempt."""

    def __init__(self, url: str, attempts: int, reason: str) -> None:
        self.url, self.attempts, self.reason = url, attempts, reason
        super().__init__(f"no answer from {url} after {attempts} attempts: {reason}")


class ProblemError(ClientError):
    """The service refused, and says why in a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, object]) -> None:
        self.status = status
        self.problem = dict(problem)
        found = problem.get("errors")
        self.errors: tuple[Mapping[str, object], ...] = (
            tuple(item for item in found if isinstance(item, Mapping)) if isinstance(found, list) else ()
        )
        self.retryable = problem.get("retryable") is True
        self.request_id = problem.get("request_id")
        title = problem.get("title") or "no problem document"
        detail = problem.get("detail")
        lines = [f"{status} {title}" + (f": {detail}" if detail else "")]
        lines += [f"{e.get('pointer', '')}: {_with_hint(e)}" for e in self.errors]
        super().__init__(_listing(lines))


class UnexpectedAnswer(ClientError):
    """An answer that the contract does not know: a proxy's page, another service, a cut body."""


class DigestMismatch(ClientError):
    """Bytes that are not the plan they claim to be."""

    def __init__(self, expected: str, actual: str, where: str) -> None:
        self.expected, self.actual = expected, actual
        super().__init__(f"{where} says {expected}, but the plan's content has the digest {actual}")


class NoPlan(ClientError):
    """The solve ended without a plan: infeasible, failed or cancelled; ``solve`` is its document."""

    def __init__(self, solve: Mapping[str, object]) -> None:
        self.solve = dict(solve)
        result = solve.get("result")
        termination = result.get("termination") if isinstance(result, Mapping) else None
        reason = termination.get("reason") if isinstance(termination, Mapping) else None
        error = solve.get("error")
        shortfalls = result.get("shortfalls") if isinstance(result, Mapping) else None
        diagnosis = result.get("diagnosis") if isinstance(result, Mapping) else None
        fixes = diagnosis.get("fixes") if isinstance(diagnosis, Mapping) else None
        lines = [f"solve {solve.get('id')} ended as {solve.get('state')} without a plan: {reason or 'no reason'}"]
        lines += [_with_hint(item) for item in (error, *_list(shortfalls)) if isinstance(item, Mapping)]
        # Fixes were solved; those that change least come first.
        lines += [f"what would give a plan: {fix.get('message')}" for fix in _list(fixes) if isinstance(fix, Mapping)]
        super().__init__(_listing(lines))


class SolveTimeout(ClientError):
    """The solve has not ended in the time given; it goes on, and ``solve`` is its last document."""

    def __init__(self, solve: Mapping[str, object], wait_seconds: float) -> None:
        self.solve = dict(solve)
        super().__init__(f"solve {solve.get('id')} is still {solve.get('state')} after {wait_seconds:g} s")


class _Reasons(ClientError):
    """An error with a list of reasons."""

    def __init__(self, reasons: Sequence[str]) -> None:
        if not reasons:
            raise ValueError("Expected at least one reason.")
        self.reasons = tuple(reasons)
        super().__init__(_listing(self.reasons))


class PlanRejected(_Reasons):
    """A plan that must not be used by this job; ``verdict`` says whether a new one would help."""

    def __init__(self, reasons: Sequence[str], verdict: Verdict = "refuse") -> None:
        super().__init__(reasons)
        self.verdict = verdict


class PlanUnavailable(ClientError):
    """The rank that fetches for all others could not; every rank raises this with the same text."""


class UnsupportedModel(_Reasons):
    """A model that cannot be described to the service."""


class NotTimed(_Reasons):
    """Phases of a job that could not be timed; every rank raises this with the same text."""


class NotPosted(ClientError):
    """The rank that posts for all others could not; every rank raises this with the same text."""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _with_hint(issue: Mapping[str, object]) -> str:
    """Return what is wrong, and the way out where the service knows one."""
    message, hint = issue.get("message") or "", issue.get("hint")
    return f"{message} ({hint})" if hint else f"{message}"


def _listing(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "; ".join([*lines[:_SHOWN], *more])
