"""How many distinct rows were seen: HyperLogLog registers, merged by their maximum.

A row's hash chooses a register by its first bits, and gives it the position of the first 1
among the others. Registers hold at most 31, so that a row has the same effect on the maximum
in every sketch.

References
----------
Flajolet, Fusy, Gandouet, Meunier: HyperLogLog, AofA 2007 (the registers; standard error 1.04 / sqrt(m)).
Ertl: New cardinality estimation algorithms for HyperLogLog sketches, arXiv 1702.01284, algorithm 6 (the estimate).
"""

import math

import numpy as np
from numpy.typing import NDArray

from planner.access.sketches.hashing import Hashes, leading_zeros

Registers = NDArray[np.uint8]

MAX_REGISTER = 31
_BITS = 64
#: Of one estimate, relative, times the square root of the number of registers.
STANDARD_ERROR = 1.04


def empty_registers(index_bits: int) -> Registers:
    """Return the registers of nothing seen, shape (2 ** index_bits,)."""
    return np.zeros(2**index_bits, dtype=np.uint8)


def observe(registers: Registers, hashes: Hashes) -> None:
    """Take rows in, by their hashes."""
    index_bits = np.uint64(len(registers).bit_length() - 1)
    positions = np.minimum(leading_zeros(hashes << index_bits) + 1, MAX_REGISTER).astype(np.uint8)
    np.maximum.at(registers, (hashes >> (np.uint64(_BITS) - index_bits)).astype(np.int64), positions)


def estimate(registers: Registers) -> float:
    """Return the number of distinct rows; its relative standard error is 1.04 / sqrt(registers)."""
    num = len(registers)
    counts = np.bincount(registers, minlength=MAX_REGISTER + 1)
    if counts[0] == num:
        return 0.0
    z = num * _tau(1.0 - counts[MAX_REGISTER] / num)
    for k in range(MAX_REGISTER - 1, 0, -1):
        z = 0.5 * (z + float(counts[k]))
    z += num * _sigma(counts[0] / num)
    return num * num / (2.0 * math.log(2.0) * z)


def _sigma(x: float) -> float:
    """x + sum over k of x^(2^k) 2^(k-1), of the empty registers."""
    y, z, before = 1.0, x, -1.0
    while z != before:
        x, before = x * x, z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    """(1 - x - sum over k of (1 - x^(2^-k))^2 2^-k) / 3, of the full registers."""
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x, before = math.sqrt(x), z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
    return z / 3.0
