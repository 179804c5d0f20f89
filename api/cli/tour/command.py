"""``tour``: explains, runs and shows one command after another; it can be left and resumed at any step."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer

from api.cli.errors import BadInput, ExitCode, ServerTrouble, echo, wrapped
from api.cli.files import on_terminal
from api.cli.tour.service import TourService
from api.cli.tour.steps import SERVER, STEPS, TABLES, Step

_SHARDPLAN = (sys.executable, "-c", "from api.cli import main; main()")
_PREFIX = "shardplan-tour-"

Choice = Literal["run", "skip", "quit"]
_CHOICES: Mapping[str, Choice] = {"": "run", "s": "skip", "q": "quit"}


def tour_command(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run all steps; do not wait between them.")] = False,
    start: Annotated[
        int, typer.Option("--from", metavar="STEP", min=1, max=len(STEPS), help="Begin at this step.")
    ] = 1,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="DIR", help="Work here and leave the files; else in a temporary folder."),
    ] = None,
) -> None:
    """Five minutes of guided use: each step is explained, run and shown. Nothing outside of one folder is touched."""
    place = _folder(folder)
    is_asked = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SHARDPLAN_")}
    service = TourService(_SHARDPLAN, place, environment)
    number = start
    is_over = False
    try:
        echo(f"A tour of {len(STEPS)} steps, in {place}")
        for number in range(start, len(STEPS) + 1):
            step = STEPS[number - 1]
            _show(step, number)
            choice = _choice() if is_asked else "run"
            if choice == "quit":
                return
            if choice == "run":
                _run(step, service, place, environment)
        is_over = True
    finally:
        service.stop()
        _end(place, number, is_over=is_over, leaves_files=folder is not None)


def _folder(folder: str | None) -> Path:
    """Return the folder of the tour, with the tables in it."""
    if folder is None:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    else:
        place = Path(folder)
        if not place.is_dir():
            raise BadInput(f"there is no folder {folder}: make it first, or leave --folder out")
    tables = place / TABLES
    if not tables.exists():
        tables.write_bytes((files("api.cli.tour") / TABLES).read_bytes())
    return place


def _show(step: Step, number: int) -> None:
    echo()
    echo(f"{number}/{len(STEPS)}  {step.title}")
    for line in wrapped(step.words, "  ", hanging="  "):
        echo(line)
    echo()
    echo(f"  $ {shlex.join(['shardplan', *step.command]).replace(shlex.quote(SERVER), 'http://127.0.0.1:PORT')}")


def _choice() -> Choice:
    """Return what the person wants; the end of the input is a wish to quit."""
    while True:
        print("  Enter runs it, s skips it, q quits > ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        choice = _CHOICES.get(line.strip().lower()) if line else "quit"
        if choice is not None:
            return choice


def _run(step: Step, service: TourService, place: Path, environment: Mapping[str, str]) -> None:
    """Run the command of a step; raises ``ServerTrouble`` if it fails."""
    if step.needs_service:
        url = service.url()
        command = [url if word == SERVER else word for word in step.command]
    else:
        command = list(step.command)
    echo()
    sys.stderr.flush()
    shown = None if on_terminal() else subprocess.DEVNULL  # a pipe would get the JSON, which the files have
    code = subprocess.run(
        [*_SHARDPLAN, *command], cwd=place, env=dict(environment), stdin=subprocess.DEVNULL, stdout=shown, check=False
    ).returncode
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code != ExitCode.OK:
        raise ServerTrouble(f"the command of this step ended with exit code {code}; its files are in {place}")


def _end(place: Path, number: int, *, is_over: bool, leaves_files: bool) -> None:
    """Remove the folder after the last step; else say how to go on."""
    echo()
    if not is_over:
        words = ["shardplan", "tour", "--folder", str(place), "--from", str(number)]
        echo("The tour is not over. To go on:")
        print(f"  {shlex.join(words)}", file=sys.stderr)  # whole, so that it can be pasted
    elif leaves_files:
        echo(f"That was the tour. Its files are in {place}")
    else:
        shutil.rmtree(place, ignore_errors=True)
        echo("That was the tour; its folder is removed. Next, with a model of your own: shardplan init")
