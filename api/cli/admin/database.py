"""The database of a service, for commands that work on it, also while servers run."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

import typer

from api.cli.errors import BadInput
from api.cli.service.process import start_errors
from api.cli.service.settings import settings_of
from api.settings import Settings
from api.store.data_directory import make_private
from api.store.database import Database, open_store
from api.store.tenants import is_tenant

DataDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Data folder of the service (SHARDPLAN_DATA_DIR); or set SHARDPLAN_DATABASE_URL."),
]


def settings_of_database(data_dir: str | None, **options: Any) -> Settings:
    """Return the settings of a service whose database may not be there yet; of one database, or ``BadInput``."""
    settings = settings_of(data_dir=data_dir, **options)
    if data_dir is not None and settings.database_url is not None:
        raise BadInput(
            "--data-dir names a folder, and SHARDPLAN_DATABASE_URL a database of PostgreSQL: leave out one of them"
        )
    return settings


def named(settings: Settings) -> str:
    """Say which database it is, without its password."""
    return f"{settings.database}" if settings.database_url is None else "PostgreSQL (SHARDPLAN_DATABASE_URL)"


def settings_of_service(data_dir: str | None, **options: Any) -> Settings:
    """Return the settings of a service whose database is there. Raises ``BadInput``."""
    settings = settings_of_database(data_dir, **options)
    if settings.database_url is None and not settings.database.exists():
        raise BadInput(f"there is no database {settings.database}; name the service's folder with --data-dir")
    return settings


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """Open a database, made where there is none. Raises ``ServerTrouble``."""
    with start_errors(settings):
        if settings.database_url is None:
            make_private(settings.data_dir)
        with closing(open_store(settings)) as database:
            yield database


def check_tenant(tenant: str) -> None:
    """Raise ``BadInput`` where no tenant can have this name."""
    if not is_tenant(tenant):
        raise BadInput("--tenant takes 1 to 63 of a-z 0-9 . _ - and begins with a letter or a digit")
