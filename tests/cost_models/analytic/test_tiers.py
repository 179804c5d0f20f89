"""Rows outside the device's memory: each price by hand, what a whole cache costs, and what is not guessed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.analytic.roofline import RooflineModel
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardSeconds
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase
from tests.support.contracts.cost_model import without
from tests.support.cost_models.shard_work import hardware, shard_work, tiered_hardware

STORAGE = ("ssd_bytes_per_second", "ssd_write_bytes_per_second", "ssd_reads_per_second", "ssd_block_bytes")
#: 1,000 lookups of 400 distinct rows of 100 fp32 columns: 400 B, 7 cache lines, 448 B.
SHARD: dict[str, Any] = {
    "lookups": 1_000.0,
    "distinct_rows": 400.0,
    "table_columns": 100,
    "shard_columns": 100,
    "optimizer_row_bytes": 0.0,
}
CACHED = {"cache_load_factor": 0.25, "missed_share": 0.5}  # 200 rows are missed


def priced(kernel: Kernel, machine: Hardware | None = None, **columns: Any) -> ShardSeconds:
    work = shard_work(kernel=kernel, **(SHARD | columns))
    return RooflineModel().predict(work, machine or tiered_hardware())


def seconds(kernel: Kernel, machine: Hardware | None = None, **columns: Any) -> dict[Phase, float]:
    """Seconds of one shard by phase."""
    found = priced(kernel, machine, **columns).seconds
    return {phase: float(found[0, phase]) for phase in STEP_PHASES}


#: Ids read, outputs written: 1,000 x 8 B + 8 x 1,024 rows of 400 B.
FORWARD_WITHOUT_ROWS = (1_000 * 8 + 8 * 1_024 * 400) / 1e12


def test_direct_reads_take_whole_lines_of_every_lookup() -> None:
    """1,000 lookups x 448 B over the slower of link and memory, 2e10 B/s: 22.4 us, and no gather from the device."""
    found = seconds(Kernel.FUSED_UVM)
    assert found[Phase.FORWARD_COMPUTE] == pytest.approx(FORWARD_WITHOUT_ROWS + 1_000 * 448 / 2e10)
    assert found[Phase.PREFETCH] == 0


def test_direct_reads_are_bound_by_the_slower_of_link_and_memory() -> None:
    slow_memory = tiered_hardware(ddr_bytes_per_second=5e9)
    found = seconds(Kernel.FUSED_UVM, slow_memory)[Phase.FORWARD_COMPUTE]
    assert found == pytest.approx(FORWARD_WITHOUT_ROWS + 1_000 * 448 / 5e9)


def test_direct_updates_read_and_write_distinct_rows_and_element_state() -> None:
    """400 rows of 448 B are read while as many are written: the link needs 400 x 448 / 2e10 = 8.96 us, the memory
    2 x 400 x 448 / 2.5e10 = 14.336 us; AdaGrad has 448 B more."""
    before = seconds(Kernel.FUSED_UVM, is_trained=False)[Phase.BACKWARD_COMPUTE]
    rows = seconds(Kernel.FUSED_UVM)[Phase.BACKWARD_COMPUTE]
    state = seconds(Kernel.FUSED_UVM, optimizer_element_bytes=4.0)[Phase.BACKWARD_COMPUTE]
    assert rows - before == pytest.approx(2 * 400 * 448 / 2.5e10)
    assert state - rows == pytest.approx(2 * 400 * 448 / 2.5e10)
    fast_memory = tiered_hardware(ddr_bytes_per_second=1e12)
    over_link = seconds(Kernel.FUSED_UVM, fast_memory)[Phase.BACKWARD_COMPUTE]
    assert over_link - before == pytest.approx(400 * 448 / 2e10)


def test_row_state_stays_in_the_device_s_memory() -> None:
    """4 B of state per row are a sector of 32 B there, read and written: 2 x 400 x 32 / 1e12."""
    for kernel, columns in ((Kernel.FUSED_UVM, {}), (Kernel.FUSED_UVM_CACHING, CACHED), (Kernel.FUSED, {})):
        without = seconds(kernel, **columns)[Phase.BACKWARD_COMPUTE]
        with_state = seconds(kernel, optimizer_row_bytes=4.0, **columns)[Phase.BACKWARD_COMPUTE]
        assert with_state - without == pytest.approx(2 * 400 * 32 / 1e12)


def tag_seconds(lookups: float = 1_000) -> float:
    """A set of 256 B per id, and ids sorted once more.

    1,000,000 rows have 20 bits: 3 passes of 8 bits over 12 B, read and written, and 8 B of keys: 80 B per id.
    """
    return lookups * (256 + 80) / 1e12


def test_a_cache_fetches_missed_rows_and_writes_as_many_back() -> None:
    """200 rows of 448 B = 89,600 B each way.

    In: 89,600 / 2e10 = 4.48 us. Out: 89,600 / 1e10 = 8.96 us. Both through memory: 179,200 / 2.5e10 = 7.168 us.
    """
    found = seconds(Kernel.FUSED_UVM_CACHING, **CACHED)
    assert found[Phase.PREFETCH] == pytest.approx(8.96e-6)


def test_rows_that_no_one_trains_are_not_written_back() -> None:
    """In alone: the larger of 89,600 / 2e10 and 89,600 / 2.5e10."""
    found = seconds(Kernel.FUSED_UVM_CACHING, is_trained=False, **CACHED)
    assert found[Phase.PREFETCH] == pytest.approx(4.48e-6)


def test_both_directions_meet_in_host_memory() -> None:
    """At 1e10 B/s of memory: 179,200 B take 17.92 us, longer than either direction of the link."""
    found = seconds(Kernel.FUSED_UVM_CACHING, tiered_hardware(ddr_bytes_per_second=1e10), **CACHED)
    assert found[Phase.PREFETCH] == pytest.approx(17.92e-6)


def test_a_link_of_unknown_return_rate_returns_as_fast_as_it_fetches() -> None:
    """max(89,600 / 2e10, 179,200 / 2.5e10) = 7.168 us."""
    machine = without(tiered_hardware(), "host_link_return_bytes_per_second")
    found = seconds(Kernel.FUSED_UVM_CACHING, machine, **CACHED)
    assert found[Phase.PREFETCH] == pytest.approx(7.168e-6)


def test_element_state_is_never_cached() -> None:
    """448 B of AdaGrad state of each of 400 rows through the link, both ways, instead of in the device's memory."""
    without = seconds(Kernel.FUSED_UVM_CACHING, **CACHED)
    with_state = seconds(Kernel.FUSED_UVM_CACHING, optimizer_element_bytes=4.0, **CACHED)
    added = with_state[Phase.BACKWARD_COMPUTE] - without[Phase.BACKWARD_COMPUTE]
    assert added == pytest.approx(2 * 400 * 448 / 2.5e10)
    assert with_state[Phase.PREFETCH] == without[Phase.PREFETCH]


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE])
def test_a_cache_of_all_rows_costs_what_fused_costs_and_its_tags(kernel: Kernel) -> None:
    whole = seconds(kernel, cache_load_factor=1.0, missed_share=0.0, optimizer_row_bytes=4.0)
    fused = seconds(Kernel.FUSED, optimizer_row_bytes=4.0)
    assert whole.pop(Phase.PREFETCH) == pytest.approx(tag_seconds())
    assert fused.pop(Phase.PREFETCH) == 0
    assert whole == pytest.approx(fused)


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE])
def test_where_nothing_is_known_rows_are_missed_evenly(kernel: Kernel) -> None:
    """A quarter cached: three quarters missed."""
    unknown = seconds(kernel, cache_load_factor=0.25, missed_share=np.nan)
    assert unknown == seconds(kernel, cache_load_factor=0.25, missed_share=0.75)
    most = seconds(kernel, cache_load_factor=0.25, missed_share=np.nan, distinct_rows=np.nan)
    assert most == seconds(kernel, cache_load_factor=0.25, missed_share=0.75, distinct_rows=1_000.0)


@given(
    st.sampled_from((Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE)),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from((4, 32, 100, 1024)),
)
def test_more_missed_rows_never_cost_less(kernel: Kernel, one: float, other: float, columns: int) -> None:
    missed = np.array(sorted((one, other)))
    found = priced(kernel, cache_load_factor=0.25, missed_share=missed, shard_columns=columns).seconds
    assert np.all(found[0] <= found[1])


def test_small_rows_of_block_storage_are_bound_by_reads() -> None:
    """200 blocks: 200 / 1e6 = 200 us, their 819,200 B at 40 GB/s only 20.48 us. Written back at 2 GB/s."""
    fast = tiered_hardware(ssd_bytes_per_second=4e10)
    found = seconds(Kernel.KEY_VALUE, fast, **CACHED)[Phase.PREFETCH]
    assert found == pytest.approx(200e-6 + 200 * 4096 / 2e9)


def test_large_rows_of_block_storage_are_bound_by_bytes() -> None:
    """1,025 fp32 columns are 4,100 B, two blocks: 400 blocks = 1,638,400 B at 4 GB/s take 409.6 us, reads 400 us."""
    found = seconds(Kernel.KEY_VALUE, shard_columns=1025, table_columns=1025, **CACHED)[Phase.PREFETCH]
    assert found == pytest.approx(409.6e-6 + 400 * 4096 / 2e9)


def test_block_storage_that_no_one_trains_is_only_read() -> None:
    found = seconds(Kernel.KEY_VALUE, is_trained=False, **CACHED)[Phase.PREFETCH]
    assert found == pytest.approx(max(200 / 1e6, 200 * 4096 / 4e9))


def test_block_storage_is_never_faster_than_the_link_behind_which_it_lies() -> None:
    """A drive without limits: the rows themselves, 89,600 B each way, still cross the link as host memory's do."""
    drive = tiered_hardware(ssd_reads_per_second=1e15, ssd_bytes_per_second=1e15, ssd_write_bytes_per_second=1e15)
    stored = seconds(Kernel.KEY_VALUE, drive, **CACHED)[Phase.PREFETCH]
    assert stored == pytest.approx(seconds(Kernel.FUSED_UVM_CACHING, **CACHED)[Phase.PREFETCH])


def test_direct_reads_of_storage_class_memory_take_whole_blocks() -> None:
    """1,000 lookups of 400 B are two blocks each: 512 B at 8 GB/s, 64 us, where 448 B over the link take 22.4 us."""
    found = seconds(Kernel.FUSED_UVM, in_scm=True)
    assert found[Phase.FORWARD_COMPUTE] == pytest.approx(FORWARD_WITHOUT_ROWS + 1_000 * 512 / 8e9)
    slow_link = tiered_hardware(host_link_bytes_per_second=1e9)
    over_link = seconds(Kernel.FUSED_UVM, slow_link, in_scm=True)[Phase.FORWARD_COMPUTE]
    assert over_link == pytest.approx(FORWARD_WITHOUT_ROWS + 1_000 * 448 / 1e9)


def test_direct_updates_of_storage_class_memory_are_read_and_written_each_at_its_own_rate() -> None:
    """400 distinct rows of 512 B at 8 GB/s, and at 2 GB/s: 25.6 and 102.4 us. AdaGrad has as many bytes of state."""
    near = seconds(Kernel.FUSED_UVM)[Phase.BACKWARD_COMPUTE] - 2 * 400 * 448 / 2.5e10
    found = seconds(Kernel.FUSED_UVM, in_scm=True)[Phase.BACKWARD_COMPUTE]
    assert found - near == pytest.approx(400 * 512 / 8e9 + 400 * 512 / 2e9)
    with_state = seconds(Kernel.FUSED_UVM, in_scm=True, optimizer_element_bytes=4.0)[Phase.BACKWARD_COMPUTE]
    assert with_state - near == pytest.approx(2 * (400 * 512 / 8e9 + 400 * 512 / 2e9))


def test_caches_over_storage_class_memory_share_it_between_reads_and_writes() -> None:
    """200 missed rows: 102,400 B read at 8 GB/s and written at 2 GB/s, 64 us together; over the link 4.5 and 9 us."""
    found = seconds(Kernel.FUSED_UVM_CACHING, in_scm=True, **CACHED)[Phase.PREFETCH]
    assert found == pytest.approx(200 * 512 / 8e9 + 200 * 512 / 2e9)
    untrained = seconds(Kernel.FUSED_UVM_CACHING, in_scm=True, is_trained=False, **CACHED)[Phase.PREFETCH]
    assert untrained == pytest.approx(200 * 512 / 8e9)


def test_storage_class_memory_of_the_rates_and_lines_of_host_memory_costs_the_same() -> None:
    """To the bit, with blocks that are not known, or smaller than a cache line."""
    for block in ({}, {"scm_block_bytes": 0.0}, {"scm_block_bytes": 32.0}):
        machine = without(tiered_hardware(), "scm_block_bytes")
        machine = replace(machine, numbers={**machine.numbers, **hardware(**block).numbers})
        alike = hardware(scm_bytes_per_second=2.5e10, scm_write_bytes_per_second=2.5e10).numbers
        machine = replace(machine, numbers={**machine.numbers, **alike})
        for kernel, more in ((Kernel.FUSED_UVM, {}), (Kernel.FUSED_UVM_CACHING, CACHED)):
            columns = {"optimizer_element_bytes": 4.0, **more}
            assert seconds(kernel, machine, in_scm=True, **columns) == seconds(kernel, machine, **columns)


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING])
@pytest.mark.parametrize(
    "name", ["host_link_bytes_per_second", "scm_bytes_per_second", "scm_write_bytes_per_second", "ddr_bytes_per_second"]
)
def test_missing_numbers_of_storage_class_memory_are_named(kernel: Kernel, name: str) -> None:
    shares = {} if kernel is Kernel.FUSED_UVM else CACHED
    machine = without(tiered_hardware(), name)
    if name == "ddr_bytes_per_second":
        priced(kernel, machine, in_scm=True, **shares)  # nothing of these rows lies in host memory
    else:
        with pytest.raises(MissingHardwareNumber, match=f"{name}, needed for rows in storage-class memory"):
            priced(kernel, machine, in_scm=True, **shares)


def test_shards_of_both_memories_are_each_priced_by_their_own() -> None:
    columns = {**CACHED, "optimizer_element_bytes": 4.0}
    both = priced(Kernel.FUSED_UVM_CACHING, in_scm=[True, False], **columns).seconds
    for index, in_scm in enumerate((True, False)):
        alone = seconds(Kernel.FUSED_UVM_CACHING, in_scm=in_scm, **columns)
        assert {phase: both[index, phase] for phase in STEP_PHASES} == alone


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Kernel.FUSED_UVM, "host_link_bytes_per_second"),
        (Kernel.FUSED_UVM, "ddr_bytes_per_second"),
        (Kernel.FUSED_UVM_CACHING, "host_link_bytes_per_second"),
        (Kernel.FUSED_UVM_CACHING, "ddr_bytes_per_second"),
        (Kernel.KEY_VALUE, "host_link_bytes_per_second"),
        *((Kernel.KEY_VALUE, name) for name in STORAGE),
    ],
)
def test_missing_numbers_are_named(kernel: Kernel, name: str) -> None:
    machine = without(tiered_hardware(), name)
    shares = {} if kernel is Kernel.FUSED_UVM else CACHED
    with pytest.raises(MissingHardwareNumber, match=name):
        priced(kernel, machine, **shares)
    priced(Kernel.FUSED, machine)  # who keeps rows in the device's memory needs none of them


def test_prices_are_as_well_known_as_the_weakest_number() -> None:
    weak = hardware(Evidence.ESTIMATED, host_link_bytes_per_second=2e10).numbers
    mixed = replace(tiered_hardware(), numbers={**tiered_hardware().numbers, **weak})
    found = priced(Kernel.FUSED_UVM_CACHING, mixed, **CACHED)
    assert found.evidence[0, Phase.PREFETCH] == Evidence.ESTIMATED
    assert found.evidence[0, Phase.FORWARD_COMPUTE] == Evidence.GIVEN
    assert priced(Kernel.FUSED_UVM, mixed).evidence[0, Phase.FORWARD_COMPUTE] == Evidence.ESTIMATED


def test_each_shard_is_priced_by_its_own_kernel() -> None:
    """Four shards at once, of four kernels, as each alone."""
    kernels = [Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE]
    share = np.array([np.nan, np.nan, 0.25, 0.25])
    together = shard_work(kernel=kernels, **(SHARD | {"cache_load_factor": share, "missed_share": share * 2}))
    found = RooflineModel().predict(together, tiered_hardware()).seconds
    for index, kernel in enumerate(kernels):
        alone = seconds(kernel, cache_load_factor=share[index], missed_share=share[index] * 2)
        assert {phase: found[index, phase] for phase in STEP_PHASES} == pytest.approx(alone)
