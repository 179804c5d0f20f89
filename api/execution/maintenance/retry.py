"""Patience with the store: the disk may be full or the file locked for a while, and accepted work must survive that."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

_RETRY_SECONDS = 1.0

Value = TypeVar("Value")

log = logging.getLogger(__name__)


def retried(operation: Callable[[], Value], stopping: threading.Event) -> Value | None:
    """Do something with the store, as often as it takes; ``None`` if the server stops first."""
    while True:
        try:
            return operation()
        except SQLAlchemyError:
            log.exception("the store failed; trying again")
            if stopping.wait(_RETRY_SECONDS):
                return None
