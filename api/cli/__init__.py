"""The command line ``shardplan``: the same code as the service, no server needed.

Exit codes: 0 plan found, 1 bad input, 3 infeasible, 4 server or solver trouble,
130 interrupted. Machine
output goes to stdout, people's to stderr.

Commands import the solver and the web framework in their bodies, so that ``fetch``, which
every launcher runs, does not wait two seconds for code that it does not use.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from api.cli import (
    backup,
    batch,
    certify,
    doctor,
    documents,
    evaluate,
    explain,
    fit,
    improve,
    keys,
    measure,
    model,
    plan,
    prune,
    serve,
    stats,
    webhooks,
    worker,
)
from api.cli.errors import EXPECTED, TYPER_USAGE_ERROR, ExitCode, report, say
from api.release import VERSION

app = typer.Typer(
    name="shardplan",
    help="Plan how the embedding tables of a recommendation model are cut and placed on a cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("plan")(plan.plan_command)
app.command("batch")(batch.batch_command)
app.command("validate")(plan.validate_command)
app.command("evaluate")(evaluate.evaluate_command)
app.command("improve")(improve.improve_command)
app.command("import")(improve.import_command)
app.command("certify")(certify.certify_command)
app.command("check")(certify.check_command)
app.command("explain")(explain.explain_command)
app.command("compare")(documents.compare_command)
app.command("export")(documents.export_command)
app.command("stats")(stats.stats_command)
app.command("measure")(measure.measure_command)
app.command("fit")(fit.fit_command)
app.command("model")(model.model_command)
app.add_typer(keys.app, name="keys")
app.add_typer(webhooks.app, name="webhooks")
app.command("fetch")(documents.fetch_command)
app.command("serve")(serve.serve_command)
app.command("worker")(worker.worker_command)
app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)
app.command("prune")(prune.prune_command)
app.command("doctor")(doctor.doctor_command)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shardplan {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Tell the version and stop.")
    ] = False,
) -> None:
    """Plan how the embedding tables of a recommendation model are cut and placed on a cluster."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with a code of the contract."""
    try:
        app(args=arguments, prog_name="shardplan")
    except SystemExit as stop:
        if stop.code == ExitCode.INTERRUPTED:
            say("shardplan: interrupted")
        # Typer exits with 2 for a command line that it cannot read: bad input, in the contract.
        sys.exit(ExitCode.BAD_INPUT if stop.code == TYPER_USAGE_ERROR else stop.code)
    except EXPECTED as error:
        sys.exit(report(error))
    except KeyboardInterrupt:
        say("shardplan: interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(ExitCode.OK)
