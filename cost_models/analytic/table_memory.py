r"""The memory that a rank's tables live in, and what kernels take to gather and update rows there.

Kernels move whole transactions: sectors of 32 bytes in the memory of an accelerator, cache lines of 64 bytes in host
memory. :class:`TableMemory` prices a kernel by these bytes alone, at the rate at which the memory gathers rows of at
least 512 bytes. That is the law of processors without accelerators, of cards of serving hosts and of TPUs, of which no
embedding kernel was measured. GPUs have more: :mod:`cost_models.analytic.gpu_memory`.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.vocabulary import Evidence

SECTOR_BYTES = 32  # smallest transaction of accelerator memory (NVIDIA CUDA C++ best practices guide)
CACHE_LINE_BYTES = 64  # x86-64 processors
TAG_SET_BYTES = 32 * 8.0  # one set of a cache: 32 tags of int64 (FBGEMM 1.8.0, DEFAULT_ASSOC on CUDA devices)


def cache_lines(row_bytes: Floats, line_bytes: float = CACHE_LINE_BYTES) -> Floats:
    """Bytes of the whole cache lines of host memory that rows take, or of whole blocks of so many bytes."""
    lines: Floats = np.ceil(row_bytes / line_bytes) * line_bytes
    return lines


def scm_block_bytes(hardware: Hardware) -> float:
    """Return what storage-class memory moves at least: its blocks, where known, and never less than a cache line."""
    block = hardware.numbers["scm_block_bytes"].value if hardware.has("scm_block_bytes") else 0.0
    return max(block, float(CACHE_LINE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What is updated of a distinct row of each shard; all arrays (num_shards,)."""

    row_bytes: Floats  # weights and state in the device's memory, in whole transactions
    columns: Floats  # of the widest row of the launch
    has_row_state: Bools
    has_moments: Bools  # of first and second order, in the device's memory
    on_device: Floats  # share of the rows in the device's memory


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMemory:
    """Where the tables of a rank live, and how fast wide rows are gathered there.

    All arrays have shape (num_shards,).
    """

    rate: Quantity  # bytes per second
    is_accelerator: bool

    @property
    def forward_evidence(self) -> Evidence:
        """The weakest of the numbers that forward kernels are priced by."""
        return self.rate.evidence

    @property
    def backward_evidence(self) -> Evidence:
        """The same of backward kernels."""
        return self.rate.evidence

    @property
    def cache_evidence(self) -> Evidence:
        """The same of what finds ids in a cache."""
        return self.rate.evidence

    def whole_bytes(self, some_bytes: Floats) -> Floats:
        """Bytes of the whole transactions that rows or states of so many bytes take."""
        return cache_lines(some_bytes, SECTOR_BYTES if self.is_accelerator else CACHE_LINE_BYTES)

    def gather_seconds(self, lookups: Floats, distinct: Floats, rows: Floats, row_bytes: Floats) -> Floats:
        """Seconds of reading a row for every lookup, of ``distinct`` rows among ``rows``."""
        del distinct, rows  # nothing is known of repeats
        return lookups * self.whole_bytes(row_bytes) / self.rate.value

    def output_seconds(self, moving: Floats, outputs: Floats, is_pooled: Bools) -> Floats:
        """Seconds of a forward kernel that moves bytes for ``moving`` seconds and writes ``outputs`` rows."""
        del outputs, is_pooled
        return moving

    def gradient_seconds(self, lookups: Floats, gradients: Floats, row_bytes: Floats) -> Floats:
        """Seconds of reading a gradient row for every lookup, ``gradients`` distinct ones."""
        return self.gather_seconds(lookups, gradients, gradients, row_bytes)

    def backward_lookup_seconds(self, lookups: Floats, cached_lookups: Floats) -> Floats:
        """Seconds of backward kernels beyond the bytes that they move."""
        del cached_lookups
        return np.zeros_like(lookups)

    def update_seconds(self, distinct: Floats, updated: Updated) -> Floats:
        """Seconds of reading and writing every distinct row with its state."""
        return 2 * distinct * updated.row_bytes / self.rate.value

    def cache_seconds(self, cached_lookups: Floats, sort_bytes: Floats) -> Floats:
        """Seconds of finding ids in a cache: a set of tags for every id, and a sort to find the distinct ones."""
        return cached_lookups * (TAG_SET_BYTES + sort_bytes) / self.rate.value


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
