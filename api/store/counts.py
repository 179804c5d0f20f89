"""How much is stored, for those who watch the service.

Guarantees, beside those of ``api.store.base``
----------------------------------------------
* Counting reads an index alone, never a document.
"""

from collections.abc import Mapping
from typing import Protocol


class CountStore(Protocol):
    """Numbers of what is stored."""

    def num_solves_by_state(self) -> Mapping[str, int]:
        """Return the numbers of solves; states that no solve is in are left out."""
        ...

    def num_models_by_state(self) -> Mapping[str, int]:
        """Return the numbers of versions of cost models; states that none is in are left out."""
        ...
