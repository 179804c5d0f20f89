"""What requests for a plan have in common, whichever way they state their spec."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Depends, Header, Query, Request, Response

from api.http.auth.middleware import require_priority_scope
from api.http.protocol.headers import preferred_wait
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import not_stored
from api.http.routes.documentation import BODY_ERRORS, KEY_ERRORS, Responses, error_responses, json_answer
from api.http.services import Services
from api.schemas.base import TAG_PATTERN, TIME_PATTERN
from api.schemas.number_text import WHOLE_NUMBER
from api.schemas.solve import SolveDocument, solve_document
from api.services.errors import ApiError
from api.services.solves.service import SolveOptions
from api.specs.request import SolveRequest
from api.store.solves.idempotency import RequestKey
from api.store.solves.records import ENDED, SolveRecord

_RETRY_AFTER_SECONDS = "1"
MAX_TAGS = 16

Tag = Annotated[str, Query(pattern=TAG_PATTERN)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a request says of its solve besides the spec."""

    request: Request
    is_fresh: bool
    prefer: str
    idempotency_key: str | None
    options: SolveOptions


def _submission(
    request: Request,
    fresh: Annotated[bool, Query(description="Solve again, even where an equal spec was solved.")] = False,
    prefer: Annotated[str, Header(description="wait=N: answer when it has ended, at most N <= 60 s.")] = "",
    idempotency_key: IdempotencyKey = None,
    priority: Annotated[
        int,
        Query(
            ge=-100,
            le=100,
            description="Waiting solves of higher priority start first, then older ones; above 0: scope promote.",
        ),
        WHOLE_NUMBER,
    ] = 0,
    deadline: Annotated[
        str | None, Query(pattern=TIME_PATTERN, description="When the answer is wanted at the latest (RFC 3339).")
    ] = None,
    tag: Annotated[
        list[Tag] | None, Query(max_length=MAX_TAGS, description="To find the solve by; may be repeated.")
    ] = None,
) -> Submission:
    require_priority_scope(request, priority)
    return Submission(
        request=request,
        is_fresh=fresh,
        prefer=prefer,
        idempotency_key=idempotency_key,
        options=SolveOptions(priority=priority, deadline_at=_seconds(deadline), tags=tag or ()),
    )


SubmissionDep = Annotated[Submission, Depends(_submission)]


def submission_responses(*codes: str) -> Responses:
    """Describe the answers to a request for a plan; ``codes`` are of problems besides those of every such request."""
    return {
        202: json_answer("Accepted: look at Location, or again after Retry-After.", SolveDocument),
        200: json_answer("It has ended: in the time of Prefer: wait=N, or before, for an equal spec.", SolveDocument),
        **error_responses("invalid-parameter", *codes, *KEY_ERRORS, *BODY_ERRORS, "deadline-passed", "queue-full"),
    }


async def answer_submission(
    services: Services, submission: Submission, raw: bytes, read: Callable[[], SolveRequest]
) -> Response:
    """Queue what ``read`` makes of a body, unless the request was made before or an equal spec was solved."""
    key = request_key(submission.request, raw, submission.idempotency_key)
    with services.keys.holding(key):
        made = await run_sync(services.solves.made_by, key)
        record = made or await _submitted(services, submission, await services.compute(read), key)
    headers = {"Location": f"/v1/solves/{record.id}"}
    seconds = preferred_wait(submission.prefer, services.settings.max_wait_seconds)
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:.0f}"
        record = await services.solves.wait(record.id, seconds)
    return solve_answer(record, headers, status=200 if record.state in ENDED else 202)


async def _submitted(
    services: Services, submission: Submission, asked: SolveRequest, key: RequestKey | None
) -> SolveRecord:
    record, _ = await run_sync(
        lambda: services.solves.submit(asked, fresh=submission.is_fresh, options=submission.options, key=key)
    )
    return record


def solve_answer(record: SolveRecord, headers: dict[str, str] | None = None, *, status: int = 200) -> Response:
    """Answer with a solve as it stands; while it runs, with when to look again."""
    waiting = {} if record.state in ENDED else {"Retry-After": _RETRY_AFTER_SECONDS}
    return not_stored(solve_document(record), status, {**waiting, **(headers or {})})


def _seconds(deadline: str | None) -> float | None:
    if deadline is None:
        return None
    try:
        return datetime.fromisoformat(deadline.upper()).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise ApiError("invalid-parameter", "the deadline is no time that there is") from None
