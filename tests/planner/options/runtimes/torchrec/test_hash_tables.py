"""Hash tables under TorchRec: what is offered, what is found, and plans from anywhere that would train wrongly."""

from collections.abc import Mapping
from typing import Any

import pytest

from api.client import plan_digest
from api.client.live_table import LiveHashTable
from api.client.model_check import plan_differences, spec_differences
from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.registry import RUNTIMES
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.verify import verify
from tests.support.client.jobs import live_table
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.hash_tables import hash_table, mpzch, zch
from tests.support.planning.long_plans import exported, to_document

SOME = SolveLimits(time_limit_seconds=5, seed=0)


def offered(problem: Problem) -> set[tuple[Scheme, Kernel]]:
    return {(one.scheme, one.storage.kernel) for one in enumerate_families(problem).families}


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2)])
def test_a_hash_table_is_cut_by_rows_over_all_ranks(shape: tuple[int, int]) -> None:
    problem = make_problem(hash_table("t", 96, zch(96)), cluster=make_cluster(*shape))
    assert offered(problem) == {(Scheme.ROW_WISE, Kernel.FUSED)}
    found = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("greedy"), limits=SOME)
    assert found.plan is not None
    (placed,) = found.plan.placement.tables
    assert placed.hash_table_mode == "zch"
    assert [shard.num_rows for shard in placed.shards] == [96 // problem.world_size] * problem.world_size
    assert verify(problem, found.plan.placement) == ()


def test_a_plain_table_on_one_rank_has_no_row_blocks() -> None:
    assert Scheme.ROW_WISE not in {scheme for scheme, _ in offered(make_problem(cluster=make_cluster(1, 1)))}


@pytest.mark.parametrize(
    ("found", "kernels"),
    [
        (zch(96), {Kernel.FUSED, Kernel.FUSED_UVM}),
        (mpzch(96, "lru"), {Kernel.FUSED, Kernel.FUSED_UVM}),
        (mpzch(96), {Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING}),
    ],
    ids=["zch", "evicting", "kept"],
)
def test_rows_of_evicted_ids_lie_in_no_cache(found: HashTable, kernels: set[Kernel]) -> None:
    cluster = make_cluster(ddr_bytes=1e12, host_link_bytes_per_second=2e10, ddr_bytes_per_second=1e11)
    problem = make_problem(hash_table("t", 96, found), cluster=cluster, kernels=HOST_KERNELS)
    assert {kernel for _, kernel in offered(problem)} == kernels


def test_buckets_that_do_not_divide_leave_no_option() -> None:
    """A spec says so earlier; options must not cut a bucket whatever comes."""
    problem = make_problem(hash_table("t", 96, mpzch(96, bucket_size=16)))
    assert offered(problem) == set()
    assert Scheme.ROW_WISE in dict(enumerate_families(problem).scheme_issues[0])


def test_a_plan_with_hash_tables_is_proven_and_exported() -> None:
    problem = make_problem(
        hash_table("sorted", 103, zch(90, "distance_lfu")),
        hash_table("probed", 96, mpzch(60, "lru")),
        make_table("p", module_path="m.plain"),
    )
    found = plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("portfolio"), limits=SOME)
    assert found.plan is not None
    assert found.plan.relative_gap is not None
    assert found.plan.relative_gap < 1e-6
    document = to_document(found.plan, name="m", spec_digest="sha256:" + "0" * 64, hardware_profile="test")
    modes = {table["name"]: table.get("hash_table_mode") for table in document["tables"]}
    assert modes == {"sorted": "zch", "probed": "mpzch", "p": None}
    written = exported(document, "torchrec", module_path=None, device="cuda")
    assert {path: set(tables) for path, tables in written["plan"].items()} == {
        "m.sorted": {"sorted"},
        "m.probed": {"probed"},
        "m.plain": {"p"},
    }


# Plans from anywhere: the verifier and the launcher's client refuse the same.

TABLE = hash_table("t", 96, mpzch(90, "lru", bucket_size=8))
LIVE = LiveHashTable(mode="mpzch", eviction="lru", bucket_size=8, max_probe=128)


def placement_of(rows: list[int], **facts: Any) -> Placement:
    """Row blocks in the order of the ranks."""
    shards = [
        Shard(rank=rank, row_offset=sum(rows[:rank]), num_rows=count, column_offset=0, num_columns=16, tier=Tier.HBM)
        for rank, count in enumerate(rows)
    ]
    settings: dict[str, Any] = {"sharding_type": Scheme.ROW_WISE, "compute_kernel": Kernel.FUSED} | facts
    placed = TablePlacement(name="t", shards=Shards.of(shards), **settings)
    return Placement(world_size=len(rows), ranks_per_host=len(rows), tables=(placed,))


def client_reasons(placement: Placement, live: LiveHashTable, **facts: Any) -> list[str]:
    (placed,) = placement.tables
    names = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")
    document: Any = {
        "schema_version": 1,
        "spec_digest": "sha256:" + "0" * 64,
        "world_size": placement.world_size,
        "ranks_per_host": placement.ranks_per_host,
        "tables": [
            {
                "name": "t",
                "sharding_type": placed.sharding_type.label,
                "compute_kernel": placed.compute_kernel.label,
                "cache_load_factor": placed.cache_load_factor,
                "shards": [
                    {**{name: int(getattr(shard, name)) for name in names}, "tier": "hbm", "bytes": 0}
                    for shard in placed.shards
                ],
                **({"hash_table_mode": placed.hash_table_mode} if placed.hash_table_mode else {}),
            }
        ],
    }
    digest = plan_digest(document)
    device = facts.pop("device", "cuda")
    table = live_table("t", num_embeddings=96, embedding_dim=16, hash_table=live, **facts)
    found = plan_differences(
        {**document, "plan_digest": digest},
        [table],
        digest=digest,
        world_size=placement.world_size,
        ranks_per_host=placement.ranks_per_host,
        device=device,
    )
    return [difference.text for difference in found]


def problem_of(table: Table, ranks: int, **changes: Any) -> Problem:
    cluster = make_cluster(1, ranks, ddr_bytes=1e12, host_link_bytes_per_second=2e10, ddr_bytes_per_second=1e11)
    return make_problem(table, cluster=cluster, **changes)


def test_the_right_plan_passes_both() -> None:
    right = placement_of([24] * 4, hash_table_mode="mpzch")
    assert verify(problem_of(TABLE, 4), right) == ()
    assert client_reasons(right, LIVE) == []


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        (placement_of([20, 20, 20, 20, 16], hash_table_mode="mpzch"), "whole buckets"),
        (placement_of([40, 32, 24], hash_table_mode="mpzch"), "whole buckets"),
        (
            placement_of(
                [24] * 4, hash_table_mode="mpzch", compute_kernel=Kernel.FUSED_UVM_CACHING, cache_load_factor=0.5
            ),
            "does not reset rows",
        ),
        (
            placement_of([24] * 4, hash_table_mode="mpzch", compute_kernel=Kernel.KEY_VALUE, cache_load_factor=0.1),
            "does not reset rows",
        ),
        (placement_of([96], sharding_type=Scheme.TABLE_WISE, hash_table_mode="mpzch"), "row_wise"),
    ],
)
def test_plans_that_would_not_train_right_are_refused_by_both(placement: Placement, words: str) -> None:
    issues = RUNTIMES["torchrec"].check(problem_of(TABLE, placement.world_size), placement)
    assert any(issue.code == "hash-table" and words in issue.message for issue in issues), issues
    assert any(words in reason for reason in client_reasons(placement, LIVE))


def test_a_plan_of_another_mode_is_for_another_model() -> None:
    other = placement_of([24] * 4, hash_table_mode="zch")
    (issue,) = verify(problem_of(TABLE, 4), other)
    assert (issue.code, issue.pointer) == ("model-mismatch", "/tables/0/hash_table_mode")
    assert client_reasons(other, LIVE) == ['table "t": hash_table_mode is zch in the plan, mpzch in the model']
    plain = problem_of(make_table("t", 96, 16), 4)
    (issue,) = verify(plain, other)
    assert issue.message.endswith('the plan was made for hash_table_mode "zch", the spec has "none"')


def test_what_hosts_without_accelerators_cannot_train_is_refused() -> None:
    probed = placement_of([24] * 4, hash_table_mode="mpzch")
    assert any("on GPUs alone" in reason for reason in client_reasons(probed, LIVE, device="cpu"))
    hosts = make_cluster(1, 4, hbm_bytes=0, ddr_bytes=1e12, ddr_bytes_per_second=1e11)
    issues = RUNTIMES["torchrec"].check(make_problem(TABLE, cluster=hosts), probed)
    assert any("on GPUs alone" in issue.message for issue in issues)
    assert any("resets no rows with the optimizer rowwise_adagrad on CPUs" in issue.message for issue in issues)
    sorted_ids = LiveHashTable(mode="zch", eviction="lfu", eviction_interval=1)
    for optimizer, wrong in (("rowwise_adagrad", True), ("sgd", False)):
        reasons = client_reasons(
            placement_of([24] * 4, hash_table_mode="zch"), sorted_ids, device="cpu", optimizer=optimizer
        )
        assert any("resets no rows" in reason for reason in reasons) is wrong


SPEC_TABLE: Mapping[str, Any] = {
    "name": "t",
    "num_embeddings": 96,
    "embedding_dim": 16,
    "module_path": "sparse",
    "hash_table": {"mode": "mpzch", "eviction": "lru", "bucket_size": 8},
}


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, False),
        ({"num_embeddings": 90, "hash_table": {**SPEC_TABLE["hash_table"], "capacity": 96}}, False),
        ({"hash_table": {"mode": "mpzch", "eviction": "lru"}}, False),  # one bucket per rank: of any size
        ({"hash_table": {"mode": "mpzch"}}, True),
        ({"hash_table": {**SPEC_TABLE["hash_table"], "bucket_size": 16}}, True),
        ({"hash_table": {"mode": "zch", "eviction": "lru", "eviction_interval": 1}}, True),
        ({"hash_table": None}, True),
    ],
)
def test_a_spec_is_compared_with_the_model_s_hash_tables(changes: dict[str, Any], differs: bool) -> None:
    spec = {"model": {"tables": [{**SPEC_TABLE, **changes}]}}
    found = spec_differences(spec, [live_table("t", num_embeddings=96, embedding_dim=16, hash_table=LIVE)])
    assert ["hash_table is" in one.text for one in found] == [True] * differs
    plain = [live_table("t", num_embeddings=96, embedding_dim=16)]
    assert bool(spec_differences(spec, plain)) is (changes.get("hash_table", True) is not None)
