"""Sharding groups in a spec: what they become, and what is refused with a pointer, the numbers and a way out."""

import json

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from tests.support.service.specs import raw, tiny

WHERE = "/hardware/replica_groups"


def grouped(size: object = 4, **changes: object) -> dict[str, object]:
    """The tiny spec on 4 hosts of 8 ranks, divided into groups."""
    groups = {
        key: changes.pop(key) for key in list(changes) if key in ("use_inter_host_allreduce", "sync_interval_steps")
    }
    usual = {
        "hardware__num_hosts": 4,
        "hardware__ranks_per_host": 8,
        "model__tables__0__optimizer": "sgd",
        "model__tables__1__optimizer": "sgd",
    }
    return tiny(**usual | changes, hardware__replica_groups={"sharding_group_size": size, **groups})


def issues(spec: object) -> dict[str, str]:
    """Messages with their ways out, by pointer."""
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(spec))
    return {issue.pointer: f"{issue.message}: {issue.hint}" for issue in raised.value.issues}


def test_groups_become_the_problem_of_a_group() -> None:
    problem = parse_spec(raw(grouped(8, sync_interval_steps=50))).problem
    assert (problem.world_size, problem.cluster.ranks_per_host, problem.cluster.job_ranks) == (8, 2, 32)
    groups = problem.replica_groups
    assert groups is not None
    assert (groups.sizes, groups.sync_interval_steps, groups.include_optimizer_state) == ((8,), 50, True)
    contiguous = parse_spec(raw(grouped(8, use_inter_host_allreduce=True))).problem
    assert (contiguous.world_size, contiguous.cluster.ranks_per_host) == (8, 8)


@pytest.mark.parametrize(("size", "sizes"), [("auto", (2, 4, 8, 16, 32)), ([16, 4, 16], (4, 16)), ([8], (8,))])
def test_sizes_to_choose_from(size: object, sizes: tuple[int, ...]) -> None:
    problem = parse_spec(raw(grouped(size))).problem
    assert problem.replica_groups is not None
    assert problem.replica_groups.sizes == sizes
    assert problem.world_size == (32 if len(sizes) > 1 else sizes[0])


def test_a_spec_without_groups_has_the_digest_that_it_had() -> None:
    spec = tiny(hardware__num_hosts=4)
    request, explicit = (
        parse_spec(raw(spec)),
        parse_spec(raw({**spec, "hardware": {**spec["hardware"], "replica_groups": None}})),
    )
    assert request.spec_digest == explicit.spec_digest
    assert "replica_groups" not in json.dumps(request.spec)
    assert not [item for item in request.assumptions if "replica_groups" in item.subject]


def test_defaults_are_assumptions_and_a_normalised_spec_has_the_ranks_of_the_job() -> None:
    request = parse_spec(raw(grouped(8)))
    hardware = request.spec["hardware"]
    assert isinstance(hardware, dict)
    assert (hardware["num_hosts"], hardware["ranks_per_host"]) == (4, 8)
    assumed = {item.subject: item.value for item in request.assumptions}
    assert assumed["hardware.replica_groups.sync_interval_steps"] == "1"
    assert assumed["hardware.replica_groups.use_inter_host_allreduce"] == "false"
    assert parse_spec(json.dumps(request.spec).encode()).spec_digest == request.spec_digest


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (5, "32 ranks are not whole groups of 5 ranks: use one of 2, 4, 8, 16, 32"),
        (64, "groups of 64 ranks, and the job has 32: use one of 2, 4, 8, 16, 32"),
    ],
)
def test_sizes_that_do_not_divide(size: int, message: str) -> None:
    found = issues(grouped(size))
    assert found == {f"{WHERE}/sharding_group_size": message}


@pytest.mark.parametrize("size", [1, "all", 0.5, [], [1, 4], ["auto"], None, True, 5000])
def test_what_is_no_size(size: object) -> None:
    expected = 'expected 2 to 4096 ranks, a list of such sizes, or "auto"'
    assert {pointer: text.split(": ")[0] for pointer, text in issues(grouped(size)).items()} == {
        f"{WHERE}/sharding_group_size": expected
    }


def test_each_size_of_a_list_has_its_own_issue() -> None:
    found = issues(grouped([4, 6, 12]))
    assert set(found) == {f"{WHERE}/sharding_group_size/1", f"{WHERE}/sharding_group_size/2"}
    assert found[f"{WHERE}/sharding_group_size/2"].startswith("32 ranks are not whole groups of 12 ranks")


def test_groups_that_cut_a_host() -> None:
    """6 hosts of 4: groups of 6 contiguous ranks end inside a host, every fourth rank is one on each host."""
    spec = grouped(6, hardware__num_hosts=6, hardware__ranks_per_host=4, use_inter_host_allreduce=True)
    found = issues(spec)[f"{WHERE}/sharding_group_size"]
    assert found.startswith("a group of 6 contiguous ranks ends inside a host of 4 ranks: use one of 2, 4, 8, 12, 24")
    strided = grouped(4, hardware__num_hosts=6, hardware__ranks_per_host=4)
    found = issues(strided)[f"{WHERE}/sharding_group_size"]
    assert "takes every 6th of 24 ranks" in found
    assert found.endswith("use one of 2, 3, 6, 12, 24, or set use_inter_host_allreduce")


def test_one_rank_has_no_groups() -> None:
    spec = grouped("auto", hardware__num_hosts=1, hardware__ranks_per_host=1)
    assert issues(spec) == {
        f"{WHERE}/sharding_group_size": "1 rank cannot be divided into sharding groups: plan for 2 ranks or more"
    }


def test_everything_that_does_not_go_together_is_reported_at_once() -> None:
    spec = grouped(
        [4, 5],
        model__tables__0__optimizer="adam",
        model__tables__1__constraints={"ranks": [0, 1]},
        cost_model="torchrec",
        model__stash={},
        objectives=[{"name": "step_time"}, {"name": "fullest_rank"}],
    )
    found = issues(spec)
    assert set(found) == {
        "/model/tables/0/optimizer",
        "/model/tables/1/constraints/ranks",
        "/cost_model",
        "/model/stash",
        "/objectives",
        f"{WHERE}/sharding_group_size/1",
    }
    assert (
        "DMPCollection finds no state to average of the optimizer adam: use adagrad, rowwise_adagrad, sgd"
        in found["/model/tables/0/optimizer"]
    )
    assert (
        "a sharding group whose size is not decided: give one sharding_group_size"
        in found["/model/tables/1/constraints/ranks"]
    )


def test_hash_tables_are_for_one_group() -> None:
    for mode, why in (("zch", "have no sync_identities"), ("mpzch", "one sharding group merges the ids of all")):
        hashed = grouped(4, model__tables__0__hash_table={"mode": mode})
        assert why in issues(hashed)["/model/tables/0/hash_table"]


def test_objectives_are_of_one_size() -> None:
    objectives = [{"name": "fullest_rank"}, {"name": "step_time", "tolerance": 0.05}]
    for size in (8, [8], [8, 8]):
        assert len(parse_spec(raw(grouped(size, objectives=objectives))).problem.goals) == 2
    for size in ("auto", [4, 8]):
        found = issues(grouped(size, objectives=objectives))
        assert set(found) == {"/objectives"}
        assert "give one sharding_group_size and plan each in turn" in found["/objectives"]


def test_checkpoints_of_any_plan_are_read_by_groups() -> None:
    table = {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused"}
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 64}
    plan = {"world_size": 8, "ranks_per_host": 8, "tables": [{**table, "shards": [shard]}]}
    for size in (4, "auto"):
        problem = parse_spec(raw(grouped(size, checkpoint_plan={"plan": plan}))).problem
        assert problem.checkpoint_plan is not None
        assert problem.checkpoint_plan.placement.world_size == 8


@pytest.mark.parametrize(("size", "steps", "warned"), [(8, 100, False), (8, 105, True), (32, 105, False)])
def test_checkpoints_between_averages(size: int, steps: int, warned: bool) -> None:
    request = parse_spec(raw(grouped(size, sync_interval_steps=10, checkpoint={"interval_steps": steps})))
    found = {issue.code: issue for issue in request.warnings}
    assert ("checkpoint-between-averages" in found) == warned
    if warned:
        issue = found["checkpoint-between-averages"]
        assert issue.pointer == "/checkpoint/interval_steps"
        assert "every 105 steps, and sharding groups are averaged every 10 steps" in issue.message
        assert issue.hint.startswith("use a multiple of 10")


def test_groups_of_pods() -> None:
    """Four hosts of four in pods of two: a group of 8 has every second rank, four of each pod."""
    pods = {"hardware__profile": "gb200-nvl72", "hardware__ranks_per_host": 4, "hardware__pod_size": 8}
    cluster = parse_spec(raw(grouped(8, **pods))).problem.cluster
    assert (cluster.ranks_per_host, cluster.pod_size, cluster.num_groups) == (2, 4, 2)
    found = issues(grouped(12, **pods | {"hardware__num_hosts": 6}, use_inter_host_allreduce=True))
    assert found == {
        f"{WHERE}/sharding_group_size": "a group of 12 contiguous ranks ends inside a pod of 8 ranks: use one of 2, 4,"
        " 8, 24"
    }
    wrong = issues(grouped(8, **pods | {"hardware__pod_size": 6}))
    assert set(wrong) == {"/hardware/pod_size"}


@pytest.mark.parametrize("runtime", ["generic", "torcheasyrec", "dynamicemb"])
def test_another_runtime_has_no_groups(runtime: str) -> None:
    assert f"the runtime is {runtime}: use the runtime torchrec" in issues(grouped(4, runtime=runtime))["/runtime"]


def test_a_copied_table_may_have_any_optimizer() -> None:
    only_copies = {"sharding_types": ["data_parallel"]}
    spec = grouped(4, model__tables__0__optimizer="adam", model__tables__0__constraints=only_copies)
    assert parse_spec(raw(spec)).problem.tables[0].optimizer.name == "adam"


def test_ranks_of_constraints_are_those_of_a_group() -> None:
    inside = grouped(8, model__tables__0__constraints={"ranks": [7], "hosts": [3]})
    assert parse_spec(raw(inside)).problem.tables[0].constraints.ranks == frozenset({7})
    found = issues(grouped(8, model__tables__0__constraints={"ranks": [8]}))
    assert found["/model/tables/0/constraints/ranks"].startswith("8 is out of range: a sharding group has ranks 0 to 7")
    found = issues(grouped(8, use_inter_host_allreduce=True, model__tables__0__constraints={"hosts": [1]}))
    assert found["/model/tables/0/constraints/hosts"].startswith("1 is out of range: a sharding group has hosts 0 to 0")


def test_a_previous_plan_has_groups_of_the_same_size() -> None:
    table = {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused"}
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 64}
    previous = {"world_size": 8, "ranks_per_host": 2, "tables": [{**table, "shards": [shard]}]}
    assert parse_spec(raw(grouped(8, previous_plan={"plan": previous}))).previous is not None
    found = issues(grouped([4, 8], previous_plan={"plan": previous}))["/previous_plan"]
    assert found == (
        "the previous plan is for groups of 8 ranks, and groups have 4 or 8 here; moves are counted between groups of"
        " one size: set hardware.replica_groups.sharding_group_size to 8"
    )
    assert "plan groups of the size that runs" in issues(grouped(4, previous_plan={"plan": previous}))["/previous_plan"]
