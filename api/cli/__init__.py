"""The command line ``shardplan``: the same code as the service, no server needed.

Exit codes: 0 plan found, 1 bad input, 3 infeasible, 4 server or solver trouble, 130 interrupted. Machine output goes to
stdout, people's to stderr.

A command is imported when it is run, so that ``fetch``, which every launcher runs, does not wait two seconds for a
solver and a web framework that it does not use.
"""

import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script, install
from typer.core import TyperGroup
from typer.exceptions import TyperException

from api.cli.errors import ExitCode, echo, is_expected, report, report_usage
from api.cli.interruptible import repeats_ignored
from api.cli.strict_numbers import with_strict_numbers
from api.release import VERSION

#: Where each command is, and what it does, in a line of a terminal of 80 columns; ``COMMAND --help`` says more.
_COMMANDS = {
    "tour": ("tour.command", "Five minutes of guided use on a small model."),
    "init": ("init.command", "Make a spec: by questions, or from a model's file."),
    "plan": ("plans.plan", "Plan a spec: the plan, and a summary for people."),
    "batch": ("batch.command", "Plan many specs, each on many shapes of clusters."),
    "study": ("study.command", "Plan many variants of a spec: sweeps and their fronts."),
    "validate": ("plans.plan", "Check a spec without solving it."),
    "evaluate": ("plans.evaluate", "Score and verify a plan from anywhere."),
    "improve": ("plans.improve", "Search on from a plan from anywhere."),
    "import": ("plans.improve", "Write a plan from anywhere as one of shardplan's."),
    "certify": ("plans.certify", "Write the certificate of a plan and its bound."),
    "check": ("plans.certify", "Check a certificate."),
    "explain": ("plans.explain", "Explain why a plan is as it is, and what would help."),
    "draw": ("plans.draw", "Draw a step of a plan, with the memory of a rank."),
    "compare": ("plans.documents", "Show what changed from one plan to another."),
    "reshard": ("plans.reshard", "Write which rank reads what of a checkpoint."),
    "export": ("plans.documents", "Write a plan in the form that a runtime takes."),
    "stats": ("statistics.command", "Sketch traces of lookups; merge or compare sketches."),
    "measure": ("measuring.command", "Measure embeddings, collectives and copies here."),
    "measurements": ("models.measurements", "Read what other benchmarks measured."),
    "fit": ("models.fit", "Fit a learned cost model to measured rows."),
    "model": ("models.report", "Report on a learned cost model."),
    "solves": ("remote.solves", "List, show, cancel and retry solves of a service."),
    "studies": ("remote.studies", "List, show and cancel studies of a service."),
    "channels": ("remote.channels", "List channels, and what they pointed at."),
    "promote": ("remote.move_channel", "Point a channel at a plan."),
    "rollback": ("remote.move_channel", "Point a channel at an earlier plan again."),
    "fetch": ("plans.fetch", "Bring a file up to date with a channel."),
    "serve": ("service.serve", "Run the service: pages, REST, console."),
    "worker": ("service.worker", "Run solves for servers that share a database."),
    "backup": ("admin.backup", "Write all that a service keeps into one file."),
    "restore": ("admin.backup", "Put a backup into a new database."),
    "prune": ("admin.prune", "Remove what is older than the settings keep."),
    "doctor": ("admin.doctor", "Check this installation."),
    "keys": ("admin.keys", "Make, list and revoke the keys of a service."),
    "webhooks": ("admin.webhooks", "Say where a service posts what happened."),
}

#: The variable by which shells ask for words that complete a line.
_COMPLETE = "_SHARDPLAN_COMPLETE"


class _Commands(TyperGroup):
    """Imports the command that is run; of the others it knows names and summaries."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that arguments begin with, and the arguments that are its own."""
        name, placeholder, own_args = super().resolve_command(ctx, args)
        if name is None:  # while a shell completes a command that there is not
            return name, placeholder, own_args
        module = import_module(f"api.cli.{_COMMANDS[args[0]][0]}")
        commands = getattr(module, "app", None)  # of a command that has commands of its own
        if commands is None:
            commands = typer.Typer(rich_markup_mode=None, add_completion=False)
            commands.command()(getattr(module, f"{name}_command"))
        return name, with_strict_numbers(typer.main.get_command(commands)), own_args


app = typer.Typer(
    name="shardplan",
    cls=_Commands,
    help="Plan how the embedding tables of a recommendation model are cut and placed on a cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,  # Typer's own options ignore the shell that is named
)
completion_init()
for _name, (_, _summary) in _COMMANDS.items():
    app.command(_name, short_help=_summary)(lambda: None)  # in the place of the command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardplan {VERSION}")
        raise typer.Exit


class _Shell(StrEnum):
    """The shells that can complete command lines."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def _install_completion(shell: _Shell | None) -> None:
    if shell is not None:
        _, path = install(shell, prog_name="shardplan", complete_var=_COMPLETE)
        typer.echo(f"{shell} completes shardplan in new terminals: {path}")
        raise typer.Exit


def _show_completion(shell: _Shell | None) -> None:
    if shell is not None:
        typer.echo(get_completion_script(prog_name="shardplan", complete_var=_COMPLETE, shell=shell))
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop.")
    ] = False,
    _install: Annotated[
        _Shell | None,
        typer.Option(
            "--install-completion", callback=_install_completion, is_eager=True, help="Set up completion for a shell."
        ),
    ] = None,
    _show: Annotated[
        _Shell | None,
        typer.Option(
            "--show-completion",
            callback=_show_completion,
            is_eager=True,
            help="Print the completion script of a shell.",
        ),
    ] = None,
) -> None:
    """Plan how the embedding tables of a recommendation model are cut and placed on a cluster."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with a code of the contract."""
    try:
        with repeats_ignored():
            code = app(args=arguments, prog_name="shardplan", standalone_mode=False)
    except TyperException as error:  # a command line that it cannot read
        code = report_usage(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception as error:
        if not is_expected(error):
            raise
        code = report(error)
    if code == ExitCode.INTERRUPTED:
        echo("shardplan: interrupted")
    sys.exit(code or ExitCode.OK)
