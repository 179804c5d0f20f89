"""Parts of plans for single ranks, and channels that are taken back, against a scripted service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from api.client import DigestMismatch, PlannerClient, ProblemError, UnexpectedAnswer, canonical_bytes
from tests.api.client.test_client import DIGEST, Script, problem
from tests.support.client.plans import tiny_plan

HEAD = ("schema_version", "plan_digest", "spec_digest", "world_size", "ranks_per_host")
OTHER = "sha256:" + "0" * 64


def slice_of(rank: int, **changes: Any) -> dict[str, Any]:
    plan: Any = tiny_plan()
    tables = [
        {**table, "shards": [shard for shard in table["shards"] if shard["rank"] == rank]} for table in plan["tables"]
    ]
    return {**{key: plan[key] for key in HEAD}, "rank": rank, "tables": tables, **changes}


def slice_answer(document: dict[str, Any], digest: str = DIGEST) -> httpx.Response:
    return httpx.Response(200, content=canonical_bytes(document), headers={"ETag": '"e1#0"', "X-Plan-Digest": digest})


def test_a_rank_fetches_its_part_of_a_plan() -> None:
    script = Script(slice_answer(slice_of(0)))
    part = script.client().get_rank_slice(DIGEST, 0)
    assert part.content == part.received == slice_answer(slice_of(0)).content
    assert replace(part, received=b"as it came").content == b"as it came"  # a slice has no other form
    (request,) = script.requests
    assert (request.method, request.url.path) == ("GET", f"/v1/plans/{DIGEST}")
    assert request.url.params["rank"] == "0"
    assert (part.digest, part.rank, part.etag) == (DIGEST, 0, '"e1#0"')
    assert part.document["tables"] == slice_of(0)["tables"]


def test_a_rank_fetches_its_part_of_a_channels_plan_once() -> None:
    script = Script(slice_answer(slice_of(0)), httpx.Response(304), httpx.Response(304))
    client = script.client()
    part = client.fetch_channel_slice("ads/prod", 0)
    assert part is not None
    assert client.fetch_channel_slice("ads/prod", 0, etag=part.etag) is None
    assert [request.url.path for request in script.requests] == ["/v1/channels/ads/prod/plan"] * 2
    assert script.requests[1].headers["If-None-Match"] == '"e1#0"'
    with pytest.raises(UnexpectedAnswer, match="304"):
        client.fetch_channel_slice("ads/prod", 0)


@pytest.mark.parametrize(
    ("document", "reported"),
    [
        ({**slice_of(0), "rank": 1}, "not the slice of rank 0"),
        (dict(tiny_plan()), "may not know slices"),  # a service that answers with the whole plan
        (slice_of(0, schema_version=2), "schema_version 2"),
        (slice_of(0, tables=[{"shards": [{"rank": 1}]}]), "shards of other ranks"),
        (slice_of(0, tables=[{}]), "not the slice of a plan"),
        (slice_of(0, tables=None), "not the slice of a plan"),
    ],
)
def test_what_is_no_slice_of_the_rank_is_refused(document: dict[str, Any], reported: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=reported):
        Script(slice_answer(document)).client().get_rank_slice(DIGEST, 0)


@pytest.mark.parametrize(("asked", "header"), [(OTHER, DIGEST), (DIGEST, OTHER)])
def test_a_slice_of_another_plan_is_refused(asked: str, header: str) -> None:
    with pytest.raises(DigestMismatch):
        Script(slice_answer(slice_of(0), header)).client().get_rank_slice(asked, 0)


def channel(version: int, digest: str) -> httpx.Response:
    document = {"name": "ads/prod", "version": version, "plan_digest": digest}
    return httpx.Response(200, json=document, headers={"ETag": f'"v{version}"'})


def history(*digests: str, token: str | None = None, newest: int) -> httpx.Response:
    versions = [{"version": newest - place, "plan_digest": digest} for place, digest in enumerate(digests)]
    return httpx.Response(200, json={"versions": versions, "next_page_token": token})


@pytest.mark.parametrize(("version", "body"), [(None, b"{}"), (1, b'{"version":1}')])
def test_a_channel_is_rolled_back(version: int | None, body: bytes) -> None:
    script = Script(channel(2, DIGEST), channel(3, OTHER))
    document = script.client().rollback("ads/prod", if_match='"v2"', version=version)
    assert document["version"] == 3
    request = script.requests[-1]
    assert (request.method, request.url.path) == ("POST", "/v1/channels/ads/prod:rollback")
    assert request.headers["If-Match"] == '"v2"'
    assert request.content == body


def test_a_rollback_whose_answer_was_lost_is_not_done_twice() -> None:
    lost = httpx.ReadTimeout("lost")
    pages = history(OTHER, DIGEST, token="2", newest=3), history(OTHER, newest=1)
    script = Script(channel(2, DIGEST), lost, problem(412, title="changed"), channel(3, OTHER), *pages)
    assert script.client().rollback("ads/prod", if_match='"v2"')["version"] == 3
    assert script.requests[-1].url.params["page_token"] == "2"
    assert script.answers == []


def test_a_lost_rollback_from_a_version_that_a_rollback_made_is_known_again() -> None:
    third = "sha256:" + "3" * 64
    versions = [
        {"version": 5, "plan_digest": OTHER, "restored_version": 1},
        {"version": 4, "plan_digest": DIGEST, "restored_version": 2},
        {"version": 3, "plan_digest": third, "restored_version": None},
        {"version": 2, "plan_digest": DIGEST},
        {"version": 1, "plan_digest": OTHER},
    ]
    page = httpx.Response(200, json={"versions": versions, "next_page_token": None})
    script = Script(
        channel(4, DIGEST), httpx.ReadTimeout("lost"), problem(412, title="changed"), channel(5, OTHER), page
    )
    assert script.client().rollback("ads/prod", if_match='"v4"')["version"] == 5


@pytest.mark.parametrize(
    "after",
    [
        lambda: [channel(4, OTHER), history(OTHER, DIGEST, DIGEST, OTHER, newest=4)],  # moved twice
        lambda: [channel(3, DIGEST), history(DIGEST, DIGEST, OTHER, newest=3)],  # to another plan
        lambda: [channel(3, OTHER), history(newest=3)],  # to what nobody knows
    ],
)
def test_a_channel_that_someone_else_moved_is_reported(after: Callable[[], list[httpx.Response]]) -> None:
    script = Script(channel(2, DIGEST), problem(412, title="changed"), *after())
    with pytest.raises(ProblemError, match="412 changed"):
        script.client().rollback("ads/prod", if_match='"v2"')


@pytest.mark.parametrize("status", [404, 412, 422])
def test_refusals_are_reported(status: int) -> None:
    """Of a channel that was another one already when it was asked for, too."""
    script = Script(channel(2, DIGEST), problem(status, title="refused"))
    with pytest.raises(ProblemError, match=f"{status} refused"):
        script.client().rollback("ads/prod", if_match='"v1"')
    assert len(script.requests) == 2


def test_names_are_checked() -> None:
    client: PlannerClient = Script().client()
    for call in (lambda: client.rollback("a//b", if_match="x"), lambda: client.fetch_channel_slice("..", 0)):
        with pytest.raises(ValueError, match="channel name"):
            call()


def test_a_reshard_map_is_fetched_whole_or_for_one_rank() -> None:
    script = Script(httpx.Response(200, json={"tables": []}), httpx.Response(200, json={"rank": 3, "tables": []}))
    client = script.client()
    assert client.get_reshard_map(OTHER, DIGEST) == {"tables": []}
    assert client.get_rank_reads(OTHER, DIGEST, 3)["rank"] == 3
    whole, part = script.requests
    assert whole.url.path == part.url.path == f"/v1/plans/{OTHER}/reshard/{DIGEST}"
    assert (whole.url.query, part.url.params["rank"]) == (b"", "3")
