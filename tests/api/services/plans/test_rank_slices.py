"""Slices are cut from plans in memory, of which there are never more than the budget allows, but for the last one."""

import json
from typing import Any

from api.services.plans.forms import COMPACT
from api.services.plans.rank_slices import RankSlices
from planner.output.documents.plan import HeadDocument


def group(ranks: str, cut: str | None = None) -> dict[str, Any]:
    place = {"row_offset": 4, "num_rows": 2, "column_offset": 0, "num_columns": 8}
    return {"ranks": ranks, "cut": cut, **place, "tier": "hbm", "bytes": 9}


def shard(rank: int, row_offset: int = 4) -> dict[str, Any]:
    place = {"row_offset": row_offset, "num_rows": 2, "column_offset": 0, "num_columns": 8}
    return {"rank": rank, **place, "tier": "hbm", "bytes": 9}


def plan(world_size: int) -> bytes:
    head = dict.fromkeys(HeadDocument.__annotations__)
    tables = [
        {"name": "t", "shards": [group("0,0-1", "rows")]},
        {"name": "u", "shards": [group("1"), group("0-1")]},
    ]
    ranks = {"rank": list(range(world_size)), "host": 0}
    document = {**head, "form": "compact", "world_size": world_size, "tables": tables, "ranks": ranks}
    return json.dumps(document).encode()


def test_a_rank_has_its_own_shards_and_its_own_load() -> None:
    slices = RankSlices({("ads", "a", COMPACT): plan(3)}.get, max_bytes=10_000)
    found = [json.loads(slices.find(("ads", "a", rank)) or b"") for rank in range(3)]
    assert [one["tables"] for one in found] == [
        [{"name": "t", "shards": [shard(0), shard(0, 6)]}, {"name": "u", "shards": [shard(0)]}],
        [{"name": "t", "shards": [shard(1, 8)]}, {"name": "u", "shards": [shard(1), shard(1)]}],
        [],
    ]
    assert [one["ranks"] for one in found] == [[{"rank": rank, "host": 0}] for rank in range(3)]
    assert "form" not in found[0]


def test_unknown_plans_and_ranks_have_no_slice() -> None:
    slices = RankSlices({("ads", "a", COMPACT): plan(3)}.get, max_bytes=10_000)
    assert slices.find(("ads", "a", 3)) is slices.find(("ads", "a", -1)) is slices.find(("ads", "b", 0)) is None


def test_a_plan_is_read_once_and_the_oldest_goes_first() -> None:
    reads: list[str] = []

    def find(key: tuple[str, str, str]) -> bytes:
        reads.append(key[1])
        return plan(2)

    slices = RankSlices(find, max_bytes=12 * len(plan(2)))  # room for two: each takes five times its bytes and an index
    for digest in ("a", "a", "b", "a", "c", "a", "b"):  # c takes the place of b, and b that of c
        slices.find(("ads", digest, 0))
    assert reads == ["a", "b", "c", "b"]
    small = RankSlices(find, max_bytes=0)
    reads.clear()
    for digest in ("a", "a", "b", "b", "a"):
        small.find(("ads", digest, 0))
    assert reads == ["a", "b", "a"]
