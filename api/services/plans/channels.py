"""What can be done with channels: point one at a plan, and read it."""

import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from api.services.errors import ApiError, found, not_found
from api.services.pages import page_of
from api.services.preconditions import failed_condition
from api.store.access.audit import LOCAL, PROMOTE, ROLLBACK, Actor
from api.store.database import TenantStore
from api.store.plans.channels import ChannelRecord, VersionConflict, VersionRecord
from api.store.plans.plans import UnknownPlan
from api.store.tenants import DEFAULT_TENANT
from planner.errors import InvalidProblem, Issue

_SEGMENT = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,63}")
MAX_SEGMENTS = 8
#: Last parts of addresses below a channel.
_ADDRESSES = ("plan", "history")
MAX_CACHED = 10_000
#: Versions that are read together where an earlier plan is looked for.
_HISTORY_PAGE = 100

#: How old what a server remembers of a channel may be where others change the same database.
MAX_SHARED_AGE_SECONDS = 1.0


class ChannelMemory:
    """The channels of all tenants that are in memory. Thread safe.

    What is in memory is what the database has if one server owns it: all changes are made here. Where servers
    share a database, memory is used for a second after it was read, and then read again.
    """

    def __init__(self, *, is_shared: bool = False, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``is_shared`` says that other servers may change the channels."""
        self.monotonic = monotonic
        self._max_age_seconds = MAX_SHARED_AGE_SECONDS if is_shared else math.inf
        self._lock = threading.Lock()
        #: By tenant and name, and until when each is used.
        self._cached: OrderedDict[tuple[str, str], tuple[ChannelRecord, float]] = OrderedDict()

    def peek(self, tenant: str, name: str) -> ChannelRecord | None:
        """Return a channel that is in memory and new enough; never waits for the database."""
        found = self._cached.get((tenant, name))
        return None if found is None or found[1] <= self.monotonic() else found[0]

    def remember(self, tenant: str, record: ChannelRecord, read_at: float) -> ChannelRecord:
        """Keep the newest version in memory, as of the time when the database was asked."""
        key, until = (tenant, record.name), read_at + self._max_age_seconds
        with self._lock:
            known = self._cached.get(key)
            if known is None or (known[0].version, known[1]) < (record.version, until):
                self._cached[key] = record, until
                # To the end: were it forgotten now, an older answer that is on its way would be taken for news.
                self._cached.move_to_end(key)
                if len(self._cached) > MAX_CACHED:
                    self._cached.popitem(last=False)
        return record


class ChannelService:
    """The use cases of channels of one tenant."""

    def __init__(
        self,
        store: TenantStore,
        memory: ChannelMemory,
        *,
        tenant: str = DEFAULT_TENANT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._memory, self._tenant, self._clock = store, memory, tenant, clock

    def peek(self, name: str) -> ChannelRecord | None:
        return self._memory.peek(self._tenant, name)

    def get(self, name: str) -> ChannelRecord:
        check_name(name)
        # As old as the begin of the query: what is committed while it runs may be missing from its answer.
        read_at = self._memory.monotonic()
        return self._memory.remember(self._tenant, found(self._store.channel(name), "channel"), read_at)

    def page(self, *, limit: int, after: str | None) -> tuple[Sequence[ChannelRecord], str | None]:
        """Return a page of channels by name, and where the next one starts."""
        records = self._store.channels(limit=limit + 1, after=after)
        return page_of(records, limit, lambda channel: channel.name)

    def put(
        self,
        name: str,
        plan_digest: str,
        *,
        members: Mapping[int, str] | None = None,
        if_match: str | None,
        if_none_match: str | None,
        by: Actor = LOCAL,
    ) -> ChannelRecord:
        """Point a channel at a plan, or at one for each world size; the caller says which version it replaces.

        Raises ``InvalidProblem`` if a member is a plan for another world size.
        """
        check_name(name)
        current = self._store.channel(name)
        _check_conditions(current, if_match, if_none_match)
        version = 0 if current is None else current.version
        all_members = self._members(plan_digest, members) if members else {}
        return self._changed_to(plan_digest, name, version, members=all_members, by=by, action=PROMOTE)

    def _members(self, plan_digest: str, members: Mapping[int, str]) -> Mapping[int, str]:
        """Return the members with the main plan among them."""
        sizes = self._store.sizes_of_plans([plan_digest, *members.values()])
        issues = []
        for world_size, digest in members.items():
            size = sizes.get(digest)
            if size is not None and size != world_size:
                message = f"the plan is for {size} ranks, and stands here for {world_size}"
                issues.append(_issue(world_size, message))
        main = sizes.get(plan_digest)
        if main is None:
            raise not_found("plan")
        if members.get(main, plan_digest) != plan_digest:
            issues.append(_issue(main, f"another plan is for {main} ranks than plan_digest, which is for as many"))
        if issues:
            raise InvalidProblem(tuple(issues))
        return {main: plan_digest, **members}

    def _changed_to(
        self,
        plan_digest: str,
        name: str,
        expected_version: int,
        *,
        members: Mapping[int, str],
        by: Actor,
        action: str,
        restored_version: int | None = None,
    ) -> ChannelRecord:
        read_at = self._memory.monotonic()
        try:
            new = self._store.put_channel(
                name,
                plan_digest=plan_digest,
                expected_version=expected_version,
                members=members,
                now=self._clock(),
                by=by,
                action=action,
                restored_version=restored_version,
            )
        except VersionConflict as conflict:
            raise _changed(conflict.current, "somebody else changed the channel at the same time") from None
        except UnknownPlan:
            raise not_found("plan") from None
        return self._memory.remember(self._tenant, new, read_at)

    def history(self, name: str, *, limit: int, before: int | None) -> tuple[Sequence[VersionRecord], int | None]:
        """Return a page of versions, newest first, and the number that the next page is below."""
        check_name(name)
        records = self._store.channel_versions(name, limit=limit + 1, before=before)
        if not records:
            found(self._store.channel(name), "channel")
        return page_of(records, limit, lambda channel: channel.version)

    def rollback(self, name: str, version: int | None, *, if_match: str | None, by: Actor = LOCAL) -> ChannelRecord:
        """Let a new version point at the plan of an earlier one, by default of the one before that had another plan.

        One after the other, rollbacks go back through what was promoted: the one before a version that a rollback made
        is the one before that which it brought back.
        """
        check_name(name)
        current = found(self._store.channel(name), "channel")
        _check_conditions(current, if_match, None)
        earlier = self._before(current) if version is None else self._at(current, version)
        return self._changed_to(
            earlier.plan_digest,
            name,
            current.version,
            members=earlier.members,
            by=by,
            action=ROLLBACK,
            restored_version=earlier.origin,
        )

    def _at(self, current: ChannelRecord, version: int) -> VersionRecord:
        """Return an earlier version."""
        last = current.version - 1
        earlier = self._store.channel_versions(current.name, limit=1, before=min(version, last) + 1)
        if not earlier or earlier[0].version != version:
            before = f"1 to {last} are earlier" if last else "there is no version before it"
            raise ApiError("no-such-version", f"the channel is at version {current.version}: {before}")
        return earlier[0]

    def _before(self, current: ChannelRecord) -> VersionRecord:
        """Return the last version with another plan before the one that was promoted and is pointed at now."""
        (now,) = self._store.channel_versions(current.name, limit=1, before=current.version + 1)
        below = now.origin
        while earlier := self._store.channel_versions(current.name, limit=_HISTORY_PAGE, before=below):
            for record in earlier:
                if (record.plan_digest, record.members) != (current.plan_digest, current.members):
                    return record
            below = earlier[-1].version
        where = f"the channel is at version {now.version}"
        if now.origin != now.version:
            where += f", which brought back version {now.origin}"
        raise ApiError("no-such-version", f"{where}, and never had another plan before; name a version to go to")


def plan_for(record: ChannelRecord, world_size: int | None) -> str:
    """Return the digest of a channel's plan for a world size; the main plan if none is asked for."""
    digest = record.plan_of(world_size)
    if digest is None:
        sizes = ", ".join(record.plan_digests)
        raise ApiError("no-such-world-size", f"the channel has plans for {sizes} ranks, and none for {world_size}")
    return digest


def etag_of(record: ChannelRecord) -> str:
    """Return the ETag of a channel: its version and what it points at."""
    return f'"v{record.version}-{record.plan_digest.removeprefix("sha256:")[:16]}"'


def check_name(name: str) -> None:
    """Reject names that are no path of plain segments."""
    segments = name.split("/")
    if len(segments) > MAX_SEGMENTS or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        detail = f"a channel name has up to {MAX_SEGMENTS} segments of a-z 0-9 . _ - like ads/ranker/prod"
        raise ApiError("invalid-parameter", detail)
    if segments[-1] in _ADDRESSES:
        raise ApiError("invalid-parameter", f"the last segment of a channel name cannot be {segments[-1]}")


def _check_conditions(current: ChannelRecord | None, if_match: str | None, if_none_match: str | None) -> None:
    """Reject a change of a version that the caller has not seen."""
    etag = None if current is None else etag_of(current)
    failed = failed_condition(etag, if_match=if_match, if_none_match=if_none_match)
    if current is None and failed:
        raise _changed(None, "the channel does not exist, so there is nothing to match")
    if current is not None and failed == "missing":
        detail = f"the channel exists at version {current.version}; send If-Match: {etag}"
        raise ApiError("precondition-required", detail)
    if current is not None and failed:
        at = f"the channel is at version {current.version}"
        raise _changed(current, at if failed == "If-Match" else "the channel exists already")


def _issue(world_size: int, message: str) -> Issue:
    hint = "give each plan under the number of ranks that it is for"
    return Issue(code="invalid-value", pointer=f"/plan_digests/{world_size}", message=message, hint=hint)


def _changed(current: ChannelRecord | None, detail: str) -> ApiError:
    return ApiError("channel-changed", detail, headers={"ETag": etag_of(current)} if current else {})
