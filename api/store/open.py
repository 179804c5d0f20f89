"""Opens the store that the settings name."""

from api.settings import Settings
from api.store.contract.database import Database
from api.store.solves.sql import SqlStore
from api.store.sql.connections import Engines, postgres_engines, sqlite_engines


def open_store(settings: Settings) -> Database:
    """Open a PostgreSQL database, or else a file. Raises ``WrongSchema`` or ``UnusableDatabase``."""
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        return SqlStore.of_postgres(url, busy_timeout_seconds=settings.busy_timeout_seconds)
    return SqlStore.of_file(settings.database, busy_timeout_seconds=settings.busy_timeout_seconds)


def open_engines(settings: Settings) -> Engines:
    """Return connections to the same database, which is left as it is. Raises ``UnusableDatabase``."""
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        return postgres_engines(url, busy_timeout_seconds=settings.busy_timeout_seconds)
    return sqlite_engines(settings.database, busy_timeout_seconds=settings.busy_timeout_seconds)
