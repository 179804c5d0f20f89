"""Which memory holds the tables, and what gathers of narrow rows take."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.analytic.table_memory import table_memory
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.profiles_loader import load_profile
from tests.support.cost_models.shard_work import hardware, plain_hardware


@pytest.mark.parametrize(
    ("row_bytes", "cost_bytes"),
    [
        (0.0, 0.0),  # no row, no cost
        (8.0, 32.0),  # 4 columns of fp16: one sector
        (68.0, 96.0),  # 64 columns of int8 with scale and bias
        (512.0, 512.0),  # 128 columns
        (513.0, 544.0),  # one byte into the next sector of 32
        (2048.0, 2048.0),
    ],
)
def test_accelerator_gathers_by_hand(row_bytes: float, cost_bytes: float) -> None:
    memory = table_memory(plain_hardware())
    assert memory.whole_bytes(np.array([row_bytes]))[0] == pytest.approx(cost_bytes)


def test_host_gathers_take_whole_cache_lines() -> None:
    memory = table_memory(load_profile("cpu-2s-genoa-200g"))
    assert not memory.is_accelerator
    assert memory.rate.value == 600e9
    np.testing.assert_array_equal(memory.whole_bytes(np.array([0.0, 8.0, 64.0, 65.0])), [0, 64, 64, 128])


@given(*[st.floats(0, 1e5, allow_subnormal=False)] * 2)
def test_wider_rows_never_cost_less_and_never_less_than_their_bytes(one: float, other: float) -> None:
    memory = table_memory(plain_hardware())
    narrow, wide = memory.whole_bytes(np.array(sorted((one, other))))
    assert narrow <= wide
    assert wide >= max(one, other)


def test_an_accelerator_of_unknown_rate_is_not_guessed() -> None:
    with pytest.raises(MissingHardwareNumber, match="hbm_bytes_per_second"):
        table_memory(hardware(hbm_bytes=80e9, ddr_bytes_per_second=1e11))
    with pytest.raises(MissingHardwareNumber, match="hbm_bytes_per_second"):
        table_memory(hardware())


def test_a_machine_with_host_memory_only() -> None:
    assert table_memory(hardware(ddr_bytes_per_second=1e11)).rate.value == 1e11
