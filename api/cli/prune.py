"""``prune``: removes what is old now, or tells what that would be."""

from contextlib import closing
from typing import Annotated

import typer

from api.cli.errors import BadInput, ServerTrouble
from api.cli.files import write_document
from api.cli.settings import settings_of


def prune_command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be removed, and remove nothing.")] = False,
    solves_days: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Keep ended solves so long (SHARDPLAN_RETAIN_SOLVES_DAYS).")
    ] = None,
    events_days: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Keep their events so long (SHARDPLAN_RETAIN_EVENTS_DAYS).")
    ] = None,
    plans_days: Annotated[
        float | None,
        typer.Option(metavar="DAYS", help="Keep plans that nothing needs so long (SHARDPLAN_RETAIN_PLANS_DAYS)."),
    ] = None,
    audit_days: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Keep the audit trail so long (SHARDPLAN_RETAIN_AUDIT_DAYS).")
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Data folder of the service (SHARDPLAN_DATA_DIR); or set SHARDPLAN_DATABASE_URL."
        ),
    ] = None,
) -> None:
    """Remove what is older than the settings keep, as servers do every hour; also while they run."""
    import time

    from api.retention import cutoffs, prune
    from api.starting import StartFailed, told
    from api.stores import open_store

    settings = settings_of(
        data_dir=data_dir,
        retain_solves_days=solves_days,
        retain_events_days=events_days,
        retain_plans_days=plans_days,
        retain_audit_days=audit_days,
    )
    if settings.database_url is None and not settings.database.exists():
        raise BadInput(f"there is no database {settings.database}; name the service's folder with --data-dir")
    try:
        with told(settings), closing(open_store(settings)) as store:
            before = cutoffs(settings, now=time.time())
            removed = store.num_old(before) if dry_run else prune(store, before)
    except StartFailed as error:
        raise ServerTrouble(str(error)) from error
    if removed is None:
        raise ServerTrouble("another process removes what is old at this moment")
    write_document({"dry_run": dry_run, "removed": removed}, None)
