"""Sharding groups in plan documents and as text: what they are, what averages take, how other sizes compare."""

import json
from typing import Any

import pytest

from api.specs.parse import parse_plan, parse_spec
from planner.domain.formats.canonical_json import plan_digest
from planner.domain.formats.compact_form import long_document
from planner.options.runtimes.export import UnexportablePlan
from planner.output.exporters.generic import score_document, to_document
from planner.output.exporters.registry import exported
from planner.pipeline import plan
from planner.verification.evaluate_placement import score
from tests.support.planning.long_plans import compare_plans, explain_plan
from tests.support.service.specs import raw, tiny


def planned(size: object, **groups: object) -> Any:
    """The plan of the tiny spec on 2 hosts of 4 ranks, in compact form."""
    spec = tiny(
        hardware__num_hosts=2,
        hardware__ranks_per_host=4,
        hardware__replica_groups={"sharding_group_size": size, "sync_interval_steps": 20, **groups},
        model__tables__0__module_path="m",
        model__tables__1__module_path="m",
    )
    request = parse_spec(raw(spec))
    found = plan(request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits)
    assert found.plan is not None
    return to_document(found.plan, name="tiny", spec_digest=request.spec_digest, hardware_profile="dgx-h100-80g")


def section(document: Any) -> str:
    text = explain_plan(document)
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text[text.index("Sharding groups") :].split("\n\n")[0].split())


def test_a_plan_has_its_groups_and_every_size() -> None:
    document = planned("auto")
    groups, sync = document["replica_groups"], document["replica_sync"]
    size = groups["sharding_group_size"]
    assert (document["world_size"], document["ranks_per_host"]) == (size, groups["node_group_size"])
    assert (groups["world_size"], groups["ranks_per_host"], groups["num_groups"]) == (8, 4, 8 // size)
    assert [one["sharding_group_size"] for one in sync["sizes"]] == [2, 4, 8]
    assert {one["state"] for one in sync["sizes"]} <= {"planned", "ruled_out"}
    text = section(document)
    assert "ranks groups objective lower bound averages" in text
    assert text.count("chosen") == 1
    assert f"8 ranks in {8 // size} groups of {size}" in explain_plan(document) or size == 8


def test_given_groups_are_described() -> None:
    text = section(planned(4))
    assert "2 groups of 4 ranks (2 x 2), one of every 2 ranks; each holds every table" in text
    assert "weights and optimizer state are averaged every 20 steps" in text
    assert "chosen" not in text
    bare = section(planned(4, use_inter_host_allreduce=True, include_optimizer_state=False, sync_interval_steps=1))
    assert "2 groups of 4 ranks (1 x 4), contiguous ranks" in bare
    assert "weights are averaged every step" in bare
    assert "one group of all ranks: nothing is averaged" in section(planned(8))


def test_groups_in_pods_are_described() -> None:
    """Two hosts of four in one pod: a group of every second rank has two of each host, four of the pod."""
    spec = tiny(
        hardware__profile="gb200-nvl72",
        hardware__num_hosts=2,
        hardware__ranks_per_host=4,
        hardware__pod_size=8,
        hardware__replica_groups={"sharding_group_size": 4},
        model__tables__0__module_path="m",
        model__tables__1__module_path="m",
    )
    request = parse_spec(raw(spec))
    found = plan(request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits)
    assert found.plan is not None
    document: Any = to_document(
        found.plan, name="tiny", spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    assert (document["ranks_per_host"], document["pod_size"]) == (2, 4)
    assert document["replica_groups"]["node_group_size"] == 4
    assert "2 groups of 4 ranks (2 x 2, 4 in each pod), one of every 2 ranks" in section(document)
    collection: Any = exported(document, "torchrec", module_path=None)["dmp_collection"]
    assert (collection["sharding_group_size"], collection["node_group_size"]) == (4, 4)


def test_both_forms_have_one_digest_which_covers_the_groups() -> None:
    document = planned(4)
    assert plan_digest(document) == plan_digest(long_document(document)) == document["plan_digest"]
    other = {**document, "replica_groups": {**document["replica_groups"], "sync_interval_steps": 21}}
    assert plan_digest(other) != document["plan_digest"]
    given = parse_plan(json.dumps(long_document(document)).encode())
    assert given.actual_digest == document["plan_digest"]
    without = {key: value for key, value in document.items() if key != "replica_groups"}
    assert plan_digest(without) != document["plan_digest"]


def test_a_plan_for_all_ranks_has_no_such_fields() -> None:
    request = parse_spec(raw(tiny()))
    found = plan(request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits)
    assert found.plan is not None
    document: Any = to_document(found.plan, name="tiny", spec_digest="sha256:s", hardware_profile="test")
    assert not {"replica_groups", "replica_sync"} & document.keys()
    assert "replica_sync" not in {phase["name"] for phase in document["phases"]}
    evaluated = score_document(score(request.problem, found.plan.placement, request.cost_model))
    assert "replica_sync" not in evaluated
    assert "Sharding groups" not in explain_plan(document)


def test_exports_have_what_dmp_collection_takes() -> None:
    document = planned(4)
    export: Any = exported(document, "torchrec", module_path=None)
    assert export["dmp_collection"] == {
        "world_size": 8,
        "sharding_group_size": 4,
        "node_group_size": 2,
        "use_inter_host_allreduce": False,
        "sync": {"interval_steps": 20, "include_optimizer_state": True},
    }
    assert (export["world_size"], export["local_world_size"]) == (4, 2)
    with pytest.raises(UnexportablePlan, match="one of 2 sharding groups, which hugectr does not have"):
        exported(document, "hugectr", module_path=None)


def test_plans_of_other_groups_are_compared_with_a_warning() -> None:
    text = " ".join(compare_plans(planned(2), planned(4)).split())
    assert "8 ranks in 4 groups of 2" in text
    assert "8 ranks in 2 groups of 4" in text
    assert "The sharding groups differ: ranks are numbered within a group" in text
    assert "The sharding groups differ" not in compare_plans(planned(4), planned(4))
