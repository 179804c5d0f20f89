"""The client against the service itself, over a socket."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from api.client import NoPlan, PlannerClient, ProblemError, check_plan, fetch
from api.client.job_times import PHASES, RankReport, job_times
from api.http.app import create_app
from api.settings import Settings
from tests.support.waiting import PATIENCE_SECONDS

SPEC: dict[str, Any] = {
    "name": "small",
    "model": {
        "batch_size_per_rank": 64,
        "tables": [
            {"name": "user", "num_embeddings": 100_000, "embedding_dim": 64, "pooling_factor": 1},
            {"name": "item", "num_embeddings": 10_000, "embedding_dim": 32, "pooling_factor": 20},
        ],
    },
    "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
    "solver": {"time_limit_seconds": 2},
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlannerClient]:
    """A client of a service on a free port."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.started
        port = server.servers[0].sockets[0].getsockname()[1]
        with PlannerClient(f"http://127.0.0.1:{port}") as made:
            yield made
    finally:
        server.should_exit = True
        thread.join(30)


def test_from_a_spec_to_the_launchers_file(client: PlannerClient, tmp_path: Path) -> None:
    assert client.validate(SPEC)["valid"] is True
    plan = client.plan_of(client.solve(SPEC, wait_seconds=PATIENCE_SECONDS))
    assert check_plan(plan.document, world_size=2, ranks_per_host=2) == plan.document
    assert client.get_plan(plan.digest).content == plan.content
    client.promote("ads/ranker/prod", plan.digest)
    first = fetch(client, "ads/ranker/prod", tmp_path / "plan.json")
    second = fetch(client, "ads/ranker/prod", tmp_path / "plan.json")
    assert (first.digest, first.changed, second.changed) == (plan.digest, True, False)
    assert (tmp_path / "plan.json").read_bytes() == plan.content


def test_every_rank_fetches_its_part_and_a_channel_is_taken_back(client: PlannerClient) -> None:
    one, other = (
        client.plan_of(
            client.solve(
                {**SPEC, "model": {**SPEC["model"], "batch_size_per_rank": size}}, wait_seconds=PATIENCE_SECONDS
            )
        )
        for size in (64, 32)
    )
    client.promote("ads/parts", one.digest)
    _, etag = client.get_channel("ads/parts")
    client.promote("ads/parts", other.digest, if_match=etag)
    _, etag = client.get_channel("ads/parts")
    assert etag is not None
    assert client.rollback("ads/parts", if_match=etag)["plan_digest"] == one.digest
    with pytest.raises(ProblemError, match="412"):
        client.rollback("ads/parts", if_match=etag)
    parts = [client.get_rank_slice(one.digest, rank) for rank in range(2)]
    of_channel = [client.fetch_channel_slice("ads/parts", rank) for rank in range(2)]
    assert [part.content for part in parts] == [part and part.content for part in of_channel]
    assert client.fetch_channel_slice("ads/parts", 1, etag=parts[1].etag) is None
    shards = [(t["name"], shard) for part in parts for t in part.document["tables"] for shard in t["shards"]]
    whole = [(t["name"], shard) for t in one.document["tables"] for shard in t["shards"]]
    assert sorted(shards, key=str) == sorted(whole, key=str)
    with pytest.raises(ProblemError, match="ranks of this plan are 0 to 1"):
        client.get_rank_slice(one.digest, 2)


def test_a_channel_moves_only_on_condition(client: PlannerClient) -> None:
    specs = [{**SPEC, "model": {**SPEC["model"], "batch_size_per_rank": size}} for size in (64, 128)]
    first, second = (str(client.solve(spec, wait_seconds=PATIENCE_SECONDS)["result"]["plan_digest"]) for spec in specs)
    assert first != second
    renamed = client.solve({**specs[0], "name": "other"}, wait_seconds=PATIENCE_SECONDS)
    assert renamed["result"]["plan_digest"] == first  # a name does not make another plan
    client.promote("race", first)
    _, etag = client.get_channel("race")
    client.promote("race", second, if_match=etag)
    with pytest.raises(ProblemError) as stale:
        client.promote("race", first, if_match=etag)
    with pytest.raises(ProblemError) as taken:
        client.promote("race", first)
    assert (stale.value.status, taken.value.status) == (412, 412)
    assert client.promote("race", second, if_match=etag)["plan_digest"] == second  # what was asked for is so


def test_problems_reach_the_caller_with_their_pointers(client: PlannerClient) -> None:
    bad = {**SPEC, "model": {**SPEC["model"], "batch_size_per_rank": 0}}
    with pytest.raises(ProblemError) as caught:
        client.submit(bad)
    assert caught.value.status == 422
    assert [e["pointer"] for e in caught.value.errors] == ["/model/batch_size_per_rank"]
    with pytest.raises(ProblemError, match="404"):
        client.fetch_channel("nobody")


def test_infeasible_is_an_answer_without_a_plan(client: PlannerClient) -> None:
    # 2 tables of 119 GiB each fit the cluster one by one, 2 x 63 GiB, but not together.
    near = {"compute_kernels": ["fused", "dense"]}
    tables = [
        {"name": n, "num_embeddings": 10**9, "embedding_dim": 32, "pooling_factor": 1, "constraints": near}
        for n in "ab"
    ]
    solve = client.solve({**SPEC, "model": {"batch_size_per_rank": 1, "tables": tables}}, wait_seconds=PATIENCE_SECONDS)
    assert solve["state"] == "succeeded"
    with pytest.raises(NoPlan, match="INFEASIBLE"):
        client.plan_of(solve)


def test_times_of_a_job_are_stored_once_and_compared(client: PlannerClient) -> None:
    digest = client.plan_of(client.solve(SPEC, wait_seconds=PATIENCE_SECONDS)).digest
    reports = [
        RankReport(seconds=dict.fromkeys(PHASES, 0.001), num_steps=9, device="GPU", library=None, left_out=())
    ] * 2
    document = job_times(digest, reports, communication="nccl")
    first, second = client.post_measurements(document), client.post_measurements(document)
    assert first == second
    assert (first["source"], first["plan_digest"]) == ("job", digest)
    assert {one["phase"] for one in first["comparison"]["phases"]} == set(PHASES)
    with pytest.raises(ProblemError, match="no plan of this digest is kept here"):
        client.post_measurements({**document, "plan_digest": "sha256:" + "0" * 64})


def test_a_solve_of_a_changed_spec(client: PlannerClient) -> None:
    first = client.solve(SPEC)
    asked = client.solves.from_patch(str(first["id"]), {"hardware": {"ranks_per_host": 4}}, tags=["what=if"])
    ended = client.wait(asked, wait_seconds=PATIENCE_SECONDS)
    assert ended["tags"] == ["what=if"]
    assert client.plan_of(ended).document["world_size"] == 4
    assert client.wait(ended)["id"] == asked["id"]
    with pytest.raises(ProblemError) as refused:
        client.solves.from_patch(str(first["id"]), {"model": {"batch_size_per_rank": -1}})
    assert [one["pointer"] for one in refused.value.errors] == ["/model/batch_size_per_rank"]
