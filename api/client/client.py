"""The launcher's way to the service: submit, wait, fetch, promote."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self
from urllib.parse import quote

import httpx

from .channel_calls import ChannelCalls, channel_path, rolled_back
from .documents import canonical_bytes, parse_object
from .errors import NoPlan, ProblemError, SolveTimeout, UnexpectedAnswer
from .fetched import FetchedPlan, RankSlice, fetched_plan, fetched_slice
from .solve_calls import MAX_SERVER_WAIT_SECONDS, SolveCalls, solve_document, submitted
from .study_calls import StudyCalls
from .transport import RetryPolicy, Transport

ENDED_STATES = frozenset({"succeeded", "failed", "cancelled"})
#: Where a key is looked for that was not given.
TOKEN_VARIABLE = "SHARDPLAN_TOKEN"


class PlannerClient:
    """A client of one planning service. Not thread safe; use one per thread.

    Parameters
    ----------
    base_url
        ``http://planner:8080``.
    token
        A key of the service, sent with every request; where none is given, that of the environment
        variable ``SHARDPLAN_TOKEN``, if there is one.
    timeout
        Seconds that one attempt may take, beyond what the service was asked to wait.
    transport
        An ``httpx`` transport in place of the network.
    retry
        How often a request is repeated. Every request of this class is safe to repeat: the
        service answers an identical spec with the same solve.
    sleep, clock
        Replacements for ``time.sleep`` and ``time.monotonic``.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = Transport(
            base_url,
            token=token if token is not None else os.environ.get(TOKEN_VARIABLE) or None,
            timeout_seconds=timeout,
            transport=transport,
            retry=retry or RetryPolicy(),
            sleep=sleep,
        )
        self._sleep = sleep
        self._clock = clock
        self._has_compact_form = self._has_world_sizes = True  # until the service refuses the parameter

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    @property
    def solves(self) -> SolveCalls:
        """Lists of solves, cancellations, retries, and solves of changed specs."""
        return SolveCalls(self._transport)

    @property
    def channels(self) -> ChannelCalls:
        """Lists of channels, and what they pointed at."""
        return ChannelCalls(self._transport)

    @property
    def studies(self) -> StudyCalls:
        """Questions that take many plans."""
        return StudyCalls(self._transport)

    def validate(self, spec: Mapping[str, object]) -> dict[str, object]:
        """Check a spec without solving; returns the warnings, assumptions and totals.

        Raises
        ------
        ProblemError
            The spec is not valid; ``errors`` lists what and where.
        """
        response = self._transport.request("POST", "/v1/specs:validate", content=canonical_bytes(spec))
        return _json(response)

    def submit(
        self, spec: Mapping[str, object], *, wait_seconds: float = 0.0, tags: Sequence[str] = ()
    ) -> dict[str, object]:
        """Submit a spec; returns the solve's document, ended or not.

        Parameters
        ----------
        wait_seconds
            How long the service may hold its answer back for the solve to end (at most 60).
        tags
            Kept with the solve, by which solves can be listed; an equal solve that is there already keeps its own.
        """
        content = canonical_bytes(spec)
        return submitted(self._transport, "/v1/solves", content, wait_seconds=wait_seconds, tags=tags)

    def get_solve(self, solve_id: str, *, wait_seconds: float = 0.0) -> dict[str, object]:
        """The solve's document; with ``wait_seconds``, once it changes or the time is up."""
        wait = min(wait_seconds, MAX_SERVER_WAIT_SECONDS)
        params = {"wait": str(int(wait))} if wait >= 1 else {}
        response = self._transport.request(
            "GET", f"/v1/solves/{quote(solve_id, safe='')}", params=params, server_wait_seconds=wait
        )
        return solve_document(response)

    def solve(
        self, spec: Mapping[str, object], *, wait_seconds: float = 300.0, tags: Sequence[str] = ()
    ) -> dict[str, object]:
        """Submit a spec and wait until its solve ends; returns the solve's document.

        Raises
        ------
        SolveTimeout
            It has not ended in ``wait_seconds``.
        """
        asked = self._clock()
        document = self.submit(spec, wait_seconds=wait_seconds, tags=tags)
        return self._ended(document, asked, wait_seconds)

    def wait(self, solve: Mapping[str, object], *, wait_seconds: float = 300.0) -> dict[str, object]:
        """Wait until a solve ends; returns its document, at once if ``solve`` is that of one that has ended.

        Raises
        ------
        SolveTimeout
            The solve has not ended in ``wait_seconds``, and goes on.
        """
        return self._ended(dict(solve), self._clock(), wait_seconds)

    def _ended(self, document: dict[str, object], since: float, wait_seconds: float) -> dict[str, object]:
        deadline = since + wait_seconds
        while document["state"] not in ENDED_STATES:
            left = deadline - self._clock()
            if left <= 0:
                raise SolveTimeout(document, wait_seconds)
            asked = self._clock()
            document = self.get_solve(str(document["id"]), wait_seconds=left)
            # A service that does not hold answers back must not be asked without a pause.
            if document["state"] not in ENDED_STATES and self._clock() - asked < 1.0:
                self._sleep(min(1.0, max(0.0, deadline - self._clock())))
        return document

    def plan_of(self, solve: Mapping[str, object]) -> FetchedPlan:
        """Fetch the plan of a solve that ended.

        Raises
        ------
        NoPlan
            It ended without one.
        """
        result = solve.get("result")
        digest = result.get("plan_digest") if isinstance(result, Mapping) else None
        if not isinstance(digest, str):
            raise NoPlan(solve)
        return self.get_plan(digest)

    def get_plan(self, digest: str) -> FetchedPlan:
        """Fetch a plan by its digest.

        Raises
        ------
        DigestMismatch
            The content is another plan.
        """
        return fetched_plan(self._compact_plan(f"/v1/plans/{quote(digest, safe=':')}", {}), digest)

    def fetch_channel(self, name: str, *, etag: str | None = None, world_size: int | None = None) -> FetchedPlan | None:
        """Fetch the plan that a channel points to; ``None`` where it is still the one with ``etag``.

        ``world_size`` is the number of ranks that the job has: a channel with plans for several sizes answers with
        that of this size. A service that does not know the parameter answers with the channel's plan.

        Raises
        ------
        ProblemError
            404 ``no-such-world-size``: the channel has plans for other sizes, which the error names.
        DigestMismatch
            The content is not the plan that the channel points to.
        """
        response = self._channel_plan(name, etag, rank=None, world_size=world_size)
        return None if response is None else fetched_plan(response)

    def get_rank_slice(self, digest: str, rank: int) -> RankSlice:
        """Fetch the part of a plan that one rank needs: its head, and the shards of that rank.

        A fraction of the plan's size, for jobs of many ranks; that the bytes are those of the plan
        is proven by a whole plan alone.

        Raises
        ------
        DigestMismatch
            It is of another plan.
        """
        response = self._transport.request("GET", f"/v1/plans/{quote(digest, safe=':')}", params={"rank": str(rank)})
        return fetched_slice(response, rank, digest)

    def fetch_channel_slice(
        self, name: str, rank: int, *, etag: str | None = None, world_size: int | None = None
    ) -> RankSlice | None:
        """Fetch one rank's part of the plan that a channel points to; ``None`` where it is the one with ``etag``.

        Ranks that ask at different moments may see different plans: compare ``digest`` over all ranks.
        """
        response = self._channel_plan(name, etag, rank=rank, world_size=world_size)
        return None if response is None else fetched_slice(response, rank)

    def get_reshard_map(self, old_digest: str, new_digest: str) -> dict[str, object]:
        """Fetch which rank of a plan reads which bytes of a checkpoint that was written under another.

        :func:`rank_reads` returns what one rank reads; the map of a large job is megabytes, so that one rank fetches it
        and hands it on, or each asks :meth:`get_rank_reads`.
        """
        return _json(self._transport.request("GET", _reshard_path(old_digest, new_digest)))

    def get_rank_reads(self, old_digest: str, new_digest: str, rank: int) -> dict[str, object]:
        """Fetch what one rank of a plan reads of a checkpoint that was written under another."""
        path = _reshard_path(old_digest, new_digest)
        return _json(self._transport.request("GET", path, params={"rank": str(rank)}))

    def _channel_plan(
        self, name: str, etag: str | None, *, rank: int | None, world_size: int | None
    ) -> httpx.Response | None:
        """Return the answer with a channel's plan, or a part of it; ``None`` where it is the one with ``etag``."""
        headers, path = {"If-None-Match": etag} if etag else {}, f"{channel_path(name)}/plan"
        params = {} if rank is None else {"rank": str(rank)}
        ask = self._compact_plan if rank is None else self._asked
        if world_size is None or not self._has_world_sizes:
            response = ask(path, headers, params)
        else:
            try:
                response = ask(path, headers, {**params, "world_size": str(world_size)})
            except ProblemError as error:
                if error.status != httpx.codes.BAD_REQUEST or not _is_unknown(error, "/query/world_size"):
                    raise
                self._has_world_sizes = False
                response = ask(path, headers, params)
        if response.status_code != httpx.codes.NOT_MODIFIED:
            return response
        if etag is None:
            raise UnexpectedAnswer("the service says 304 although no ETag was sent")
        return None

    def _asked(self, path: str, headers: Mapping[str, str], params: Mapping[str, str]) -> httpx.Response:
        return self._transport.request("GET", path, headers=headers, params=dict(params))

    def _compact_plan(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Return the answer with a plan in compact form; in long form of a service that knows no other."""
        if self._has_compact_form:
            try:
                return self._asked(path, headers, {"form": "compact", **(params or {})})
            except ProblemError as error:
                if error.status != httpx.codes.BAD_REQUEST or not _is_unknown(error, "/query/form"):
                    raise
                self._has_compact_form = False
        return self._asked(path, headers, params or {})

    def get_channel(self, name: str) -> tuple[dict[str, object], str | None]:
        """The channel's document and its ETag, which ``promote`` takes as ``if_match``."""
        response = self._transport.request("GET", channel_path(name))
        return _json(response), response.headers.get("ETag")

    def promote(
        self,
        name: str,
        digest: str,
        *,
        if_match: str | None = None,
        by_world_size: Mapping[int, str] | None = None,
    ) -> dict[str, object]:
        """Point a channel at a plan; returns the channel's document.

        Parameters
        ----------
        if_match
            The ETag that the channel had when the decision was made; ``None`` creates the channel.

        by_world_size
            Digests of plans for jobs of other sizes, as a portfolio has them: all become one version of the channel.

        Raises
        ------
        ProblemError
            404 without such a plan, 412 where the channel was moved in between, 428 where it
            exists and ``if_match`` was not given.
        """
        condition = {"If-None-Match": "*"} if if_match is None else {"If-Match": if_match}
        members = {str(size): member for size, member in (by_world_size or {}).items()}
        body = canonical_bytes({"plan_digest": digest, **({"plan_digests": members} if members else {})})
        try:
            response = self._transport.request("PUT", channel_path(name), headers=condition, content=body)
        except ProblemError as error:
            # An attempt whose answer was lost may have moved the channel before this one failed.
            if error.status not in (httpx.codes.PRECONDITION_FAILED, httpx.codes.PRECONDITION_REQUIRED):
                raise
            document, _ = self.get_channel(name)
            stands: object = document.get("plan_digests") or {}
            has_members = (
                isinstance(stands, dict) and members.items() <= stands.items() and bool(members) == bool(stands)
            )
            if document.get("plan_digest") != digest or not has_members:
                raise
            return document
        return _json(response)

    def post_measurements(self, measurements: Mapping[str, object]) -> dict[str, object]:
        """Store measurements, of a job or rows of a benchmark; returns their summary.

        Of a job, ``comparison`` of the summary puts its times next to the prediction of its plan. The service keeps
        equal measurements once, by their digest, so that they may be posted again at any time.

        Raises
        ------
        ProblemError
            422 where they are not what the contract says, or the service does not have the plan.
        """
        response = self._transport.request("POST", "/v1/measurements", content=canonical_bytes(measurements))
        return _json(response)

    def rollback(self, name: str, *, if_match: str, version: int | None = None) -> dict[str, object]:
        """Point a channel at the plan of an earlier version; returns the channel's document, of a new version.

        Parameters
        ----------
        if_match
            The ETag that the channel had when the decision was made, as ``get_channel`` returns it.
        version
            The version whose plan comes back; ``None``: the last with another plan before the one that was promoted and
            is pointed at now, so that rollbacks go back through what was promoted.

        Raises
        ------
        ProblemError
            404 without such a channel, 412 where it was moved in between, 422 where it has no such version.
        """
        return rolled_back(self._transport, name, if_match=if_match, version=version)


def _is_unknown(error: ProblemError, pointer: str) -> bool:
    """Whether a service refuses a parameter because its release does not have that."""
    return any(one.get("code") == "unknown-parameter" and one.get("pointer") == pointer for one in error.errors)


def _reshard_path(old_digest: str, new_digest: str) -> str:
    return f"/v1/plans/{quote(old_digest, safe=':')}/reshard/{quote(new_digest, safe=':')}"


def _json(response: httpx.Response) -> dict[str, object]:
    return parse_object(response.content, f"the answer to {response.request.method} {response.request.url.path}")
