"""The planner, re-made, cuts the tables that HugeCTR's printed plans cut."""

from collections import Counter

import pytest

from benchmarks.prices.reality.mlperf.hugectr_planner import Holdings, Table, held_as, planned
from benchmarks.prices.reality.mlperf.model import TABLES

SMALL_TABLES = [3, 5, 6, 7, 8, 12, 13, 15, 16, 17, 18, 24, 25]


def plan(num_gpus: int, threshold: float, gigabytes: float = 60) -> Holdings | None:
    return planned(
        TABLES,
        num_holders=num_gpus,
        holder_bytes=gigabytes * 1e9,
        mem_comm_bw_ratio=7,
        replicated_below_bytes=threshold * 1e9,
        is_by_node=False,
    )


@pytest.mark.parametrize(("threshold", "ways", "replicas"), [(0.0, {20: 4}, []), (0.008, {20: 8, 21: 2}, SMALL_TABLES)])
def test_eight_gpus_cut_what_the_printed_plans_cut(threshold: float, ways: dict[int, int], replicas: list[int]) -> None:
    """MLPerf v3.0 (XE9680 with A100) and v3.1 (XE9680 with H100)."""
    found = plan(8, threshold)
    assert found is not None
    assert {index: len(one) for index, one in enumerate(found.holders) if len(one) > 1} == ways
    assert [index for index, one in enumerate(found.holders) if not one] == replicas


def test_no_gpu_is_fuller_than_it_may_be() -> None:
    found = plan(4, 0.0)
    assert found is not None
    held: Counter[int] = Counter()
    for table, holders in zip(TABLES, found.holders, strict=True):
        for gpu in holders:
            held[gpu] += table.num_bytes / len(holders)
    assert max(held.values()) <= 60e9
    assert plan(4, 0.0, gigabytes=20) is None


def test_a_listing_is_read_by_table() -> None:
    assert held_as([[0, 2], [2]], 3).holders == ((0,), (), (0, 1))
    assert Table(num_rows=10, num_columns=4, pooling_factor=1.0).num_bytes == 320
