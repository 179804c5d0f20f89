"""What can go wrong when a server or worker starts, and how it ends in time."""

import contextlib
import gc
import logging
import os
import threading
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError

from api.cli.errors import ServerTrouble
from api.execution.base import EngineUnavailable
from api.http.auth.tokens.trusted_issuer import UnusableIssuer
from api.observability.tracing import MissingExtra
from api.services.cost_models.service import UnusableModel
from api.services.webhooks.targets import UnusableAllowList
from api.settings import Settings
from api.store.data_directory import DataFolderInUse
from api.store.migrations.run import WrongSchema
from api.store.sql.connections import UnusableDatabase

#: Exceptions whose messages are for people.
_EXPECTED = (
    DataFolderInUse,
    EngineUnavailable,
    MissingExtra,
    UnusableAllowList,
    UnusableDatabase,
    UnusableIssuer,
    UnusableModel,
    WrongSchema,
)


@contextlib.contextmanager
def start_errors(settings: Settings) -> Iterator[None]:
    """Turn what fails at the start into ``ServerTrouble``."""
    try:
        yield
    except _EXPECTED as error:
        raise ServerTrouble(str(error)) from error
    except OSError as error:
        raise ServerTrouble(f"cannot use {settings.data_dir}: {error.strerror or error}") from error
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip()
        # The address of a database may have a password, and is not repeated.
        where = f" {settings.database}" if settings.database_url is None else ""
        raise ServerTrouble(f"cannot use the database{where}: {reason}") from error


#: New containers after which the youngest generation is collected (Python's own number is 700 in 3.11).
_YOUNGEST = 50_000


def tune_gc() -> None:
    """Leave all that exists now out of collections, and let them happen less often; call it once, after the start."""
    gc.collect()
    gc.freeze()
    _, middle, oldest = gc.get_threshold()
    gc.set_threshold(_YOUNGEST, middle, oldest)


#: Three seconds for requests, the rest for what runs and for a last word to the database. Less than what those who
#: stop services wait before they kill: 30 s of Kubernetes, of which 5 have passed before the signal comes.
MOST_STOP_SECONDS = 15.0

log = logging.getLogger(__name__)


def force_exit_after_timeout() -> None:
    """Be gone soon, whatever happens; to be called by the code that hears that the process is to stop.

    Nothing is lost by it: to leave so is to be killed, and work is handed to others as that of one that was.
    """
    timer = threading.Timer(MOST_STOP_SECONDS, _leave)
    timer.daemon = True
    timer.start()


def _leave() -> None:
    log.warning("not stopped after %g s: leaving what does not answer", MOST_STOP_SECONDS)
    logging.shutdown()
    os._exit(0)
