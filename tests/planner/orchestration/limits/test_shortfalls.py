"""What is said of tables without any option, and of those that fit in total and nowhere together."""

from dataclasses import replace

from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import NO_CUT, enumerate_families
from planner.options.schemes.geometry import PREFERRED_ORDER
from planner.orchestration.limits.shortfalls import missing_options, unpackable
from planner.pricing.price_options import price
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table


def test_each_reason_is_reported_once_for_all_schemes_that_it_holds_for() -> None:
    """Two rows cannot be cut by rows over four ranks, whatever the columns are: a proof."""
    only = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    problem = make_problem(make_table("a", 2, constraints=only), cluster=make_cluster(1, 4))
    found = missing_options(problem, enumerate_families(problem))
    others = ", ".join(scheme.label for scheme in PREFERRED_ORDER if scheme is not Scheme.ROW_WISE)
    assert [short.message for short in found.shortfalls] == [
        f'table "a" has no legal option: {others}: not among the allowed sharding_types; row_wise: {NO_CUT}'
    ]
    assert found.proven


def test_a_table_that_narrower_pieces_might_help_is_no_proof() -> None:
    """32 columns are one piece of the usual width, and eight of the narrowest."""
    only = TableConstraints(sharding_types=frozenset({Scheme.COLUMN_WISE}))
    for table, proven in (
        (make_table(dim=32, constraints=only), False),
        (make_table(dim=32, constraints=replace(only, compute_kernels=frozenset({Kernel.DENSE}))), True),
    ):
        problem = make_problem(table)
        assert missing_options(problem, enumerate_families(problem)).proven is proven


def test_unpackable_tables_are_reported_against_all_tiers_that_they_may_use() -> None:
    """Three tables of 2.56 MB, whole, on two ranks of 2 MB hbm and 3.9 MB ddr: one fits on each."""
    whole = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE}), compute_kernels=frozenset({Kernel.FUSED_UVM})
    )
    cluster = make_cluster(1, 2, hbm_bytes=2e6, ddr_bytes=3.9e6)
    tables = [make_table(f"t{index}", 10_000, constraints=whole) for index in range(3)]
    problem = replace(make_problem(*tables, cluster=cluster), kernels=HOST_KERNELS)
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    (short,) = unpackable(problem, priced, proven=True).shortfalls
    assert "of the cluster's 4.0 MB of hbm and 7.8 MB of ddr, but no placement" in short.message
    assert short.available_bytes == 2 * 2e6 + 2 * 3.9e6
    assert 3 * 2.56e6 <= short.required_bytes < short.available_bytes


def test_unpackable_tables_of_one_tier_are_reported_against_that() -> None:
    problem = make_problem(make_table("a", 10_000), cluster=make_cluster(1, 2, hbm_bytes=2e6))
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    (short,) = unpackable(problem, priced, proven=True).shortfalls
    assert "of the cluster's 4.0 MB of hbm, but no placement" in short.message
