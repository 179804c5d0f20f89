"""What can go wrong when a server or worker starts, told in words."""

import contextlib
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from api.access.trust import UnusableIssuer
from api.data_folder import DataFolderInUse
from api.engine.base import EngineUnavailable
from api.model_versions import UnusableModel
from api.settings import Settings
from api.store.engines import UnusableDatabase
from api.store.migrate import WrongSchema
from api.tracing import MissingExtra
from api.webhooks.targets import UnusableAllowList

#: Exceptions whose messages are for people.
_TOLD = (
    DataFolderInUse,
    EngineUnavailable,
    MissingExtra,
    UnusableAllowList,
    UnusableDatabase,
    UnusableIssuer,
    UnusableModel,
    WrongSchema,
)


class StartFailed(Exception):
    """The service could not start; the message is for people."""


@contextlib.contextmanager
def told(settings: Settings) -> Iterator[None]:
    """Turn what fails at the start into ``StartFailed``."""
    try:
        yield
    except _TOLD as error:
        raise StartFailed(str(error)) from error
    except OSError as error:
        raise StartFailed(f"cannot use {settings.data_dir}: {error.strerror or error}") from error
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip()
        # The address of a database may have a password, and is not repeated.
        where = f" {settings.database}" if settings.database_url is None else ""
        raise StartFailed(f"cannot use the database{where}: {reason}") from error
