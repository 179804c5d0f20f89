"""Shards are columns and read like a tuple."""

import copy
import pickle
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.vocabulary import Tier
from planner.domain.plan.placement import Placement
from planner.domain.plan.shards import Shard, Shards
from tests.planner.verification.test_verify import cut, table_wise

NUMBERS = st.integers(-3, 2**40)
SHARDS = st.builds(
    Shard,
    rank=NUMBERS,
    row_offset=NUMBERS,
    num_rows=NUMBERS,
    column_offset=NUMBERS,
    num_columns=NUMBERS,
    tier=st.sampled_from(Tier),
)


def some(count: int) -> tuple[Shard, ...]:
    return tuple(
        Shard(rank=i, row_offset=10 * i, num_rows=7, column_offset=2 * i, num_columns=2, tier=Tier(i % 3))
        for i in range(count)
    )


@given(st.lists(SHARDS, max_size=6), st.slices(6), st.lists(SHARDS, max_size=2))
def test_they_are_a_sequence_of_shards(shards: list[Shard], part: slice, more: list[Shard]) -> None:
    found = Shards.of(shards)
    assert (len(found), list(found), list(reversed(found))) == (len(shards), shards, shards[::-1])
    assert [found[i] for i in range(-len(shards), len(shards))] == [*shards, *shards]
    assert list(found[part]) == shards[part]
    assert list(Shards.joined([found, Shards.of(more)])) == [*shards, *more]
    assert found.num_cells == sum(shard.num_rows * shard.num_columns for shard in shards)
    for name in ("rank", "row_offset", "num_rows", "column_offset", "num_columns", "tier"):
        assert getattr(found, name).tolist() == [getattr(shard, name) for shard in shards]
    assert found.row_end.tolist() == [shard.row_offset + shard.num_rows for shard in shards]
    assert found.column_end.tolist() == [shard.column_offset + shard.num_columns for shard in shards]
    for shard in found:
        assert type(shard.rank) is int
        assert type(shard.tier) is Tier
    with pytest.raises(IndexError):
        found[len(shards)]


def test_equal_shards_in_the_same_order_are_equal() -> None:
    shards = some(3)
    assert Shards.of(shards) == Shards.of(shards)
    assert hash(Shards.of(shards)) == hash(Shards.of(shards))
    assert Shards.of(shards) != Shards.of(shards[::-1])
    assert Shards.of(shards) != Shards.of(shards[:2])
    assert Shards.of(shards) != shards


def test_the_same_shards_in_another_order_or_tier() -> None:
    shards = some(3)
    one, turned = Shards.of(shards), Shards.of(shards[::-1])
    assert one.are_those_of(turned)
    assert not one.are_those_of(Shards.of(shards[:2]))
    other = Shards.of([shards[0], replace(shards[1], rank=shards[1].rank + 7), shards[2]])
    assert not one.are_those_of(other, in_any_tier=True)
    moved = Shards.of([replace(shard, tier=Tier.SSD) for shard in shards[::-1]])
    assert not one.are_those_of(moved)
    assert one.are_those_of(moved, in_any_tier=True)


def test_nothing_can_be_changed() -> None:
    given_columns = np.ones((6, 2), dtype=np.int64)
    found = Shards(given_columns)
    for column in (given_columns, found.columns, found.rank, found[:1].tier, Shards.of(some(2)).num_rows):
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0
    with pytest.raises(AttributeError):
        found.rank = np.zeros(2)  # type: ignore[misc]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_equal_and_read_only(again: object) -> None:
    part = Shards.of(some(1000))[3:5]
    found = again(part)  # type: ignore[operator]
    assert found == part
    assert not found.columns.flags.writeable
    assert len(pickle.dumps(part)) < 1000


def test_columns_may_be_one_number_for_all() -> None:
    found = Shards.of_columns(rank=[4, 5], row_offset=0, num_rows=[7, 8], column_offset=0, num_columns=2, tier=Tier.DDR)
    assert [(shard.rank, shard.num_rows, shard.num_columns, shard.tier) for shard in found] == [
        (4, 7, 2, Tier.DDR),
        (5, 8, 2, Tier.DDR),
    ]
    with pytest.raises(ValueError, match="broadcast"):
        Shards.of_columns(rank=[4, 5], row_offset=0, num_rows=[1, 2, 3], column_offset=0, num_columns=2, tier=0)


@pytest.mark.parametrize("columns", [np.zeros((5, 2), dtype=np.int64), np.zeros((6, 2)), np.zeros(6, dtype=np.int64)])
def test_other_columns_are_refused(columns: np.ndarray) -> None:
    with pytest.raises(ValueError, match="Expected columns"):
        Shards(columns)


def test_parts_are_split_at_their_ends() -> None:
    shards = some(5)
    parts = Shards.of(shards).split(np.array([2, 2, 5]))
    assert [list(part) for part in parts] == [list(shards[:2]), [], list(shards[2:])]


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=6).map(sorted),
    st.randoms(),
    st.sampled_from((slice(None), slice(None, None, -1), slice(None, None, 2))),
)
def test_parts_are_joined_in_any_order(ends: list[int], random: Random, step: slice) -> None:
    shards = some(6)
    parts = [part[step] for part in Shards.of(shards).split(np.array(ends))]
    for _ in range(3):
        assert list(Shards.joined(parts)) == [shard for part in parts for shard in part]
        random.shuffle(parts)


def test_all_parts_of_a_split_are_joined_without_a_copy() -> None:
    whole = Shards.of(some(6))
    parts = whole.split(np.array([2, 2, 5, 6]))
    assert np.shares_memory(Shards.joined(parts).columns, whole.columns)
    assert np.shares_memory(Shards.joined(parts[2:]).columns, whole.columns)
    assert not np.shares_memory(Shards.joined(parts[::3]).columns, whole.columns)
    with pytest.raises(ValueError, match="read-only"):
        Shards.joined(parts).columns[0] = 1


def test_a_representation_stays_short() -> None:
    assert repr(Shards.of(some(1))) == f"Shards.of([{some(1)[0]!r}])"
    assert len(repr(Shards.of(some(1000)))) < 500


def test_the_shards_of_a_placement_and_their_tables() -> None:
    two = cut(table_wise().sharding_type, *some(2))
    placement = Placement(world_size=4, ranks_per_host=4, tables=(table_wise(), cut(two.sharding_type), two))
    assert list(placement.all_shards()) == [*table_wise().shards, *some(2)]
    assert placement.table_of_shards().tolist() == [0, 2, 2]
