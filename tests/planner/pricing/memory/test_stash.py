"""Room from stashed weights: the closed form, waits of both directions, and what is reserved."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Tier
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.pricing.memory.ledger import capacity_bytes, reserved_by_tier, sparse_capacity_bytes
from planner.pricing.memory.stash import Copies, host_buffer_bytes, room_bytes
from tests.support.planning.builders import make_cluster, make_problem, make_table

#: 30 GB/s of the link both ways, 1 GB of activations that grow for 0.1 s and shrink for 0.2 s.
DENSE = Dense(forward_seconds=0.1, backward_seconds=0.2, activation_bytes=1e9)


def stashing(dense: Dense = DENSE, **stash: float) -> Problem:
    table = make_table(rows=100_000_000, dim=64)  # 25.6 GB
    return make_problem(table, dense=dense, stash=Stash(**stash), pipeline="train_sparse_dist")


def copies_of(problem: Problem) -> Copies:
    found = Copies.of(problem)
    assert found is not None
    return found


def test_room_by_hand() -> None:
    # 0.1 / (1 / 30e9 + 0.1 / 1e9) = 0.1 / (1.3333e-10) = 0.75 GB; backward 0.2 / 2.3333e-10 = 0.857 GB
    assert copies_of(stashing()).most_room_bytes() == pytest.approx(0.75e9)
    assert room_bytes(stashing()) == pytest.approx(0.95 * 0.75e9)
    assert room_bytes(stashing(room_share=0.5)) == pytest.approx(0.375e9)


def test_half_of_the_link_makes_less_room() -> None:
    # 0.1 / (1 / 15e9 + 1e-10) = 0.6 GB
    assert copies_of(stashing(link_share=0.5)).most_room_bytes() == pytest.approx(0.6e9)


def test_waits_that_are_allowed_make_room_for_all_activations_at_most() -> None:
    # (0.1 + 0.01) / 1.3333e-10 = 0.825 GB
    assert copies_of(stashing(max_wait_seconds=0.01)).most_room_bytes() == pytest.approx(0.825e9)
    assert copies_of(stashing(max_wait_seconds=10.0)).most_room_bytes() == 1e9


def test_no_more_than_the_tables_hold_makes_room() -> None:
    small = replace(stashing(), tables=(make_table(rows=1000, dim=64),))
    assert room_bytes(small) == 1000 * 64 * 4


@pytest.mark.parametrize("wait", [0.0, 0.003])
def test_the_most_room_waits_exactly_as_long_as_is_allowed(wait: float) -> None:
    copies = copies_of(stashing(max_wait_seconds=wait))
    room = copies.most_room_bytes()
    free = np.array([copies.activation_bytes - room])
    forward, backward = copies.wait_seconds(np.array([room]), free)
    assert max(forward[0], backward[0]) == pytest.approx(wait, abs=1e-12)
    assert copies.needed_bytes(free)[0] == pytest.approx(room)
    assert copies.most_bytes(free)[0] == pytest.approx(room)


def test_tables_may_use_the_room_and_the_host_keeps_buffers() -> None:
    problem, plain = stashing(), replace(stashing(), stash=None)
    room = room_bytes(problem)
    assert capacity_bytes(problem)[0, Tier.HBM] - capacity_bytes(plain)[0, Tier.HBM] == pytest.approx(room)
    assert sparse_capacity_bytes(problem)[0] == pytest.approx(capacity_bytes(plain)[0, Tier.HBM] + 1e9)
    # at most 30e9 x 0.1 s = 3 GB are copied, in buffers of up to twice that
    assert reserved_by_tier(problem, 0)[Tier.DDR]["stash_buffers"] == pytest.approx(6e9) == host_buffer_bytes(problem)
    assert capacity_bytes(plain)[0, Tier.DDR] - capacity_bytes(problem)[0, Tier.DDR] == pytest.approx(6e9)


def test_host_memory_is_never_less_than_nothing() -> None:
    tight = replace(stashing(), cluster=make_cluster(ddr_bytes=1e9))
    assert capacity_bytes(tight)[0, Tier.DDR] == 0.0


def test_nothing_is_stashed_where_no_activations_are_known() -> None:
    assert room_bytes(stashing(dense=Dense(forward_seconds=0.1))) == 0.0
    assert host_buffer_bytes(make_problem()) == 0.0
