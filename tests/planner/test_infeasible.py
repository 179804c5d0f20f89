"""What is said of tables that fit in total and nowhere together."""

from dataclasses import replace

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem import HOST_KERNELS
from planner.domain.table import TableConstraints
from planner.enumerate import enumerate_families
from planner.infeasible import unpackable
from planner.pricing import price
from tests.planner.builders import ROOFLINE, make_cluster, make_problem, make_table


def test_unpackable_tables_are_told_against_all_tiers_that_they_may_use() -> None:
    """Three tables of 2.56 MB, whole, on two ranks of 2 MB hbm and 3.9 MB ddr: one fits on each."""
    whole = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE}), compute_kernels=frozenset({Kernel.FUSED_UVM})
    )
    cluster = make_cluster(1, 2, hbm_bytes=2e6, ddr_bytes=3.9e6)
    tables = [make_table(f"t{index}", 10_000, constraints=whole) for index in range(3)]
    problem = replace(make_problem(*tables, cluster=cluster), kernels=HOST_KERNELS)
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    (short,) = unpackable(problem, priced, proven=True).shortfalls
    assert "of the cluster's 3.8 MiB of hbm and 7.4 MiB of ddr, but no placement" in short.message
    assert short.available_bytes == 2 * 2e6 + 2 * 3.9e6
    assert 3 * 2.56e6 <= short.required_bytes < short.available_bytes


def test_unpackable_tables_of_one_tier_are_told_against_that() -> None:
    problem = make_problem(make_table("a", 10_000), cluster=make_cluster(1, 2, hbm_bytes=2e6))
    priced = price(problem, enumerate_families(problem), ROOFLINE)
    (short,) = unpackable(problem, priced, proven=True).shortfalls
    assert "of the cluster's 3.8 MiB of hbm, but no placement" in short.message
