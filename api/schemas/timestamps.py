"""Times of documents: in UTC, from the seconds since the epoch that the store has."""

from datetime import UTC, datetime
from typing import overload


@overload
def moment(seconds: float) -> datetime: ...


@overload
def moment(seconds: float | None) -> datetime | None: ...


def moment(seconds: float | None) -> datetime | None:
    """Return the moment of seconds since the epoch; of one that has not come, nothing."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
