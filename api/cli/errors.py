"""Exit codes of the command line, and how refusals are told: what, where, the way out; never a traceback."""

import sys
from collections.abc import Sequence
from enum import IntEnum

from api.client import ClientError, ProblemError
from cost_models.errors import CostModelError
from planner.errors import InvalidProblem, Issue, SolverDefect, UnsupportedRequest

#: Typer's own exit code for a command line that it cannot read.
TYPER_USAGE_ERROR = 2


class ExitCode(IntEnum):
    """The contract's exit codes."""

    OK = 0
    BAD_INPUT = 1
    INFEASIBLE = 3
    TROUBLE = 4  # of the server or the solver


class BadInput(Exception):
    """A file or an argument that cannot be used; the message is for people."""


class ServerTrouble(Exception):
    """The service cannot run; the message is for people."""


#: What commands raise on purpose; anything else is a defect and shows its traceback.
EXPECTED = (
    BadInput,
    ServerTrouble,
    InvalidProblem,
    UnsupportedRequest,
    CostModelError,
    SolverDefect,
    ClientError,
    OSError,
)


def report(error: Exception) -> ExitCode:
    """Tell people on stderr what went wrong, and return the exit code that says so to scripts."""
    match error:
        case InvalidProblem():
            count = max(len(error.issues), getattr(error, "num_issues", 0))
            say(f"shardplan: {count} {'problem' if count == 1 else 'problems'} in the input")
            say_issues(error.issues)
            if count > len(error.issues):
                say(f"  ... and {count - len(error.issues)} more")
            return ExitCode.BAD_INPUT
        case UnsupportedRequest():
            say("shardplan: this version cannot do that")
            say_issues([error.issue])
            return ExitCode.BAD_INPUT
        case CostModelError():
            say(f"shardplan: {error}")
            if error.hint:
                say(f"  {error.hint}")
            return ExitCode.BAD_INPUT
        case ProblemError(status=status) if 400 <= status < 500:
            say(f"shardplan: the server refused: {error}")
            return ExitCode.BAD_INPUT
        case ServerTrouble() | ClientError():
            say(f"shardplan: {error}")
            return ExitCode.TROUBLE
        case SolverDefect():
            say(f"shardplan: the solver returned a wrong plan, which is a defect of shardplan: {error}")
            return ExitCode.TROUBLE
        case _:
            say(f"shardplan: {error}")
            return ExitCode.BAD_INPUT


def say(text: str = "") -> None:
    """Write a line for people."""
    print(text, file=sys.stderr)


def say_issues(issues: Sequence[Issue]) -> None:
    """List issues: where, what, the way out."""
    for issue in issues:
        say(f"  {issue.severity} at {issue.pointer or 'the whole document'}: {issue.message}")
        if issue.hint:
            say(f"    {issue.hint}")
