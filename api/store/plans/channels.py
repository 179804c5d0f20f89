"""The history of channels, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* Every version that a channel ever had stays in its history, with the plan that it pointed at.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRecord:
    """A channel at one version."""

    name: str
    version: int  # from 1, one more for every change
    plan_digest: str
    updated_at: float


class ChannelHistoryStore(Protocol):
    """Versions of channels."""

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[ChannelRecord]:
        """Return versions of a channel, newest first, those below ``before``."""
        ...
