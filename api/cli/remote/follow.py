"""Follows a solve of a service to its end, and brings its plan."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, cast

import typer

from api.cli.errors import ExitCode, echo, print_issues
from api.cli.files import STDIN, PlanForm, print_document
from api.cli.plans.plan_files import write_named_plan
from api.cli.plans.progress import SearchProgress, search_progress
from api.cli.remote.connection import SERVER_VARIABLE
from api.cli.remote.text import ending_lines
from api.client import PlannerClient
from planner.domain.formats.compaction import compact_document
from planner.errors import Issue
from planner.output.documents.compact_plan import CompactPlanDocument

_ENDED = ("succeeded", "failed", "cancelled")
_WAIT_SECONDS = 1.0  # between two looks, unless the solve ends before
#: How long a second Ctrl-C cancels the solve that the first one left running.
SECOND_INTERRUPT_SECONDS = 4.0
_STOP_SECONDS = 30.0  # the longest wait for a solve to stop that was cancelled


def followed(client: PlannerClient, solve: Mapping[str, Any], server: str, *, quiet: bool = False) -> dict[str, Any]:
    """Return the document of a solve once it has ended.

    An interrupt leaves the solve running; a second one cancels it, and the solve ends with its best plan until then.

    Raises
    ------
    typer.Exit
        Interrupted: the solve goes on, and how to come back was printed.
    """
    document = dict(solve)
    try:
        with search_progress(is_quiet=quiet) as progress:
            while document["state"] not in _ENDED:
                _show(progress, document)
                document = _looked_at(client, document["id"], _WAIT_SECONDS)
        return document
    except KeyboardInterrupt:
        _report_running(str(document["id"]), server)
    try:
        if sys.stderr.isatty():
            echo(f"shardplan: Ctrl-C within {SECOND_INTERRUPT_SECONDS:g} s cancels the solve")
            time.sleep(SECOND_INTERRUPT_SECONDS)
    except KeyboardInterrupt:
        return _cancelled(client, str(document["id"]))
    raise typer.Exit(ExitCode.INTERRUPTED)


def conclude_solve(
    client: PlannerClient, solve: Mapping[str, Any], output: str | None, form: PlanForm, *, spec: str = STDIN
) -> CompactPlanDocument:
    """Write the plan of a solve that has ended, and return the plan.

    Raises
    ------
    typer.Exit
        There is no plan; why not was printed.
    """
    result = solve.get("result") or {}
    if not result.get("plan_digest"):
        echo(f"shardplan: solve {solve['id']} {solve['state']} without a plan")
        echo("\n".join(ending_lines(solve)))
        if output in (None, STDIN):
            print_document(solve, as_json=output == STDIN)
        reason = (result.get("termination") or {}).get("reason")
        raise typer.Exit(ExitCode.INFEASIBLE if reason == "INFEASIBLE" else ExitCode.TROUBLE)
    fetched = client.plan_of(solve)
    plan = cast("CompactPlanDocument", compact_document(json.loads(fetched.received)))
    write_named_plan(plan, output, form, spec=spec)
    return plan


def print_solve_warnings(solve: Mapping[str, Any]) -> None:
    """Print what the service finds odd about the spec of a solve."""
    names = ("code", "pointer", "message", "hint", "severity")
    print_issues([Issue(**{name: one.get(name, "") for name in names}) for one in solve.get("warnings") or ()])


def _looked_at(client: PlannerClient, solve_id: str, wait_seconds: float) -> dict[str, Any]:
    """Return a solve when it ends, or after some time; a service that does not wait is not asked without a pause."""
    asked = time.monotonic()
    document = client.get_solve(solve_id, wait_seconds=wait_seconds)
    if document["state"] not in _ENDED:
        time.sleep(max(0.0, min(wait_seconds, asked + wait_seconds - time.monotonic())))
    return document


def _show(progress: SearchProgress, solve: Mapping[str, Any]) -> None:
    progress.set_state("searching" if solve["state"] == "running" else str(solve["state"]))
    found = solve.get("progress")
    if found:
        progress.update(
            found["incumbent_seconds"], found["bound_seconds"], found["relative_gap"], found_by=found["partitioner"]
        )


def _report_running(solve_id: str, server: str) -> None:
    echo("shardplan: the solve goes on at the service; bring its plan, or stop the solve:")
    echo(f"  export {SERVER_VARIABLE}={server}")  # on a line of its own, so that each line can be pasted
    echo(f"  shardplan solves show {solve_id} -o PLAN.json")
    echo(f"  shardplan solves cancel {solve_id}")


def _cancelled(client: PlannerClient, solve_id: str) -> dict[str, Any]:
    """Cancel a solve, and return its document once it has stopped."""
    echo("shardplan: the solve is cancelled; its best plan until then is its answer")
    document: dict[str, Any] = client.solves.cancel(solve_id)
    deadline = time.monotonic() + _STOP_SECONDS
    while document["state"] not in _ENDED and time.monotonic() < deadline:
        document = _looked_at(client, solve_id, _WAIT_SECONDS)
    return document
