"""Requests on the cards of a host, by hand."""

from typing import Any

import numpy as np
import pytest

from cost_models.analytic.serving import MESSAGE_PHASES, ServingModel, message_seconds
from cost_models.arrays import Floats
from cost_models.errors import MissingHardwareNumber, UnsupportedWork
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase, Scheme
from tests.support.contracts.cost_model import CostModelContract, without
from tests.support.cost_models.shard_work import hardware, shard_work, table_shard

#: 100 GB/s of gathers, 2 GB/s to a card and 1 GB/s back, 10 us for a message.
NUMBERS = {
    "hbm_bytes": 16e9,
    "hbm_bytes_per_second": 1e11,
    "host_link_bytes_per_second": 2e9,
    "host_link_return_bytes_per_second": 1e9,
    "host_link_message_seconds": 1e-5,
}


def card(evidence: Evidence = Evidence.GIVEN, **changes: float) -> Hardware:
    return hardware(evidence, **(NUMBERS | changes))


class TestContract(CostModelContract):
    model = ServingModel

    refused_kernels = (Kernel.KEY_VALUE, *(kernel for kernel in Kernel if kernel.facts.is_hashed))

    def machine(self, evidence: Evidence = Evidence.GIVEN) -> Hardware:
        return card(evidence)

    @pytest.mark.parametrize("scheme", Scheme)
    def test_a_table_that_is_never_looked_up_costs_no_lookups(self, scheme: Scheme) -> None:
        idle, busy = (predict(scheme, pooling=pooling) for pooling in (0.0, 10.0))
        assert idle[Phase.INPUT_COMM] == 0
        assert 0 < idle[Phase.FORWARD_COMPUTE] < busy[Phase.FORWARD_COMPUTE]  # empty bags are written, too

    @pytest.mark.parametrize(
        ("lacking", "num_ranks", "ranks_per_host"),
        [(name, 6, 6) for name in ("hbm_bytes_per_second", "host_link_bytes_per_second", "host_link_message_seconds")],
    )
    def test_a_number_that_is_needed_and_missing_raises(
        self, lacking: str, num_ranks: int, ranks_per_host: int
    ) -> None:
        work = table_shard(Scheme.TABLE_WISE, num_ranks=num_ranks, ranks_per_host=ranks_per_host)
        with pytest.raises(MissingHardwareNumber, match=lacking) as raised:
            self.model().predict(work, without(card(), lacking))
        assert lacking in raised.value.hint

    def test_a_number_that_is_not_needed_may_be_missing(self) -> None:
        """A link whose way back is not known returns as fast as it fetches."""
        one_way = without(card(), "host_link_return_bytes_per_second")
        seconds = self.model().predict(table_shard(Scheme.TABLE_WISE), one_way).seconds[0]
        assert seconds[Phase.FORWARD_COMM] == pytest.approx(predict(Scheme.TABLE_WISE)[Phase.FORWARD_COMM] / 2)

    def test_tables_of_a_machine_without_accelerator_live_in_host_memory(self) -> None:
        links = {name: value for name, value in NUMBERS.items() if name.startswith("host")}
        machine = hardware(hbm_bytes=0, ddr_bytes_per_second=1e10, **links)
        seconds = self.model().predict(table_shard(Scheme.TABLE_WISE), machine).seconds[0]
        assert seconds[Phase.FORWARD_COMPUTE] > predict(Scheme.TABLE_WISE)[Phase.FORWARD_COMPUTE]


def predict(scheme: Scheme, **more: Any) -> Floats:
    seconds: Floats = ServingModel().predict(table_shard(scheme, **more), card()).seconds[0]
    return seconds


#: 60 samples of 4 ids on 6 cards: 10 samples each. int8 rows of 60 columns: 64 bytes, two sectors.
SIX = {
    "num_ranks": 6,
    "ranks_per_host": 6,
    "batch": 10,
    "pooling": 4.0,
    "columns": 60,
    "element_bytes": 1.0,
    "row_overhead_bytes": 4.0,
    "row_alignment_bytes": 16.0,
}


def test_only_a_forward_pass_is_counted() -> None:
    counted = [phase for phase in STEP_PHASES if ServingModel().counted_phases[phase]]
    assert counted == [Phase.INPUT_COMM, Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM, Phase.PREFETCH]
    seconds = predict(Scheme.TABLE_WISE)
    assert seconds.sum() == seconds[counted].sum()


def test_a_whole_table_by_hand() -> None:
    """240 ids of 8 bytes at 2 GB/s; 240 rows of 64, two sectors; 60 rows of 240 bytes at 1 GB/s back."""
    seconds = predict(Scheme.TABLE_WISE, **SIX)
    assert seconds[Phase.INPUT_COMM] == pytest.approx(1_920 / 2e9)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((1_920 + 240 * 64 + 14_400) / 1e11)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(14_400 / 1e9)


def test_a_replica_serves_an_even_share_of_the_samples() -> None:
    whole, replica = (predict(scheme, **SIX) for scheme in (Scheme.TABLE_WISE, Scheme.DATA_PARALLEL))
    np.testing.assert_allclose(replica, whole / 6)


def test_row_cuts_share_lookups_and_return_a_partial_sum_of_every_sample() -> None:
    whole, block = (predict(scheme, **SIX) for scheme in (Scheme.TABLE_WISE, Scheme.ROW_WISE))
    assert block[Phase.INPUT_COMM] == pytest.approx(whole[Phase.INPUT_COMM] / 6)
    assert block[Phase.FORWARD_COMPUTE] == pytest.approx((320 + 40 * 64 + 14_400) / 1e11)
    assert block[Phase.FORWARD_COMM] == whole[Phase.FORWARD_COMM]


def test_row_cuts_of_a_sequence_return_each_row_once() -> None:
    block, whole = (predict(scheme, pooled=False, **SIX) for scheme in (Scheme.ROW_WISE, Scheme.TABLE_WISE))
    np.testing.assert_allclose(block, whole / 6)


def test_column_pieces_each_get_all_ids_and_return_their_columns() -> None:
    whole, half = predict(Scheme.TABLE_WISE, **SIX), predict(Scheme.COLUMN_WISE, pieces=2, **SIX)
    assert half[Phase.INPUT_COMM] == whole[Phase.INPUT_COMM]
    assert half[Phase.FORWARD_COMM] == pytest.approx(whole[Phase.FORWARD_COMM] / 2)


def test_types_and_weights_of_ids_count() -> None:
    """12 bytes for an id with its weight; outputs of 2 bytes written, of 1 byte sent."""
    types = {"is_weighted": True, "output_element_bytes": 2.0, "forward_comm_element_bytes": 1.0}
    seconds = predict(Scheme.TABLE_WISE, **SIX, **types)
    assert seconds[Phase.INPUT_COMM] == pytest.approx(240 * 12 / 2e9)
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx((240 * 12 + 240 * 64 + 7_200) / 1e11)
    assert seconds[Phase.FORWARD_COMM] == pytest.approx(3_600 / 1e9)


def test_padding_is_gathered_too() -> None:
    """516 bytes of a row are 544 in whole sectors of 32; padded to a multiple of 64 they are 576."""
    wide = {**SIX, "columns": 512}
    bare, padded = (predict(Scheme.TABLE_WISE, **{**wide, "row_alignment_bytes": grain}) for grain in (1.0, 64.0))
    difference = padded[Phase.FORWARD_COMPUTE] - bare[Phase.FORWARD_COMPUTE]
    assert difference == pytest.approx(240 * (576 - 544) / 1e11)


def test_messages_are_no_part_of_a_shard() -> None:
    work = table_shard(Scheme.TABLE_WISE)
    slow = ServingModel().predict(work, card(host_link_message_seconds=1.0)).seconds
    np.testing.assert_array_equal(slow, ServingModel().predict(work, card()).seconds)
    assert message_seconds(card()).value == 1e-5
    assert MESSAGE_PHASES == (Phase.INPUT_COMM, Phase.FORWARD_COMM)  # ids there, rows back


def test_faster_links_never_cost_more() -> None:
    work = table_shard(Scheme.ROW_WISE)
    slow, fast = (ServingModel().predict(work, card(host_link_bytes_per_second=rate)).seconds for rate in (1e9, 3e9))
    assert np.all(fast <= slow)


def test_the_message_names_the_kernel() -> None:
    with pytest.raises(UnsupportedWork, match="key_value"):
        ServingModel().predict(shard_work(kernel=Kernel.KEY_VALUE), card())


def test_rows_in_host_memory_come_over_the_link() -> None:
    """240 rows of 256 B: all over the 2 GB/s link, or those of the half that a cache misses, and then gathered."""
    shape = {"num_ranks": 6, "ranks_per_host": 6, "batch": 10, "pooling": 4.0, "columns": 64, "is_trained": False}
    machine = card(ddr_bytes_per_second=1e10)

    def seconds(kernel: Kernel, **more: Any) -> Floats:
        found: Floats = (
            ServingModel().predict(table_shard(Scheme.TABLE_WISE, kernel=kernel, **shape, **more), machine).seconds[0]
        )
        return found

    near, direct = seconds(Kernel.FUSED), seconds(Kernel.FUSED_UVM)
    moved = 1_920 + 60 * 256
    assert direct[Phase.FORWARD_COMPUTE] == pytest.approx(moved / 1e11 + 240 * 256 / 2e9)
    cached = seconds(Kernel.FUSED_UVM_CACHING, cache_load_factor=0.1, missed_share=0.5, distinct_rows=100.0)
    assert cached[Phase.PREFETCH] == pytest.approx(50 * 256 / 2e9)
    assert cached[Phase.FORWARD_COMPUTE] == pytest.approx(near[Phase.FORWARD_COMPUTE] + 240 * 32 * 8 / 1e11)
    for phase in (Phase.INPUT_COMM, Phase.FORWARD_COMM):
        assert near[phase] == direct[phase] == cached[phase]
