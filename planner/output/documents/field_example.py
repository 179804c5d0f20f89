"""What fields of documents state in addition to their types and descriptions."""

from typing import NamedTuple


class Example(NamedTuple):
    """A value that a field may have, for the OpenAPI document."""

    value: object
