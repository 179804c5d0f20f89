"""The audit trail: who changed what launchers read, what prices mean, and who may do so.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* An entry is written in the transaction of the change that it tells of: either both are there, or neither.
* Entries are numbered without gaps in the order of the changes, and are never changed; they are deleted only from the
  oldest on (``api.store.maintenance.retention``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

PROMOTE, ROLLBACK, ACTIVATE, CREATE_KEY, REVOKE_KEY, CREATE_WEBHOOK, DELETE_WEBHOOK, ENABLE_WEBHOOK = ACTIONS = (
    "channel.promote",
    "channel.rollback",
    "cost-model.activate",
    "key.create",
    "key.revoke",
    "webhook.create",
    "webhook.delete",
    "webhook.enable",
)

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks for a change, and in which request."""

    who: str  # id of a key, or "local"
    request_id: str | None = None


#: Whoever works where no key is asked for: on the machine itself, or in a network that is trusted.
LOCAL = Actor(who="local")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One change."""

    seq: int  # from 1
    at: float  # seconds since the epoch
    who: str
    action: str  # one of ACTIONS
    subject: str  # address of what was changed, below /v1/
    before: Json | None
    after: Json | None
    request_id: str | None


class AuditStore(Protocol):
    """What was changed."""

    def audit(self, *, limit: int, before: int | None, subject: str | None) -> list[AuditRecord]:
        """Return entries, newest first, those with a number below ``before``; of one subject, where one is given."""
        ...
