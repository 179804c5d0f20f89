"""TorchRec's estimator: by hand, and against the numbers that TorchRec itself printed."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from cost_models.analytic.torchrec import TorchRecModel
from cost_models.arrays import Floats
from cost_models.errors import MissingHardwareNumber, UnsupportedWork
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase, Scheme
from tests.support.contracts.cost_model import CostModelContract, without
from tests.support.cost_models.shard_work import hardware, plain_hardware, shard_work, table_shard
from tests.support.golden.torchrec_golden import (
    PRESERVED_TABLES,
    SHARED,
    GoldenInstance,
    GoldenShard,
    full_instance,
    full_shards,
    golden_instance,
    golden_shards,
)


class TestContract(CostModelContract):
    model = TorchRecModel
    refused_kernels = tuple(kernel for kernel in Kernel if kernel.facts.is_hashed)


def predict(scheme: Scheme, **more: Any) -> Floats:
    seconds: Floats = TorchRecModel().predict(table_shard(scheme, **more), plain_hardware()).seconds[0]
    return seconds


def test_input_communication_is_not_counted() -> None:
    assert [phase for phase in STEP_PHASES if not TorchRecModel().counted_phases[phase]] == [Phase.INPUT_COMM]


def test_table_wise_by_hand() -> None:
    # 8 ranks, batch 1024, L = 10, 128 fp32 columns; 1 TB/s memory, 100 GB/s links.
    # input 1024 x 10 x 8 ranks x 8 B = 655,360; lookup 81,920 x 512 B = 41,943,040;
    # output 8,192 x 512 B = 4,194,304; forward 46,792,704 B -> 46.792704 us, backward twice that.
    seconds = predict(Scheme.TABLE_WISE)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(46.792704e-6)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(93.585408e-6)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(4_194_304 / 1e11)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(4_194_304 / 1e11)
    assert seconds[Phase.INPUT_COMM] == pytest.approx(655_360 / 1e11)
    assert seconds[Phase.PREFETCH] == 0


def test_narrow_weighted_columns_by_hand() -> None:
    # 16 columns are looked up as 32: lookup 81,920 x 128 B = 10,485,760; weighted ids count twice:
    # 1,310,720; output 8,192 x 64 B = 524,288; x 1.75 = 21.56134 MB; backward 3.1 x.
    seconds = predict(Scheme.TABLE_WISE, columns=16, is_weighted=True)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((10_485_760 + 1_310_720 + 524_288) * 1.75 / 1e12)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(3.1 * seconds[Phase.FORWARD_COMPUTE])


def test_data_parallel_runs_over_network_cards_even_on_one_host() -> None:
    # 1e6 x 512 B; one host: (2 - 1)/1 / (8 x 10 GB/s) = 6.4 ms; kernels 9.22 x 0.512 GB / 0.5 TB/s = 9.44128 ms
    seconds = predict(Scheme.DATA_PARALLEL)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(6.4e-3 + 9.44128e-3)
    assert seconds[Phase.FORWARD_COMM] == seconds[Phase.INPUT_COMM] == 0
    with pytest.raises(MissingHardwareNumber, match="inter_host_bytes_per_second"):
        TorchRecModel().predict(
            table_shard(Scheme.DATA_PARALLEL), without(plain_hardware(), "inter_host_bytes_per_second")
        )


@pytest.mark.parametrize(("num_ranks", "rounds"), [(8, 1.0), (16, 1.5), (24, 3.0)])
def test_data_parallel_over_hosts(num_ranks: int, rounds: float) -> None:
    # k = 1, 2, 2 hosts counted: (2k-1)/k = 1, 1.5, 1.5; doubled over more than two hosts
    seconds = predict(Scheme.DATA_PARALLEL, num_ranks=num_ranks)
    assert seconds[Phase.BACKWARD_COMM] - 9.44128e-3 == pytest.approx(6.4e-3 * rounds)


def test_comm_types_apply_by_direction() -> None:
    both = predict(Scheme.TABLE_WISE)
    quantised = predict(Scheme.TABLE_WISE, forward_comm_element_bytes=2.0, backward_comm_element_bytes=1.0)
    assert quantised[Phase.FORWARD_COMM] == pytest.approx(both[Phase.FORWARD_COMM] / 2)
    assert quantised[Phase.BACKWARD_COMM] == pytest.approx(both[Phase.BACKWARD_COMM] / 4)


#: Bytes of the forward kernel of test_table_wise_by_hand.
FORWARD_BYTES = 46_792_704


def tiered_hardware() -> Hardware:
    """1 TB/s memory, a link of 10 GB/s to host memory, 100 MB/s of block storage, 100 GB/s inside the host."""
    return hardware(
        hbm_bytes=80e9,
        hbm_bytes_per_second=1e12,
        host_link_bytes_per_second=1e10,
        ssd_bytes_per_second=1e8,
        intra_host_bytes_per_second=1e11,
    )


def tiered(kernel: Kernel, scheme: Scheme = Scheme.TABLE_WISE, **more: Any) -> Floats:
    work = table_shard(scheme, kernel=kernel, **more)
    seconds: Floats = TorchRecModel().predict(work, tiered_hardware()).seconds[0]
    return seconds


@pytest.mark.parametrize(
    ("kernel", "cached", "prefetches", "bytes_per_second"),
    [
        (Kernel.FUSED_UVM, np.nan, False, 1e9),  # a tenth of the link
        (Kernel.FUSED_UVM, np.nan, True, 1e9),
        (Kernel.FUSED_UVM_CACHING, 0.2, False, 2.08e10),  # (0.2 x 1e12 + 0.8 x 1e10) / 10
        (Kernel.FUSED_UVM_CACHING, 1.0, False, 1e11),
        (Kernel.FUSED_UVM_CACHING, 0.2, True, 1e12),
        (Kernel.KEY_VALUE, 0.2, False, 1e8),
        (Kernel.KEY_VALUE, 0.2, True, 1e8),
    ],
)
def test_rates_of_kernels_by_hand(kernel: Kernel, cached: float, prefetches: bool, bytes_per_second: float) -> None:
    seconds = tiered(kernel, cache_load_factor=cached, prefetches=prefetches)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(FORWARD_BYTES / bytes_per_second)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(2 * FORWARD_BYTES / bytes_per_second)
    assert seconds[Phase.FORWARD_COMM] == seconds[Phase.BACKWARD_COMM] == pytest.approx(4_194_304 / 1e11)
    assert seconds[Phase.PREFETCH] == 0  # nothing is known of accesses


def test_the_copy_after_an_all_gather_has_the_rate_of_the_kernel() -> None:
    seconds = tiered(Kernel.FUSED_UVM, Scheme.ROW_WISE)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(4_194_304 * (1 / 1e11 + 2.455 / 1e9))


@pytest.mark.parametrize("prefetches", [False, True])
def test_missed_rows_by_hand(prefetches: bool) -> None:
    # a quarter of 40,000 distinct rows of 512 B over 1e10 B/s: 512 us, whether a pipeline fetches ahead or not
    known = {"cache_load_factor": 0.2, "distinct_rows": 40_000.0, "missed_share": 0.25, "prefetches": prefetches}
    assert tiered(Kernel.FUSED_UVM_CACHING, **known)[Phase.PREFETCH] == pytest.approx(512e-6)
    assert tiered(Kernel.KEY_VALUE, **known)[Phase.PREFETCH] == 0
    halves = tiered(Kernel.FUSED_UVM_CACHING, Scheme.COLUMN_WISE, pieces=2, **known)
    assert halves[Phase.PREFETCH] == pytest.approx(256e-6)


def test_a_miss_ratio_curve_alone_is_a_share_of_the_most_rows() -> None:
    # 1,024 x 10 ids x 8 ranks = 81,920 lookups, of which a quarter misses, x 512 B / 1e10 B/s
    seconds = tiered(Kernel.FUSED_UVM_CACHING, cache_load_factor=0.2, missed_share=0.25)
    assert seconds[Phase.PREFETCH] == pytest.approx(81_920 / 4 * 512 / 1e10)


def test_evidence_of_a_cache_is_the_weaker_of_memory_and_link() -> None:
    machine = tiered_hardware()
    estimated = dataclasses.replace(machine.numbers["host_link_bytes_per_second"], evidence=Evidence.ESTIMATED)
    mixed = dataclasses.replace(machine, numbers={**machine.numbers, "host_link_bytes_per_second": estimated})
    work = shard_work(
        kernel=np.array([Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE]),
        cache_load_factor=np.array([np.nan, np.nan, 0.2, 0.2]),
    )
    evidence = TorchRecModel().predict(work, mixed).evidence[:, Phase.FORWARD_COMPUTE]
    assert evidence.tolist() == [Evidence.GIVEN, Evidence.ESTIMATED, Evidence.ESTIMATED, Evidence.GIVEN]


def test_host_memory_next_to_no_accelerator_is_refused() -> None:
    machine = hardware(ddr_bytes_per_second=1e11, host_link_bytes_per_second=1e10, intra_host_bytes_per_second=1e10)
    with pytest.raises(UnsupportedWork, match="fused_uvm without an accelerator"):
        TorchRecModel().predict(shard_work(kernel=Kernel.FUSED_UVM), machine)


@pytest.mark.parametrize("name", PRESERVED_TABLES)
def test_golden_shards_are_equal(name: str) -> None:
    """The figures that are kept next to the tests."""
    compare(golden_instance(name), golden_shards(name))


@pytest.mark.skipif(not SHARED.is_dir(), reason="no TorchRec dumps next to the repository (shared/torchrec_golden)")
@pytest.mark.parametrize("name", PRESERVED_TABLES)
def test_every_golden_shard_is_equal(name: str) -> None:
    """All that TorchRec enumerated."""
    compare(full_instance(SHARED, name), full_shards(SHARED, name))


def compare(instance: GoldenInstance, shards: list[GoldenShard]) -> None:
    """Price the shards of a dump, and expect TorchRec's seconds in every phase."""
    batch = instance.batch_size_per_rank
    rows: list[dict[str, Any]] = []
    for shard in shards:
        table = instance.table(shard.table)
        rows.append(
            {
                "scheme": shard.scheme,
                "kernel": shard.kernel,
                "table_rows": table.num_embeddings,
                "table_columns": table.embedding_dim,
                "shard_rows": shard.num_rows,
                "shard_columns": shard.num_columns,
                "element_bytes": {"fp32": 4.0, "fp16": 2.0}[table.data_type],
                "batch_ids": table.pooling_factor * batch,
                "batch_outputs": batch,
                "expected_outputs": min(1.0, table.pooling_factor) * batch,
            }
        )
    columns: dict[str, Any] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    work = shard_work(instance.num_hosts * instance.ranks_per_host, instance.ranks_per_host, **columns)
    seconds = TorchRecModel().predict(work, load_profile("torchrec-default")).seconds
    assert len(rows) > 5 * len({shard.table for shard in shards})
    np.testing.assert_allclose(seconds[:, STEP_PHASES], np.array([shard.seconds for shard in shards]), rtol=1e-9)
