"""The history of channels in a database."""

from sqlalchemy import Engine, select

from api.store import tables
from api.store.audit import Json
from api.store.channels import ChannelRecord


class ChannelVersions:
    """Fulfils ``api.store.channels.ChannelHistoryStore`` over an engine that reads."""

    _readers: Engine

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[ChannelRecord]:
        """Return versions of a channel, newest first."""
        history = tables.channel_history
        query = select(history).where(history.c.name == name).order_by(history.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(history.c.version < before)
        with self._readers.begin() as connection:
            return [ChannelRecord(**row) for row in connection.execute(query).mappings()]


def told_of(channel: ChannelRecord | None) -> Json | None:
    """What the audit trail says of a channel."""
    return None if channel is None else {"version": channel.version, "plan_digest": channel.plan_digest}
