"""What the service keeps, and what it may rely on: the contract of every store.

Guarantees
----------
* Every method is one transaction: it happened and is durable when the method returns, or
  it did not happen. Methods may be called from any thread; none keeps a lock afterwards.
* The caller owns what it gets: records are values and never change under its feet.
* ``accept`` returns the same solve for equal request digests, however many callers race, unless it is being cancelled,
  failed, or was cut off by an accident.
* Bytes behind a digest never change.
* ``put_channel`` succeeds only for the version that the caller names, so the history of a
  channel is a line without gaps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from api.store.access.audit import LOCAL, PROMOTE, Actor, AuditStore
from api.store.access.keys import ApiKeyStore
from api.store.contract.tenants import DEFAULT_TENANT
from api.store.models.records import ModelStore
from api.store.plans.channels import ChannelHistoryStore, ChannelRecord
from api.store.plans.records import PlanListStore, PlanSummary
from api.store.solves.events import EventStore
from api.store.solves.idempotency import KeyStore, RequestKey
from api.store.webhooks.records import WebhookStore

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = STATES = ("queued", "running", "succeeded", "failed", "cancelled")
ENDED = frozenset({SUCCEEDED, FAILED, CANCELLED})
#: Limits of results that tell what happened to a solver, not how far it came: asked again, it may come farther.
ACCIDENTS = ("killed", "attempts", "memory", "defect")

Json = Mapping[str, object]


class QueueFull(Exception):
    """As many wait as may wait."""


class RemovalStore(Protocol):
    """Deletes solves."""

    def delete_solve(self, solve_id: str) -> str | None:
        """Delete a solve that has ended, and return its state; one in another state stays. ``None``: there is none."""
        ...


class VersionConflict(Exception):
    """The channel is not at the version that the caller named; ``current`` is, or ``None`` where it is not there."""

    def __init__(self, current: "ChannelRecord | None") -> None:
        self.current = current
        super().__init__()


class UnknownPlan(Exception):
    """No plan of this digest is published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSolve:
    """A solve that is asked for."""

    id: str
    request_digest: str  # everything that determines the answer
    spec_digest: str  # what determines the problem: not the solver, not the name
    spec_bytes: bytes  # canonical bytes of the whole normalised spec
    name: str
    assumptions: Sequence[Json]
    warnings: Sequence[Json]
    created_at: float  # seconds since the epoch
    priority: int = 0  # higher ones are claimed first
    deadline_at: float | None = None  # seconds since the epoch
    tags: Sequence[str] = ()
    answered_by: str | None = None  # request digest whose succeeded solve answers this request, too


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRecord:
    """A solve as it stands."""

    id: str
    request_digest: str
    spec_digest: str
    name: str
    state: str  # one of STATES
    created_at: float
    started_at: float | None
    ended_at: float | None
    cancel_requested: bool
    progress: Json | None
    result: Json | None
    error: Json | None
    executor_id: str | None = None  # who runs it, or ran it last
    attempts: int = 0  # how often it was begun
    tenant: str = DEFAULT_TENANT
    assumptions: Sequence[Json] = field(default_factory=tuple)
    warnings: Sequence[Json] = field(default_factory=tuple)
    priority: int = 0
    deadline_at: float | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A published plan."""

    digest: str
    canonical: bytes  # canonical bytes of the plan document
    created_at: float
    summary: PlanSummary | None = None  # of one that is published: without it, lists do not show it


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRecord:
    """Stored statistics, without the document."""

    digest: str
    num_tables: int
    num_lookups: int  # of all tables
    created_at: float


class Store(
    ModelStore,
    EventStore,
    PlanListStore,
    ChannelHistoryStore,
    KeyStore,
    RemovalStore,
    ApiKeyStore,
    AuditStore,
    WebhookStore,
    Protocol,
):
    """Specs, solves, plans, statistics and channels of one tenant; and what the stores of the other parts have."""

    def accept(
        self, new: NewSolve, *, max_queued: int, reuse: bool, key: RequestKey | None = None
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve, and return it with True; or return with False that of the same ``key``, or an
        equal one that waits, runs or succeeded, where ``reuse`` allows it. Raises ``QueueFull`` and ``KeyReused``.
        """
        ...

    def solve(self, solve_id: str) -> SolveRecord | None:
        """Return a solve."""
        ...

    def solves(self, *, limit: int, before: str | None, state: str | None, tag: str | None = None) -> list[SolveRecord]:
        """Return solves, newest first, those with an id below ``before``."""
        ...

    def spec(self, request_digest: str) -> bytes | None:
        """Return the canonical bytes of the spec that was sent, solver settings included."""
        ...

    def spec_of_problem(self, spec_digest: str) -> bytes | None:
        """Return the spec of a solve or of a plan with this digest; others of it have the same problem."""
        ...

    def request_cancel(self, solve_id: str, *, now: float) -> SolveRecord | None:
        """Cancel a queued solve at once, mark a running one, leave an ended one; return it.

        A queued solve that has a plan, because it ran before the last start, is marked as well:
        whoever marks it ends it, so that the plan is published.
        """
        ...

    def plan(self, digest: str) -> PlanRecord | None:
        """Return a published plan."""
        ...

    def keep_statistics(
        self, record: StatisticsRecord, *, canonical: bytes, key: RequestKey | None = None
    ) -> tuple[StatisticsRecord, bool]:
        """Keep statistics and return their record with True; or return that of equal ones, kept before, with False."""
        ...

    def statistics(self, digest: str) -> bytes | None:
        """Return the canonical bytes of statistics."""
        ...

    def statistics_records(self, *, limit: int, after: str | None) -> list[StatisticsRecord]:
        """Return statistics by digest, those with a digest above ``after``."""
        ...

    def channel(self, name: str) -> ChannelRecord | None:
        """Return a channel."""
        ...

    def channels(self, *, limit: int, after: str | None) -> list[ChannelRecord]:
        """Return channels by name, those with a name above ``after``."""
        ...

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
        """Point a channel at a plan; ``expected_version`` 0 creates it. The audit trail calls it ``action``.

        Raises ``VersionConflict`` or ``UnknownPlan``.
        """
        ...

    def ping(self) -> None:
        """Raise where the store cannot be read."""
        ...


class CountStore(Protocol):
    """Numbers of what is stored."""

    def num_solves_by_state(self) -> Mapping[str, int]:
        """Return the numbers of solves; states that no solve is in are left out."""
        ...

    def num_models_by_state(self) -> Mapping[str, int]:
        """Return the numbers of versions of cost models; states that none is in are left out."""
        ...
