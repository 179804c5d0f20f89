"""What no stash takes off a rank, as a limit of the search."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.options.enumerate import enumerate_families
from planner.orchestration.limits.resident import with_resident_bytes
from planner.pricing.memory.ledger import sparse_capacity_bytes
from planner.pricing.memory.stash import Copies
from planner.pricing.price_options import price
from tests.support.planning.builders import ROOFLINE, make_problem, make_table

DENSE = Dense(forward_seconds=0.1, backward_seconds=0.2, activation_bytes=1e9)


def problem(stash: Stash | None) -> Problem:
    tables = (make_table("a", 1000, 64, optimizer="adam"), make_table("b", 2000, 64))
    return make_problem(*tables, dense=DENSE, stash=stash, pipeline="train_sparse_dist")


def test_a_problem_without_a_stash_has_no_such_limit() -> None:
    plain = problem(None)
    families = enumerate_families(plain)
    priced = price(plain, families, ROOFLINE)
    assert with_resident_bytes(priced, plain, families) is priced


@pytest.mark.parametrize("allowed", [None, frozenset({"b"})])
def test_weights_that_may_be_stashed_are_no_resident_bytes(allowed: frozenset[str] | None) -> None:
    stashing = problem(Stash(tables=allowed))
    families = enumerate_families(stashing)
    priced = price(stashing, families, ROOFLINE)
    limited = with_resident_bytes(priced, stashing, families)
    assert limited.num_tiers == priced.num_tiers + 1
    resident, held = limited.shape_bytes[:, -1], priced.shape_bytes[:, Tier.HBM]
    seen = set()
    for shape, family in enumerate(priced.shape_family.tolist()):
        table = stashing.tables[families.families[family].table]
        is_stashable = families.families[family].kernel is Kernel.FUSED and (allowed is None or table.name in allowed)
        seen.add(is_stashable)
        if not is_stashable:
            assert resident[shape] == held[shape]
        elif families.families[family].scheme.is_whole:
            assert held[shape] - resident[shape] == table.num_embeddings * 64 * 4  # state and buffers stay
    assert seen == {False, True}
    assert np.all(limited.capacity_bytes[:, -1] == pytest.approx(sparse_capacity_bytes(stashing) - 1e9))


def test_shards_that_are_too_large_to_be_copied_in_time_stay() -> None:
    # 30 GB/s for 10 us are 300 kB: table a of 256 kB can leave, table b of 512 kB cannot
    stashing = replace(problem(Stash()), dense=replace(DENSE, forward_seconds=1e-5))
    families = enumerate_families(stashing)
    priced = price(stashing, families, ROOFLINE)
    limited = with_resident_bytes(priced, stashing, families)
    leaves = limited.shape_bytes[:, -1] < priced.shape_bytes[:, Tier.HBM]
    whole = np.array([one.scheme.is_whole and one.kernel is Kernel.FUSED for one in families.families])
    table = np.array([one.table for one in families.families])
    of_shape = priced.shape_family
    assert leaves[whole[of_shape] & (table[of_shape] == 0)].all()
    assert not leaves[whole[of_shape] & (table[of_shape] == 1)].any()


def test_limits_of_copies_are_those_of_ranks_that_stash_all() -> None:
    """40 MB of 100 MB are used: 0.1 s x 0.3 GB/s x 60% of the activations of 100 MB are 18 MB."""
    copies = Copies(activation_bytes=1e8, dense_seconds=(0.1, 0.2), bytes_per_second=(3e8, 3e8), max_wait_seconds=0.0)
    used, whole = np.array([4e7]), np.array([1e8])
    assert copies.most_bytes(whole - used) == pytest.approx(1.8e7)
    for stashed, keeps in ((1.79e7, True), (1.81e7, False)):
        limits = copies.limits_of_copies(np.array([stashed]), used, whole)
        assert len(limits) == 4
        assert all(np.all(taken <= room) for taken, room in limits) is keeps


def test_plans_that_stash_all_tables_have_limits_of_their_copies() -> None:
    plain = problem(Stash())
    families = enumerate_families(plain)
    priced = price(plain, families, ROOFLINE)
    limited = with_resident_bytes(priced, problem(Stash(stashes_all=True)), families)
    assert limited.num_tiers == priced.num_tiers + 5
