"""Placing, taking off and putting back: loads by hand, on 2 hosts x 2 ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.evaluate import rank_loads, violations
from planner.partitioners.builder import Builder, SearchView, search_view
from planner.priced import Objective
from tests.planner.builders import random_priced
from tests.planner.partitioners.hand_priced import Option, everywhere, on_host, on_rank, view_of

#: Table 0 whole or in halves, table 1 on a host or everywhere.
OPTIONS = (
    Option(0, (on_rank(4, 1, num_bytes=10),)),
    Option(0, (on_rank(2, 1, num_bytes=5), on_rank(2, 1, num_bytes=5))),
    Option(1, (on_host(1, 2, num_bytes=4),)),
    Option(1, (everywhere(1, 0, num_bytes=3),)),
)


def builder(view: SearchView) -> Builder:
    """With one second per phase as the target."""
    return Builder(view, np.ones(view.seconds.shape[1]))


def test_a_view_adds_up_options() -> None:
    """Seconds over all ranks: 4 + 1; 2 x (2 + 1); 2 ranks x (1 + 2); 4 ranks x (1 + 0)."""
    view = view_of(*OPTIONS)
    assert view.total.tolist() == [[4, 1], [4, 2], [2, 4], [4, 0]]
    assert view.total_bytes.tolist() == [[10], [10], [8], [12]]
    assert view.big.tolist() == [5, 3, 3, 1]
    assert view.largest_seconds.tolist() == [[4, 1], [2, 1], [1, 2], [1, 0]]
    assert view.largest_bytes.tolist() == [[10], [5], [4], [3]]
    assert view.touched.tolist() == [1, 1, 1, 2, 4]


def test_a_view_of_max_rank_time_has_one_phase() -> None:
    """Weighted 1 and 0: only the first phase is left of the sum."""
    view = view_of(*OPTIONS, objective=Objective.MAX_RANK_TIME)
    assert view.seconds.tolist() == [[5], [3], [3], [3], [1]]
    view = view_of(*OPTIONS, objective=Objective.MAX_RANK_TIME, weight=(1.0, 0.0))
    assert view.seconds.tolist() == [[4], [2], [2], [1], [1]]


def test_place_adds_loads_and_bytes() -> None:
    building = builder(view_of(*OPTIONS))
    assert building.place([1], [2])  # both hosts are empty: the first
    assert building.loads.tolist() == [[1, 2], [1, 2], [0, 0], [0, 0]]
    assert building.place([0], [1])  # halves go where nothing is yet, one each
    assert building.loads.tolist() == [[1, 2], [1, 2], [2, 1], [2, 1]]
    assert building.bytes.tolist() == [[4], [4], [5], [5]]
    assert building.unit_site.tolist() == [-1, 2, 3, 0, -1]
    assert building.chosen.tolist() == [1, 2]


def test_energy_by_hand() -> None:
    """Targets 2 and 1: 2 x ((4 / 2)^8 on rank 0) + 1 x (1 / 1)^8 = 2 x 256 + 1."""
    building = Builder(view_of(*OPTIONS), np.array([2.0, 1.0]))
    assert building.energy() == 0
    assert building.place([0], [0])
    assert building.energy() == pytest.approx(513)


def test_remove_and_restore_return_loads_exactly() -> None:
    building = builder(view_of(*OPTIONS))
    assert building.place([1], [3])
    before = (building.loads.copy(), building.bytes.copy(), building.unit_site.copy(), building.chosen.copy())
    assert building.place([0], [1])
    after = (building.loads.copy(), building.bytes.copy(), building.unit_site.copy(), building.chosen.copy())
    building.remove(0)
    for now, then in zip((building.loads, building.bytes, building.unit_site, building.chosen), before, strict=True):
        np.testing.assert_array_equal(now, then)
    building.restore(0, 1, after[2][1:3])
    for now, then in zip((building.loads, building.bytes, building.unit_site, building.chosen), after, strict=True):
        np.testing.assert_array_equal(now, then)


def test_what_does_not_fit_leaves_no_trace() -> None:
    """Three pieces of 6 on two ranks of 10 bytes: the third fits nowhere, and the two are taken off again."""
    pieces = tuple(on_rank(1.0, num_bytes=6) for _ in range(3))
    building = builder(view_of(Option(0, pieces), capacity=10, num_hosts=1))
    assert not building.place([0], [0])
    assert not building.loads.any()
    assert not building.bytes.any()
    assert building.unit_site.tolist() == [-1, -1, -1]
    assert building.chosen.tolist() == [-1]


def test_memory_is_filled_to_the_last_byte() -> None:
    """10 of 10 bytes fit; one more anywhere does not."""
    building = builder(view_of(Option(0, (everywhere(1.0, num_bytes=10),)), Option(1, (on_rank(1.0),)), capacity=10))
    assert building.place([0], [0])
    assert not building.place([1], [1])


def test_hosts_and_the_world_need_room_on_every_rank() -> None:
    options = (
        Option(0, (on_rank(1.0, num_bytes=8),)),
        Option(1, (on_host(1.0, num_bytes=4),)),
        Option(2, (everywhere(1.0, num_bytes=4),)),
    )
    building = builder(view_of(*options, capacity=10))
    assert building.place([0], [0])  # rank 0 has 2 bytes left
    assert building.place([1], [1])
    assert building.unit_site[1] == 1
    assert not building.place([2], [2])


def test_forbidden_ranks() -> None:
    """Rank 1 is the only one left to table 0; a table that may not use all ranks is nowhere everywhere."""
    forbidden = ((0, 0), (0, 2), (0, 3), (1, 3))
    options = (Option(0, (on_rank(1.0),)), Option(1, (on_host(1.0),)), Option(1, (everywhere(1.0),)))
    building = builder(view_of(*options, forbidden=forbidden))
    assert building.allowed(0).tolist() == [False, True, False, False]
    assert building.place([0], [0])
    assert building.unit_site[0] == 1
    assert not building.place([1], [2])
    assert building.place([1], [1])
    assert building.unit_site[1] == 0  # host 1 has rank 3


def test_apart_tables_leave_each_other_s_ranks_and_come_back() -> None:
    options = (Option(0, (on_host(1.0),)), Option(1, (on_rank(1.0),)), Option(2, (on_rank(1.0),)))
    building = builder(view_of(*options, apart=((0, 1),)))
    assert building.place([0], [0])
    assert building.allowed(1).tolist() == [False, False, True, True]
    assert building.allowed(2).all()  # not in the group
    building.remove(0)
    assert building.allowed(1).all()
    building.restore(0, 0, np.array([1]))
    assert building.allowed(1).tolist() == [True, True, False, False]


def test_a_same_rank_group_is_placed_at_once() -> None:
    """3 + 4 bytes together need a rank with 7 left: rank 0 has 6."""
    options = (
        Option(0, (on_rank(9.0, num_bytes=3),)),
        Option(1, (on_rank(9.0, num_bytes=4),)),
        Option(2, (on_rank(0.5, num_bytes=4),)),
    )
    building = builder(view_of(*options, capacity=10, num_hosts=1, same_rank=((0, 1),)))
    assert building.place([2], [2])
    assert building.place([0, 1], [0, 1])
    assert building.unit_site.tolist() == [1, 1, 0]
    assert building.chosen.tolist() == [0, 1, 2]


def test_pieces_of_one_host_take_the_host_where_they_hurt_least() -> None:
    """Host 0 carries 3 on rank 0: two pieces of 2 make (3, 4) or (5, 2) there, and (2, 2) on host 1."""
    options = (Option(0, (on_rank(3.0),)), Option(1, (on_rank(2.0), on_rank(2.0)), same_host=True))
    building = builder(view_of(*options))
    assert building.place([0], [0])
    assert building.place([1], [1])
    assert sorted(building.unit_site[1:].tolist()) == [2, 3]
    assert building.loads[:, 0].tolist() == [3, 0, 2, 2]


def test_pieces_of_one_host_go_nowhere_where_no_host_holds_them() -> None:
    """Room for one piece on each host, for two on none."""
    pieces = (on_rank(1.0, num_bytes=6), on_rank(1.0, num_bytes=6))
    options = (Option(0, pieces, same_host=True), Option(0, pieces))
    building = builder(view_of(*options, capacity=10, ranks_per_host=1))
    assert not building.place([0], [0])
    assert not building.bytes.any()
    assert building.place([0], [1])  # free to use both hosts


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(st.integers(0, 10**6), st.data())
def test_a_builder_believes_what_evaluation_finds(seed: int, data: st.DataObject) -> None:
    """Tables come and go in any order; loads and bytes are those of the assignment, and legal."""
    priced = random_priced(seed, num_tables=4, fill=0.3)
    view = search_view(priced)
    building = builder(view)
    first, last = priced.options_of_table
    for table in (*range(4), *data.draw(st.lists(st.integers(0, 3), max_size=6))):
        if building.chosen[table] >= 0:
            building.remove(table)
        option = data.draw(st.integers(int(first[table]), int(last[table]) - 1))
        if not building.place([table], [option]):
            return
    assignment = building.assignment()
    found = rank_loads(priced, assignment)
    np.testing.assert_allclose(building.loads, found.seconds, atol=1e-12)
    np.testing.assert_array_equal(building.bytes, found.bytes)
    assert violations(priced, assignment) == []
    building.remove(0)
    assert assignment.chosen_option[0] >= 0  # a copy
