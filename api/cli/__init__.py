"""The command line ``shardplan``: the same code as the service, no server needed.

Exit codes: 0 plan found, 1 bad input, 3 infeasible, 4 server or solver trouble,
130 interrupted. Machine
output goes to stdout, people's to stderr.

Commands import the solver and the web framework in their bodies, so that ``fetch``, which
every launcher runs, does not wait two seconds for code that it does not use.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, NoReturn

import typer

from api.cli.admin import backup, doctor, keys, prune, webhooks
from api.cli.batch import command as batch
from api.cli.errors import EXPECTED, TYPER_USAGE_ERROR, ExitCode, echo, report
from api.cli.measuring import command as measure
from api.cli.models import fit
from api.cli.models import report as model
from api.cli.plans import certify, documents, evaluate, explain, improve, plan
from api.cli.service import serve, worker
from api.cli.statistics import command as stats
from api.release import VERSION

app = typer.Typer(
    name="shardplan",
    help="Plan how the embedding tables of a recommendation model are cut and placed on a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
#: What each command does, in a line of a terminal of 80 columns; ``COMMAND --help`` says more.
_COMMANDS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("plan", plan.plan_command, "Plan a spec: the plan, and a summary for people."),
    ("batch", batch.batch_command, "Plan many specs, each on many shapes of clusters."),
    ("validate", plan.validate_command, "Check a spec without solving it."),
    ("evaluate", evaluate.evaluate_command, "Score and verify a plan from anywhere."),
    ("improve", improve.improve_command, "Search on from a plan from anywhere."),
    ("import", improve.import_command, "Write a plan from anywhere as one of shardplan's."),
    ("certify", certify.certify_command, "Write the certificate of a plan and its bound."),
    ("check", certify.check_command, "Check a certificate."),
    ("explain", explain.explain_command, "Tell why a plan is as it is, and what would help."),
    ("compare", documents.compare_command, "Tell what changed from one plan to another."),
    ("export", documents.export_command, "Write a plan in the form that a runtime takes."),
    ("stats", stats.stats_command, "Sketch traces of lookups; merge or compare sketches."),
    ("measure", measure.measure_command, "Measure embeddings, collectives and copies here."),
    ("fit", fit.fit_command, "Fit a learned cost model to measured rows."),
    ("model", model.model_command, "Report on a learned cost model."),
    ("fetch", documents.fetch_command, "Bring a file up to date with a channel."),
    ("serve", serve.serve_command, "Run the service: pages, REST, console."),
    ("worker", worker.worker_command, "Run solves for servers that share a database."),
    ("backup", backup.backup_command, "Write all that a service keeps into one file."),
    ("restore", backup.restore_command, "Put a backup into a new database."),
    ("prune", prune.prune_command, "Remove what is older than the settings keep."),
    ("doctor", doctor.doctor_command, "Check this installation."),
)
for _name, _command, _summary in _COMMANDS:
    app.command(_name, short_help=_summary)(_command)
app.add_typer(keys.app, name="keys", short_help="Make, list and revoke the keys of a service.")
app.add_typer(webhooks.app, name="webhooks", short_help="Say where a service posts what happened.")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardplan {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Tell the version and stop.")
    ] = False,
) -> None:
    """Plan how the embedding tables of a recommendation model are cut and placed on a cluster."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with a code of the contract."""
    try:
        app(args=arguments, prog_name="shardplan")
    except SystemExit as stop:
        if stop.code == ExitCode.INTERRUPTED:
            echo("shardplan: interrupted")
        # Typer exits with 2 for a command line that it cannot read: bad input, in the contract.
        sys.exit(ExitCode.BAD_INPUT if stop.code == TYPER_USAGE_ERROR else stop.code)
    except EXPECTED as error:
        sys.exit(report(error))
    except KeyboardInterrupt:
        echo("shardplan: interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(ExitCode.OK)
