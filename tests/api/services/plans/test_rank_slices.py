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
    slices = RankSlices({"a": plan(3)}.get, max_bytes=10_000)
    assert [json.loads(one)["tables"] for one in slices.get("a") or ()] == [
        [{"name": "t", "shards": [{"rank": 0}, {"rank": 0}]}],
        [{"name": "t", "shards": [{"rank": 1}]}, {"name": "u", "shards": [{"rank": 1}]}],
        [],
    ]
    assert slices.find("a#2") == (slices.get("a") or ())[2]
    assert slices.find("a#3") is slices.find("b#0") is None


def test_a_plan_is_read_once_and_the_oldest_goes_first() -> None:
    reads: list[str] = []

    def find(digest: str) -> bytes:
        reads.append(digest)
        return plan(2)

    size = sum(len(one) for one in RankSlices(find, max_bytes=0).get("x") or ())
    reads.clear()
    slices = RankSlices(find, max_bytes=2 * size)
    for digest in ("a", "a", "b", "a", "c", "a", "b"):  # c takes the place of b, and b that of c
        slices.get(digest)
    assert reads == ["a", "b", "c", "b"]
    small = RankSlices(find, max_bytes=0)
    reads.clear()
    for digest in ("a", "a", "b", "b", "a"):
        small.get(digest)
    assert reads == ["a", "b", "a"]
