"""``backup`` and ``restore``: all that a service keeps, in one file."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from api.cli.admin.database import DataDir, named, settings_of_database, settings_of_service
from api.cli.errors import BadInput, ServerTrouble, echo, system_errors
from api.cli.files import AsJson, print_document
from api.cli.service.process import start_errors
from api.services.backup.archive import DamagedArchive, Manifest, NewerArchive
from api.services.backup.restoring import InUse, NotEmpty, check, restore
from api.services.backup.taking import back_up
from planner.domain.formats.units import format_bytes
from planner.output.explain.text.layout import wrapped


def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as shardplan.zip.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file where it is there.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write all that the service keeps into one file, as of one moment, also while servers run."""
    settings = settings_of_service(data_dir)
    if file.exists() and not overwrite:
        raise BadInput(f"{file} is there already; name another file, or say --overwrite")
    if not file.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {file.absolute().parent}")
    with start_errors(settings), system_errors(f"cannot write {file}"):
        manifest = back_up(settings, file)
    _print_result(file, manifest, f"backup of {named(settings)}", as_json=as_json)
    echo("shardplan: keep the file as safe as the service: it has specs, plans,")
    echo("  digests of keys and secrets of webhooks")


def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `shardplan backup` wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop what the database has; servers and workers must be stopped.")
    ] = False,
    check_only: Annotated[bool, typer.Option("--check", help="Read and check the file, and restore nothing.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into a new database of either kind: all of it, or nothing."""
    settings = settings_of_database(data_dir)
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    try:
        if check_only:
            manifest = check(file)
        else:
            with start_errors(settings):
                manifest = restore(file, settings, replace=replace)
    except (DamagedArchive, NewerArchive, NotEmpty) as error:
        raise BadInput(str(error)) from error
    except InUse as error:
        raise ServerTrouble(str(error)) from error
    done = "checked, nothing restored" if check_only else f"restored into {named(settings)}"
    _print_result(file, manifest, done, as_json=as_json)


def _print_result(file: Path, manifest: Manifest, done: str, *, as_json: bool) -> None:
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    size, made = file.stat().st_size, datetime.fromtimestamp(manifest.created_at, UTC)
    document = {
        "file": str(file),
        "bytes": size,
        "sha256": sha256,
        "schema_revision": manifest.schema_revision,
        "release": manifest.release,
        "created_at": made.isoformat().replace("+00:00", "Z"),
        "num_rows": manifest.num_rows,
    }
    if not print_document(document, as_json=as_json):
        rows = ", ".join(f"{number:,} {name}" for name, number in manifest.num_rows.items() if number)
        echo(f"{file}: {done}")
        echo(f"  made     {made:%Y-%m-%d %H:%M:%S} UTC by shardplan {manifest.release}, {format_bytes(size)}")
        echo(f"  sha256   {sha256}")
        for line in wrapped([rows or "none"], label="rows    "):
            echo(line)
