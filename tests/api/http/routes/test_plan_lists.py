"""Plans listed, compared, and fetched rank by rank."""

import json

import pytest

from api.client import rank_reads
from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.planning.long_plans import difference
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny

NOTHING = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def solves(live: Live) -> list[dict[str, object]]:
    """Three solves with a plan each; the second and the third have one name."""
    specs = [tiny(name=f"plan {min(size, 2)}", model__batch_size_per_rank=2**size) for size in (1, 2, 3)]
    return [live.solve(spec) for spec in specs]


@pytest.fixture(scope="module")
def digests(solves: list[dict[str, object]]) -> list[str]:
    return [solve["result"]["plan_digest"] for solve in solves]


def test_published_plans_are_listed_newest_first(
    live: Live, solves: list[dict[str, object]], digests: list[str]
) -> None:
    page = live.get("/v1/plans").json()
    assert [plan["plan_digest"] for plan in page["plans"]] == digests[::-1]
    assert page["next_page_token"] is None
    listed, solve, plan = page["plans"][0], solves[2], live.get(f"/v1/plans/{digests[2]}").json()
    assert listed == {
        "plan_digest": digests[2],
        "name": "plan 2",
        "created_at": solve["ended_at"],
        "world_size": 2,
        "job_world_size": 2,
        "hardware_profile": "dgx-h100-80g",
        "cost_model": "roofline@2",
        "objective": {
            key: plan["objective"][key] for key in ("name", "seconds", "lower_bound_seconds", "relative_gap")
        },
        "solve_id": solve["id"],
        "url": f"/v1/plans/{digests[2]}",
    }


def test_a_plan_of_a_sharding_group_is_listed_with_the_ranks_of_its_job(live: Live) -> None:
    spec = tiny(
        name="in groups",
        hardware__ranks_per_host=4,
        hardware__replica_groups={"sharding_group_size": 2},
        model__tables__0__optimizer="sgd",
        model__tables__1__optimizer="sgd",
    )
    totals = live.post("/v1/specs:validate", spec).json()["totals"]
    assert (totals["world_size"], totals["sharding_group_size"]) == (4, 2)
    whole = live.post("/v1/specs:validate", tiny(hardware__ranks_per_host=4)).json()["totals"]
    assert whole["sharding_group_size"] is None
    assert totals["available_bytes"] == whole["available_bytes"] // 2  # of one group, which holds all tables
    live.solve(spec)
    (plan,) = live.get("/v1/plans?name=in%20groups").json()["plans"]
    assert (plan["world_size"], plan["job_world_size"]) == (2, 4)


def test_pages_of_one_name_follow_each_other(live: Live, digests: list[str]) -> None:
    first = live.get("/v1/plans?page_size=1&name=plan%202")
    assert [plan["plan_digest"] for plan in first.json()["plans"]] == [digests[2]]
    address = first.headers["link"].removeprefix("<").removesuffix('>; rel="next"')
    second = live.get(address)
    assert [plan["plan_digest"] for plan in second.json()["plans"]] == [digests[1]]
    assert "link" not in second.headers
    assert live.get("/v1/plans?name=nothing").json()["plans"] == []
    assert_problem(live.get(f"/v1/plans?page_token={NOTHING}"), 400, "invalid-parameter")
    assert_problem(live.get("/v1/plans?page_size=501"), 400, "invalid-parameter")


def test_lists_and_comparisons_are_sent_once(live: Live, digests: list[str]) -> None:
    for url in ("/v1/plans", f"/v1/plans/{digests[0]}/diff/{digests[1]}"):
        answer = live.get(url)
        unchanged = live.get(url, headers={"If-None-Match": answer.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        head = live.request("HEAD", url)
        assert head.headers["etag"] == answer.headers["etag"]


def test_a_comparison_is_that_of_the_command_line(live: Live, digests: list[str]) -> None:
    plans = [live.get(f"/v1/plans/{digest}").json() for digest in digests]
    answer = live.get(f"/v1/plans/{digests[0]}/diff/{digests[1]}")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.json() == json.loads(json.dumps(difference(plans[0], plans[1]).to_document()))
    assert answer.json()["same_spec"] is False
    assert live.get(f"/v1/plans/{digests[0]}/diff/{digests[0]}").json()["same_plan"] is True
    assert_problem(live.get(f"/v1/plans/{digests[0]}/diff/{NOTHING}"), 404, "not-found")
    assert_problem(live.get(f"/v1/plans/{digests[0]}/diff/latest"), 400, "invalid-parameter")


def test_a_checkpoint_is_mapped_onto_another_plan(live: Live, digests: list[str]) -> None:
    url = f"/v1/plans/{digests[0]}/reshard/{digests[1]}"
    answer = live.get(url)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    found = answer.json()
    assert (found["old_plan_digest"], found["new_plan_digest"]) == (digests[0], digests[1])
    assert {table["state"] for table in found["tables"]} == {"read"}  # the spec of the plan is stored
    for rank in (0, 1):
        mine = live.get(f"{url}?rank={rank}").json()
        reads = [(table["name"], read["old_rank"]) for table in mine["tables"] for read in table["reads"]]
        assert reads == [(name, read.old_rank) for name, read in rank_reads(found, rank)]
        assert mine["rank"] == rank
    again = live.get(url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert_problem(live.get(f"{url}?rank=2"), 422, "no-such-rank")
    assert_problem(live.get(f"{url}?rank=-1"), 422, "no-such-rank")
    assert_problem(live.get(f"/v1/plans/{digests[0]}/reshard/{NOTHING}"), 404, "not-found")


def test_a_job_resumes_on_more_ranks_from_a_plan_that_is_stored(live: Live, digests: list[str]) -> None:
    asked = {"digest": digests[0], "keep": "schemes"}
    spec = tiny(name="resumed", checkpoint_plan=asked, hardware__ranks_per_host=4)
    solve = live.solve(spec)
    digest = solve["result"]["plan_digest"]
    plan, before = live.get(f"/v1/plans/{digest}").json(), live.get(f"/v1/plans/{digests[0]}").json()
    assert plan["world_size"] == 4
    schemes = [[table["sharding_type"] for table in one["tables"]] for one in (before, plan)]
    assert schemes[0] == schemes[1]
    found = live.get(f"/v1/plans/{digests[0]}/reshard/{digest}").json()
    assert (found["old_world_size"], found["new_world_size"]) == (2, 4)
    assert [table["state"] for table in found["tables"]] == ["read", "read"]
    refused = live.post("/v1/solves", json=tiny(checkpoint_plan={"digest": NOTHING}))
    problem = assert_problem(refused, 422, "invalid-problem")
    assert [item["pointer"] for item in problem["errors"]] == ["/checkpoint_plan/digest"]


def test_slices_of_all_ranks_are_the_plan(live: Live, digests: list[str]) -> None:
    url = f"/v1/plans/{digests[0]}"
    plan = live.get(url).json()
    answers = [live.get(f"{url}?rank={rank}", headers={"Accept-Encoding": "identity"}) for rank in (0, 1)]
    shards: dict[str, list[object]] = {table["name"]: [] for table in plan["tables"]}
    for rank, answer in enumerate(answers):
        assert answer.headers["x-plan-digest"] == digests[0]
        assert "immutable" in answer.headers["cache-control"]
        part = answer.json()
        assert answer.content == canonical_bytes(part)
        assert part["rank"] == rank
        for key in ("plan_digest", "spec_digest", "name", "world_size", "ranks_per_host", "objective", "termination"):
            assert part[key] == plan[key]
        assert part["ranks"] == [plan["ranks"][rank]]
        for table in part["tables"]:
            assert {shard["rank"] for shard in table["shards"]} == {rank}
            shards[table["name"]] += table["shards"]
    for table in plan["tables"]:
        assert sorted(map(str, shards[table["name"]])) == sorted(map(str, table["shards"]))


def test_slices_have_etags_of_their_own(live: Live, digests: list[str]) -> None:
    url = f"/v1/plans/{digests[0]}"
    etags = [live.get(address).headers["etag"] for address in (url, f"{url}?rank=0", f"{url}?rank=1")]
    assert len(set(etags)) == 3
    again = live.get(f"{url}?rank=1", headers={"If-None-Match": etags[2]})
    assert (again.status_code, again.content) == (304, b"")
    assert live.get(f"{url}?rank=1", headers={"If-None-Match": etags[0]}).status_code == 200
    assert live.request("HEAD", f"{url}?rank=1").headers["etag"] == etags[2]


def test_ranks_that_a_plan_does_not_have(live: Live, digests: list[str]) -> None:
    for rank in (-1, 2, 2**31 - 1):
        reported = assert_problem(live.get(f"/v1/plans/{digests[0]}?rank={rank}"), 422, "no-such-rank")
        assert "0 to 1" in reported["detail"]
    assert_problem(live.get(f"/v1/plans/{digests[0]}?rank={10**30}"), 400, "invalid-parameter")
    assert_problem(live.get(f"/v1/plans/{NOTHING}?rank=0"), 404, "not-found")


def test_a_channel_serves_slices(live: Live, digests: list[str]) -> None:
    live.put("/v1/channels/sliced", {"plan_digest": digests[1]})
    answer = live.get("/v1/channels/sliced/plan?rank=1")
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.content == live.get(f"/v1/plans/{digests[1]}?rank=1").content
    assert_problem(live.get("/v1/channels/sliced/plan?rank=2"), 422, "no-such-rank")
