"""Channels and their history in a SQL database."""

from sqlalchemy import Connection, Engine, insert, select, update

from api.store import tables
from api.store.audit import LOCAL, PROMOTE, Actor, Json
from api.store.base import UnknownPlan, VersionConflict
from api.store.channels import ChannelRecord
from api.store.engines import Writer
from api.store.sql_audit import append_audit
from api.store.sql_webhooks import tell_webhooks
from api.store.webhooks import CHANNEL_PROMOTED


class SqlChannels:
    """The part of ``api.store.base.Store`` that keeps channels, ``api.store.channels.ChannelHistoryStore`` included."""

    _readers: Engine
    _writer: Writer

    def channel(self, name: str) -> ChannelRecord | None:
        """Return a channel."""
        with self._readers.begin() as connection:
            return _channel(connection, name)

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name."""
        query = select(tables.channels).order_by(tables.channels.c.name).limit(limit)
        if after is not None:
            query = query.where(tables.channels.c.name > after)
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
            current = _channel(connection, name)
            if (current.version if current else 0) != expected_version:
                raise VersionConflict(current)
            known = select(tables.plans.c.digest).where(tables.plans.c.digest == plan_digest)
            if connection.execute(known).first() is None:
                raise UnknownPlan
            new = ChannelRecord(name=name, version=expected_version + 1, plan_digest=plan_digest, updated_at=now)
            values = {"version": new.version, "plan_digest": plan_digest, "updated_at": now}
            if current is None:
                connection.execute(insert(tables.channels).values(name=name, **values))
            else:
                connection.execute(update(tables.channels).where(tables.channels.c.name == name).values(**values))
            connection.execute(insert(tables.channel_history).values(name=name, **values))
            told = {"before": told_of(current), "after": told_of(new)}
            append_audit(connection, by, action, f"channels/{name}", **told, now=now)
            data = {"channel": name, "version": new.version, "plan_digest": plan_digest, "action": action}
            tell_webhooks(connection, CHANNEL_PROMOTED, data, now=now)
            return new

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[ChannelRecord]:
        """Return versions of a channel, newest first."""
        history = tables.channel_history
        query = select(history).where(history.c.name == name).order_by(history.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(history.c.version < before)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]


def _channel(connection: Connection, name: str) -> ChannelRecord | None:
    query = select(tables.channels).where(tables.channels.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else ChannelRecord(**row)


def told_of(channel: ChannelRecord | None) -> Json | None:
    """What the audit trail says of a channel."""
    return None if channel is None else {"version": channel.version, "plan_digest": channel.plan_digest}
