"""``study``: a question that takes many plans, answered here or by a service; cut off, it goes on where it was."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from api.cli.admin.client_key import TokenFile
from api.cli.errors import MAX_COLUMNS, BadInput, ExitCode, ServerTrouble, echo
from api.cli.files import Form, PlanForm, read_bytes
from api.cli.plans.solve_locally import compile_search
from api.cli.remote.connection import connected
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.cli.study.answers import answer_lines
from api.cli.study.local import Ended, StudyFolder, run_study
from api.cli.study.portfolio_text import portfolio_text
from api.cli.study.text import in_grid_order, points_csv, points_text
from api.client import PlannerClient
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import PLANNED, Point, PointOutcome
from api.services.studies.rules.outcomes import to_json
from api.services.studies.service import check_first_points
from api.specs.input.json import read_json
from api.specs.references.resolve import Library
from api.specs.references.statistics import FindStatistics
from planner.domain.formats.canonical_json import canonical_bytes
from planner.output.explain.text.layout import paragraph

_WAIT_SECONDS = 5.0
_ENDED = ("succeeded", "failed", "cancelled")


def study_command(
    study: Annotated[str, typer.Argument(metavar="STUDY.json", help="The question; - reads standard input.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where points, plans and answer go.")],
    spec: Annotated[
        str | None, typer.Option(metavar="SPEC.json", help="The spec of the study, in place of its field spec.")
    ] = None,
    prices: Annotated[
        str | None, typer.Option(metavar="PRICES.json", help="Prices of machines, in place of the field prices.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Let a service plan, instead of this machine.")
    ] = None,
    token_file: TokenFile = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, help="Points planned at a time here; one for each core.")
    ] = None,
    statistics: StatisticsFiles = None,
    form: Form = "compact",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table on stderr.")] = False,
) -> None:
    """Plan many variants of a spec, and say what they show; run it again to go on after an interrupt."""
    raw = _with_files(read_bytes(study), spec=spec, prices=prices)
    folder = StudyFolder(Path(output))
    if server is not None:
        if statistics:
            raise BadInput(
                "--statistics is for planning here; the service knows those that were posted to /v1/statistics"
            )
        with connected(server, token_file) as client:
            points, answer = _remote(raw, folder, client, server, quiet=quiet)
    else:
        number = processes or os.cpu_count() or 1
        points, answer = _local(
            raw, folder, found_statistics(statistics).get, num_processes=number, form=form, quiet=quiet
        )
    standings = {one["key"]: one["standing"] for one in answer.get("front", {}).get("points", ())}
    folder.write("points.json", canonical_bytes({"points": points}))
    folder.write("answer.json", canonical_bytes(answer))
    folder.write("points.csv", points_csv(points, standings))
    if not quiet:
        if "transitions" in answer:
            echo(portfolio_text(answer, width=MAX_COLUMNS, currency=parse_study(raw).currency))
        else:
            echo(points_text(points, standings, width=MAX_COLUMNS))
        _report_issues(points)
        num_planned = sum(point["state"] == PLANNED for point in points)
        request = parse_study(raw)
        for line in answer_lines(request.kind, answer, currency=request.currency):
            for part in paragraph(line, hanging="  "):
                echo(part)
        echo(f"shardplan: {num_planned} of {len(points)} points have plans; all figures are in points.csv")
    if not any(point["state"] == PLANNED for point in points):
        raise typer.Exit(
            ExitCode.INFEASIBLE if any(one["state"] == "infeasible" for one in points) else ExitCode.TROUBLE
        )


def _with_files(raw: bytes, *, spec: str | None, prices: str | None) -> bytes:
    """Return the request with the contents of files in it; one that is not well formed comes back unchanged."""
    document = read_json(raw)
    files = {"spec": spec, "prices": prices}
    if not isinstance(document, dict) or not any(files.values()):
        return raw
    for name, path in files.items():
        if path is not None:
            content = read_json(read_bytes(path))
            if not isinstance(content, dict):
                raise BadInput(f"{path} is no JSON object")
            document[name] = content
    return json.dumps(document).encode()


def _local(
    raw: bytes,
    folder: StudyFolder,
    find_statistics: FindStatistics,
    *,
    num_processes: int,
    form: PlanForm,
    quiet: bool,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    library = Library(find_plan=folder.find_plan, find_statistics=find_statistics)
    study = study_of(parse_study(raw), library)
    check_first_points(study.next_points({}), library)
    compile_search()
    console = Console(stderr=True, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("planning", total=None)

        def show(point: Point, outcome: PointOutcome, is_new: bool) -> None:
            progress.advance(task)
            if not quiet and not console.is_terminal:
                echo(f"{point.key}: {outcome.state}{'' if is_new else ', done before'}")

        found = run_study(
            study,
            folder,
            library=library,
            num_processes=num_processes,
            form=form,
            on_point=show,
        )
    points = in_grid_order([_point_document(key, one) for key, one in found.items()])
    return points, study.answer({key: one.outcome for key, one in found.items()})


def _point_document(key: str, ended: Ended) -> dict[str, Any]:
    outcome = to_json(ended.outcome)
    outcome.pop("compared", None)  # the answer has what it shows
    return {"key": key, "labels": dict(ended.labels), **outcome}


def _remote(
    raw: bytes, folder: StudyFolder, client: PlannerClient, url: str, *, quiet: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Let a service run the study, and bring its plans."""
    parse_study(raw)
    document = client.studies.submit(json.loads(raw))
    study_id = str(document["id"])
    if not quiet:
        echo(f"shardplan: study {study_id}")
    try:
        document = _followed(client, document, quiet=quiet)
    except KeyboardInterrupt:
        echo(f"shardplan: the study goes on at {url}; shardplan studies show {study_id} reports on it,")
        echo(f"  shardplan studies cancel {study_id} stops it (--server {url})")
        raise
    points = in_grid_order(client.studies.points(study_id))
    for digest in {str(point["plan_digest"]) for point in points if point.get("plan_digest")}:
        if folder.find_plan(digest) is None:
            folder.write_plan(digest, client.get_plan(digest).received)
    if document["state"] != "succeeded":
        error: Any = document.get("error") or {}
        reason = error.get("message", "its plans until then are in the folder")
        raise ServerTrouble(f"the study was not answered: its state is {document['state']}; {reason}")
    answer: Any = document.get("answer") or {}
    return points, dict(answer)


def _followed(client: PlannerClient, study: Mapping[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Return the document of a study once it has ended."""
    document, seen = dict(study), 0
    while document["state"] not in _ENDED:
        document = client.studies.get(str(study["id"]), wait_seconds=_WAIT_SECONDS)
        progress: Any = document["progress"]
        if not quiet and progress["num_ended"] != seen:
            seen = progress["num_ended"]
            echo(f"{seen} of {progress['num_points']} points")
    return document


def _report_issues(points: Sequence[Mapping[str, Any]]) -> None:
    """Print why points have no plan, each reason once."""
    reasons: dict[str, list[str]] = {}
    for point in points:
        for issue in (point.get("issues") or [])[:1]:
            where = f"{issue['pointer']}: " if issue.get("pointer") else ""
            way_out = f"; {issue['hint']}" if issue.get("hint") else ""
            reasons.setdefault(f"{where}{issue['message']}{way_out}", []).append(str(point["key"]))
    for reason, keys in reasons.items():
        others = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        for line in paragraph(f"{keys[0]}{others}: {reason}", hanging="  "):
            echo(line)
