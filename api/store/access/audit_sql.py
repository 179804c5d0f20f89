"""The audit trail in a database."""

from sqlalchemy import Connection, Engine, func, insert, select

from api.store.access.audit import Actor, AuditRecord, Json
from api.store.sql import tables

_LOG = tables.audit
_ENTRY = [column for column in _LOG.c if column.name != "tenant"]


class SqlAudit:
    """Fulfils ``api.store.access.audit.AuditStore`` over an engine that reads."""

    _readers: Engine
    _tenant: str

    def audit(self, *, limit: int, before: int | None, subject: str | None) -> list[AuditRecord]:
        """Return entries, newest first."""
        query = select(*_ENTRY).where(_LOG.c.tenant == self._tenant).order_by(_LOG.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(_LOG.c.seq < before)
        if subject is not None:
            query = query.where(_LOG.c.subject == subject)
        with self._readers.begin() as connection:
            return [AuditRecord(**row) for row in connection.execute(query).mappings()]


def append_audit(
    connection: Connection,
    tenant: str,
    by: Actor,
    action: str,
    subject: str,
    *,
    before: Json | None,
    after: Json | None,
    now: float,
) -> None:
    """Append an entry to the transaction of a change; writers take turns, so numbers of a tenant have no gaps."""
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
