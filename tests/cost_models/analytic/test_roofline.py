"""The roofline model: by hand, its orderings, and its monotonicity."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.analytic.roofline import RooflineModel
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence, Kernel, Phase, Scheme
from tests.support.contracts.cost_model import CostModelContract
from tests.support.cost_models.laws import domain_law, laws
from tests.support.cost_models.shard_work import gpu_hardware, hardware, plain_hardware, shard_work, table_shard

COMM = [Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM]


class TestContract(CostModelContract):
    model = RooflineModel


class TestContractOnGpus(CostModelContract):
    model = RooflineModel

    def machine(self, evidence: Evidence = Evidence.GIVEN) -> Hardware:
        return gpu_hardware(evidence)


def predict(scheme: Scheme, **more: Any) -> Floats:
    """Seconds of one shard: 8 ranks, batch 1024, pooling 10, 1e6 rows x 128 fp32, row-wise AdaGrad."""
    seconds: Floats = RooflineModel().predict(table_shard(scheme, **more), plain_hardware()).seconds[0]
    return seconds


def test_every_phase_counts() -> None:
    assert RooflineModel().counted_phases.all()


def test_table_wise_by_hand() -> None:
    # 81,920 lookups x (8 B id + 512 B row) + 8,192 bags x 512 B = 46,792,704 B at 1 TB/s
    seconds = predict(Scheme.TABLE_WISE)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(46.792704e-6)
    # gradient 512 + id 8 + key 8 + 3 passes (2^20 > 1e6 rows: 20 bits) x 24 = 600 B per lookup;
    # distinct unknown: 81,920 rows x 2 x (512 weights + 32 for 4 B of state) = 1088 B each
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(81_920 * (600 + 1088) / 1e12)
    # 81,920 ids x 8 B x 7/8 and 8,192 bags x 512 B x 7/8 at 100 GB/s
    assert seconds[Phase.INPUT_COMM] == pytest.approx(655_360 * 7 / 8 / 1e11)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(4_194_304 * 7 / 8 / 1e11)
    assert seconds[Phase.BACKWARD_COMM] == seconds[Phase.FORWARD_COMM]
    assert seconds[Phase.PREFETCH] == 0


def test_distinct_rows_pay_in_the_update_only() -> None:
    known = predict(Scheme.TABLE_WISE, distinct_rows=10_000.0)
    unknown = predict(Scheme.TABLE_WISE)
    assert known[Phase.FORWARD_COMPUTE] == unknown[Phase.FORWARD_COMPUTE]
    # 71,920 fewer rows of 1088 B
    saved = unknown[Phase.BACKWARD_COMPUTE] - known[Phase.BACKWARD_COMPUTE]
    assert saved == pytest.approx(71_920 * 1088 / 1e12)


def test_unknown_distinct_rows_are_at_most_the_rows() -> None:
    # 100 rows: one sort pass: 512 + 8 + 8 + 24 = 552 B per lookup, and 100 distinct rows
    seconds = predict(Scheme.TABLE_WISE, rows=100)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx((81_920 * 552 + 100 * 1088) / 1e12)


def test_weighted_half_precision_adam_by_hand() -> None:
    # fp16 row 256 B; id + weight 12 B; fp16 output 256 B, gradient row 256;
    # Adam: 8 B of state per weight: 1024 B row.
    seconds = predict(
        Scheme.TABLE_WISE,
        element_bytes=2.0,
        output_element_bytes=2.0,
        optimizer_element_bytes=8.0,
        optimizer_row_bytes=0.0,
        is_weighted=True,
    )
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((81_920 * (12 + 256) + 8_192 * 256) / 1e12)
    per_id = 256 + 12 + 8 + 72
    update = 2 * (256 + 1024)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(81_920 * (per_id + update) / 1e12)


def test_row_wise_by_hand() -> None:
    # An eighth of the lookups, but a full partial pool for every bag of every rank.
    seconds = predict(Scheme.ROW_WISE)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((10_240 * 520 + 8_192 * 512) / 1e12)
    assert seconds[Phase.INPUT_COMM] == pytest.approx(10_240 * 8 * 7 / 8 / 1e11)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(4_194_304 * 7 / 8 / 1e11)


def test_column_pieces_get_all_ids_and_a_share_of_the_rows() -> None:
    whole, half = predict(Scheme.TABLE_WISE), predict(Scheme.COLUMN_WISE, pieces=2)
    assert half[Phase.INPUT_COMM] == whole[Phase.INPUT_COMM]
    assert half[Phase.FORWARD_COMM] == pytest.approx(whole[Phase.FORWARD_COMM] / 2)
    # every piece reads all ids: two pieces cost more than the whole
    assert 2 * half[Phase.FORWARD_COMPUTE] > whole[Phase.FORWARD_COMPUTE]


def test_rows_cut_inside_a_host_by_hand() -> None:
    # 2 hosts x 8: 16 x 1024 bags x 512 B = 8,388,608 B reduce-scattered among 8 at 100 GB/s,
    # then 2 x 1024 bags x 512 B = 1,048,576 B exchanged by 2 hosts at 10 GB/s
    seconds = predict(Scheme.TABLE_ROW_WISE, num_ranks=16)
    expected = 8_388_608 * 7 / 8 / 1e11 + 1_048_576 / 2 / 1e10
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(expected)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(expected)
    one_host = predict(Scheme.TABLE_ROW_WISE)
    assert one_host[Phase.FORWARD_COMM] == pytest.approx(predict(Scheme.ROW_WISE)[Phase.FORWARD_COMM])


def test_grid_is_rows_cut_inside_a_host_of_each_column_piece() -> None:
    grid = predict(Scheme.GRID_SHARD, pieces=2, num_ranks=16)
    narrow = predict(Scheme.TABLE_ROW_WISE, columns=64, num_ranks=16)
    np.testing.assert_allclose(grid, narrow)


def test_data_parallel_by_hand() -> None:
    # Its own batch only: 10,240 lookups x 520 B + 1,024 bags x 512 B.
    seconds = predict(Scheme.DATA_PARALLEL)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((10_240 * 520 + 1_024 * 512) / 1e12)
    # 600 B per lookup, 512 B of gradient per distinct row, and 1e6 rows x 2 x (512 + 512 + 4)
    backward = 10_240 * (600 + 512) + 1e6 * 2 * (512 + 512 + 4)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(backward / 1e12)
    # all-reduce of 512 MB: 2 x 7/8 / 100 GB/s
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(512e6 * 2 * 7 / 8 / 1e11)
    assert seconds[Phase.INPUT_COMM] == seconds[Phase.FORWARD_COMM] == 0


def test_small_gradients_share_a_bucket() -> None:
    # 4,000 rows x 512 B = 2,048,000 B travel at the pace of 25 MiB, not at that of 2 MB: a share of 20 us, and 7/8 of
    # them at 100 GB/s.
    machine = hardware(laws=laws(domain_law("all_reduce")), hbm_bytes_per_second=1e12)
    seconds = RooflineModel().predict(table_shard(Scheme.DATA_PARALLEL, rows=4_000), machine).seconds[0]
    share = 2_048_000 / (25 * 2.0**20)
    assert seconds[Phase.BACKWARD_COMM] == pytest.approx(20e-6 * share + 2_048_000 * 7 / 8 * 1e-11)


def test_dense_gradients_have_the_type_of_the_weights() -> None:
    # fp16: 256 MB instead of 512 MB are reduced
    half, full = predict(Scheme.DATA_PARALLEL, element_bytes=2.0), predict(Scheme.DATA_PARALLEL)
    assert half[Phase.BACKWARD_COMM] == pytest.approx(256e6 * 2 * 7 / 8 / 1e11)
    # The fp16 gradient row of 256 B is written; cleared and read, weights read and written: 256 B each
    backward = 10_240 * (600 + 256) + 1e6 * 2 * (256 + 256 + 4)
    assert half[Phase.BACKWARD_COMPUTE] == pytest.approx(backward / 1e12)
    assert full[Phase.BACKWARD_COMPUTE] > half[Phase.BACKWARD_COMPUTE]


def test_sequences_cut_by_rows_exchange_the_rows_that_they_looked_up() -> None:
    # 10,240 of the 81,920 lookups, 512 B each
    seconds = predict(Scheme.ROW_WISE, pooled=False)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(10_240 * 512 * 7 / 8 / 1e11)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(10_240 * (520 + 512) / 1e12)


def test_comm_types_apply_by_direction_and_default_to_fp32() -> None:
    full = predict(Scheme.TABLE_WISE, element_bytes=2.0)
    small = predict(
        Scheme.TABLE_WISE, element_bytes=2.0, forward_comm_element_bytes=2.0, backward_comm_element_bytes=1.0
    )
    assert small[Phase.FORWARD_COMM] == pytest.approx(full[Phase.FORWARD_COMM] / 2)
    assert small[Phase.BACKWARD_COMM] == pytest.approx(full[Phase.BACKWARD_COMM] / 4)


@pytest.mark.parametrize("scheme", [Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE])
def test_each_direction_has_its_own_message(scheme: Scheme) -> None:
    """Messages of 1 MiB and of 64 MiB have different places on the curves of an H100 host."""
    machine = load_profile("dgx-h100-80g")

    def comm(forward: float, backward: float) -> Floats:
        work = table_shard(scheme, forward_message_bytes=forward, backward_message_bytes=backward)
        seconds: Floats = RooflineModel().predict(work, machine).seconds[0]
        return seconds

    both, first, second = comm(2.0**20, 2.0**20), comm(2.0**26, 2.0**20), comm(2.0**20, 2.0**26)
    assert first[Phase.FORWARD_COMM] < both[Phase.FORWARD_COMM]
    assert first[Phase.BACKWARD_COMM] == both[Phase.BACKWARD_COMM]
    assert second[Phase.FORWARD_COMM] == both[Phase.FORWARD_COMM]
    assert second[Phase.BACKWARD_COMM] < both[Phase.BACKWARD_COMM]


def test_one_rank_communicates_nothing_and_needs_no_links() -> None:
    machine = hardware(hbm_bytes_per_second=1e12)
    for scheme in Scheme:
        work = table_shard(scheme, num_ranks=1, ranks_per_host=1)
        assert np.all(RooflineModel().predict(work, machine).seconds[0][COMM] == 0)


def test_evidence_is_the_weakest_number_of_each_phase() -> None:
    priced = RooflineModel().predict(
        table_shard(Scheme.TABLE_WISE, num_ranks=16), load_profile("zionex-prototype-v100-32g")
    )
    # gathers were measured, the kernels of this GPU were not; the all-to-all inside a host is an estimate
    assert priced.evidence[0, Phase.FORWARD_COMPUTE] == Evidence.ESTIMATED
    assert priced.evidence[0, Phase.FORWARD_COMM] == Evidence.ESTIMATED
    assert priced.evidence[0, Phase.PREFETCH] == Evidence.MEASURED
    host = RooflineModel().predict(table_shard(Scheme.TABLE_WISE), load_profile("dgx-h100-80g"))
    # the L2's size is that of a data sheet, the collective was measured with 8 ranks
    assert host.evidence[0, Phase.FORWARD_COMM] == Evidence.MEASURED
    assert host.evidence[0, Phase.FORWARD_COMPUTE] == Evidence.DATASHEET


@pytest.mark.parametrize("profile", ["zionex-a100-40g", "zionex-prototype-v100-32g", "dgx-h100-80g"])
def test_communication_ladder_over_hosts(profile: str) -> None:
    """A table's communication over all ranks grows from table-wise over host rows to row-wise.

    The only public measurement of the ladder, 32 ranks, thousand samples per second: TW 90,
    CW 81-88, hierarchical 80-82, RW 62 (a commit message of TorchRec's authors).
    """
    machine = load_profile(profile)
    messages = {"forward_message_bytes": 2.0**26, "backward_message_bytes": 2.0**26}
    totals = {}
    for scheme, pieces in (
        (Scheme.TABLE_WISE, 1),
        (Scheme.COLUMN_WISE, 2),
        (Scheme.TABLE_ROW_WISE, 1),
        (Scheme.ROW_WISE, 1),
    ):
        work = table_shard(scheme, pieces=pieces, num_ranks=32, columns=256, **messages)
        seconds = RooflineModel().predict(work, machine).seconds[0][COMM].sum()
        totals[scheme] = seconds * pieces * int(work.row_shards[0])
    ladder = list(totals.values())
    assert ladder == sorted(ladder)
    assert totals[Scheme.ROW_WISE] > 2 * totals[Scheme.TABLE_WISE]


INCREASING = (
    "table_rows",
    "shard_rows",
    "shard_columns",
    "element_bytes",
    "row_overhead_bytes",
    "optimizer_element_bytes",
    "optimizer_row_bytes",
    "batch_outputs",
    "lookups",
    "distinct_rows",
    "is_weighted",
    "output_element_bytes",
    "forward_comm_element_bytes",
    "backward_comm_element_bytes",
)


@settings(max_examples=200)
@given(
    scheme=st.sampled_from(Scheme),
    kernel=st.sampled_from([Kernel.FUSED, Kernel.DENSE]),
    pooled=st.booleans(),
    cluster=st.sampled_from([(1, 1), (8, 8), (16, 8), (6, 2)]),
    rows=st.integers(1, 10**9),
    columns=st.integers(1, 2_000),
    element_bytes=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    lookups=st.floats(0, 1e9),
    outputs=st.floats(0, 1e7),
    grown=st.sampled_from(INCREASING),
    factor=st.floats(1.0, 50.0),
)
def test_more_of_anything_never_costs_less(
    scheme: Scheme,
    kernel: Kernel,
    pooled: bool,
    cluster: tuple[int, int],
    rows: int,
    columns: int,
    element_bytes: float,
    lookups: float,
    outputs: float,
    grown: str,
    factor: float,
) -> None:
    small: dict[str, Any] = {
        "scheme": scheme,
        "kernel": kernel,
        "is_pooled": pooled,
        "table_rows": rows,
        "shard_rows": rows,
        "shard_columns": columns,
        "element_bytes": element_bytes,
        "row_overhead_bytes": 4.0,
        "optimizer_element_bytes": 4.0,
        "optimizer_row_bytes": 4.0,
        "lookups": lookups,
        # the same lookups of as many distinct ones among more rows are more skewed, so that a cache serves more of them
        "distinct_rows": np.nan if grown in ("table_rows", "shard_rows") else lookups / 3,
        "batch_outputs": outputs,
        "is_weighted": False,
        "output_element_bytes": 2.0,
        "forward_comm_element_bytes": 2.0,
        "backward_comm_element_bytes": 2.0,
    }
    large = small | {grown: True if grown == "is_weighted" else small[grown] * factor}
    machine = load_profile("dgx-h100-80g")
    before = RooflineModel().predict(shard_work(*cluster, **small), machine).seconds
    after = RooflineModel().predict(shard_work(*cluster, **large), machine).seconds
    assert np.all(after >= before * (1 - 1e-12))


@given(faster=st.sampled_from(sorted(plain_hardware().numbers)), factor=st.floats(1.0, 100.0))
def test_faster_hardware_never_costs_more(faster: str, factor: float) -> None:
    work = TestContract().work()
    slow = plain_hardware()
    number = slow.numbers[faster]
    value = number.value / factor if number.unit == "seconds" else number.value * factor
    fast = dataclasses.replace(slow, numbers=dict(slow.numbers) | {faster: dataclasses.replace(number, value=value)})
    before = RooflineModel().predict(work, slow).seconds
    after = RooflineModel().predict(work, fast).seconds
    assert np.all(after <= before * (1 + 1e-12))


@pytest.mark.parametrize("profile", ["inference-6card-m2"])
def test_long_bags_of_wide_rows_run_near_the_gather_rate(profile: str) -> None:
    # 80 rows of 1 KiB per bag: ids add 0.8%, the pooled output 1.25%.
    machine = load_profile(profile)
    work = table_shard(Scheme.TABLE_WISE, columns=256, pooling=80.0)
    seconds = RooflineModel().predict(work, machine).seconds[0, Phase.FORWARD_COMPUTE]
    rate = machine.numbers["hbm_bytes_per_second"].value
    assert work.lookups[0] * 1024 / seconds == pytest.approx(rate / (1 + 8 / 1024 + 1 / 80))
