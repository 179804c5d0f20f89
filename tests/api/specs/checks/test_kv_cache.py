"""A cache of keys and values in a spec: what it becomes, and what is refused, with the number and the way out."""

import json
from typing import Any

import pytest

from api.services.plans.reports import evaluation_of
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_plan, parse_spec
from planner.domain.problem.kv_cache import KvCache
from planner.domain.problem.serving import Serving
from planner.output.explain.text.plan import explain_plan
from planner.output.exporters.generic import to_document
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.service.specs import raw, tiny

NO_SPEC = "sha256:" + 64 * "0"
CACHE: dict[str, Any] = {
    "sizes_bytes": [0, 1e9, 4e9],
    "bytes_per_token": 1000,
    "tokens_per_user": 500,
    "hit_rates": [[2000, 0.3], [8000, 0.6]],
    "recompute_seconds": 0.01,
}


def served(**changes: object) -> dict[str, Any]:
    """Two cards of 16 GB that are asked by requests of 32 samples; ``None`` leaves a field of the cache out."""
    cache = {key: value for key, value in {**CACHE, **changes}.items() if value is not None}
    spec: dict[str, Any] = tiny(
        hardware__profile="inference-6card-m2",
        objective="request_latency",
        cost_model="serving",
        serving={"samples_per_request": 32, "kv_cache": cache},
        model__pipeline="none",
        model__tables__0__optimizer="none",
        model__tables__1__optimizer="none",
    )
    del spec["model"]["batch_size_per_rank"]
    return spec


def issues(spec: object) -> dict[str, tuple[str, str]]:
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(spec))
    return {
        issue.pointer.removeprefix("/serving/kv_cache"): (issue.message, issue.hint) for issue in refused.value.issues
    }


def test_a_cache_of_a_spec_is_one_of_the_problem() -> None:
    assert parse_spec(raw(served())).problem.kv_cache == KvCache(
        sizes_bytes=(0.0, 1e9, 4e9),
        bytes_per_token=1000.0,
        tokens_per_user=500.0,
        hit_rates=((2000.0, 0.3), (8000.0, 0.6)),
        recompute_seconds=0.01,
    )


@pytest.mark.parametrize(("data_type", "element_bytes"), [("fp32", 4), ("fp16", 2), (None, 2), ("fp8", 1), ("int8", 1)])
def test_layers_and_heads_are_bytes_of_a_token(data_type: str | None, element_bytes: int) -> None:
    """A key and a value of each of 8 heads of 64 columns in each of 12 layers."""
    shape = {"layers": 12, "kv_heads": 8, "head_dim": 64, **({} if data_type is None else {"data_type": data_type})}
    cache = parse_spec(raw(served(bytes_per_token=None, shape=shape))).problem.kv_cache
    assert cache is not None
    assert cache.bytes_per_token == 2 * 12 * 8 * 64 * element_bytes


def test_everything_that_is_wrong_is_in_one_answer() -> None:
    found = issues(
        served(
            sizes_bytes=[1e9, 1e9, 5e8],
            shape={"layers": 1, "kv_heads": 1, "head_dim": 8},
            hit_rates=[[0, 0.1], [50, 0.6], [50, 0.7], [90, 0.5]],
        )
    )
    assert found == {
        "/bytes_per_token": ("given together with shape, which says the same", "give bytes_per_token, or shape"),
        "/sizes_bytes/1": ("1e+09 bytes follow 1e+09", "list each size once, the smallest first"),
        "/sizes_bytes/2": ("5e+08 bytes follow 1e+09", "list each size once, the smallest first"),
        "/hit_rates/0/1": ("0.1 of requests hit a cache of no users", "use 0, or begin with more users"),
        "/hit_rates/2/0": ("50 users follow 50", "list points by users, the fewest first"),
        "/hit_rates/3/1": (
            "0.5 of requests hit a cache of more users, and 0.7 one of fewer",
            "give rates that do not fall",
        ),
    }


def test_bytes_of_a_token_are_needed() -> None:
    assert issues(served(bytes_per_token=None)) == {
        "/bytes_per_token": ("the bytes of a token are not known", "give bytes_per_token, or shape")
    }


def test_sizes_that_no_card_holds_are_refused_with_what_there_is() -> None:
    """Of 16 GB 15% are the margin; ids of a request take some bytes more."""
    found = issues(served(sizes_bytes=[1e9, 14e9, 2e10]))
    assert found.keys() == {"/sizes_bytes/1", "/sizes_bytes/2"}
    message, hint = found["/sizes_bytes/1"]
    assert message == "14.0 GB of keys and values, and rank 0 has 13.6 GB of 16.0 GB next to what is reserved"
    most = float(hint.removeprefix("use at most "))
    assert 13.59e9 < most < 13.6e9
    parse_spec(raw(served(sizes_bytes=[most])))


def test_training_has_no_such_cache() -> None:
    spec = tiny(serving={"samples_per_request": 32, "kv_cache": CACHE})
    assert issues(spec).keys() == {"/serving"}


def test_plans_state_the_cache_and_their_digests_cover_it() -> None:
    """A plan goes out and comes back; one next to another size is another plan, and without a cache none is stated."""
    documents = {}
    for sizes in ([0], [1e9], None):
        spec = served(sizes_bytes=sizes)
        if sizes is None:
            del spec["serving"]["kv_cache"]
        request = parse_spec(raw(spec))
        limits = SolveLimits(time_limit_seconds=5.0)
        found = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=limits).plan
        assert found is not None
        document = to_document(found, name="", spec_digest=NO_SPEC, hardware_profile="x")
        documents[None if sizes is None else sizes[0]] = document
        given = parse_plan(json.dumps(document).encode(), request.problem)
        evaluation = evaluation_of(request, given)
        assert evaluation.valid
        score: Any = evaluation.score
        assert score["objective_seconds"] == pytest.approx(document["objective"]["seconds"])
        assert (score.get("kv_cache") is None) == (sizes is None)
    large, nothing, plain = documents[1e9], documents[0], documents[None]
    assert (large["kv_cache_bytes"], nothing["kv_cache_bytes"]) == (1_000_000_000, 0)
    assert len({document["plan_digest"] for document in documents.values()}) == 3
    assert not {"kv_cache", "kv_cache_bytes"} & plain.keys()
    assert large["kv_cache"] == {
        "bytes": 1_000_000_000,
        "users": 4000.0,
        "hit_rate": pytest.approx(0.4),
        "recompute_seconds": 0.01,
        "seconds_per_request": pytest.approx(0.006),
        "sizes": [],
    }
    text = explain_plan(large)
    assert "1.0 GB of every rank, 4,000 users: 40.0% of requests hit" in text
    assert "a miss takes 10 ms, a request 6 ms on average" in text
    assert "Keys and values" not in explain_plan(plain)


def test_plans_of_several_sizes_compare_them() -> None:
    request = parse_spec(raw(served()))
    limits = SolveLimits(time_limit_seconds=30.0, work_limit_seconds=1.0)
    found = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    document: Any = to_document(found, name="", spec_digest=NO_SPEC, hardware_profile="x")
    assert [size["bytes"] for size in document["kv_cache"]["sizes"]] == [0, 1_000_000_000, 4_000_000_000]
    assert document["kv_cache_bytes"] == 4_000_000_000  # tables of 64 kB leave all of it
    (chosen,) = [line for line in explain_plan(document).splitlines() if line.endswith("chosen")]
    assert chosen.split()[:3] == ["4.0", "GB", "60.0%"]


def test_percentiles_are_of_requests_of_one_length() -> None:
    spec = served()
    spec["serving"]["requests_per_second"] = 1.0
    request = parse_spec(raw(spec))
    limits = SolveLimits(time_limit_seconds=5.0)
    found = plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    load = found.evaluation.serving
    assert load is not None
    assert load.utilization is not None
    assert load.p50_seconds is load.p99_seconds is None
    spec["serving"]["p99_seconds"] = 0.5
    assert issues(spec).keys() == {"/serving/p99_seconds"}
    with pytest.raises(ValueError, match="no kv_cache where p99_seconds is given"):
        Serving(samples_per_request=1, requests_per_second=1.0, p99_seconds=0.5, kv_cache=request.problem.kv_cache)
