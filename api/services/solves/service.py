"""What can be done with solves: ask for one, look, wait, cancel."""

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from opentelemetry.trace import get_current_span

from api.execution.base import SOLVES, Work
from api.execution.queue.dbos import DbosEngine
from api.execution.solves.runner import SolveRunner
from api.execution.solves.time_limits import deadline_warnings, within_server_limit, without_deadline
from api.release import VERSION
from api.services.errors import ApiError, found, queue_full
from api.services.pages import page_of
from api.services.solves.notifications import SolveNotifications
from api.settings import Settings
from api.specs.input.merge_patch import merged
from api.specs.request import SolveRequest
from api.store.database import TenantStore
from api.store.solves.idempotency import RequestKey
from api.store.solves.records import CANCELLED, ENDED, FAILED, NewSolve, QueueFull, SolveRecord
from cost_models.hardware.laws.document import law_document
from cost_models.hardware.laws.law_set import LawSet
from planner.domain.formats.canonical_json import canonical_bytes, digest, digest_of, of_members


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """What a request says of a solve in addition to its spec."""

    priority: int = 0
    deadline_at: float | None = None  # seconds since the epoch
    tags: Sequence[str] = ()


DEFAULT_OPTIONS = SolveOptions()


class SolveService:
    """The use cases of solves."""

    def __init__(
        self,
        store: TenantStore,
        engine: DbosEngine,
        runner: SolveRunner,
        signals: SolveNotifications,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._engine, self._runner, self._signals = store, engine, runner, signals
        self._settings, self._clock = settings, clock

    def made_by(self, key: RequestKey | None) -> SolveRecord | None:
        """Return the solve that a request with this key has made before."""
        made = self._store.made_by(key)
        return None if made is None else self._store.solve(made)

    def submit(
        self,
        request: SolveRequest,
        *,
        fresh: bool,
        options: SolveOptions = DEFAULT_OPTIONS,
        key: RequestKey | None = None,
    ) -> tuple[SolveRecord, bool]:
        """Queue a solve and return it with True, or that of the same key or an equal one with False."""
        now = self._clock()
        spec, warnings = within_server_limit(request.spec, self._settings.max_solve_seconds)
        spec_bytes = of_members({**request.members, "solver": canonical_bytes(spec["solver"])})
        digest_of_request = own_digest = request_digest(request, spec_bytes)
        if options.deadline_at is not None:
            if options.deadline_at <= now:
                raise ApiError("deadline-passed")
            # A warning only: what is left is known when it starts, and without its deadline it may be tried again.
            warnings = (*warnings, *deadline_warnings(spec, options.deadline_at - now))
            # What it finds in its time must not answer those who have more.
            own_digest = digest({"request": digest_of_request, "deadline_at": options.deadline_at})
        new = NewSolve(
            id=new_solve_id(now),
            request_digest=own_digest,
            answered_by=digest_of_request,
            spec_digest=request.spec_digest,
            spec_bytes=spec_bytes,
            name=request.name,
            assumptions=[asdict(item) for item in request.assumptions],
            warnings=[asdict(item) for item in (*request.warnings, *warnings)],
            created_at=now,
            priority=options.priority,
            deadline_at=options.deadline_at,
            tags=options.tags,
        )
        return self._accept(new, reuse=not fresh, key=key)

    def retry(self, solve_id: str, *, key: RequestKey | None = None) -> SolveRecord:
        """Queue a new solve of the same spec, with the same priority and tags."""
        ended = self.get(solve_id)
        if ended.state not in (FAILED, CANCELLED):
            detail = f"the solve is {ended.state}: only failed and cancelled ones are tried again"
            raise ApiError("solve-state", detail)
        spec_bytes = found(self._store.spec(ended.request_digest), "solve")  # it may be deleted since
        now = self._clock()
        new = NewSolve(
            id=new_solve_id(now),
            request_digest=ended.request_digest,
            spec_digest=ended.spec_digest,
            spec_bytes=spec_bytes,
            name=ended.name,
            assumptions=ended.assumptions,
            warnings=without_deadline(ended.warnings),
            created_at=now,
            priority=ended.priority,
            tags=ended.tags,
        )
        return self._accept(new, reuse=False, key=key)[0]

    def patched_spec(self, solve_id: str, patch: Mapping[str, object]) -> bytes:
        """Return the spec of a solve with a JSON merge patch applied, not checked yet."""
        spec = found(self._store.spec(self.get(solve_id).request_digest), "solve")  # it may be deleted since
        return canonical_bytes(merged(json.loads(spec), patch))

    def delete(self, solve_id: str) -> None:
        """Delete a solve that has ended; its plan stays."""
        state = found(self._store.delete_solve(solve_id), "solve")
        if state not in ENDED:
            raise ApiError("solve-state", f"the solve is {state}: cancel it, or wait for its end")

    def _accept(self, new: NewSolve, *, reuse: bool, key: RequestKey | None) -> tuple[SolveRecord, bool]:
        limit = self._settings.max_queued_solves
        try:
            accepted = self._store.accept(new, max_queued=limit, reuse=reuse, key=key)
        except QueueFull:
            raise queue_full(limit, "solve", retry_after_seconds=5) from None
        record, is_new = accepted
        get_current_span().set_attribute("shardplan.solve_id", record.id)
        if is_new:
            self._engine.submit(Work(SOLVES, record.id), priority=record.priority)
        return accepted

    def get(self, solve_id: str) -> SolveRecord:
        return found(self._store.solve(solve_id), "solve")

    async def wait(self, solve_id: str, seconds: float) -> SolveRecord:
        """Return a solve as soon as it has ended, or as it stands after some time."""
        limit = min(seconds, self._settings.max_wait_seconds)
        read = partial(self.get, solve_id)
        return await self._signals.wait_for_end(solve_id, read, lambda solve: solve.state in ENDED, limit)

    def cancel(self, solve_id: str) -> SolveRecord:
        """Cancel a solve; what it has found so far is kept."""
        record = found(self._store.request_cancel(solve_id, now=self._clock()), "solve")
        if record.state not in ENDED:
            self._runner.cancel(solve_id)
            record = self.get(solve_id)
        if record.state in ENDED:
            self._signals.ended(solve_id)
        return record

    def release(self) -> None:
        """Answer everybody who waits, now and from now on, because the server stops."""
        self._signals.shutdown()

    def page(
        self, *, limit: int, before: str | None, state: str | None, tag: str | None
    ) -> tuple[Sequence[SolveRecord], str | None]:
        """Return a page of solves, newest first, and where the next one starts."""
        records = self._store.solves(limit=limit + 1, before=before, state=state, tag=tag)
        return page_of(records, limit, lambda solve: solve.id)


def new_solve_id(now: float) -> str:
    """Return an id that sorts by time: milliseconds since the epoch, then chance."""
    return f"{int(now * 1000):012x}{secrets.token_hex(8)}"


def request_digest(request: SolveRequest, spec_bytes: bytes) -> str:
    """Digest of everything that determines the answer: spec (its canonical bytes), numbers, models and release."""
    hardware = request.problem.cluster.hardware
    numbers: Mapping[str, object] = {name: quantity.value for name, quantity in hardware.numbers.items()}
    laws = LawSet(
        name="of the hardware",
        description="",
        domain=tuple(law for _, law in sorted(hardware.domain_laws.items())),
        hosts=tuple(law for _, law in sorted(hardware.hosts_laws.items())),
    )
    return digest(
        {
            "spec": digest_of(spec_bytes),
            "cost_model": f"{request.cost_model.name}@{request.cost_model.version}",
            "hardware": numbers,
            "laws": law_document(laws),
            "domain_ranks": hardware.domain_ranks,
            "release": VERSION,
        }
    )
