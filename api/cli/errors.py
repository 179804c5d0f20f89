"""Exit codes of the command line, and how refusals are printed: what, where, the way out; never a traceback."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from cost_models.errors import CostModelError, InvalidMeasurements, RowIssue
from planner.errors import InvalidProblem, Issue, SolverDefect, UnsupportedRequest

_USAGE = "Error: "  # what Typer begins a message with
MAX_COLUMNS = 80
UNAUTHORIZED = 401
NOT_FOUND = 404


class ExitCode(IntEnum):
    """The contract's exit codes."""

    OK = 0
    BAD_INPUT = 1
    INFEASIBLE = 3
    TROUBLE = 4  # of the server or the solver
    INTERRUPTED = 130  # by Ctrl-C, as shells count it


class BadInput(Exception):
    """A file or an argument that cannot be used; the message is for people."""


class ServerTrouble(Exception):
    """The service cannot run; the message is for people."""


@contextmanager
def system_errors(attempt: str) -> Iterator[None]:
    """Raise ``BadInput`` where the system refuses an attempt, such as ``cannot read spec.json``."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{attempt}: {error.strerror or error}") from None


_EXPECTED = (BadInput, ServerTrouble, InvalidProblem, UnsupportedRequest, CostModelError, SolverDefect, OSError)


def is_expected(error: Exception) -> bool:
    """Whether commands raise an error on purpose; anything else is a defect and shows its traceback."""
    return isinstance(error, _EXPECTED) or _is_of_client(error)


def _is_of_client(error: Exception) -> bool:
    from api.client import ClientError  # it loads an HTTP library, which most commands never need

    return isinstance(error, ClientError)


def report(error: Exception) -> ExitCode:
    """Print on stderr what went wrong, and return the exit code that says so to scripts."""
    match error:
        case InvalidProblem():
            _print_problems("input", error.issues, max(len(error.issues), getattr(error, "num_issues", 0)))
        case UnsupportedRequest():
            echo("shardplan: this version cannot do that")
            print_issues(issues_of(error))
        case InvalidMeasurements():
            _print_problems("measurements", error.issues, error.num_issues)
        case CostModelError():
            echo(f"shardplan: {error}")
            if error.hint:
                echo(f"  {error.hint}")
        case SolverDefect():
            echo(f"shardplan: the solver returned a wrong plan, which is a defect of shardplan: {error}")
            return ExitCode.TROUBLE
        case ServerTrouble():
            echo(f"shardplan: {error}")
            return ExitCode.TROUBLE
        case BadInput() | OSError():
            echo(f"shardplan: {error}")
        case _:
            return _report_answer(error)
    return ExitCode.BAD_INPUT


def report_usage(error: Any) -> ExitCode:
    """Show how a command is used, and what Typer cannot read, and return the exit code."""
    message = _fitted(f"{_USAGE}{error.format_message()}").removeprefix(_USAGE)
    error.format_message = lambda: message
    error.show()
    return ExitCode.BAD_INPUT


def _report_answer(error: Exception) -> ExitCode:
    """Print what a service answered, or that it did not."""
    from api.client import TOKEN_VARIABLE, ProblemError

    if not (isinstance(error, ProblemError) and 400 <= error.status < 500):
        echo(f"shardplan: {error}")
        return ExitCode.TROUBLE
    echo(f"shardplan: the server refused: {error}")
    if error.status == UNAUTHORIZED:
        hint = (
            f"set {TOKEN_VARIABLE} to a key of the service, or name a file that has it with --token-file; who runs the"
            " service makes keys with `shardplan keys create`"
        )
        for line in wrapped(hint, "  "):
            echo(line)
    return ExitCode.BAD_INPUT


def _print_problems(where: str, issues: Sequence[Issue] | Sequence[RowIssue], number: int) -> None:
    echo(f"shardplan: {number} {'problem' if number == 1 else 'problems'} in the {where}")
    print_issues(issues)
    if number > len(issues):
        echo(f"  ... and {number - len(issues)} more")


def issues_of(error: InvalidProblem | UnsupportedRequest) -> Sequence[Issue]:
    if isinstance(error, InvalidProblem):
        return error.issues
    listed: Sequence[Issue] = getattr(error, "issues", ())
    return listed or (error.issue,)


def echo(text: str = "") -> None:
    """Write lines for people; a terminal gets those beyond 80 columns in several, a file each message in one."""
    print(_fitted(text), file=sys.stderr)


def _fitted(text: str) -> str:
    """Return lines for people as stderr gets them."""
    if not sys.stderr.isatty():
        return text
    return "\n".join(part for line in text.split("\n") for part in _lines_of(line))


def _lines_of(line: str) -> list[str]:
    """Return a line in at most 80 columns, the further ones indented deeper."""
    if len(line) <= MAX_COLUMNS:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return wrapped(line.lstrip(), indent, hanging=f"{indent}  ")


def print_issues(issues: Sequence[Issue] | Sequence[RowIssue]) -> None:
    """List issues in at most 80 columns: where, what, the way out; the first row after the head line is row 1."""
    for issue in issues:
        if isinstance(issue, Issue):
            text = f"{issue.severity} at {issue.pointer or 'the whole document'}: {issue.message}"
            lines = [*wrapped(text, "  "), *wrapped(issue.hint, "    ")]
        else:
            where = "the file" if issue.row < 0 else f"row {issue.row + 1}"
            column = f", {issue.column}" if issue.column else ""
            value = f" ({issue.value})" if issue.value else ""
            lines = wrapped(f"{where}{column}{value}: {issue.reason}", "  ")
        for line in lines:
            echo(line)


def wrapped(text: str, indent: str, *, hanging: str = "    ") -> list[str]:
    """Return the lines of a text in at most 80 columns, those after the first behind ``hanging``.

    Long words are not broken.
    """
    return textwrap.wrap(
        text,
        MAX_COLUMNS,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
