"""Registers: how well they count, and that merging is exact."""

import numpy as np
import pytest

from planner.access.sketches.cardinality import empty_registers, estimate, observe
from planner.access.sketches.hashing import leading_zeros, row_hashes
from planner.access.sketches.register_packing import pack, unpack


@pytest.mark.parametrize("num", [0, 1, 10, 1_000, 50_000, 2_000_000])
def test_distinct_rows_within_two_percent(num: int) -> None:
    registers = empty_registers(15)
    observe(registers, row_hashes(np.arange(num), 0))
    assert estimate(registers) == pytest.approx(num, rel=0.02)


def test_registers_of_parts_merge_into_those_of_the_whole() -> None:
    whole, first, second = empty_registers(13), empty_registers(13), empty_registers(13)
    hashes = row_hashes(np.arange(30_000), 7)
    observe(whole, hashes)
    observe(first, hashes[:20_000])
    observe(second, hashes[10_000:])
    assert np.array_equal(np.maximum(first, second), whole)


def test_leading_zeros() -> None:
    values = np.array([0, 1, 2**63, 2**63 - 1, 2**20, 2**11], dtype=np.uint64)
    assert leading_zeros(values).tolist() == [53, 53, 0, 1, 43, 52]


@pytest.mark.parametrize("num", [0, 3, 5_000, 1_000_000])
def test_packed_registers_are_the_same_and_small(num: int) -> None:
    registers = empty_registers(13)
    observe(registers, row_hashes(np.arange(num), 0))
    content = pack(registers)
    assert np.array_equal(unpack(content, 2**13), registers)
    assert len(content) < 3_600  # 3.4 bits each


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",  # no end of the list of values
        b"\x00\xff" + b"\xff" * 1023,  # 8184 registers
        b"\x00\xff" + b"\xff" * 1024 + b"\x00",  # not the shortest form
        b"\x20\xff" + b"\xff" * 1024,  # a register of 32
        b"\xff" + b"\xff" * 1024,  # no values
        b"\x00\xff" + b"\x7f" + b"\xff" * 1024,  # a value that is not listed
        b"\x00\x01\xff" + b"\xff" * 1024,  # a value that no register has
        b"\x01\x00\xff" + b"\x55" * 512 + b"\xff" * 256 + b"\x55" * 1024,  # as frequent, in the wrong order
        b"\x00\x01\xff" + b"\x55" * 2048,  # the less frequent one first
        b"\x00\x00\xff" + b"\x55" * 512 + b"\xff" * 768,  # a value twice
        b"\x00\xff" + bytes(32) + b"\xff" * 1024,  # 256 zeros before a one
    ],
)
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="Expected"):
        unpack(content, 2**13)
