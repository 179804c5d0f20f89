"""Host memory is offered to who said nothing of kernels, and never on numbers that nobody gave."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.host_memory_fallback import (
    allow_host_memory,
    explain_missing_host_memory,
    spilled_kernels,
    with_kernels_of,
)
from planner.options.storages import CACHE_LOAD_FACTORS
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

FUSED_ONLY = TableConstraints(compute_kernels=frozenset({Kernel.FUSED}))


def without(name: str) -> Cluster:
    """A cluster of which one number is not known."""
    cluster = make_cluster()
    numbers = {known: value for known, value in cluster.hardware.numbers.items() if known != name}
    return replace(cluster, hardware=replace(cluster.hardware, numbers=numbers))


def test_tables_that_name_no_kernels_are_offered_host_memory() -> None:
    problem = make_problem(make_table("a", constraints=FUSED_ONLY), make_table("b"))
    wider = allow_host_memory(problem)
    assert wider is not None
    assert wider == replace(problem, kernels=HOST_KERNELS)
    kernels = {(one.table, one.kernel) for one in enumerate_families(wider).families}
    assert {kernel for table, kernel in kernels if table == 0} == {Kernel.FUSED}
    assert {kernel for table, kernel in kernels if table == 1} == {
        kernel for kernel in HOST_KERNELS if not kernel.facts.is_hashed
    }
    assert spilled_kernels(problem) == (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)


def test_what_is_offered_already_is_not_offered_again() -> None:
    wider = allow_host_memory(make_problem())
    assert wider is not None
    assert allow_host_memory(wider) is None


@pytest.mark.parametrize("name", ["ddr_bytes", "ddr_bytes_per_second", "host_link_bytes_per_second"])
def test_a_number_that_no_one_gave_is_not_asked_for(name: str) -> None:
    assert allow_host_memory(make_problem(cluster=without(name))) is None


@pytest.mark.parametrize("overrides", [{"ddr_bytes": 0}, {"hbm_bytes": 0}], ids=["no ddr", "host memory is all"])
def test_hosts_without_either_memory_allow_nothing_more(overrides: dict[str, float]) -> None:
    assert allow_host_memory(make_problem(cluster=make_cluster(**overrides))) is None


def test_a_runtime_that_keeps_all_rows_on_the_device_is_offered_nothing_more() -> None:
    """Nor is a rate asked for that it would not use."""
    assert allow_host_memory(make_problem(runtime="generic")) is not None
    assert allow_host_memory(make_problem(runtime="hugectr")) is None
    unknown = without("ddr_bytes_per_second")
    assert "ddr_bytes_per_second" in explain_missing_host_memory(make_problem(cluster=unknown, runtime="generic"))
    assert explain_missing_host_memory(make_problem(cluster=unknown, runtime="hugectr")) == ""


def placed(kernel: Kernel, share: float | None = None) -> Placement:
    """Table t, whole on rank 0."""
    tier = Tier.HBM if kernel is Kernel.FUSED else Tier.DDR
    shard = Shard(rank=0, row_offset=0, num_rows=1000, column_offset=0, num_columns=64, tier=tier)
    table = TablePlacement(
        name="t",
        sharding_type=Scheme.TABLE_WISE,
        compute_kernel=kernel,
        cache_load_factor=share,
        shards=Shards.of([shard]),
    )
    return Placement(world_size=4, ranks_per_host=4, tables=(table,))


def test_a_plan_in_host_memory_brings_its_kernels_and_shares() -> None:
    """What runs already is among what is listed, with the shares that are listed anyway."""
    problem = make_problem()
    assert with_kernels_of(problem, placed(Kernel.FUSED)) == problem
    assert with_kernels_of(problem, placed(Kernel.FUSED_UVM)).kernels == HOST_KERNELS
    found = with_kernels_of(problem, placed(Kernel.FUSED_UVM_CACHING, 0.123))
    shares = {one.storage.cache_load_factor for one in enumerate_families(found).families}
    assert shares == {None, 0.123, *CACHE_LOAD_FACTORS}
    listed = with_kernels_of(problem, placed(Kernel.FUSED_UVM_CACHING, CACHE_LOAD_FACTORS[0]))
    assert listed.tables == problem.tables


def test_a_plan_does_not_bring_what_the_user_ruled_out() -> None:
    """A share that the user does not list is not listed because a plan of before had it."""
    only = TableConstraints(cache_load_factors=(0.1, 0.2), compute_kernels=frozenset({Kernel.FUSED_UVM_CACHING}))
    problem = make_problem(make_table(constraints=only))
    found = with_kernels_of(problem, placed(Kernel.FUSED_UVM_CACHING, 0.5))
    assert {one.storage.cache_load_factor for one in enumerate_families(found).families} == {0.1, 0.2}


def test_a_share_that_is_none_is_not_listed() -> None:
    found = with_kernels_of(make_problem(), placed(Kernel.FUSED_UVM_CACHING, 1.5))
    assert found.tables == make_problem().tables


def test_a_rate_that_keeps_host_memory_out_is_named_with_its_place() -> None:
    """Without a plan for want of memory; where host memory is offered, or there is none, nothing is said of it."""
    cluster = without("ddr_bytes_per_second")
    small = cluster.hardware.with_overrides({"hbm_bytes": 1e5}, {"hbm_bytes": "bytes"})
    problem = make_problem(make_table("a", 10_000), cluster=replace(cluster, hardware=small))
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1.0))
    assert result.plan is None
    assert result.detail.endswith("does not state its rates: give /hardware/overrides/ddr_bytes_per_second")
    assert explain_missing_host_memory(make_problem()) == ""
    assert explain_missing_host_memory(make_problem(cluster=make_cluster(ddr_bytes=0))) == ""
