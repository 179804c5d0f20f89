"""The end of what is kept of solves, and what the service may rely on.

Guarantees, beside those of ``api.store.base``
----------------------------------------------
* Only solves that have ended are deleted. With one go its events, its tags and the keys of its requests.
* Plans stay, and with them the specs that they were made for.
"""

from typing import Protocol


class RemovalStore(Protocol):
    """Deletes solves."""

    def delete_solve(self, solve_id: str) -> str | None:
        """Delete a solve that has ended, and return its state; one in another state stays. ``None``: there is none."""
        ...
