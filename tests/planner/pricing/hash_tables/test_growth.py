"""Sizes of hash tables over the life of a job: the plan reserves the last, and memory ends where it is said to."""

from dataclasses import replace
from typing import Any

import pytest

from cost_models.vocabulary import Kernel
from planner.domain.plan.growth import TableGrowth
from planner.domain.plan.plan import Plan
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.output.explain.text.growth import growth_lines
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.dynamicemb_tables import make_hash_table
from tests.support.planning.long_plans import to_document

LINES = ("weights", "optimizer_state", "row_keys", "growth")
KERNELS = (Kernel.HASH, Kernel.HASH_HOST, Kernel.HASH_HYBRID, Kernel.HASH_CACHING)


def planned(problem: Problem) -> Plan:
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5, seed=0))
    assert result.plan is not None
    return result.plan


def keyed(kernel: Kernel = Kernel.HASH, *, ranks: int = 4, **fields: Any) -> Problem:
    caches = (0.3,) if kernel.facts.is_cached else None
    constraints = TableConstraints(compute_kernels=frozenset({kernel}), cache_load_factors=caches)
    table = make_hash_table("h", constraints=constraints, optimizer="adam", **fields)
    cluster = make_cluster(1, ranks)
    return make_problem(table, cluster=cluster, runtime="dynamicemb", kernels=frozenset(Kernel))


def dynamic(ids: int, *, ranks: int = 1, optimizer: str = "adagrad", **cluster: Any) -> Problem:
    found = HashTable(mode="hugectr", eviction="none", expected_rows=ids)
    table: Table = replace(make_table("d", ids, 32, optimizer=optimizer), hash_table=found)
    return make_problem(table, cluster=make_cluster(1, ranks, **cluster), runtime="hugectr")


def growth_of(found: Plan) -> TableGrowth:
    (growth,) = found.evaluation.growth
    return growth


def test_doublings_by_hand() -> None:
    """From 40,064 slots of a rank to 250,112, each time half of them are in use, on four ranks.

    At the last doubling the index and the values of 160,256 lie next to the new ones.
    """
    growth = growth_of(planned(keyed(initial=40_000)))
    assert [step.slots_per_rank for step in growth.steps] == [40_064, 80_128, 160_256, 250_112]
    assert [step.ids for step in growth.steps] == [80_128, 160_256, 320_512, 1_000_448]
    last = growth.steps[-1]
    before = 160_256 * 21 + 160_256 // 128 * 4 + 160_256 * 768
    assert last.peak_device_bytes - last.device_bytes == before
    assert growth.fits_ids is None  # it evicts: no id beyond takes more


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("eviction", ["timestamp", "none"])
@pytest.mark.parametrize("initial", [7_000, 250_000])
def test_the_last_size_is_what_the_ledger_reserves(kernel: Kernel, eviction: str, initial: int) -> None:
    found = planned(keyed(kernel, eviction=eviction, initial=initial))
    last = growth_of(found).steps[-1]
    for load in found.evaluation.ranks:
        held = sum(of_tier.get(line, 0.0) for of_tier in load.ledger_bytes.values() for line in LINES)
        assert last.peak_device_bytes + last.host_bytes == held
    sizes = [step.device_bytes + step.host_bytes for step in growth_of(found).steps]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_maps_of_hugectr(optimizer: str) -> None:
    found = planned(dynamic(5_000_000, optimizer=optimizer))
    growth = growth_of(found)
    assert [step.slots_per_rank for step in growth.steps] == [2**20 * (2**maps - 1) for maps in (1, 2, 3, 4)]
    last = growth.steps[-1]
    (load,) = found.evaluation.ranks
    assert last.device_bytes == sum(of_tier.get(line, 0.0) for of_tier in load.ledger_bytes.values() for line in LINES)
    assert all(step.peak_device_bytes == step.device_bytes for step in growth.steps)


def test_memory_ends_where_a_plan_ends() -> None:
    """So many ids have a plan, and one more have none."""
    hbm = {"hbm_bytes": 16e9}
    fits = growth_of(planned(dynamic(1_000_000, **hbm))).fits_ids
    assert fits is not None
    assert fits > 1_000_000
    assert growth_of(planned(dynamic(fits, **hbm))).fits_ids == fits
    result = plan(
        dynamic(fits + 1, **hbm), cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5)
    )
    assert result.plan is None


def test_tables_without_eviction_grow_until_memory_ends() -> None:
    """The next doubling, and each after it, takes the size before besides."""
    found = planned(keyed(eviction="none", initial=7_000))
    growth, (load, *_) = growth_of(found), found.evaluation.ranks
    held = sum(sum(of_tier.values()) for of_tier in load.ledger_bytes.values())
    assert growth.fits_ids is not None
    doublings = growth.fits_ids // growth.steps[-1].ids
    assert growth.fits_ids == doublings * growth.steps[-1].ids
    assert doublings & (doublings - 1) == 0
    assert held * doublings < 80e9 < held * doublings * 4


def test_other_tables_do_not_grow() -> None:
    found = planned(keyed())
    assert found.evaluation.growth == ()
    document: Any = to_document(found, name="", spec_digest="", hardware_profile="")
    assert "growth" not in document
    assert growth_lines(document) == []


def test_people_read_sizes_peaks_and_the_end() -> None:
    document: Any = to_document(planned(keyed(initial=40_000)), name="", spec_digest="", hardware_profile="")
    assert "\n".join(growth_lines(document)) == (
        "Hash tables that grow, on a rank\n"
        "  h: 40,064 slots at first, 250,112 after it grew 3 times; 32.3 MB to 198.2 MB\n"
        "    on the device, 324.6 MB while it grows to 250,112"
    )
    document = to_document(planned(dynamic(500_000)), name="", spec_digest="", hardware_profile="")
    (_, *lines) = growth_lines(document)
    text = " ".join(line.strip() for line in lines)
    assert text.startswith("d: 1,048,576 slots; 302.0 MB on the device; memory ends after ")
    document["growth"] *= 10
    assert growth_lines(document)[-1].strip() == "and 2 more tables"
