"""One test per way in which a placement can be wrong."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.table import PinnedPiece, PinnedTable, TableConstraints
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table

WHOLE = Shard(rank=0, row_offset=0, num_rows=1000, column_offset=0, num_columns=64, tier=Tier.HBM)


def table_wise(name: str = "t", **changes: object) -> TablePlacement:
    shard = replace(WHOLE, **changes)  # type: ignore[arg-type]
    return TablePlacement(
        name=name, sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=Shards.of([shard])
    )


def codes(problem: object, *tables: TablePlacement, world_size: int = 4) -> set[str]:
    placement = Placement(world_size=world_size, ranks_per_host=4, tables=tables)
    return {issue.code for issue in verify(problem, placement)}  # type: ignore[arg-type]


def test_a_right_plan_has_no_issues() -> None:
    assert codes(make_problem(), table_wise()) == set()


def test_another_cluster() -> None:
    assert codes(make_problem(), table_wise(), world_size=8) == {"cluster-mismatch"}


def test_table_sets() -> None:
    problem = make_problem(make_table("a"), make_table("b"))
    assert codes(problem, table_wise("a")) == {"missing-table"}
    assert codes(problem, table_wise("a"), table_wise("b"), table_wise("c")) == {"unknown-table"}
    assert codes(problem, table_wise("a"), table_wise("b"), table_wise("a")) == {"table-twice"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"rank": 4}, "rank-out-of-range"),
        ({"rank": -1}, "rank-out-of-range"),
        ({"num_rows": 1001}, "shard-out-of-range"),
        ({"column_offset": 4}, "shard-out-of-range"),
        ({"num_rows": 0}, "shard-out-of-range"),
        ({"num_rows": 999}, "gap"),
        ({"tier": Tier.DDR}, "tier"),
    ],
)
def test_shards_that_do_not_exist(change: dict[str, object], code: str) -> None:
    assert code in codes(make_problem(), table_wise(**change))


def test_overlap_is_found_even_when_the_area_is_right() -> None:
    """Two copies of the left half: 64,000 cells in all, half of them missing."""
    left = replace(WHOLE, num_columns=32)
    twice = TablePlacement(
        name="t",
        sharding_type=Scheme.COLUMN_WISE,
        compute_kernel=Kernel.FUSED,
        shards=Shards.of([left, replace(left, rank=1)]),
    )
    assert codes(make_problem(), twice) == {"overlap"}


@given(st.lists(st.integers(1, 15), min_size=0, max_size=5, unique=True), st.integers(0, 5))
def test_only_exact_covers_pass(cuts: list[int], drop: int) -> None:
    edges = [0, *(4 * cut for cut in sorted(cuts)), 64]
    shards = [
        replace(WHOLE, rank=i % 4, column_offset=a, num_columns=b - a)
        for i, (a, b) in enumerate(itertools.pairwise(edges))
    ]
    one = TablePlacement(
        name="t", sharding_type=Scheme.COLUMN_WISE, compute_kernel=Kernel.FUSED, shards=Shards.of(shards)
    )
    assert codes(make_problem(), one) == set()
    if drop < len(shards):
        rest = replace(one, shards=Shards.of(shards[:drop] + shards[drop + 1 :]))
        assert "gap" in codes(make_problem(), rest)


def test_data_parallel_is_one_full_copy_per_rank() -> None:
    copies = Shards.of(replace(WHOLE, rank=rank) for rank in range(4))
    full = TablePlacement(name="t", sharding_type=Scheme.DATA_PARALLEL, compute_kernel=Kernel.DENSE, shards=copies)
    assert codes(make_problem(), full) == set()
    assert "cover" in codes(make_problem(), replace(full, shards=copies[:3]))
    assert "cover" in codes(
        make_problem(), replace(full, shards=Shards.of([*copies[:3], replace(copies[3], num_rows=999)]))
    )


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE})), "sharding-type"),
        (TableConstraints(compute_kernels=frozenset({Kernel.DENSE})), "kernel"),
        (TableConstraints(ranks=frozenset({1, 2})), "rank"),
        (TableConstraints(hosts=frozenset({1})), "host"),
    ],
)
def test_what_the_user_allowed(wanted: TableConstraints, code: str) -> None:
    problem = make_problem(make_table(constraints=wanted), cluster=make_cluster(2, 4))
    placement = Placement(world_size=8, ranks_per_host=4, tables=(table_wise(),))
    assert {issue.code for issue in verify(problem, placement)} == {code}


def test_min_partition() -> None:
    wanted = TableConstraints(min_partition=48)
    halves = tuple(replace(WHOLE, rank=i, column_offset=32 * i, num_columns=32) for i in range(2))
    narrow = cut(Scheme.COLUMN_WISE, *halves)
    assert codes(make_problem(make_table(constraints=wanted)), narrow) == {"min-partition"}
    assert codes(make_problem(make_table(constraints=wanted)), table_wise()) == set()


def pinned_to(scheme: Scheme, *pieces: tuple[int, int, int], kernel: Kernel = Kernel.FUSED) -> TableConstraints:
    """Pieces as (offset, width, site)."""
    made = tuple(PinnedPiece(column_offset=o, num_columns=n, site=site) for o, n, site in pieces)
    return TableConstraints(pinned=PinnedTable(sharding_type=scheme, compute_kernel=kernel, pieces=made))


def cut(scheme: Scheme, *shards: Shard, kernel: Kernel = Kernel.FUSED) -> TablePlacement:
    return TablePlacement(name="t", sharding_type=scheme, compute_kernel=kernel, shards=Shards.of(shards))


HALVES = tuple(replace(WHOLE, rank=3 - i, column_offset=32 * i, num_columns=32) for i in range(2))
LOWER_HOST = tuple(replace(WHOLE, rank=i, row_offset=250 * i, num_rows=250) for i in range(4))
UPPER_HOST = tuple(replace(shard, rank=shard.rank + 4) for shard in LOWER_HOST)


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        (
            pinned_to(Scheme.TABLE_WISE, (0, 64, 1)),
            cut(Scheme.TABLE_WISE, replace(WHOLE, rank=1)),
            cut(Scheme.TABLE_WISE, WHOLE),
        ),
        (
            pinned_to(Scheme.TABLE_WISE, (0, 64, 0), kernel=Kernel.DENSE),
            cut(Scheme.TABLE_WISE, WHOLE, kernel=Kernel.DENSE),
            cut(Scheme.TABLE_WISE, WHOLE),
        ),
        (
            pinned_to(Scheme.COLUMN_WISE, (0, 32, 3), (32, 32, 2)),
            cut(Scheme.COLUMN_WISE, *HALVES),
            cut(Scheme.COLUMN_WISE, replace(HALVES[0], rank=2), replace(HALVES[1], rank=3)),
        ),
        (
            pinned_to(Scheme.COLUMN_WISE, (0, 32, 3), (32, 32, 2)),
            cut(Scheme.COLUMN_WISE, *HALVES),
            cut(Scheme.TABLE_COLUMN_WISE, *HALVES),
        ),
        (
            pinned_to(Scheme.COLUMN_WISE, (0, 32, 3), (32, 32, 3)),
            cut(Scheme.COLUMN_WISE, *(replace(half, rank=3) for half in HALVES)),
            cut(
                Scheme.COLUMN_WISE,
                replace(HALVES[0], rank=3, num_columns=24),
                replace(HALVES[1], rank=3, column_offset=24, num_columns=40),
            ),
        ),
        (
            pinned_to(Scheme.TABLE_ROW_WISE, (0, 64, 1)),
            cut(Scheme.TABLE_ROW_WISE, *UPPER_HOST),
            cut(Scheme.TABLE_ROW_WISE, *LOWER_HOST),
        ),
        (
            pinned_to(Scheme.ROW_WISE, (0, 64, 0)),
            cut(Scheme.ROW_WISE, *(replace(WHOLE, rank=i, row_offset=125 * i, num_rows=125) for i in range(8))),
            cut(Scheme.TABLE_ROW_WISE, *LOWER_HOST),
        ),
        (
            pinned_to(Scheme.DATA_PARALLEL, (0, 64, 0), kernel=Kernel.DENSE),
            cut(Scheme.DATA_PARALLEL, *(replace(WHOLE, rank=i) for i in range(8)), kernel=Kernel.DENSE),
            cut(Scheme.TABLE_WISE, WHOLE),
        ),
    ],
)
def test_a_pinned_table_is_where_it_was_pinned(
    wanted: TableConstraints, right: TablePlacement, wrong: TablePlacement
) -> None:
    problem = make_problem(make_table(constraints=wanted), cluster=make_cluster(2, 4))
    assert codes(problem, right, world_size=8) == set()
    assert codes(problem, wrong, world_size=8) == {"pinned"}
    assert codes(make_problem(cluster=make_cluster(2, 4)), wrong, world_size=8) == set()


def test_the_message_says_what_is_pinned_and_what_is_not_there() -> None:
    problem = make_problem(make_table(constraints=pinned_to(Scheme.COLUMN_WISE, (0, 32, 3), (32, 32, 1))))
    other = Placement(world_size=4, ranks_per_host=4, tables=(table_wise(),))
    (issue,) = verify(problem, other)
    assert "is pinned to column_wise with kernel fused, not table_wise with fused" in issue.message
    (issue,) = verify(problem, replace(other, tables=(cut(Scheme.COLUMN_WISE, *HALVES),)))
    assert issue.pointer == "/tables/0/shards/1"
    assert "columns 32 to 63 are not pinned to rank 2" in issue.message
    assert issue.hint


def test_groups() -> None:
    tables = [make_table(name) for name in "ab"]
    together, apart = ({"same_rank": (frozenset({0, 1}),)}, {"apart": (frozenset({0, 1}),)})
    same, different = (table_wise("a"), table_wise("b")), (table_wise("a"), table_wise("b", rank=1))
    assert codes(make_problem(*tables, **together), *same) == set()
    assert codes(make_problem(*tables, **together), *different) == {"same-rank"}
    assert codes(make_problem(*tables, **apart), *same) == {"apart"}
    assert codes(make_problem(*tables, **apart), *different) == set()


ANY_KERNEL = frozenset(Kernel)


def cached(share: float | None, tier: Tier = Tier.DDR) -> TablePlacement:
    return replace(table_wise(tier=tier), compute_kernel=Kernel.FUSED_UVM_CACHING, cache_load_factor=share)


def test_a_cached_table_says_its_share_and_lies_in_host_memory() -> None:
    problem = make_problem(make_table(constraints=TableConstraints(compute_kernels=ANY_KERNEL)))
    assert codes(problem, cached(0.3)) == set()
    assert codes(problem, cached(None)) == {"cache"}
    assert codes(problem, cached(0.3, Tier.HBM)) == {"tier"}
    assert codes(problem, cached(0.3, Tier.SSD)) == {"tier"}


def test_only_shares_that_the_user_listed() -> None:
    wanted = TableConstraints(compute_kernels=ANY_KERNEL, cache_load_factors=(0.1, 0.3))
    problem = make_problem(make_table(constraints=wanted))
    assert codes(problem, cached(0.3)) == set()
    placement = Placement(world_size=4, ranks_per_host=4, tables=(cached(0.2),))
    (issue,) = verify(problem, placement)
    assert issue.code == "cache"
    assert "0.2" in issue.message


def test_kernels_of_host_memory_must_be_allowed_by_name_where_kernels_are_named() -> None:
    wanted = TableConstraints(compute_kernels=frozenset({Kernel.FUSED}))
    assert codes(make_problem(make_table(constraints=wanted)), cached(0.3)) == {"kernel"}
    assert codes(make_problem(), cached(0.3)) == set()


def test_a_pinned_share_is_preserved() -> None:
    pin = PinnedTable(
        sharding_type=Scheme.TABLE_WISE,
        compute_kernel=Kernel.FUSED_UVM_CACHING,
        cache_load_factor=0.3,
        pieces=(PinnedPiece(column_offset=0, num_columns=64, site=0),),
    )
    problem = make_problem(make_table(constraints=TableConstraints(pinned=pin)))
    assert codes(problem, cached(0.3)) == set()
    assert codes(problem, cached(0.2)) == {"pinned"}


def test_only_data_types_that_the_user_listed() -> None:
    problem = make_problem(make_table(constraints=TableConstraints(data_types=("fp16", "bf16"))))
    assert codes(problem, replace(table_wise(), data_type="fp16")) == set()
    assert codes(problem, replace(table_wise(), data_type="fp32")) == {"model-mismatch"}


def test_memory_of_every_tier_is_a_limit() -> None:
    """Weights of 256,000 B lie in host memory; 8,192 + 65,536 B of ids and outputs stay with the accelerator."""
    uncached = replace(table_wise(tier=Tier.DDR), compute_kernel=Kernel.FUSED_UVM)
    placement = Placement(world_size=4, ranks_per_host=4, tables=(uncached,))
    enough = {"hbm_bytes": 73_728, "ddr_bytes": 256_000}
    assert verify(make_problem(cluster=make_cluster(**enough)), placement) == ()
    for name, label in (("hbm_bytes", "hbm"), ("ddr_bytes", "ddr")):
        short = make_cluster(**{**enough, name: enough[name] - 1})
        (issue,) = verify(make_problem(cluster=short), placement)
        assert issue.code == "memory"
        assert f"of {label}, 1 B more" in issue.message


def test_a_broken_rule_hides_no_lack_of_memory() -> None:
    wanted = TableConstraints(compute_kernels=frozenset({Kernel.FUSED_UVM_CACHING}))
    short = make_problem(make_table(constraints=wanted), cluster=make_cluster(hbm_bytes=329_727))
    assert codes(short, table_wise()) == {"kernel", "memory"}
    # What is on no rank has no bytes there.
    assert codes(short, table_wise(rank=9)) == {"kernel", "rank-out-of-range"}


def test_memory_names_rank_and_shortfall() -> None:
    """256,000 B of weights + 8,192 B of ids + 65,536 B of outputs = 329,728 B on rank 0."""
    fits = make_problem(cluster=make_cluster(hbm_bytes=329_728))
    short = make_problem(cluster=make_cluster(hbm_bytes=329_727))
    assert codes(fits, table_wise()) == set()
    placement = Placement(world_size=4, ranks_per_host=4, tables=(table_wise(),))
    (issue,) = verify(short, placement)
    assert issue.code == "memory"
    assert "rank 0" in issue.message
    assert "1 B more" in issue.message


@pytest.mark.parametrize(
    "stated",
    [{"module_path": "other.ebc"}, {"data_type": "fp16"}, {"pooling": "mean"}],
    ids=lambda stated: next(iter(stated)),
)
def test_a_plan_for_another_model(stated: dict[str, str]) -> None:
    problem = make_problem(make_table(module_path="sparse.ebc"))
    right = replace(table_wise(), module_path="sparse.ebc", data_type="fp32", pooling="sum")
    assert codes(problem, right) == set()
    assert codes(problem, replace(right, **stated)) == {"model-mismatch"}  # type: ignore[arg-type]


def test_every_offender_of_many_tables_is_named_with_its_place() -> None:
    """Good tables, one that nobody knows, and two with faults: in the order of the plan, all of a table together."""
    problem = make_problem(*(make_table(name) for name in "abc"))
    misplaced, empty = replace(HALVES[1], rank=9, tier=Tier.DDR), replace(HALVES[1], num_rows=0)
    faulty = cut(Scheme.COLUMN_WISE, HALVES[0], misplaced, empty)
    tables = (
        table_wise("a"),
        replace(table_wise("x", rank=9), sharding_type=Scheme.ROW_WISE),
        replace(faulty, name="b"),
        table_wise("c", num_rows=1001),
    )
    found = verify(problem, Placement(world_size=4, ranks_per_host=4, tables=tables))
    assert [(issue.code, issue.pointer) for issue in found] == [
        ("unknown-table", "/tables/1"),
        ("rank-out-of-range", "/tables/2/shards/1"),
        ("tier", "/tables/2/shards/1"),
        ("shard-out-of-range", "/tables/2/shards/2"),
        ("overlap", "/tables/2/shards/2"),
        ("shard-out-of-range", "/tables/3/shards/0"),
        ("gap", "/tables/3"),
    ]
    assert found[1].message == 'table "b": rank 9 of 4'
    assert found[2].message == 'table "b": kernel fused keeps rows in hbm'
    assert found[3].message == 'table "b" has 1000 x 64 cells; this shard is not a non-empty part of them'
    assert found[6].message == 'table "c": -64 cells are on no rank'
