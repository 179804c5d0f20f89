"""Pages of lists: a store is asked for one record more than a page has."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Record = TypeVar("Record")
Token = TypeVar("Token")


def page_of(
    records: Sequence[Record], limit: int, token_of: Callable[[Record], Token]
) -> tuple[Sequence[Record], Token | None]:
    """Return the first ``limit`` records, and where the next page starts if there are more."""
    page = records[:limit]
    return page, token_of(page[-1]) if len(records) > limit else None
