"""Registers as few bytes: the n-th most frequent value takes n bits, about 3 bits a register in all.

Layout: the values by falling frequency (equal ones by value), one byte each and 255 at the
end; then, register by register, zeros and a one: as many zeros as values are more frequent.
Equal registers give equal bytes.
"""

import numpy as np
from numpy.typing import NDArray

from planner.access.sketches.cardinality import MAX_REGISTER, Registers

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
    ends = np.flatnonzero(bits.view(np.bool_))
    if not end or len(ends) != num_registers:
        raise ValueError(f"Expected {num_registers} registers.")
    low = ends.astype(np.uint8)
    places = np.diff(low, prepend=low.dtype.type(_END)) - np.uint8(1)  # zeros before each one, modulo 256
    has_many_zeros = int(places.sum(dtype=np.int64)) + num_registers != int(ends[-1]) + 1
    if has_many_zeros or places.max() >= len(values) or values.max(initial=0) > MAX_REGISTER:
        raise ValueError(f"Expected registers of at most {MAX_REGISTER}.")
    if len(body) != ends[-1] // 8 + 1 or not _is_by_frequency(values, np.bincount(places, minlength=len(values))):
        raise ValueError("Expected registers in their shortest form.")
    value_of_place = values.tobytes().ljust(_END + 1, b"\0")
    return np.frombuffer(places.tobytes().translate(value_of_place), dtype=np.uint8).copy()


def _is_by_frequency(values: Registers, counts: NDArray[np.int64]) -> bool:
    """Whether these are the values in use by falling frequency, equal ones by value: the head that ``pack`` writes."""
    after, values_after = counts[1:], values[1:].astype(np.int64)
    follows = (counts[:-1] > after) | ((counts[:-1] == after) & (values[:-1] < values_after))
    return bool(counts[-1] > 0 and np.all(follows)) and len(np.unique(values)) == len(values)
