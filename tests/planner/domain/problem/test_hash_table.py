"""Values of hash tables that cannot be are rejected, and buckets are counted."""

from typing import Any

import pytest

from planner.domain.problem.hash_table import HASH_TABLE_MODES, HashTable, has_whole_buckets
from tests.support.planning.builders import make_table
from tests.support.planning.hash_tables import hash_table, mpzch, zch


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "cuckoo"}, "mode to be one of zch, mpzch"),
        ({"eviction": "single_ttl"}, "eviction to be one of lfu, lru, distance_lfu"),
        ({"expected_rows": 0}, "expected_rows >= 1"),
        ({"eviction_interval": 0}, "eviction_interval >= 1"),
        ({"bucket_size": 0}, "bucket_size >= 1"),
        ({"max_probe": 0}, "max_probe >= 1"),
        ({"metadata_bytes_per_slot": -8}, "metadata_bytes_per_slot >= 0"),
    ],
)
def test_numbers_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"mode": "zch", "eviction": "lfu", "expected_rows": 10, "eviction_interval": 5}
    with pytest.raises(ValueError, match=message):
        HashTable(**fields | changes)


def test_a_table_has_a_slot_for_every_id_that_is_expected() -> None:
    assert hash_table("t", 100, zch(100)).hash_table_mode == "zch"
    assert make_table(rows=100).hash_table_mode == ""
    with pytest.raises(ValueError, match="as many slots as expected_rows"):
        hash_table("t", 99, zch(100))


def test_every_block_has_as_many_whole_buckets() -> None:
    buckets = mpzch(60, bucket_size=10)
    assert [blocks for blocks in range(1, 9) if has_whole_buckets(buckets, 60, blocks)] == [1, 2, 3, 6]
    one_per_rank = mpzch(60)
    assert [blocks for blocks in range(1, 9) if has_whole_buckets(one_per_rank, 60, blocks)] == [1, 2, 3, 4, 5, 6]
    assert all(has_whole_buckets(zch(60), 60, blocks) for blocks in range(1, 9))


def test_some_modes_may_evict_no_ids() -> None:
    without = [name for name, mode in HASH_TABLE_MODES.items() if "none" in mode.evictions]
    assert without == ["mpzch", "dynamicemb", "hugectr"]
    assert [mpzch(8).evicts, mpzch(8, eviction="lru").evicts, zch(8).evicts] == [False, True, True]
