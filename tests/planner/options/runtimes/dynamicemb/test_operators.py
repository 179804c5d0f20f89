"""Hash tables that one operator holds agree in what it has once, in specs and in plans."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel
from planner.domain.plan.placement import Placement
from planner.domain.problem.table import Table, TableConstraints
from planner.options.runtimes.base import OperatorIssue
from planner.options.runtimes.dynamicemb.rules import DynamicEmb
from tests.planner.options.runtimes.dynamicemb.test_rules import named, placed, problem_of
from tests.support.planning.builders import make_table
from tests.support.planning.dynamicemb_tables import make_hash_table

RUNTIME = DynamicEmb()


def found_in(*tables: Table) -> list[OperatorIssue]:
    return list(RUNTIME.operator_issues({f"/{index}": table for index, table in enumerate(tables)}))


def test_tables_that_name_nothing_agree() -> None:
    assert found_in(make_hash_table("a"), make_hash_table("b", dim=128), make_table("c")) == []


def test_buckets_are_those_of_the_first() -> None:
    (issue,) = found_in(make_hash_table("a"), make_hash_table("b", bucket_size=512), make_hash_table("c"))
    assert (issue.where, issue.name, issue.field) == ("/1", "b", "hash_table/bucket_size")
    assert 'has buckets of 512 slots, and "a" of the same operator of 128' in issue.message
    assert issue.hint == "use bucket_size 128, or another module_path"


@pytest.mark.parametrize(
    "apart",
    [
        {"module_path": "other"},
        {"pooling": "mean"},
        {"data_type": "fp16"},
        {"optimizer": "adam"},
        {"eviction": "lfu"},
    ],
)
def test_tables_of_different_operators_may_differ(apart: dict[str, str]) -> None:
    assert found_in(make_hash_table("a"), make_hash_table("b", bucket_size=512, **apart)) == []


def test_a_cache_is_an_operator_of_its_own() -> None:
    """One table in the device's memory, another cached there: their values are added up apart."""
    on_device, cached = named(Kernel.HASH), named(Kernel.HASH_CACHING, cache_load_factors=(0.3,))
    assert found_in(make_hash_table("a", constraints=on_device), make_hash_table("b", constraints=cached)) == []


def test_shares_of_one_operator_are_one() -> None:
    some = [TableConstraints(cache_load_factors=(share,)) for share in (0.1, 0.3)]
    (issue,) = found_in(*(make_hash_table(f"t{i}", constraints=one) for i, one in enumerate(some)))
    assert (issue.where, issue.field) == ("/1", "constraints")
    assert "hash_caching with cache_load_factor 0.1 or hash_caching with cache_load_factor 0.3" in issue.message


def test_only_one_place_of_values_in_one_operator() -> None:
    hybrid = named(Kernel.HASH_HYBRID, cache_load_factors=(0.2,))
    (issue,) = found_in(make_hash_table("a"), make_hash_table("b", constraints=hybrid))
    assert (issue.where, issue.name) == ("/1", "b")
    assert "may be hash or hash_hybrid with cache_load_factor 0.2" in issue.message
    assert found_in(*(make_hash_table(name, constraints=hybrid) for name in "ab")) == []
    assert found_in(make_hash_table("a", constraints=named(Kernel.HASH, Kernel.HASH_HOST))) == []


def test_plans_are_checked_alike() -> None:
    tables = [make_hash_table(name) for name in "abc"]
    problem = problem_of(*tables)

    def messages(*kernels: tuple[Kernel, float | None]) -> list[tuple[str, str]]:
        shards = tuple(placed(table, *one) for table, one in zip(tables, kernels, strict=True))
        found = RUNTIME.check(problem, Placement(world_size=4, ranks_per_host=2, tables=shards))
        return [(issue.code, issue.pointer) for issue in found]

    caching, hash_, host = (Kernel.HASH_CACHING, 0.1), (Kernel.HASH, None), (Kernel.HASH_HOST, None)
    assert messages(caching, hash_, caching) == []
    assert messages(hash_, host, caching) == [("operator", "/tables/1")]
    assert messages(caching, hash_, (Kernel.HASH_CACHING, 0.2)) == [("operator", "/tables/2")]
    hybrid = (Kernel.HASH_HYBRID, 0.1)
    assert messages(hybrid, hybrid, (Kernel.HASH_HYBRID, 0.3)) == [("operator", "/tables/2")]


def test_tables_of_a_plan_that_the_spec_lacks_are_left_to_verification() -> None:
    table = make_hash_table("a")
    other = replace(placed(table, Kernel.HASH), name="unknown")
    placement = Placement(world_size=4, ranks_per_host=2, tables=(placed(table, Kernel.HASH), other))
    assert RUNTIME.check(problem_of(table), placement) == []
