"""Storage-class memory: who may keep rows there, what they take, and plans that use it."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.errors import UnsupportedWork
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import HOST_KERNELS, Kernel, Phase, Scheme, Tier
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import PlanResult
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.checkpoint import Checkpoint
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.host_memory_fallback import allow_host_memory
from planner.orchestration.placement.listed_plan import find_plan
from planner.output.explain.explanation import explain
from planner.pipeline import plan
from planner.pricing.price_options import price
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import (
    ROOFLINE,
    SCM,
    SSD,
    TORCHREC,
    brute_force,
    make_cluster,
    make_problem,
    make_table,
)
from tests.support.planning.long_plans import explain_plan, to_document

UVM = frozenset({Kernel.FUSED_UVM})
WHOLE = frozenset({Scheme.TABLE_WISE})
LIMITS = SolveLimits(time_limit_seconds=2.0)


def problem_of(
    kernels: frozenset[Kernel] = UVM, *, runtime: str = "generic", cluster: Cluster | None = None
) -> Problem:
    """One table of 1,000 x 64 fp32 on four ranks with storage-class memory."""
    wanted = TableConstraints(sharding_types=WHOLE, compute_kernels=kernels)
    return make_problem(make_table(constraints=wanted), cluster=cluster or make_cluster(**SCM), runtime=runtime)


def tiers_of(problem: Problem) -> set[Tier]:
    return {one.storage.tier(problem.cluster.device_tier) for one in enumerate_families(problem).families}


def placed(*tiers: Tier, kernel: Kernel = Kernel.FUSED_UVM, name: str = "t", rows: int = 1000) -> Placement:
    """The table in as many column pieces as there are tiers, one on each rank."""
    width = 64 // len(tiers)
    shards = [
        Shard(rank=r, row_offset=0, num_rows=rows, column_offset=r * width, num_columns=width, tier=tier)
        for r, tier in enumerate(tiers)
    ]
    scheme = Scheme.TABLE_WISE if len(tiers) == 1 else Scheme.COLUMN_WISE
    table = TablePlacement(name=name, sharding_type=scheme, compute_kernel=kernel, shards=Shards.of(shards))
    return Placement(world_size=4, ranks_per_host=4, tables=(table,))


def test_rows_that_the_host_keeps_may_lie_in_either_of_its_memories() -> None:
    assert tiers_of(problem_of(HOST_KERNELS)) == {Tier.HBM, Tier.DDR, Tier.SCM}
    assert tiers_of(problem_of(HOST_KERNELS, cluster=make_cluster())) == {Tier.HBM, Tier.DDR}
    assert tiers_of(problem_of(HOST_KERNELS, cluster=make_cluster(**SCM, ddr_bytes=0))) == {Tier.HBM, Tier.SCM}
    assert tiers_of(problem_of(frozenset({Kernel.KEY_VALUE}), cluster=make_cluster(**SCM, **SSD))) == {Tier.SSD}


def test_every_cached_share_and_hot_share_is_listed_for_both_memories() -> None:
    table = make_table(access=ZipfAccess(alpha=1.1), constraints=TableConstraints(compute_kernels=HOST_KERNELS))
    preserved = [
        one.storage
        for one in enumerate_families(make_problem(table, cluster=make_cluster(**SCM), runtime="generic")).families
    ]
    of_scm = {replace(one, in_scm=False) for one in preserved if one.in_scm}
    assert of_scm == {
        one for one in preserved if not one.in_scm and one.kernel in (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)
    }
    assert any(one.hot_row_share > 0 for one in of_scm)


def test_torchrec_is_never_informed_of_it() -> None:
    """No families, no verified plan, nothing offered that it could use: it allocates host memory by itself."""
    with_ddr = problem_of(HOST_KERNELS, runtime="torchrec")
    assert tiers_of(with_ddr) == {Tier.HBM, Tier.DDR}
    assert {issue.code for issue in verify(problem_of(runtime="torchrec"), placed(Tier.SCM))} == {"tier"}
    without_ddr = make_cluster(**SCM, ddr_bytes=0)
    found = enumerate_families(problem_of(runtime="torchrec", cluster=without_ddr))
    assert any("the cluster has no ddr," in why for _, why in found.scheme_issues[0])
    assert allow_host_memory(make_problem(cluster=without_ddr)) is None
    assert allow_host_memory(make_problem(cluster=without_ddr, runtime="generic")) is not None


def test_hosts_without_accelerators_have_no_second_memory() -> None:
    found = enumerate_families(problem_of(cluster=make_cluster(**SCM, hbm_bytes=0.0)))
    assert found.families == ()


@pytest.mark.parametrize("name", ["scm_bytes_per_second", "scm_write_bytes_per_second"])
def test_it_is_not_offered_on_numbers_that_no_one_gave(name: str) -> None:
    numbers = {known: value for known, value in SCM.items() if known != name}
    assert allow_host_memory(make_problem(cluster=make_cluster(**numbers), runtime="generic")) is None


def test_a_model_that_has_no_price_of_it_says_so() -> None:
    with pytest.raises(UnsupportedWork, match="rows in storage-class memory"):
        score(problem_of(), placed(Tier.SCM), TORCHREC)


def test_the_ledger_by_hand() -> None:
    """256,000 B of weights and as many of AdaGrad's state there; 8,192 B of ids and 65,536 B of outputs near."""
    wanted = TableConstraints(compute_kernels=UVM)
    problem = make_problem(
        make_table(optimizer="adagrad", constraints=wanted), cluster=make_cluster(**SCM), runtime="generic"
    )
    (load, *others) = score(problem, placed(Tier.SCM), ROOFLINE).ranks
    assert load.bytes == {Tier.HBM: 8_192 + 65_536, Tier.DDR: 0, Tier.SCM: 512_000}
    assert load.capacity_bytes[Tier.SCM] == 500e9
    assert load.ledger_bytes[Tier.SCM] | {"weights": 0, "optimizer_state": 0} == dict.fromkeys(
        load.ledger_bytes[Tier.SCM], 0
    )
    assert load.ledger_bytes[Tier.SCM]["weights"] == load.ledger_bytes[Tier.SCM]["optimizer_state"] == 256_000
    assert all(other.bytes[Tier.SCM] == 0 for other in others)


def test_its_bytes_are_a_limit_of_their_own() -> None:
    assert verify(problem_of(cluster=make_cluster(**SCM | {"scm_bytes": 256_000})), placed(Tier.SCM)) == ()
    (issue,) = verify(problem_of(cluster=make_cluster(**SCM | {"scm_bytes": 255_999})), placed(Tier.SCM))
    assert issue.code == "memory"
    assert "of scm, 1 B more" in issue.message


def test_a_table_lies_in_one_memory_of_the_host() -> None:
    wanted = TableConstraints(compute_kernels=UVM)
    problem = make_problem(make_table(constraints=wanted), cluster=make_cluster(**SCM), runtime="generic")
    assert verify(problem, placed(Tier.SCM, Tier.SCM)) == ()
    assert verify(problem, placed(Tier.DDR, Tier.DDR)) == ()
    (issue,) = verify(problem, placed(Tier.SCM, Tier.DDR))
    assert (issue.code, issue.pointer) == ("tier", "/tables/0/shards/1")
    assert "keeps rows in ddr or scm, all of a table in one of them" in issue.message


def solve(problem: Problem, previous: PreviousPlan | None = None) -> PlanResult:
    return plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS, previous=previous)


def full_ddr(**changes: float) -> Problem:
    """Four tables of 25.6 MB on one rank of 20 MB: host memory takes two of them, 60 MB, and the drive any."""
    kernels = frozenset({Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE})
    wanted = TableConstraints(sharding_types=WHOLE, compute_kernels=kernels, cache_load_factors=(0.02, 0.1))
    tables = [make_table(f"t{i}", 100_000, 64, pooling_factor=8.0, constraints=wanted) for i in range(4)]
    numbers = SCM | SSD | {"hbm_bytes": 2e7, "ddr_bytes": 60e6} | changes
    return make_problem(*tables, cluster=make_cluster(1, 1, **numbers), runtime="generic")


def test_rows_that_host_memory_has_no_room_for_lie_in_storage_class_memory_before_the_drive() -> None:
    """And the plan is the best of all, as trying every one shows."""
    problem = full_ddr()
    result = solve(problem)
    assert result.plan is not None
    assert verify(problem, result.plan.placement) == ()
    tiers = [set(table.shards.tier.tolist()) for table in result.plan.placement.tables]
    assert sorted(tiers, key=min) == [{Tier.DDR}, {Tier.DDR}, {Tier.SCM}, {Tier.SCM}]
    listed = find_plan(problem, result.plan.placement, ROOFLINE)
    assert brute_force(listed.priced) == pytest.approx(objective_of(listed.priced, listed.assignment))
    (load,) = result.plan.evaluation.ranks
    assert load.bytes[Tier.SCM] == 2 * 25.6e6
    assert load.bytes[Tier.SSD] == 0
    loads = {one.tier: one for one in result.plan.evaluation.tiers}
    assert loads.keys() == {Tier.DDR, Tier.SCM}
    assert 0 < loads[Tier.SCM].utilization <= 1
    without = solve(full_ddr(scm_bytes=0))
    assert without.plan is not None
    assert without.plan.evaluation.objective_seconds > result.plan.evaluation.objective_seconds
    assert {
        "scm_bytes",
        "scm_bytes_per_second",
        "scm_write_bytes_per_second",
    } <= result.plan.evaluation.hardware_numbers


def test_memory_that_is_too_slow_is_left_to_the_drive() -> None:
    """At 2 MB/s a cache over it takes longer than one over a drive, and no tier is busy beyond the step."""
    result = solve(full_ddr(scm_bytes_per_second=2e6, scm_write_bytes_per_second=2e6))
    assert result.plan is not None
    assert all(load.tier is not Tier.SCM for load in result.plan.evaluation.tiers)
    assert any(load.tier is Tier.SSD for load in result.plan.evaluation.tiers)


class Blind:
    """The roofline of a machine whose host's memories take no time at all."""

    name, version = "blind", "1"
    counted_phases = ROOFLINE.counted_phases
    rounding = 0.0

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price the work as if all rows lay near."""
        kernel = np.full(work.num_shards, Kernel.FUSED, dtype=np.int8)
        return ROOFLINE.predict(replace(work, kernel=kernel), hardware)


def test_a_model_that_hides_its_traffic_may_not_keep_it_busier_than_a_step() -> None:
    """Two tables on two ranks, both in storage-class memory: 512 lookups of 256 B each in a step of 1 ms of dense work.

    At 10 GB/s they take 13 us of reads a table, and as much again for updates: a plan. At 10 MB/s they take longer than
    any step, on whatever rank, and what is short is named.
    """
    wanted = TableConstraints(sharding_types=WHOLE, compute_kernels=UVM)
    tables = [make_table(name, constraints=wanted, pooling_factor=4.0) for name in "ab"]
    dense = Dense(forward_seconds=5e-4, backward_seconds=5e-4)

    def solved(rate: float) -> PlanResult:
        numbers = SCM | {"ddr_bytes": 0, "scm_bytes_per_second": rate, "scm_write_bytes_per_second": rate}
        problem = make_problem(*tables, cluster=make_cluster(1, 2, **numbers), runtime="generic", dense=dense)
        return plan(problem, cost_model=Blind(), partitioner=Portfolio(), limits=LIMITS)

    fast = solved(1e10)
    assert fast.plan is not None
    (load,) = fast.plan.evaluation.tiers
    assert load.tier is Tier.SCM
    assert 0 < load.utilization <= 1
    slow = solved(1e7)
    assert (slow.plan, slow.limit) == (None, "tier_bandwidth")
    (short,) = slow.shortfalls
    assert short.resource == "scm_bytes_per_second"
    assert "fused_uvm" in short.hint  # what was solved: without the constraints there is a plan


def test_who_cannot_use_it_is_listed_and_priced_as_without_it() -> None:
    """To the bit, but for the bytes that nobody takes."""
    for kernels in (HOST_KERNELS, frozenset({Kernel.FUSED})):
        found = []
        for cluster in (make_cluster(), make_cluster(**SCM)):
            problem = problem_of(kernels, runtime="torchrec", cluster=cluster)
            families = enumerate_families(problem)
            found.append((families, price(problem, families, ROOFLINE)))
        (families, without), (same_families, priced) = found
        assert families == same_families
        assert np.array_equal(priced.shape_seconds, without.shape_seconds)
        assert np.array_equal(priced.shape_bytes, without.shape_bytes)
        assert not priced.shape_bytes[:, Tier.SCM].any()
        assert priced.capacity_bytes[:, Tier.SCM].tolist() == [500e9] * 4


def test_tables_that_name_no_kernels_are_offered_it_where_the_accelerators_are_too_small() -> None:
    """800 MB on four ranks of 100 MB and no host memory."""
    tables = [make_table(f"t{i}", 390_625, 64) for i in range(8)]
    cluster = make_cluster(hbm_bytes=100e6, ddr_bytes=0, **SCM)
    result = solve(make_problem(*tables, cluster=cluster, runtime="generic"))
    assert result.plan is not None
    assert any(table.in_scm for table in result.plan.placement.tables)
    refused = solve(make_problem(*tables, cluster=cluster))
    assert (refused.plan, refused.reason) == (None, "INFEASIBLE")


def test_the_lack_of_it_is_named() -> None:
    """102.4 MB of rows: 20 + 30 + 20 MB are too little, and what is missing is the farthest."""
    kernels = frozenset({Kernel.FUSED, Kernel.FUSED_UVM})
    problem = full_ddr(ddr_bytes=30e6, scm_bytes=20e6)
    tables = (
        replace(one, constraints=replace(one.constraints, compute_kernels=kernels, cache_load_factors=None))
        for one in problem.tables
    )
    result = solve(replace(problem, tables=tuple(tables)))
    assert result.reason == "INFEASIBLE"
    (short,) = result.shortfalls
    assert (short.resource, short.scope) == ("scm", "cluster")
    assert "of hbm and ddr and scm" in short.message


def test_hot_rows_lie_near_and_the_others_in_storage_class_memory() -> None:
    wanted = TableConstraints(sharding_types=WHOLE, compute_kernels=UVM, hot_row_fractions=(0.1,))
    table = make_table("t", 100_000, 64, access=ZipfAccess(alpha=1.2), constraints=wanted)
    problem = make_problem(table, cluster=make_cluster(1, 1, hbm_bytes=16e6, ddr_bytes=0, **SCM), runtime="generic")
    result = solve(problem)
    assert result.plan is not None
    (found,) = result.plan.placement.tables
    assert (found.hot_rows, found.shards.tier.tolist()) == (10_000, [Tier.HBM, Tier.SCM])
    assert verify(problem, result.plan.placement) == ()
    (load,) = result.plan.evaluation.ranks
    assert load.bytes[Tier.SCM] == 90_000 * 256
    assert load.ledger_bytes[Tier.HBM]["hot_rows"] == 10_000 * 256


def test_explanations_say_which_memory_and_what_a_faster_one_would_save() -> None:
    problem = full_ddr()
    result = solve(problem)
    assert result.plan is not None
    explained = explain(problem, result.plan.placement, ROOFLINE)
    reasons = [one.reason for one in explained.tables]
    assert sum(", in storage-class memory" in reason.partition(";")[0] for reason in reasons) == 2
    prices = {one.resource: one.saved_seconds for one in explained.shadow_prices}
    assert prices["scm_bytes_per_second"] is not None
    assert prices["scm_write_bytes_per_second"] is not None
    assert prices["scm_bytes_per_second"] > 0
    document = explained.to_document()
    reported = [table["tier"] for table in document["tables"]]  # type: ignore[attr-defined]
    assert sorted(reported) == ["ddr", "ddr", "scm", "scm"]
    text = explain_plan(to_document(result.plan, name="full", spec_digest="sha256:0", hardware_profile="test"))
    assert "scm" in text


def test_a_plan_that_uses_it_is_where_the_next_one_begins() -> None:
    problem = full_ddr()
    result = solve(problem)
    assert result.plan is not None
    before = PreviousPlan(placement=result.plan.placement, digest="sha256:0", remaining_steps=10)
    again = solve(problem, before)
    assert again.plan is not None
    assert again.plan.movement is not None
    assert again.plan.movement.previous_issue == ""
    assert again.plan.placement == result.plan.placement


def test_a_table_can_be_pinned_to_it() -> None:
    piece = PinnedPiece(column_offset=0, num_columns=64, site=2)
    pin = PinnedTable(sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED_UVM, pieces=(piece,), in_scm=True)
    table = make_table(constraints=TableConstraints(pinned=pin))
    problem = make_problem(table, cluster=make_cluster(**SCM), runtime="generic")
    result = solve(problem)
    assert result.plan is not None
    assert result.plan.placement.tables[0].shards[0].tier is Tier.SCM
    (shard,) = result.plan.placement.tables[0].shards
    elsewhere = replace(result.plan.placement.tables[0], shards=Shards.of([replace(shard, tier=Tier.DDR)]))
    (issue,) = verify(problem, replace(result.plan.placement, tables=(elsewhere,)))
    assert (issue.code, "is pinned to scm" in issue.message) == ("pinned", True)


def test_snapshots_read_it_and_write_host_memory() -> None:
    """256,000 B read at 10 GB/s and written to host memory at 50 GB/s; 4,000 B of row-wise state over the link."""
    checkpoint = Checkpoint(
        interval_steps=100, upload_bytes_per_second=1e9, download_bytes_per_second=1e9, policy="full"
    )
    problem = replace(problem_of(), checkpoint=checkpoint)
    rowwise = make_table(optimizer="rowwise_adagrad", constraints=problem.tables[0].constraints)
    found = score(replace(problem, tables=(rowwise,)), placed(Tier.SCM), ROOFLINE).checkpoint
    assert found is not None
    expected = 256_000 * (1 / 1e10 + 1 / 5e10) + 4_000 / 3e10
    assert found.full.snapshot_seconds == pytest.approx(expected)


def test_prices_of_the_search_and_of_the_score_are_the_same() -> None:
    """1,024 lookups of 1,000 rows of one block each at 10 GB/s, two thirds of the repeats among them."""
    problem = problem_of()
    found = score(problem, placed(Tier.SCM), ROOFLINE)
    near = score(problem, placed(Tier.DDR), ROOFLINE)
    more = (1000 + 24 * 2 / 3) * 256 * (1 / 1e10 - 1 / 3e10)
    (scm, ddr) = (one.ranks[0].seconds[Phase.FORWARD_COMPUTE] for one in (found, near))
    assert scm - ddr == pytest.approx(more)
    listed = find_plan(problem, placed(Tier.SCM), ROOFLINE)
    assert objective_of(listed.priced, listed.assignment) == pytest.approx(found.objective_seconds)
    assert np.flatnonzero(listed.priced.shape_bytes[listed.assignment.piece_shape[0]]).tolist() == [Tier.HBM, Tier.SCM]
