"""What a step moves through host memory and block storage, by hand."""

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Tier
from planner.pricing.memory.tier_traffic import shard_traffic
from tests.support.cost_models.shard_work import shard_work
from tests.support.planning.builders import SCM, make_hardware

HARDWARE = make_hardware(
    ssd_bytes=1e13,
    ssd_bytes_per_second=4e9,
    ssd_write_bytes_per_second=2e9,
    ssd_reads_per_second=1e6,
    ssd_block_bytes=4096.0,
)


def test_rows_in_the_devices_memory_load_no_other_tier() -> None:
    found = shard_traffic(shard_work(kernel=Kernel.FUSED), HARDWARE)
    assert not any(one.any() for one in (found.read_bytes, found.written_bytes, found.busy_seconds))


def test_direct_reads_and_updates() -> None:
    """Of 1,000 lookups 100 rows and two thirds of 900 repeats are read, 700 x 512 B; the updates of 100 distinct rows
    read and write 51,200 B.
    """
    work = shard_work(kernel=Kernel.FUSED_UVM, lookups=1000.0, distinct_rows=100.0)
    found = shard_traffic(work, HARDWARE)
    assert found.read_bytes[0, Tier.DDR] == pytest.approx(358_400 + 51_200)
    assert found.written_bytes[0, Tier.DDR] == 51_200
    assert found.busy_seconds[0, Tier.DDR] == pytest.approx((358_400 + 2 * 51_200) / 5e10)


def test_hot_rows_take_their_share_away() -> None:
    work = shard_work(
        kernel=Kernel.FUSED_UVM,
        lookups=1000.0,
        distinct_rows=100.0,
        hot_row_share=0.1,
        hot_lookup_share=0.75,
        hot_distinct_share=0.5,
    )
    found = shard_traffic(work, HARDWARE)
    # of 250 cold lookups 50 rows and two thirds of 200 repeats
    assert found.read_bytes[0, Tier.DDR] == pytest.approx((50 + 200 * 2 / 3) * 512 + 50 * 512)
    assert found.written_bytes[0, Tier.DDR] == 50 * 512


def test_caches_move_what_they_miss() -> None:
    """A quarter of 100 rows is missed: 25 come and, once changed, as many go; Adam's state of every row is far, too."""
    cached = {"kernel": Kernel.FUSED_UVM_CACHING, "lookups": 1000.0, "distinct_rows": 100.0, "cache_load_factor": 0.2}
    found = shard_traffic(shard_work(**cached, missed_share=0.25), HARDWARE)
    assert (found.read_bytes[0, Tier.DDR], found.written_bytes[0, Tier.DDR]) == (25 * 512, 25 * 512)
    served = shard_traffic(shard_work(**cached, missed_share=0.25, is_trained=False), HARDWARE)
    assert (served.read_bytes[0, Tier.DDR], served.written_bytes[0, Tier.DDR]) == (25 * 512, 0)
    unknown = shard_traffic(shard_work(**cached), HARDWARE)  # as if all rows were equally likely: 0.8 of them
    assert unknown.read_bytes[0, Tier.DDR] == pytest.approx(80 * 512)
    adam = shard_traffic(shard_work(**cached, missed_share=0.25, optimizer_element_bytes=8.0), HARDWARE)
    assert adam.read_bytes[0, Tier.DDR] == 25 * 512 + 100 * 1024


def test_storage_reads_whole_blocks() -> None:
    """25 missed rows of 512 B are 25 reads of 4 KiB: 25 us at 1 M reads/s, 25.6 us at 4 GB/s; written at 2 GB/s."""
    work = shard_work(
        kernel=Kernel.KEY_VALUE, lookups=1000.0, distinct_rows=100.0, cache_load_factor=0.2, missed_share=0.25
    )
    found = shard_traffic(work, HARDWARE)
    assert found.operations[0, Tier.SSD] == 25
    assert found.read_bytes[0, Tier.SSD] == 25 * 4096
    assert found.busy_seconds[0, Tier.SSD] == pytest.approx(max(25e-6, 25 * 4096 / 4e9) + 25 * 4096 / 2e9)
    assert not np.any(found.read_bytes[:, Tier.DDR])


SCM_HARDWARE = make_hardware(**SCM)


def test_storage_class_memory_moves_whole_blocks_at_two_rates() -> None:
    """Rows of 400 B are two blocks of 256: 700 reads and 100 updates read 409,600 B at 10 GB/s, and write 51,200 B
    at 4 GB/s. Host memory rests.
    """
    shape = {"lookups": 1000.0, "distinct_rows": 100.0, "shard_columns": 100}
    found = shard_traffic(shard_work(kernel=Kernel.FUSED_UVM, in_scm=True, **shape), SCM_HARDWARE)
    assert found.read_bytes[0].tolist() == pytest.approx([0, 0, 358_400 + 51_200, 0])
    assert found.written_bytes[0].tolist() == [0, 0, 51_200, 0]
    assert found.busy_seconds[0, Tier.SCM] == pytest.approx(409_600 / 1e10 + 51_200 / 4e9)
    assert not found.operations.any()
    cached = {"kernel": Kernel.FUSED_UVM_CACHING, "cache_load_factor": 0.2, "missed_share": 0.25, "in_scm": True}
    missed = shard_traffic(shard_work(**cached, **shape), SCM_HARDWARE)
    assert (missed.read_bytes[0, Tier.SCM], missed.written_bytes[0, Tier.SCM]) == (25 * 512, 25 * 512)


def test_a_tier_whose_rates_no_one_knows_is_never_busy() -> None:
    found = shard_traffic(shard_work(kernel=Kernel.FUSED_UVM, in_scm=True), make_hardware())
    assert found.read_bytes[0, Tier.SCM] > 0
    assert found.busy_seconds[0, Tier.SCM] == 0
