"""Solves and their events as values."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from api.store.sql.blobs import Json
from api.store.tenants import DEFAULT_TENANT

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = STATES = ("queued", "running", "succeeded", "failed", "cancelled")
ENDED = frozenset({SUCCEEDED, FAILED, CANCELLED})
#: Limits of results that report what happened to a solver, not how far it came: another attempt may come farther.
ACCIDENTS = ("killed", "attempts", "memory", "defect")
MAX_EVENTS = 512


class QueueFull(Exception):
    """The queue has as many entries as it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSolve:
    """A solve that a request asks for."""

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
    executor_id: str | None = None  # of the last attempt
    attempts: int = 0
    tenant: str = DEFAULT_TENANT
    assumptions: Sequence[Json] = field(default_factory=tuple)
    warnings: Sequence[Json] = field(default_factory=tuple)
    priority: int = 0
    deadline_at: float | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A better plan was found."""

    seq: int  # from 1
    at: float  # seconds since the epoch
    at_seconds: float  # since the solve was started
    document: Json  # as ``progress`` of the solve


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveMark:
    """How far a solve is: nothing happened between two equal marks."""

    state: str
    last_seq: int  # 0 before the first event
