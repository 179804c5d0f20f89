"""Channels and their history.

* ``put_channel`` succeeds only for the version that the request names, so that the history of a channel is a line
  without gaps.
* Every version that a channel ever had remains in its history, with the plan that it pointed at.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, insert, select, update

from api.store.access.audit import LOCAL, PROMOTE, Actor, append_audit
from api.store.plans.plans import UnknownPlan
from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.repository import TenantRepository, first_record
from api.store.webhooks.records import CHANNEL_PROMOTED
from api.store.webhooks.webhooks import notify_webhooks

_CHANNELS, _HISTORY = tables.channels, tables.channel_history
_CHANNEL = [column for column in _CHANNELS.c if column.name != "tenant"]
_VERSION = [column for column in _HISTORY.c if column.name != "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRecord:
    """A channel at one version."""

    name: str
    version: int  # from 1, one more for every change
    plan_digest: str
    updated_at: float

    @property
    def plan_url(self) -> str:
        return f"/v1/plans/{self.plan_digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord(ChannelRecord):
    """What a channel became at one version, and how; ``who`` and ``how`` are ``None`` for unrecorded versions."""

    who: str | None
    action: str | None  # promotion or rollback, as the audit trail calls them
    restored_version: int | None  # of a rollback: the version that was promoted and whose plan came back

    @property
    def origin(self) -> int:
        """The version that was promoted and whose plan this is."""
        return self.restored_version or self.version


class VersionConflict(Exception):
    """The channel is not at the version that the caller named, but at ``current``; ``None`` if it does not exist."""

    def __init__(self, current: ChannelRecord | None) -> None:
        self.current = current
        super().__init__()


class Channels(TenantRepository):
    """Channels of one tenant."""

    def channel(self, name: str) -> ChannelRecord | None:
        return self._record(self._of_channel(name), ChannelRecord)

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name, those with a name above ``after``."""
        query = select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant).order_by(_CHANNELS.c.name).limit(limit)
        if after is not None:
            query = query.where(_CHANNELS.c.name > after)
        return self._records(query, ChannelRecord)

    def put_channel(
        self,
        name: str,
        *,
        plan_digest: str,
        expected_version: int,
        now: float,
        by: Actor = LOCAL,
        action: str = PROMOTE,
        restored_version: int | None = None,
    ) -> ChannelRecord:
        """Point a channel at a plan; ``expected_version`` 0 creates it. The audit trail calls it ``action``.

        ``restored_version`` is the version that was promoted and whose plan a rollback brings back.

        Raises ``VersionConflict`` or ``UnknownPlan``.
        """
        with self._writer.begin() as connection:
            current = first_record(connection, self._of_channel(name), ChannelRecord)
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
            how = {"who": by.who, "action": action, "restored_version": restored_version}
            connection.execute(insert(_HISTORY).values(tenant=self._tenant, name=name, **values, **how))
            entries = _audit_entry(current), _audit_entry(new)
            append_audit(connection, self._tenant, by, action, f"channels/{name}", *entries, now=now)
            data = {"channel": name, "version": new.version, "plan_digest": plan_digest, "action": action}
            notify_webhooks(connection, self._tenant, CHANNEL_PROMOTED, data, now=now)
            return new

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[VersionRecord]:
        """Return versions of a channel, newest first, those below ``before``."""
        this = (_HISTORY.c.tenant == self._tenant) & (_HISTORY.c.name == name)
        query = select(*_VERSION).where(this).order_by(_HISTORY.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(_HISTORY.c.version < before)
        return self._records(query, VersionRecord)

    def _of_channel(self, name: str) -> Select[Any]:
        return select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant, _CHANNELS.c.name == name)


def _audit_entry(channel: ChannelRecord | None) -> Json | None:
    return None if channel is None else {"version": channel.version, "plan_digest": channel.plan_digest}
