"""Plans over pods of hosts, from the spec to the document, its certificate and its way back."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from api.specs.parse import parse_plan, parse_spec
from api.specs.request import SolveRequest
from cost_models.vocabulary import Scheme
from planner.diagnosis.fixes.pods import pods_ladder
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.plan.plan import PlanResult
from planner.options.enumerate import enumerate_families
from planner.output.certificate.certify import certify
from planner.output.certificate.check import check
from planner.pipeline import plan as solved
from planner.verification.verify import verify
from tests.support.planning.long_plans import exported, to_document

Json = dict[str, Any]
ROW_CUTS = ("table_row_wise", "grid_shard")


def spec_of(*tables: Json, pod_size: int | None, **changes: Any) -> Json:
    """Four trays of four GB200."""
    hardware = {"profile": "gb200-nvl72", "num_hosts": 4, "pod_size": pod_size, **changes.pop("hardware", {})}
    model = {"batch_size_per_rank": 1024, "tables": list(tables)}
    return {"model": model, "hardware": hardware, "solver": {"time_limit_seconds": 5}, **changes}


def table(name: str, rows: int = 4_000_000, *schemes: str, **fields: Any) -> Json:
    constraints = {"sharding_types": list(schemes)} if schemes else {}
    constraints |= fields.pop("constraints", {})
    shape = {"num_embeddings": rows, "embedding_dim": 128, "pooling_factor": 10, "module_path": "m.ebc"}
    return {"name": name, **shape, "constraints": constraints, **fields}


def request_of(spec: Json) -> SolveRequest:
    return parse_spec(json.dumps(spec).encode())


def result_of(request: SolveRequest) -> PlanResult:
    return solved(
        request.problem,
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=request.limits,
        previous=request.previous,
    )


def planned(spec: Json) -> Json:
    """The plan document of a spec."""
    request = request_of(spec)
    result = result_of(request)
    assert result.plan is not None, result.shortfalls
    assert verify(request.problem, result.plan.placement) == ()
    document: Json = to_document(
        result.plan, name="p", spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    return document


def ranks_of(document: Json, name: str) -> list[int]:
    (found,) = [one for one in document["tables"] if one["name"] == name]
    return [shard["rank"] for shard in found["shards"]]


def test_a_table_that_no_host_holds_is_cut_by_rows_over_a_pod() -> None:
    """1.024 TB and its state on two hosts of 8 x 80 GB, whose links the user states."""
    big = table("big", 2_000_000_000, "table_row_wise", constraints={"hosts": [0, 1], "compute_kernels": ["fused"]})
    links = {"profile": "dgx-a100-80g", "overrides": {"intra_host_bytes_per_second": 25e9}}
    document = planned(spec_of(big, pod_size=16, hardware=links))
    assert ranks_of(document, "big") == list(range(16))
    assert document["pod_size"] == 16
    by_hosts = result_of(request_of(spec_of(big, pod_size=None, hardware=links)))
    assert by_hosts.plan is None


@pytest.mark.parametrize(("pod_size", "num_ranks"), [(None, 4), (4, 4), (8, 8), (16, 16)])
def test_groups_are_pods_or_else_hosts(pod_size: int | None, num_ranks: int) -> None:
    tables = [table(scheme, 4_000_000, scheme, optimizer="sgd") for scheme in ROW_CUTS]
    tables.append(table("table_column_wise", 4_000_000, "table_column_wise", embedding_dim=1024))
    document = planned(spec_of(*tables, pod_size=pod_size))
    assert document.get("pod_size") == pod_size
    rows, grid = (ranks_of(document, scheme) for scheme in ROW_CUTS)
    assert rows == list(range(rows[0], rows[0] + num_ranks))
    assert rows[0] % num_ranks == 0
    pieces = [grid[start : start + num_ranks] for start in range(0, len(grid), num_ranks)]
    assert all(piece == list(range(piece[0], piece[0] + num_ranks)) for piece in pieces)
    assert len({rank // num_ranks for rank in ranks_of(document, "table_column_wise")}) == 1


def test_column_pieces_leave_the_host_inside_a_pod() -> None:
    """Five pieces at least, one a rank at most where it pays: 1,280 columns of a hot table."""
    hot = table("hot", 1_000_000, "table_column_wise", embedding_dim=2048, pooling_factor=200)
    document = planned(spec_of(hot, pod_size=8))
    assert len({rank // 4 for rank in ranks_of(document, "hot")}) == 2
    assert len({rank // 8 for rank in ranks_of(document, "hot")}) == 1


def test_a_plan_without_pods_says_nothing_of_them() -> None:
    tables = [table("t", 4_000_000, "table_row_wise")]
    without = planned(spec_of(*tables, pod_size=None))
    assert "pod_size" not in without
    stated = {**without, "pod_size": 8}
    assert plan_digest(stated) != plan_digest(without) == without["plan_digest"]


def test_hosts_of_a_table_stay_hosts() -> None:
    """Pod 1 is hosts 2 and 3; a pod of which one host is not allowed takes no row block."""
    document = planned(spec_of(table("t", 4_000_000, "table_row_wise", constraints={"hosts": [1, 2, 3]}), pod_size=8))
    assert ranks_of(document, "t") == list(range(8, 16))
    torn = spec_of(table("t", 4_000_000, *ROW_CUTS, constraints={"hosts": [1, 2]}, optimizer="sgd"), pod_size=8)
    families = enumerate_families(request_of(torn).problem)
    reasons = dict(families.scheme_issues[0])
    for scheme in (Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD):
        assert reasons[scheme] == "none of the pods of 8 ranks lies whole on the ranks and hosts that are allowed"
    single = spec_of(table("t", 4_000_000, "table_wise", constraints={"hosts": [1]}), pod_size=8)
    assert ranks_of(planned(single), "t")[0] // 4 == 1


def test_a_grid_over_several_hosts_has_no_state_for_each_row() -> None:
    grid = table("t", 4_000_000, "grid_shard")
    reasons = dict(enumerate_families(request_of(spec_of(grid, pod_size=8)).problem).scheme_issues[0])
    assert "cannot build the state of rowwise_adagrad for a grid over several hosts" in reasons[Scheme.GRID_SHARD]
    for spec in (
        spec_of({**grid, "optimizer": "adagrad"}, pod_size=8),
        spec_of(grid, pod_size=4),
        spec_of(grid, pod_size=8, runtime="generic"),
    ):
        assert planned(spec)["tables"][0]["sharding_type"] == "grid_shard"


def test_the_verifier_sees_a_grid_that_torchrec_cannot_build() -> None:
    document = planned(spec_of(table("t", 4_000_000, "grid_shard", optimizer="sgd"), pod_size=8))
    other = request_of(spec_of(table("t", 4_000_000, optimizer="rowwise_adagrad"), pod_size=8)).problem
    issues = verify(other, parse_plan(canonical_bytes(document), other).placement)
    assert [(issue.code, issue.pointer) for issue in issues] == [("pod-grid", "/tables/0")]


def test_a_plan_for_other_groups_is_for_another_cluster() -> None:
    spec = spec_of(table("t", 4_000_000, "table_row_wise"), pod_size=8)
    document = planned(spec)
    for pod_size, groups in ((None, 4), (16, 16)):
        other = request_of({**spec, "hardware": {**spec["hardware"], "pod_size": pod_size}}).problem
        (issue,) = verify(other, parse_plan(canonical_bytes(document), other).placement)
        assert (issue.code, issue.pointer) == ("cluster-mismatch", "/pod_size")
        assert (
            f"groups of 8 ranks (pod_size, or else ranks_per_host); groups of the cluster have {groups}"
            in issue.message
        )


@pytest.mark.parametrize("change", ["rank", "block"])
def test_the_verifier_reads_blocks_of_a_pod(change: str) -> None:
    spec = spec_of(table("t", 4_000_001, "table_row_wise"), pod_size=8)
    problem, document = request_of(spec).problem, planned(spec)
    shards = document["tables"][0]["shards"]
    if change == "rank":
        shards[3]["rank"], shards[4]["rank"] = shards[4]["rank"], shards[3]["rank"]
    else:
        shards[0]["num_rows"] -= 1
        shards[1]["row_offset"] -= 1
        shards[1]["num_rows"] += 1
    document["plan_digest"] = plan_digest(document)
    (issue,) = verify(problem, parse_plan(canonical_bytes(document), problem).placement)
    assert issue.code == "geometry"


def test_exports_name_the_ranks_of_a_pod_and_come_back() -> None:
    spec = spec_of(table("t", 4_000_000, "table_row_wise"), pod_size=8)
    problem, document = request_of(spec).problem, planned(spec)
    export = exported(document, "torchrec", module_path=None, device="cuda")
    assert (export["local_world_size"], export["intra_group_size"]) == (4, 8)
    sharding = export["plan"]["m.ebc"]["t"]
    assert [shard["placement"] for shard in sharding["shards"]][3:5] == ["rank:3/cuda:3", "rank:4/cuda:0"]
    given = parse_plan(canonical_bytes(export), problem)
    assert given.placement.pod_size == 8
    assert verify(problem, given.placement) == ()


def test_certificates_of_plans_over_pods_are_accepted_and_of_other_groups_rejected() -> None:
    spec = spec_of(table("a", 40_000_000, "table_row_wise", "row_wise"), table("b"), table("c", 9_000_000), pod_size=8)
    request, document = request_of(spec), planned(spec)
    placement = parse_plan(canonical_bytes(document), request.problem).placement
    head = {key: document[key] for key in ("name", "spec_digest", "plan_digest")}
    certificate = certify(
        request.problem, placement, request.cost_model, head=head, objective=document["objective"], work_seconds=0.1
    )
    assert check(certificate, document).startswith("the plan is legal and takes ")
    other = copy.deepcopy(document)
    del other["pod_size"]
    with pytest.raises(ValueError, match="the plan is not the certified one"):
        check(certificate, other)


def test_pins_over_a_pod_hold() -> None:
    spec = spec_of(table("t", 4_000_000, "table_row_wise"), table("u"), pod_size=8)
    document = planned(spec)
    pinned = {key: document["tables"][0][key] for key in ("sharding_type", "compute_kernel", "shards")}
    spec["model"]["tables"][0]["constraints"] = {"pinned": pinned}
    again = planned(spec)
    assert again["tables"][0]["shards"] == document["tables"][0]["shards"]


def test_moving_from_hosts_to_pods_counts_the_rows_that_change_ranks() -> None:
    spec = spec_of(table("t", 4_000_000, "table_row_wise"), pod_size=None)
    before = planned(spec)
    spec["hardware"]["pod_size"] = 8
    after = planned({**spec, "previous_plan": {"plan": before}})
    own = {
        shard["rank"]: range(shard["row_offset"], shard["row_offset"] + shard["num_rows"])
        for shard in before["tables"][0]["shards"]
    }
    moved = 0
    for shard in after["tables"][0]["shards"]:
        new = range(shard["row_offset"], shard["row_offset"] + shard["num_rows"])
        held = own.get(shard["rank"], range(0))
        moved += len(new) - len(range(max(new.start, held.start), min(new.stop, held.stop)))
    assert after["movement"]["moved_bytes"] == moved * (128 * 4 + 4)


def test_more_hosts_are_whole_pods() -> None:
    """9 TB of weights on 16 ranks with 2.5 TB: 4 pods more than the two."""
    tables = [
        table(f"t{i}", 500_000_000, "table_row_wise", constraints={"compute_kernels": ["fused"]}) for i in range(12)
    ]
    result = result_of(request_of(spec_of(*tables, pod_size=8)))
    assert result.plan is None
    (fix,) = [fix for fix in result.diagnosis.fixes if fix.kind == "ranks"]
    (change,) = fix.changes
    assert change.pointer == "/hardware/num_hosts"
    assert change.value % 2 == 0
    assert fix.message.startswith(f"{change.value - 4} hosts more, {change.value} in all")


def test_prices_of_a_rack_do_not_depend_on_its_pod_where_rows_are_whole() -> None:
    """A rack is one domain, whether it is stated or the profile's; two pods of it are not."""
    tables = [table(f"t{i}", 20_000_000, "table_wise") for i in range(16)]
    seconds = {}
    for pod_size in (None, 16, 8):
        seconds[pod_size] = planned(spec_of(*tables, pod_size=pod_size))["objective"]["seconds"]
    assert seconds[None] == pytest.approx(seconds[16], rel=1e-12)
    assert seconds[8] > 1.1 * seconds[16]


@pytest.mark.parametrize("hosts", [None, [2, 3]])
def test_pods_are_the_way_out_for_what_no_host_holds(hosts: list[int] | None) -> None:
    """1.03 TB by rows over near ranks: a tray has 0.63 TB, two have 1.26."""
    constraints = {"compute_kernels": ["fused"]} | ({} if hosts is None else {"hosts": hosts})
    spec = spec_of(table("big", 2_000_000_000, "table_row_wise", constraints=constraints), pod_size=None)
    result = result_of(request_of(spec))
    assert result.plan is None
    (fix,) = [fix for fix in result.diagnosis.fixes if fix.kind == "pods"]
    assert fix.message == "join 2 hosts into a pod of 8 ranks"
    assert [(change.pointer, change.value) for change in fix.changes] == [("/hardware/pod_size", 8)]
    spec["hardware"]["pod_size"] = 8
    assert len(ranks_of(planned(spec), "big")) == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"hardware": {"profile": "dgx-a100-80g"}},  # each host is a domain
        {"schemes": ("table_row_wise", "row_wise")},  # smaller blocks are allowed as it is
        {"constraints": {"hosts": [1, 2]}},  # no whole pod
        {"runtime": "hugectr"},  # no pods
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_pods_are_offered_where_they_can_help(changes: Json) -> None:
    schemes, runtime = changes.pop("schemes", ("table_row_wise",)), changes.pop("runtime", "torchrec")
    listed = table("t", 4_000_000, *schemes, constraints=changes.pop("constraints", {}))
    problem = request_of(spec_of(listed, pod_size=None, **changes)).problem
    assert pods_ladder(replace(problem, runtime=runtime)) is None


def test_pods_are_no_way_out_from_pods() -> None:
    listed = table("t", 4_000_000, "table_row_wise")
    assert pods_ladder(request_of(spec_of(listed, pod_size=8)).problem) is None
    ladder = pods_ladder(request_of(spec_of(listed, pod_size=None)).problem)
    assert ladder is not None
    assert [ladder.step(number).problem.cluster.pod_size for number in (1, 2)] == [8, 16]
