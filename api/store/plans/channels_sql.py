"""Channels and their history in a SQL database."""

from sqlalchemy import Connection, Engine, insert, select, update

from api.store.access.audit import LOCAL, PROMOTE, Actor, Json
from api.store.access.audit_sql import append_audit
from api.store.contract.store import UnknownPlan, VersionConflict
from api.store.plans.channels import ChannelRecord
from api.store.sql import tables
from api.store.sql.connections import Writer
from api.store.webhooks.records import CHANNEL_PROMOTED
from api.store.webhooks.sql import tell_webhooks

_CHANNELS, _HISTORY = tables.channels, tables.channel_history
_CHANNEL = [column for column in _CHANNELS.c if column.name != "tenant"]
_VERSION = [column for column in _HISTORY.c if column.name != "tenant"]


class SqlChannels:
    """The part of ``api.store.contract.store.Store`` that keeps channels,
    ``api.store.plans.channels.ChannelHistoryStore`` included.
    """

    _readers: Engine
    _writer: Writer
    _tenant: str

    def channel(self, name: str) -> ChannelRecord | None:
        """Return a channel."""
        with self._readers.begin() as connection:
            return self._channel(connection, name)

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name."""
        query = select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant).order_by(_CHANNELS.c.name).limit(limit)
        if after is not None:
            query = query.where(_CHANNELS.c.name > after)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]

    def put_channel(
        self,
        name: str,
        *,
        plan_digest: str,
        expected_version: int,
        now: float,
        by: Actor = LOCAL,
        action: str = PROMOTE,
    ) -> ChannelRecord:
        """Point a channel at a plan."""
        with self._writer.begin() as connection:
            current = self._channel(connection, name)
            if (current.version if current else 0) != expected_version:
                raise VersionConflict(current)
            plans = tables.plans.c
            known = select(plans.digest).where(plans.tenant == self._tenant, plans.digest == plan_digest)
            if connection.execute(known).first() is None:
                raise UnknownPlan
            new = ChannelRecord(name=name, version=expected_version + 1, plan_digest=plan_digest, updated_at=now)
            values = {"version": new.version, "plan_digest": plan_digest, "updated_at": now}
            if current is None:
                connection.execute(insert(_CHANNELS).values(tenant=self._tenant, name=name, **values))
            else:
                this = update(_CHANNELS).where(_CHANNELS.c.tenant == self._tenant, _CHANNELS.c.name == name)
                connection.execute(this.values(**values))
            connection.execute(insert(_HISTORY).values(tenant=self._tenant, name=name, **values))
            told = {"before": told_of(current), "after": told_of(new)}
            append_audit(connection, self._tenant, by, action, f"channels/{name}", **told, now=now)
            data = {"channel": name, "version": new.version, "plan_digest": plan_digest, "action": action}
            tell_webhooks(connection, self._tenant, CHANNEL_PROMOTED, data, now=now)
            return new

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[ChannelRecord]:
        """Return versions of a channel, newest first."""
        this = (_HISTORY.c.tenant == self._tenant) & (_HISTORY.c.name == name)
        query = select(*_VERSION).where(this).order_by(_HISTORY.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(_HISTORY.c.version < before)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]

    def _channel(self, connection: Connection, name: str) -> ChannelRecord | None:
        query = select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant, _CHANNELS.c.name == name)
        row = connection.execute(query).mappings().first()
        return None if row is None else ChannelRecord(**row)


def told_of(channel: ChannelRecord | None) -> Json | None:
    """What the audit trail says of a channel."""
    return None if channel is None else {"version": channel.version, "plan_digest": channel.plan_digest}
