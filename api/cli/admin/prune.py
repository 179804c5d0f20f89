"""``prune``: removes what is old now, or says what that would be."""

import time
from typing import Annotated, Any

import typer

from api.cli.admin.database import DataDir, opened, settings_of_service
from api.cli.errors import ServerTrouble, echo
from api.cli.files import AsJson, print_document
from api.execution.maintenance.retention import cutoffs, prune


def _days(rows: str, setting: str) -> Any:
    return typer.Option(metavar="DAYS", help=f"Keep {rows} so long (SHARDPLAN_RETAIN_{setting}_DAYS).")


def prune_command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    solves_days: Annotated[float | None, _days("ended solves", "SOLVES")] = None,
    events_days: Annotated[float | None, _days("their events", "EVENTS")] = None,
    plans_days: Annotated[float | None, _days("plans that nothing needs", "PLANS")] = None,
    audit_days: Annotated[float | None, _days("the audit trail", "AUDIT")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Remove what is older than the settings keep, as servers do every hour; also while they run."""
    settings = settings_of_service(
        data_dir,
        retain_solves_days=solves_days,
        retain_events_days=events_days,
        retain_plans_days=plans_days,
        retain_audit_days=audit_days,
    )
    with opened(settings) as database:
        before = cutoffs(settings, now=time.time())
        removed = database.num_old(before) if dry_run else prune(database, before)
    if removed is None:
        raise ServerTrouble("another process removes what is old at this moment")
    if not print_document({"dry_run": dry_run, "removed": removed}, as_json=as_json):
        what = ", ".join(f"{number:,} {name}" for name, number in removed.items() if number)
        echo(f"shardplan: {'would remove' if dry_run else 'removed'} {what or 'nothing: nothing is old enough'}")
