r"""The memory that a rank's tables live in, and what a gather of rows takes of it.

A gather of narrow rows wastes part of every memory transaction and, on an accelerator, part
of the thread block that serves a row. With ``r`` the bytes of a stored row, it takes the
time of :math:`g(r) \ge r` bytes of a gather of wide rows:

- accelerator memory: r is rounded up to 32-byte sectors, then g is linear between
  (128, 224), (256, 294.4) and (512, 512), is 224 below and r above. The points are TorchRec's
  empirical factors 1.75, 1.15 and 1 at 32, 64 and 128 fp32 columns, with its floor of 32
  columns. TorchRec keeps a factor constant over each range of widths, so that a row of 127
  columns costs more than one of 128; joining the points keeps wider rows dearer.
  Counted by bytes, so that half precision halves a row.
- host memory: r is rounded up to 64-byte cache lines.

References
----------
TorchRec 1.8.0, ``planner/constants.py`` (HALF_BLOCK_PENALTY, QUARTER_BLOCK_PENALTY,
FULL_BLOCK_EMB_DIM) and ``planner/estimator/estimator.py`` (floor of 32 columns).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware, Quantity

SECTOR_BYTES = 32  # smallest transaction of accelerator memory (NVIDIA CUDA C++ best practices guide)
CACHE_LINE_BYTES = 64  # x86-64 processors

_ROW_BYTES = np.array([128.0, 256.0, 512.0])  # 32, 64, 128 columns of fp32
_COST_BYTES = np.array([128 * 1.75, 256 * 1.15, 512.0])


def cache_lines(row_bytes: Floats, line_bytes: float = CACHE_LINE_BYTES) -> Floats:
    """Bytes of the whole cache lines of host memory that rows take, or of whole blocks of so many bytes."""
    lines: Floats = np.ceil(row_bytes / line_bytes) * line_bytes
    return lines


def scm_block_bytes(hardware: Hardware) -> float:
    """Return what storage-class memory moves at least: its blocks, where known, and never less than a cache line."""
    block = hardware.numbers["scm_block_bytes"].value if hardware.has("scm_block_bytes") else 0.0
    return max(block, float(CACHE_LINE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMemory:
    """Where the tables of a rank live, and how fast full-width rows are gathered there."""

    rate: Quantity  # bytes per second
    is_accelerator: bool

    def gather_bytes(self, row_bytes: Floats) -> Floats:
        """Bytes at full rate that one gathered (or scattered) row takes, by its stored bytes."""
        if not self.is_accelerator:
            return cache_lines(row_bytes)
        sectors = np.ceil(row_bytes / SECTOR_BYTES) * SECTOR_BYTES
        cost = np.maximum(np.interp(sectors, _ROW_BYTES, _COST_BYTES), sectors)
        return np.where(row_bytes > 0, cost, 0.0)

    def state_bytes(self, state_bytes: Floats) -> Floats:
        """Bytes at full rate that a small state beside each row takes: whole transactions."""
        grain = SECTOR_BYTES if self.is_accelerator else CACHE_LINE_BYTES
        return np.ceil(state_bytes / grain) * grain


def table_memory(hardware: Hardware) -> TableMemory:
    """Return the accelerator's memory, or the host's where the hardware has no accelerator.

    Raises
    ------
    MissingHardwareNumber
        The rate of that memory is not known.
    """
    hbm = hardware.numbers.get("hbm_bytes")
    has_accelerator = hardware.has("hbm_bytes_per_second") or (hbm is not None and hbm.value > 0)
    if has_accelerator or not hardware.has("ddr_bytes_per_second"):
        rate = hardware.quantity("hbm_bytes_per_second", needed_for="gathering table rows")
        return TableMemory(rate=rate, is_accelerator=True)
    rate = hardware.quantity("ddr_bytes_per_second", needed_for="gathering table rows from host memory")
    return TableMemory(rate=rate, is_accelerator=False)
