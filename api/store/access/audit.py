"""The audit trail: who changed what launchers read, what prices mean, and who may do so.

* An entry is written in the transaction of the change that it records: either both exist, or neither.
* Entries are numbered without gaps in the order of the changes, and never change. Only the oldest entries are deleted
  (``api.store.maintenance.retention``).
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select

from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.repository import TenantRepository

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

_LOG = tables.audit
_ENTRY = [column for column in _LOG.c if column.name != "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks for a change, and in which request."""

    who: str  # id of a key, or "local"
    request_id: str | None = None


#: Works without a key: on the machine itself, or in a trusted network.
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


class AuditTrail(TenantRepository):
    """The audit trail of one tenant."""

    def audit(self, *, limit: int, before: int | None, subject: str | None) -> list[AuditRecord]:
        """Return entries, newest first, those with a number below ``before``; of one subject, if it is given."""
        query = select(*_ENTRY).where(_LOG.c.tenant == self._tenant).order_by(_LOG.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(_LOG.c.seq < before)
        if subject is not None:
            query = query.where(_LOG.c.subject == subject)
        return self._records(query, AuditRecord)


def append_audit(
    connection: Connection,
    tenant: str,
    by: Actor,
    action: str,
    subject: str,
    before: Json | None,
    after: Json | None,
    *,
    now: float,
) -> None:
    """Append an entry in the transaction of a change; writers take turns, so that numbers of a tenant have no gaps."""
    last = select(func.coalesce(func.max(_LOG.c.seq), 0)).where(_LOG.c.tenant == tenant)
    connection.execute(
        insert(_LOG).values(
            tenant=tenant,
            seq=connection.execute(last).scalar_one() + 1,
            at=now,
            who=by.who,
            action=action,
            subject=subject,
            before=None if before is None else dict(before),
            after=None if after is None else dict(after),
            request_id=by.request_id,
        )
    )
