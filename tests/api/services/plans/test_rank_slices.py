"""Slices in memory: cut once for all ranks, and never more of them than the budget, but for the last plan."""

import json

from api.services.plans.rank_slices import RankSlices
from planner.output.plan_document import HeadDocument


def plan(world_size: int) -> bytes:
    head = dict.fromkeys(HeadDocument.__annotations__)
    ranks = [{"rank": rank} for rank in range(world_size)]
    tables = [{"name": "t", "shards": [{"rank": rank} for rank in (0, 0, 1)]}, {"name": "u", "shards": [{"rank": 1}]}]
    return json.dumps({**head, "world_size": world_size, "tables": tables, "ranks": ranks}).encode()


def test_a_rank_without_shards_has_no_tables() -> None:
    slices = RankSlices({("ads", "a"): plan(3)}.get, max_bytes=10_000)
    assert [json.loads(one)["tables"] for one in slices.get(("ads", "a")) or ()] == [
        [{"name": "t", "shards": [{"rank": 0}, {"rank": 0}]}],
        [{"name": "t", "shards": [{"rank": 1}]}, {"name": "u", "shards": [{"rank": 1}]}],
        [],
    ]
    assert slices.find(("ads", "a", 2)) == (slices.get(("ads", "a")) or ())[2]
    assert slices.find(("ads", "a", 3)) is slices.find(("ads", "a", -1)) is slices.find(("ads", "b", 0)) is None


def test_a_plan_is_read_once_and_the_oldest_goes_first() -> None:
    reads: list[str] = []

    def find(key: tuple[str, str]) -> bytes:
        reads.append(key[1])
        return plan(2)

    size = sum(len(one) for one in RankSlices(find, max_bytes=0).get(("ads", "x")) or ())
    reads.clear()
    slices = RankSlices(find, max_bytes=2 * size)
    for digest in ("a", "a", "b", "a", "c", "a", "b"):  # c takes the place of b, and b that of c
        slices.get(("ads", digest))
    assert reads == ["a", "b", "c", "b"]
    small = RankSlices(find, max_bytes=0)
    reads.clear()
    for digest in ("a", "a", "b", "b", "a"):
        small.get(("ads", digest))
    assert reads == ["a", "b", "a"]
