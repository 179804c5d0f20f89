"""Channels and their history.

* ``put_channel`` succeeds only for the version that the request names, so that the history of a channel is a line
  without gaps.
* Every version that a channel ever had remains in its history, with the plan that it pointed at.
* A version may have plans for several world sizes, its *members*; the plan that it points at is one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, insert, select, tuple_, update

from api.store.access.audit import LOCAL, PROMOTE, Actor, append_audit
from api.store.plans.plans import UnknownPlan
from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.repository import TenantRepository, first_record
from api.store.webhooks.records import CHANNEL_PROMOTED
from api.store.webhooks.webhooks import notify_webhooks

_CHANNELS, _HISTORY, _MEMBERS = tables.channels, tables.channel_history, tables.channel_members
_CHANNEL = [column for column in _CHANNELS.c if column.name != "tenant"]
_VERSION = [column for column in _HISTORY.c if column.name != "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRecord:
    """A channel at one version."""

    name: str
    version: int  # from 1, one more for every change
    plan_digest: str
    updated_at: float
    members: Mapping[int, str] = field(default_factory=dict)  # plans by world size; none if there is one plan alone

    def plan_of(self, world_size: int | None) -> str | None:
        """Return the plan for a world size; ``None`` if members have none. One plan alone is for all."""
        return self.plan_digest if world_size is None or not self.members else self.members.get(world_size)

    @property
    def plan_digests(self) -> Mapping[str, str]:
        """Plans by world size, as documents have them."""
        return {str(world_size): digest for world_size, digest in sorted(self.members.items())}

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


_Channel = TypeVar("_Channel", bound=ChannelRecord)


class VersionConflict(Exception):
    """The channel is not at the version that the caller named, but at ``current``; ``None`` if it does not exist."""

    def __init__(self, current: ChannelRecord | None) -> None:
        self.current = current
        super().__init__()


class Channels(TenantRepository):
    """Channels of one tenant."""

    def channel(self, name: str) -> ChannelRecord | None:
        with self._readers.begin() as connection:
            return self._current(connection, name)

    def sizes_of_plans(self, digests: Sequence[str]) -> Mapping[str, int]:
        """Return the ranks of the jobs that plans are for, of those that are listed."""
        listed = tables.plan_summaries.c
        query = select(listed.plan_digest, listed.world_size, listed.job_world_size)
        query = query.where(listed.tenant == self._tenant, listed.plan_digest.in_(digests))
        with self._readers.begin() as connection:
            return {digest: job or ranks for digest, ranks, job in connection.execute(query)}

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name, those with a name above ``after``."""
        query = select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant).order_by(_CHANNELS.c.name).limit(limit)
        if after is not None:
            query = query.where(_CHANNELS.c.name > after)
        return self._with_members(self._records(query, ChannelRecord))

    def put_channel(
        self,
        name: str,
        *,
        plan_digest: str,
        expected_version: int,
        now: float,
        members: Mapping[int, str] | None = None,
        by: Actor = LOCAL,
        action: str = PROMOTE,
        restored_version: int | None = None,
    ) -> ChannelRecord:
        """Point a channel at a plan; ``expected_version`` 0 creates it. The audit trail calls it ``action``.

        ``members`` are plans by world size, with ``plan_digest`` among them. ``restored_version`` is the version that
        was promoted and whose plan a rollback brings back.

        Raises ``VersionConflict`` or ``UnknownPlan``.
        """
        with self._writer.begin() as connection:
            current = self._current(connection, name)
            if (current.version if current else 0) != expected_version:
                raise VersionConflict(current)
            plans = tables.plans.c
            wanted = {plan_digest, *(members or {}).values()}
            known = select(plans.digest).where(plans.tenant == self._tenant, plans.digest.in_(wanted))
            if len(connection.execute(known).all()) < len(wanted):
                raise UnknownPlan
            new = ChannelRecord(
                name=name,
                version=expected_version + 1,
                plan_digest=plan_digest,
                updated_at=now,
                members=dict(members or {}),
            )
            values = {"version": new.version, "plan_digest": plan_digest, "updated_at": now}
            if current is None:
                connection.execute(insert(_CHANNELS).values(tenant=self._tenant, name=name, **values))
            else:
                this = update(_CHANNELS).where(_CHANNELS.c.tenant == self._tenant, _CHANNELS.c.name == name)
                connection.execute(this.values(**values))
            how = {"who": by.who, "action": action, "restored_version": restored_version}
            connection.execute(insert(_HISTORY).values(tenant=self._tenant, name=name, **values, **how))
            if new.members:
                rows = [{"world_size": size, "plan_digest": digest} for size, digest in new.members.items()]
                of_version = {"tenant": self._tenant, "name": name, "version": new.version}
                connection.execute(insert(_MEMBERS), [{**of_version, **row} for row in rows])
            entries = _audit_entry(current), _audit_entry(new)
            append_audit(connection, self._tenant, by, action, f"channels/{name}", *entries, now=now)
            data = {"channel": name, "version": new.version, "plan_digest": plan_digest, "action": action}
            if new.members:
                data["plan_digests"] = dict(new.plan_digests)
            notify_webhooks(connection, self._tenant, CHANNEL_PROMOTED, data, now=now)
            return new

    def channel_versions(self, name: str, *, limit: int, before: int | None) -> list[VersionRecord]:
        """Return versions of a channel, newest first, those below ``before``."""
        this = (_HISTORY.c.tenant == self._tenant) & (_HISTORY.c.name == name)
        query = select(*_VERSION).where(this).order_by(_HISTORY.c.version.desc()).limit(limit)
        if before is not None:
            query = query.where(_HISTORY.c.version < before)
        return self._with_members(self._records(query, VersionRecord))

    def _current(self, connection: Connection, name: str) -> ChannelRecord | None:
        record = first_record(connection, self._of_channel(name), ChannelRecord)
        return None if record is None else _members_added(connection, self._tenant, [record])[0]

    def _with_members(self, records: list[_Channel]) -> list[_Channel]:
        """Return versions with their members, which were written with them and never change."""
        if not records:
            return records
        with self._readers.begin() as connection:
            return _members_added(connection, self._tenant, records)

    def _of_channel(self, name: str) -> Select[Any]:
        return select(*_CHANNEL).where(_CHANNELS.c.tenant == self._tenant, _CHANNELS.c.name == name)


def _members_added(connection: Connection, tenant: str, records: Sequence[_Channel]) -> list[_Channel]:
    wanted = [(record.name, record.version) for record in records]
    query = select(_MEMBERS.c.name, _MEMBERS.c.version, _MEMBERS.c.world_size, _MEMBERS.c.plan_digest)
    query = query.where(_MEMBERS.c.tenant == tenant, tuple_(_MEMBERS.c.name, _MEMBERS.c.version).in_(wanted))
    found: dict[tuple[str, int], dict[int, str]] = {}
    for name, version, world_size, digest in connection.execute(query):
        found.setdefault((name, version), {})[world_size] = digest
    return [replace(record, members=found.get((record.name, record.version), {})) for record in records]


def _audit_entry(channel: ChannelRecord | None) -> Json | None:
    if channel is None:
        return None
    entry: dict[str, object] = {"version": channel.version, "plan_digest": channel.plan_digest}
    return {**entry, "plan_digests": dict(channel.plan_digests)} if channel.members else entry
