"""What a command that is run in the process of the tests leaves behind."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which is one JSON document."""
        return json.loads(self.out)


Run = Callable[..., Answer]
