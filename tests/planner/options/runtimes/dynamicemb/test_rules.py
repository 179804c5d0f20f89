"""dynamicemb as a runtime: what is offered, what is refused and why, and which plans of it are verified."""

from dataclasses import replace
from typing import Any

import pytest

from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.host_memory_fallback import allow_host_memory, spilled_kernels, spilled_labels, with_kernels_of
from planner.options.runtimes.dynamicemb.rules import DynamicEmb
from planner.options.runtimes.registry import RUNTIMES
from planner.pipeline import plan
from planner.pricing.hash_tables.dynamicemb import KEYED_LINES
from planner.pricing.hash_tables.slot_columns import SLOT_LINES
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.dynamicemb_tables import make_hash_table

RUNTIME = DynamicEmb()
ALL_KERNELS = frozenset(Kernel)


def problem_of(*tables: Table, **changes: object) -> Problem:
    return make_problem(*tables, runtime="dynamicemb", **{"cluster": make_cluster(2, 2)} | changes)


def named(*kernels: Kernel, **changes: Any) -> TableConstraints:
    return TableConstraints(compute_kernels=frozenset(kernels), **changes)


def options_of(problem: Problem, table: int = 0) -> set[tuple[Scheme, Kernel, float | None]]:
    return {
        (one.scheme, one.kernel, one.storage.cache_load_factor)
        for one in enumerate_families(problem).families
        if one.table == table
    }


def test_what_is_offered() -> None:
    """Hash tables cut by rows, in the device's memory or cached there; others copied or cut by rows as TorchRec's."""
    problem = problem_of(make_hash_table("h"), make_table("t"), kernels=ALL_KERNELS)
    assert options_of(problem) == {
        (Scheme.ROW_WISE, Kernel.HASH, None),
        (Scheme.ROW_WISE, Kernel.HASH_CACHING, 0.1),
    }
    of_other = {(scheme, kernel) for scheme, kernel, _ in options_of(problem, 1)}
    far = {Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING}
    assert of_other == {(Scheme.DATA_PARALLEL, Kernel.DENSE)} | {(Scheme.ROW_WISE, kernel) for kernel in far}


def test_kernels_that_a_group_has_in_common_are_offered_where_they_are_named() -> None:
    constraints = named(Kernel.HASH_HYBRID, Kernel.HASH_HOST, cache_load_factors=(0.3,))
    problem = problem_of(make_hash_table(constraints=constraints))
    assert options_of(problem) == {
        (Scheme.ROW_WISE, Kernel.HASH_HYBRID, 0.3),
        (Scheme.ROW_WISE, Kernel.HASH_HOST, None),
    }


def test_one_rank_has_hash_tables_as_well() -> None:
    problem = problem_of(make_hash_table(), cluster=make_cluster(1, 1))
    assert options_of(problem) == {(Scheme.ROW_WISE, Kernel.HASH, None)}


def test_host_memory_is_offered_to_tables_that_name_no_kernels() -> None:
    problem = problem_of(make_hash_table("h"))
    assert options_of(problem) == {(Scheme.ROW_WISE, Kernel.HASH, None)}
    assert spilled_kernels(problem) == (Kernel.HASH_CACHING,)
    wider = allow_host_memory(problem)
    assert wider is not None
    assert wider.kernels == HOST_KERNELS
    assert (Scheme.ROW_WISE, Kernel.HASH_CACHING, 0.1) in options_of(wider)
    both = problem_of(make_hash_table("h"), make_table("t"))
    assert spilled_kernels(both) == (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.HASH_CACHING)
    assert spilled_labels(both) == "fused_uvm, fused_uvm_caching and hash_caching"
    assert spilled_labels(problem) == "hash_caching"


@pytest.mark.parametrize("runtime", sorted(RUNTIMES.keys() - {"dynamicemb"}))
def test_no_other_runtime_has_these_kernels(runtime: str) -> None:
    constraints = named(*ALL_KERNELS)
    for table in (make_table(constraints=constraints), make_hash_table(constraints=constraints)):
        for scheme in Scheme:
            kernels = RUNTIMES[runtime].kernels(table, scheme, ALL_KERNELS)
            assert not any(kernel.facts.is_hashed for kernel in kernels)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            make_hash_table(optimizer="lamb"),
            "hash tables train with sgd, adam, adagrad, rowwise_adagrad, not with lamb",
        ),
        (replace(make_hash_table(), is_weighted=True), "weights of ids would be taken for how often an id came"),
        (make_hash_table(dim=6), "rows of a multiple of 4 columns"),
        (make_table(dim=6), "rows of a multiple of 4 columns"),
    ],
)
def test_tables_that_no_scheme_runs(table: Table, reason: str) -> None:
    assert reason in (RUNTIME.scheme_issue(table, Scheme.ROW_WISE) or "")
    assert all(RUNTIME.scheme_issue(table, scheme) for scheme in Scheme)


@pytest.mark.parametrize("scheme", sorted(set(Scheme) - {Scheme.ROW_WISE}))
def test_schemes_that_are_not_run(scheme: Scheme) -> None:
    assert RUNTIME.scheme_issue(make_hash_table(), scheme) is not None
    is_run = RUNTIME.scheme_issue(make_table(), scheme) is None
    assert is_run is (scheme is Scheme.DATA_PARALLEL)


@pytest.mark.parametrize("pooling", ["sum", "mean", "none"])
@pytest.mark.parametrize("optimizer", ["none", "sgd", "adam", "adagrad", "rowwise_adagrad"])
def test_hash_tables_that_are_run(pooling: str, optimizer: str) -> None:
    table = make_hash_table(pooling=pooling, optimizer=optimizer)
    assert RUNTIME.scheme_issue(table, Scheme.ROW_WISE) is None


@pytest.mark.parametrize(
    ("table", "reason", "hint"),
    [
        (make_hash_table(bucket_size=128), None, None),
        (make_hash_table(bucket_size=100), "buckets have a multiple of 16 slots, not 100", "use bucket_size 112"),
        (make_hash_table(rows=1000, initial=250), None, None),
        (
            make_hash_table(rows=1000, initial=251),
            "initial_capacity_per_rank 251 exceeds the 250 slots of one of 4 ranks",
            "use at most 250, or leave it out",
        ),
        (
            make_hash_table(constraints=TableConstraints(cache_load_factors=(0.1, 0.2))),
            "2 cache_load_factors: hash tables of one operator have one share",
            "name one cache_load_factor",
        ),
        (make_table(), None, None),
    ],
)
def test_hash_tables_that_a_cluster_cannot_hold(table: Table, reason: str | None, hint: str | None) -> None:
    found = RUNTIME.hash_table_issue(table, make_cluster(2, 2))
    if reason is None:
        assert found is None
        return
    assert found is not None
    assert reason in found[0]
    assert found[1] == hint


def solved(problem: Problem) -> Placement:
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    return result.plan.placement


def test_plans_are_verified() -> None:
    problem = problem_of(make_hash_table("h", optimizer="adam"), make_table("t"), make_table("m", pooling="mean"))
    placement = solved(problem)
    assert verify(problem, placement) == ()
    assert [one.compute_kernel for one in placement.tables if one.name == "h"] == [Kernel.HASH]
    assert placement.tables[0].cache_reserved_bytes is None


def test_plans_without_hash_tables_have_the_ledger_of_before() -> None:
    for table, has_lines in ((make_hash_table(), True), (make_table(), False)):
        problem = problem_of(table)
        evaluated = score(problem, solved(problem), ROOFLINE)
        for rank in evaluated.ranks:
            assert all(({*KEYED_LINES} <= lines.keys()) is has_lines for lines in rank.ledger_bytes.values())
            assert all({*SLOT_LINES}.isdisjoint(lines) for lines in rank.ledger_bytes.values())


def test_tables_that_do_not_fit_are_cached_in_host_memory() -> None:
    """100,000,000 values of 768 bytes on 4 ranks are 19.2 GB each, and a rank has 16 GB."""
    table = make_hash_table(rows=100_000_000, optimizer="adam")
    problem = problem_of(table, cluster=make_cluster(2, 2, hbm_bytes=16e9))
    placement = solved(problem)
    (placed,) = placement.tables
    assert (placed.compute_kernel, placed.cache_load_factor) == (Kernel.HASH_CACHING, 0.1)
    assert set(placed.shards.tier.tolist()) == {Tier.DDR}
    wider = with_kernels_of(problem, placement)
    assert wider.tables[0].constraints.cache_load_factors == (0.1,)
    assert verify(wider, placement) == ()


def test_an_earlier_plan_gives_a_table_its_share() -> None:
    constraints = named(Kernel.HASH_CACHING, cache_load_factors=(0.3,))
    placement = solved(problem_of(make_hash_table(constraints=constraints)))
    assert placement.tables[0].cache_load_factor == 0.3
    now = with_kernels_of(problem_of(make_hash_table()), placement)
    assert (Scheme.ROW_WISE, Kernel.HASH_CACHING, 0.3) in options_of(now)


def shards_of(rows: int, columns: int, tier: Tier, ranks: int = 4) -> Shards:
    block = -(-rows // ranks)
    return Shards.of_columns(
        rank=list(range(ranks)),
        row_offset=[block * rank for rank in range(ranks)],
        num_rows=[min(block, rows - block * rank) for rank in range(ranks)],
        column_offset=[0] * ranks,
        num_columns=[columns] * ranks,
        tier=int(tier),
    )


def placed(
    table: Table, kernel: Kernel, share: float | None = None, scheme: Scheme = Scheme.ROW_WISE
) -> TablePlacement:
    tier = kernel.tier(Tier.HBM)
    return TablePlacement(
        name=table.name,
        sharding_type=scheme,
        compute_kernel=kernel,
        shards=shards_of(table.num_embeddings, table.embedding_dim, tier),
        cache_load_factor=share,
    )


def issues_of(problem: Problem, *tables: TablePlacement) -> list[tuple[str, str, str]]:
    placement = Placement(world_size=4, ranks_per_host=2, tables=tables)
    return [(one.code, one.pointer, one.message) for one in RUNTIME.check(problem, placement)]


def test_kernels_of_the_other_kind_are_reported() -> None:
    hashed, other = make_hash_table("h"), make_table("t", rows=1000)
    problem = problem_of(hashed, other)
    assert issues_of(problem, placed(hashed, Kernel.HASH), placed(other, Kernel.FUSED)) == []
    (first, second) = issues_of(problem, placed(hashed, Kernel.FUSED), placed(other, Kernel.HASH))
    assert first[:2] == ("kernel", "/tables/0")
    assert 'table "h" has a hash_table in the spec, and fused is not a kernel of hash tables' in first[2]
    assert second[:2] == ("kernel", "/tables/1")
    assert "hash is not a kernel of other tables" in second[2]


def test_rules_of_torchrec_hold_for_hash_tables() -> None:
    """Row blocks are even, in the order of ranks, on all of them."""
    table = make_hash_table("h", rows=1000)
    problem = problem_of(table)
    uneven = Shards.of_columns(
        rank=[0, 1, 2, 3],
        row_offset=[0, 400, 600, 800],
        num_rows=[400, 200, 200, 200],
        column_offset=[0] * 4,
        num_columns=[64] * 4,
        tier=int(Tier.HBM),
    )
    codes = [code for code, _, _ in issues_of(problem, replace(placed(table, Kernel.HASH), shards=uneven))]
    assert codes == ["geometry"]


def test_whole_tables_are_reported() -> None:
    other = make_table("t", rows=1000)
    whole = replace(
        placed(other, Kernel.FUSED, scheme=Scheme.TABLE_WISE), shards=shards_of(1000, 64, Tier.HBM, ranks=1)
    )
    found = issues_of(problem_of(other), whole)
    assert [(code, pointer) for code, pointer, _ in found] == [("scheme", "/tables/0")]
    assert "neither saved nor loaded" in found[0][2]


def test_key_value_is_reported() -> None:
    other = make_table("t", rows=1000, optimizer="rowwise_adagrad")
    found = issues_of(problem_of(other), placed(other, Kernel.KEY_VALUE, 0.1))
    assert ("kernel", "/tables/0", 'table "t": dynamicemb\'s planner offers no key_value') in found


def test_pinned_hash_tables() -> None:
    pinned = PinnedTable(
        sharding_type=Scheme.ROW_WISE,
        compute_kernel=Kernel.HASH_HYBRID,
        pieces=(PinnedPiece(column_offset=0, num_columns=64, site=0),),
        cache_load_factor=0.25,
    )
    problem = problem_of(make_hash_table(constraints=TableConstraints(pinned=pinned)))
    assert options_of(problem) == {(Scheme.ROW_WISE, Kernel.HASH_HYBRID, 0.25)}
    assert verify(problem, solved(problem)) == ()


def test_device_kernels_have_the_hash_table_in_device_memory() -> None:
    assert {kernel for kernel in DEVICE_KERNELS if kernel.facts.is_hashed} == {Kernel.HASH}
