"""Registers as few bytes: the n-th most frequent value takes n bits, about 3 bits a register in all.

Layout: the values by falling frequency (equal ones by value), one byte each and 255 at the
end; then, register by register, zeros and a one: as many zeros as values are more frequent.
Equal registers give equal bytes.
"""

import numpy as np

from planner.statistics.cardinality import MAX_REGISTER, Registers

_END = 255


def pack(registers: Registers) -> bytes:
    """Return the registers as bytes."""
    counts = np.bincount(registers, minlength=MAX_REGISTER + 1)
    by_frequency = np.lexsort((np.arange(MAX_REGISTER + 1), -counts))
    used = by_frequency[counts[by_frequency] > 0]
    place = np.zeros(MAX_REGISTER + 1, dtype=np.int64)
    place[used] = np.arange(len(used))
    ends = np.cumsum(place[registers] + 1) - 1
    bits = np.zeros(int(ends[-1]) + 1, dtype=np.uint8)
    bits[ends] = 1
    return bytes(used.astype(np.uint8)) + bytes([_END]) + np.packbits(bits).tobytes()


def unpack(content: bytes, num_registers: int) -> Registers:
    """Return the registers that ``pack`` made bytes of; raises ``ValueError`` for any other bytes."""
    head, end, body = content.partition(bytes([_END]))
    values = np.frombuffer(head, dtype=np.uint8)
    bits = np.unpackbits(np.frombuffer(body, dtype=np.uint8))
    ends = np.flatnonzero(bits)
    if not end or len(ends) != num_registers:
        raise ValueError(f"Expected {num_registers} registers.")
    places = np.diff(ends, prepend=-1) - 1
    if places.max() >= len(values) or values.max(initial=0) > MAX_REGISTER:
        raise ValueError(f"Expected registers of at most {MAX_REGISTER}.")
    registers: Registers = values[places]
    if pack(registers) != content:
        raise ValueError("Expected registers in their shortest form.")
    return registers
