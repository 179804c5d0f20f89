"""The kernels of GPUs: each price by hand, what follows where a profile is silent, and its monotony."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.analytic.gpu_memory import GpuMemory, host_reads, index_seconds, is_gpu, kernel_memory
from cost_models.analytic.roofline import RooflineModel
from cost_models.analytic.serving import ServingModel
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware, Limit
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase, Scheme
from tests.support.contracts.cost_model import without
from tests.support.cost_models.shard_work import GPU_NUMBERS, gpu_hardware, hardware, shard_work, table_shard

#: 1,000 lookups of 100 fp32 columns, 416 B in whole sectors; one bag for each, in all batches of 8 ranks.
SHARD: dict[str, Any] = {
    "lookups": 1_000.0,
    "distinct_rows": 400.0,
    "table_columns": 100,
    "shard_columns": 100,
    "batch_outputs": 125.0,
    "optimizer_row_bytes": 0.0,
}


def seconds(kernel: Kernel = Kernel.FUSED, machine: Hardware | None = None, **columns: Any) -> dict[Phase, float]:
    work = shard_work(kernel=kernel, **(SHARD | columns))
    found = RooflineModel().predict(work, machine or gpu_hardware()).seconds
    return {phase: float(found[0, phase]) for phase in STEP_PHASES}


def gather(lookups: float, distinct: float, rows: float, row_bytes: float, **numbers: float) -> float:
    memory = kernel_memory(gpu_hardware(**numbers))
    columns = (np.array([float(one)]) for one in (lookups, distinct, rows, row_bytes))
    return float(memory.gather_seconds(*columns)[0])


def test_the_memory_and_the_l2_work_at_the_same_time() -> None:
    """100,000 rows of 416 B at 4 TB/s last longer than 400 of them from the memory; among 200,000 rows, repeats by
    chance are few and the L1 holds next to none."""
    assert gather(1e5, 400, 2e6, 400) == pytest.approx(1e5 * 416 / 4e12, rel=1e-3)


def test_lookups_that_fall_on_all_rows_alike_find_what_the_l2_holds() -> None:
    """All 10,000 rows are looked up, 4.16 MB, of which 1 MB is held: 76% of 100,000 lookups reach the memory."""
    held = 1e6 / 4.16e6
    assert gather(1e5, 1e4, 1e4, 400) == pytest.approx(1e5 * 416 * (1 - held) / 1e12)


def test_no_row_comes_from_the_l2_before_the_memory_was_read() -> None:
    """The L2 holds all 1,000 rows, and each of them is read once."""
    assert gather(2e3, 1e3, 1e3, 400) == pytest.approx(1e3 * 416 / 1e12)


def test_lookups_that_never_repeat_all_reach_the_memory() -> None:
    assert gather(1e3, 1e3, 1e9, 400) == pytest.approx(1e3 * 416 / 1e12, rel=1e-3)


def test_repeats_of_a_table_that_an_l1_holds_are_three_times_as_fast() -> None:
    """400 rows of 416 B are 166,400 B of 200,000; 4 of 100,000 lookups reach the memory."""
    repeats = 1e5 - 400
    assert gather(1e5, 400, 400, 400) == pytest.approx((400 + repeats / 3) * 416 / 4e12)
    half = 200_000 / (800 * 416)
    slower = (1e5 - (1e5 - 800) * half * 2 / 3) * 416 / 4e12
    assert gather(1e5, 800, 800, 400) == pytest.approx(slower)


def test_lookups_of_narrow_rows_take_times_of_their_own() -> None:
    """1,000 rows of 32 B from the memory at 30 ps each, 99,000 from a cache at 10 ps."""
    assert gather(1e5, 1e3, 1e9, 4) == pytest.approx(1e3 * 3e-11 + 99e3 * 1e-11, rel=1e-2)


@given(
    st.floats(0, 1e8),
    st.floats(0, 1),
    st.integers(1, 10**9),
    st.floats(1, 4096),
    st.sampled_from(range(3)),
    st.floats(1, 9),
)
def test_more_lookups_distinct_rows_or_bytes_never_cost_less(
    lookups: float, share: float, rows: int, row_bytes: float, grown: int, factor: float
) -> None:
    before = [lookups, min(lookups * share, float(rows)), row_bytes]
    after = list(before)
    after[grown] *= factor
    after[1] = min(after[0], after[1], float(rows))
    small, large = (gather(one[0], one[1], rows, one[2]) for one in (before, after))
    assert large >= small * (1 - 1e-9)


def test_forward_by_hand() -> None:
    """8,000 B of ids, 1,000 outputs of 400 B and 0.3 ns for each bag; 400 rows of the memory outlast the L2 and 1,000
    lookups."""
    found = seconds()[Phase.FORWARD_COMPUTE]
    assert found == pytest.approx((1_000 * 8 + 1_000 * 400 + 400 * 416) / 1e12 + 1_000 * 3e-10, rel=1e-3)


def test_sequences_take_at_least_a_time_for_each_row() -> None:
    """1,000 rows of 32 B at 0.5 ns; of 400 B the bytes last longer than 0.1 ns each."""
    narrow = seconds(shard_columns=8, is_pooled=False)[Phase.FORWARD_COMPUTE]
    assert narrow == pytest.approx(1_000 * 5e-10)
    fast = gpu_hardware(sequence_lookup_seconds=1e-10)
    wide = seconds(machine=fast, is_pooled=False)[Phase.FORWARD_COMPUTE]
    assert wide == pytest.approx((1_000 * 8 + 1_000 * 400 + 400 * 416) / 1e12, rel=1e-3)


def test_backward_by_hand() -> None:
    """1,000 gradient rows at 0.5 ns, which outlast 416 B; ids and a sort of 8 + 3 x 24 B, 20 ps per lookup.

    2 x 416 B of 400 rows at 500 GB/s are less than 2 ns each.
    """
    memory = 1_000 * (8 + 80)
    found = seconds()[Phase.BACKWARD_COMPUTE]
    assert found == pytest.approx(memory / 1e12 + 1_000 * (5e-10 + 2e-11) + 400 * 2e-9)


def test_state_per_weight_has_a_least_time_of_its_own() -> None:
    """6 ns for each of 400 rows, where 2 x 1,216 B of weights and state at 500 GB/s take 4.9; 2 x 2,416 take 9.7."""
    plain = seconds()[Phase.BACKWARD_COMPUTE]
    with_state = seconds(optimizer_element_bytes=8.0)[Phase.BACKWARD_COMPUTE]
    assert with_state - plain == pytest.approx(400 * 4e-9)
    more = seconds(optimizer_element_bytes=20.0)[Phase.BACKWARD_COMPUTE]
    assert more - plain == pytest.approx(400 * (2 * 2_432 / 5e11 - 2e-9))


def test_row_wise_state_takes_a_time_for_each_column() -> None:
    """40 ps for each of 100 columns, and of 300 for 128 and half of 172."""
    plain, with_state = seconds(), seconds(optimizer_row_bytes=4.0)
    assert with_state[Phase.BACKWARD_COMPUTE] - plain[Phase.BACKWARD_COMPUTE] == pytest.approx(400 * (4e-9 - 2e-9))
    wide = {"shard_columns": 300, "table_columns": 300}
    added = seconds(optimizer_row_bytes=4.0, **wide)[Phase.BACKWARD_COMPUTE] - seconds(**wide)[Phase.BACKWARD_COMPUTE]
    assert added == pytest.approx(400 * (8.56e-9 - 2 * 1_216 / 5e11))


def test_gradients_of_long_bags_are_read_again_from_the_l2() -> None:
    """8 bags of 125 ids: 8 gradient rows are read first, the others again from the L2, 416 B each."""
    longer = seconds(batch_outputs=1.0)[Phase.BACKWARD_COMPUTE]
    saved = seconds()[Phase.BACKWARD_COMPUTE] - longer
    assert saved == pytest.approx(992 * (5e-10 - 416 / 4e12))


def test_ids_of_other_ranks_are_checked_and_permuted() -> None:
    machine = gpu_hardware()
    without_index = gpu_hardware(index_lookup_seconds=0.0)
    for scheme, ranks, expected in ((Scheme.TABLE_WISE, 8, 1), (Scheme.DATA_PARALLEL, 8, 0), (Scheme.TABLE_WISE, 1, 0)):
        work = table_shard(scheme, num_ranks=ranks, ranks_per_host=ranks)
        with_it, bare = (RooflineModel().predict(work, one).seconds[0] for one in (machine, without_index))
        assert with_it[Phase.INPUT_COMM] - bare[Phase.INPUT_COMM] == pytest.approx(expected * work.lookups[0] * 4e-11)


def test_kernels_that_read_host_memory_merge_a_third_of_the_repeats() -> None:
    """400 distinct rows and two thirds of 600 repeats: 800 rows of 448 B at 16 GB/s."""
    found = seconds(Kernel.FUSED_UVM)[Phase.FORWARD_COMPUTE]
    device = (1_000 * 8 + 1_000 * 400) / 1e12 + 1_000 * 3e-10
    assert found == pytest.approx(device + 800 * 448 / 1.6e10)
    assert host_reads(hardware(hbm_bytes_per_second=1e12), np.array([10.0]), np.array([1.0]))[0] == 10


def test_kernels_that_update_host_memory_read_and_write_at_once() -> None:
    """400 rows of 448 B at 8 GB/s, where the memory needs 2 x 400 x 448 B / 25 GB/s, and not 2 ns on the device."""
    found = seconds(Kernel.FUSED_UVM)[Phase.BACKWARD_COMPUTE] - seconds()[Phase.BACKWARD_COMPUTE]
    assert found == pytest.approx(400 * (448 / 8e9 - 2e-9))


def test_a_cache_is_searched_while_rows_travel() -> None:
    """1,000 ids x 1 ns; 200 missed rows of 448 B at 18 GB/s take 4.98 us, and 2 x 89,600 B of memory 7.168 us."""
    shares = {"cache_load_factor": 0.25, "missed_share": 0.5}
    assert seconds(Kernel.FUSED_UVM_CACHING, **shares)[Phase.PREFETCH] == pytest.approx(7.168e-6)
    fewer = shares | {"missed_share": 0.01}
    assert seconds(Kernel.FUSED_UVM_CACHING, **fewer)[Phase.PREFETCH] == pytest.approx(1e-6)


def test_the_backward_pass_reads_the_tags_of_a_cache_again() -> None:
    shares = {"cache_load_factor": 0.25, "missed_share": 0.5}
    added = seconds(Kernel.FUSED_UVM_CACHING, **shares)[Phase.BACKWARD_COMPUTE] - seconds()[Phase.BACKWARD_COMPUTE]
    assert added == pytest.approx(1_000 * 256 / 1e12)


def test_rows_that_a_cache_cannot_hold_at_once_are_read_by_the_kernel() -> None:
    """A cache of 100 rows for 400: 300 rows of 448 B at 16 GB/s."""
    shares = {"cache_load_factor": 1e-4, "missed_share": 0.9}
    added = seconds(Kernel.FUSED_UVM_CACHING, **shares)[Phase.FORWARD_COMPUTE] - seconds()[Phase.FORWARD_COMPUTE]
    assert added == pytest.approx(300 * 448 / 1.6e10)


def test_a_user_s_rate_of_the_link_replaces_the_rates_of_its_uses() -> None:
    machine = load_profile("dgx-h100-80g")
    given = machine.with_overrides(
        {"host_link_bytes_per_second": 1e10}, {"host_link_bytes_per_second": "bytes_per_second"}
    )
    assert "host_link_gather_bytes_per_second" in machine.numbers
    assert not [
        name
        for name in given.numbers
        if name in ("host_link_gather_bytes_per_second", "host_link_update_bytes_per_second")
    ]
    slow = seconds(Kernel.FUSED_UVM, given)[Phase.FORWARD_COMPUTE]
    assert slow > 800 * 448 / 1e10


def test_a_silent_profile_has_the_kernels_of_an_h100_by_the_rate_of_its_memory() -> None:
    """What moves bytes takes half as long at twice the rate of the memory; times of rows go by the root of the rate."""
    links = {"intra_host_bytes_per_second": 1e11, "ddr_bytes_per_second": 1e15, "host_link_bytes_per_second": 1e15}

    def machine(rate: float) -> Hardware:
        return hardware(family="custom", hbm_bytes_per_second=rate, **links)

    silent, fast, h100 = machine(2.57e12), machine(5.14e12), load_profile("dgx-h100-80g")
    memory = kernel_memory(silent)
    assert memory.rate.evidence is Evidence.GIVEN
    assert memory.forward_evidence is memory.backward_evidence is memory.cache_evidence is Evidence.ESTIMATED
    wide = {"shard_columns": 512, "table_columns": 512, "lookups": 1e6, "distinct_rows": 5e5, "batch_outputs": 1e3}
    narrow = wide | {"shard_columns": 8, "table_columns": 8}
    for columns in (wide, narrow, narrow | {"optimizer_row_bytes": 4.0}, narrow | {"optimizer_element_bytes": 8.0}):
        mine, theirs = seconds(machine=silent, **columns), seconds(machine=h100, **columns)
        for phase in (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE):
            assert mine[phase] == pytest.approx(theirs[phase], rel=0.03)
    cached = wide | {"cache_load_factor": 0.1, "missed_share": 0.1}
    searched = seconds(Kernel.FUSED_UVM_CACHING, silent, **cached)[Phase.PREFETCH]
    assert searched == pytest.approx(1e6 * h100.numbers["cache_lookup_seconds"].value, rel=0.03)
    ratio = (
        seconds(machine=fast, **wide)[Phase.FORWARD_COMPUTE] / seconds(machine=silent, **wide)[Phase.FORWARD_COMPUTE]
    )
    assert ratio == pytest.approx(0.5, rel=0.01)
    faster = kernel_memory(fast)
    assert isinstance(memory, GpuMemory)
    assert isinstance(faster, GpuMemory)
    for name, factor in (("lookup", 2**0.5), ("update_row", 2**0.5), ("update_column", 2**0.5), ("bag", 1.0)):
        assert getattr(memory, name).value == pytest.approx(factor * getattr(faster, name).value)


GPUS = [name for name in profile_ids() if name not in ("custom", "torchrec-default") and is_gpu(load_profile(name))]


@pytest.mark.parametrize("profile", GPUS)
def test_more_state_is_never_cheaper(profile: str) -> None:
    machine = load_profile(profile)
    for columns in (8, 128, 512):
        shape = {"lookups": 1e6, "distinct_rows": 1e6, "shard_columns": columns, "table_columns": columns}
        found = [
            seconds(machine=machine, **shape, optimizer_element_bytes=element, optimizer_row_bytes=row)
            for element, row in ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (8.0, 4.0))
        ]
        times = [one[Phase.BACKWARD_COMPUTE] for one in found]
        assert times == sorted(times)


def test_what_follows_from_an_h100_takes_its_error_once() -> None:
    """The rate of the memory has an error of its own, which rates that follow from it do not take besides."""
    machine = hardware(family="custom", hbm_bytes_per_second=2.57e12)
    stated, slowest = (kernel_memory(machine.at_limit(limit)) for limit in (Limit.NONE, Limit.SLOWEST))
    assert isinstance(stated, GpuMemory)
    assert isinstance(slowest, GpuMemory)
    assert slowest.rate.value < stated.rate.value
    for name in ("l2_rate", "update_rate"):
        assert getattr(slowest, name).value == pytest.approx(getattr(stated, name).value / 1.35)
    for name in ("lookup", "update_row", "cache_lookup", "bag"):
        assert getattr(slowest, name).value == pytest.approx(getattr(stated, name).value * 1.35)


def test_only_gpus_have_kernels_of_gpus() -> None:
    gpus = {profile for profile in profile_ids() if profile != "custom" and is_gpu(load_profile(profile))}
    assert {"dgx-h100-80g", "mi350x-8x-400g", "torchrec-default"} <= gpus
    assert not {name for name in gpus if name.startswith(("tpu", "cpu", "inference"))}
    assert index_seconds(load_profile("inference-6card-m2")).value == 0
    assert not is_gpu(hardware(family="custom", ddr_bytes_per_second=1e11))
    assert is_gpu(gpu_hardware())


def test_every_number_of_the_kernels_matters() -> None:
    """A number that no price reads would be shown with plans for nothing."""
    kernels = [Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING]
    columns = {"cache_load_factor": [np.nan, np.nan, 0.1], "missed_share": [np.nan, np.nan, 0.01]}
    small = {"table_rows": 1_000, "shard_rows": 1_000, "lookups": 20_000.0, "distinct_rows": 1_000.0}
    narrow = small | {"shard_columns": 4, "table_columns": 4}
    works = [
        shard_work(kernel=kernels, **(SHARD | small | columns)),
        shard_work(kernel=Kernel.FUSED_UVM_CACHING, **(SHARD | {"cache_load_factor": 0.1, "missed_share": 0.9})),
        shard_work(kernel=Kernel.FUSED, **(SHARD | narrow | {"distinct_rows": 1.0})),
        shard_work(kernel=Kernel.FUSED, **(SHARD | narrow | {"distinct_rows": 20_000.0, "shard_rows": 10**9})),
        shard_work(kernel=Kernel.FUSED, **(SHARD | narrow), is_pooled=False),
        shard_work(kernel=Kernel.FUSED, **(SHARD | {"optimizer_row_bytes": 4.0})),
        shard_work(kernel=Kernel.FUSED, **(SHARD | {"optimizer_element_bytes": 8.0})),
    ]
    fast = {"ddr_bytes_per_second": 1e15}

    def total(machine: Hardware) -> float:
        return float(sum(RooflineModel().predict(one, machine).seconds.sum() for one in works))

    for name in GPU_NUMBERS:
        slower = GPU_NUMBERS[name] * (10 if name.endswith("_seconds") and "_per_" not in name else 0.1)
        assert total(gpu_hardware(**fast, **{name: slower})) > total(gpu_hardware(**fast)), name
        assert total(without(gpu_hardware(**fast), name)) > 0  # none is needed


@pytest.mark.parametrize("columns", [32, 64, 128])
def test_cards_of_serving_hosts_are_priced_by_their_own_memory(columns: int) -> None:
    """int4, int8 and fp16 rows of one width cost what their sectors of 32 B do."""
    card = load_profile("inference-6card-m2")

    def rows(element_bytes: float, overhead: float) -> Floats:
        work = shard_work(
            num_ranks=6,
            ranks_per_host=6,
            shard_columns=columns,
            element_bytes=element_bytes,
            row_overhead_bytes=overhead,
            row_alignment_bytes=16.0,
            batch_outputs=0.0,
        )
        found: Floats = ServingModel().predict(work, card).seconds[0, Phase.FORWARD_COMPUTE] - work.lookups * 8 / 3.5e10
        return found / work.lookups * 3.5e10

    expected = [np.ceil(size / 32) * 32 for size in (columns / 2 + 4, columns + 4, columns * 2)]
    np.testing.assert_allclose([float(rows(*one)[0]) for one in ((0.5, 4.0), (1.0, 4.0), (2.0, 0.0))], expected)
    assert len(set(expected)) > 1
