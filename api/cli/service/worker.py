"""``worker``: runs solves for servers on other machines."""

from typing import Annotated

import typer

from api.cli.errors import BadInput, echo
from api.cli.service.run_worker import work
from api.cli.service.settings import settings_of


def worker_command(
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="What it needs for itself (SHARDPLAN_DATA_DIR).")
    ] = None,
) -> None:
    """Run solves for the servers that share the database of SHARDPLAN_DATABASE_URL."""
    settings = settings_of(data_dir=data_dir)
    if settings.database_url is None:
        raise BadInput("a worker shares a PostgreSQL database with servers: set SHARDPLAN_DATABASE_URL for all of them")
    if settings.solver_processes == 0:
        raise BadInput("SHARDPLAN_SOLVER_PROCESSES is 0: a worker would run nothing")
    echo(f"shardplan: working on up to {settings.solver_processes} solves at a time; SIGTERM stops it")
    work(settings)
