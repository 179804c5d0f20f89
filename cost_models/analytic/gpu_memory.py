r"""What the embedding kernels of a GPU take: FBGEMM's table batched embeddings, forward and backward.

A row that a launch looks up again is read from the GPU's L2, if the L2 still holds it, and else from the memory. With
``n`` lookups of ``u`` distinct rows among ``R``, ``C`` bytes of L2 and ``x`` bytes of a row's sectors, lookups are of
two kinds. The lookups of hot rows repeat within a short time and find their rows in the L2. The other lookups fall on
all rows alike: ``n' = min(n, -R log(1 - u / R))`` of them touch ``u`` distinct rows, and find the share
``min(1, C / (R x))`` in the L2. So the memory is read ``q = max(u, n' (1 - min(1, C / (R x))))`` times: no row comes
from the L2 before the memory was read once. Tables follow one another in a launch, so each has the whole L2. Repeats of
a table that an L1 holds come from there.

- forward: the ids and the outputs, a time for each bag, and the rows: the memory and the caches work at the same time,
  and each lookup takes a time of its own, longer if its row comes from the memory. The longest of the three counts.
  Kernels of sequences write as many rows as they read, and take at least a time for each [1];
- backward: the ids, the sort, the gradient row of each lookup, a time per lookup, and the distinct rows with their
  state, read and written at a rate of their own. A row has a least time. Row-wise state makes it grow with the columns
  of the launch, since its kernel reads the gradients twice. Two moments (Adam) make it ten times as long [1] [3];
- caches: finding every id takes a time per lookup; the backward pass reads the tags of every id's set again [2].

What a GPU's profile does not state follows from the H100, on which the most was measured. Rates are the same share of
the rate of the memory. Times of rows of the memory go by the root of that rate, and other times are the same: an H200,
whose memory is 1.4 times as fast, takes 0.84 to 0.87 times as long for the former, 0.94 to 1.03 times for the latter.
Times of finding ids in caches, which were measured on an H100 alone, are those of as many bytes. Such numbers are
estimates.

References
----------
.. [1] Measured with FBGEMM 1.6.0 on one H100 and one H200: ``benchmarks/measured``.
.. [2] NVIDIA recsys-examples, ``corelib/dynamicemb/benchmark`` at commits 6ac3d68, 342da56, 8cd3339: FBGEMM on one
   H100, 128 columns of fp32.
.. [3] FBGEMM pull request 5835: backward kernels of an MI350, 8 to 1,024 columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.analytic.table_memory import TAG_SET_BYTES, TableMemory, Updated, table_memory
from cost_models.arrays import Bools, Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.profile_fields import FIELDS
from cost_models.vocabulary import Evidence

#: Families whose accelerators run these kernels. "custom" is a machine of the user, most often with GPUs.
GPU_FAMILIES = ("gpu", "custom")

#: Rate of an H100's memory.
MEASURED_RATE = 2.57e12
#: Of an H100, as shares of the rate of its memory, as bytes at that rate, and by themselves.
L2_RATE_SHARE = 2.87
UPDATE_RATE_SHARE = 0.825
CACHE_LOOKUP_BYTES = 5700.0
INDEX_LOOKUP_BYTES = 85.0  # of an A100
L2_BYTES = 40e6
LOOKUP_SECONDS = 39.5e-12
REPEATED_LOOKUP_SECONDS = 13e-12
SEQUENCE_LOOKUP_SECONDS = 158e-12
BAG_SECONDS = 292e-12
BACKWARD_LOOKUP_SECONDS = 94e-12
GRADIENT_ROW_SECONDS = 134e-12
UPDATE_ROW_SECONDS = 127e-12
UPDATE_COLUMN_SECONDS = 4.25e-12
MOMENT_ROW_SECONDS = 1.18e-9
#: An L1 of an H100 holds that much, and all of them together are read at that many times the rate of the L2.
L1_BYTES, L1_RATE_FACTOR = 200e3, 3.0
#: Columns that a warp updates at once: of wider rows each column takes half as long.
WARP_COLUMNS = 128

#: By how much of itself a number that follows from an H100 may be wrong: twice what those of an H200 differ by.
SCALED_ERROR = 0.35

#: Of the lookups of rows in host memory that repeat a row, the share that reads it over the link again [1].
HOST_REPEATS_READ = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory(TableMemory):
    """The memory of a GPU with its L2 and its kernels."""

    l2_rate: Quantity
    l2_bytes: Quantity
    lookup: Quantity  # seconds, as all that follow but the rate
    repeated_lookup: Quantity
    sequence_lookup: Quantity
    bag: Quantity
    backward_lookup: Quantity
    gradient_row: Quantity
    update_rate: Quantity
    update_row: Quantity
    update_column: Quantity
    moment_row: Quantity
    cache_lookup: Quantity

    @property
    def forward_evidence(self) -> Evidence:
        """The weakest of the numbers that forward kernels are priced by."""
        times = self.lookup, self.repeated_lookup, self.sequence_lookup, self.bag
        return _weakest(self.rate, self.l2_rate, self.l2_bytes, *times)

    @property
    def backward_evidence(self) -> Evidence:
        """The same of backward kernels."""
        times = self.backward_lookup, self.gradient_row, self.update_row, self.update_column, self.moment_row
        return _weakest(self.rate, self.l2_rate, self.l2_bytes, self.update_rate, *times)

    @property
    def cache_evidence(self) -> Evidence:
        """The same of what finds ids in a cache."""
        return self.cache_lookup.evidence

    def gather_seconds(self, lookups: Floats, distinct: Floats, rows: Floats, row_bytes: Floats) -> Floats:
        """Seconds of reading a row for every lookup: the memory, the caches or the lookups themselves last longest."""
        sectors = self.whole_bytes(row_bytes)
        read = self._read(lookups, distinct, rows, sectors)
        from_l1 = (lookups - read) * np.minimum(1.0, L1_BYTES / np.maximum(rows * sectors, 1.0))
        cached = (lookups - from_l1 * (1 - 1 / L1_RATE_FACTOR)) * sectors / self.l2_rate.value
        own = read * self.lookup.value + (lookups - read) * self.repeated_lookup.value
        return np.maximum(np.maximum(read * sectors / self.rate.value, cached), own)

    def output_seconds(self, moving: Floats, outputs: Floats, is_pooled: Bools) -> Floats:
        """Seconds of a forward kernel that moves bytes for ``moving`` seconds and writes ``outputs`` rows."""
        pooled = moving + outputs * self.bag.value
        return np.where(is_pooled, pooled, np.maximum(moving, outputs * self.sequence_lookup.value))

    def gradient_seconds(self, lookups: Floats, gradients: Floats, row_bytes: Floats) -> Floats:
        """Seconds of reading a gradient row for every lookup, ``gradients`` distinct ones."""
        sectors = self.whole_bytes(row_bytes)
        read = self._read(lookups, gradients, gradients, sectors)
        first = np.maximum(read * sectors / self.rate.value, gradients * self.gradient_row.value)
        seconds: Floats = first + (lookups - read) * sectors / self.l2_rate.value
        return seconds

    def backward_lookup_seconds(self, lookups: Floats, cached_lookups: Floats) -> Floats:
        """Seconds of backward kernels beyond the bytes that they move, and of tags read again."""
        return lookups * self.backward_lookup.value + cached_lookups * TAG_SET_BYTES / self.rate.value

    def update_seconds(self, distinct: Floats, updated: Updated) -> Floats:
        """Seconds of reading and writing every distinct row with its state."""
        columns = np.minimum(updated.columns, WARP_COLUMNS) + np.maximum(updated.columns - WARP_COLUMNS, 0.0) / 2
        least = np.where(updated.has_row_state, columns * self.update_column.value, 0.0)
        least = np.maximum(least, np.where(updated.has_moments, self.moment_row.value, 0.0))
        least = np.maximum(least, self.update_row.value)
        return distinct * np.maximum(updated.on_device * least, 2 * updated.row_bytes / self.update_rate.value)

    def cache_seconds(self, cached_lookups: Floats, sort_bytes: Floats) -> Floats:
        """Seconds of finding ids in a cache."""
        del sort_bytes  # in the time of a lookup
        return cached_lookups * self.cache_lookup.value

    def _read(self, lookups: Floats, distinct: Floats, rows: Floats, sectors: Floats) -> Floats:
        """How often the memory is read for rows of so many bytes in whole sectors."""
        share = np.divide(distinct, rows, out=np.ones_like(lookups), where=distinct < rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.where(share < 1, np.minimum(lookups, -rows * np.log1p(-share)), lookups)
        held = np.minimum(1.0, self.l2_bytes.value / np.maximum(rows * sectors, 1.0))
        read: Floats = np.minimum(lookups, np.maximum(distinct, alike * (1 - held)))
        return read


def is_gpu(hardware: Hardware) -> bool:
    """Whether the tables' kernels are those of a GPU."""
    return hardware.family in GPU_FAMILIES and table_memory(hardware).is_accelerator


def kernel_memory(hardware: Hardware) -> TableMemory:
    """Return the memory that kernels gather rows from, a GPU's with its laws; raises as :func:`table_memory`."""
    memory = table_memory(hardware)
    if not is_gpu(hardware):
        return memory
    rate = _stated_rate(hardware, memory.rate)
    by_root = (MEASURED_RATE / rate) ** 0.5
    return GpuMemory(
        rate=memory.rate,
        is_accelerator=True,
        l2_rate=_number(hardware, "l2_bytes_per_second", L2_RATE_SHARE * rate),
        l2_bytes=_number(hardware, "l2_bytes", L2_BYTES),
        lookup=_number(hardware, "lookup_seconds", by_root * LOOKUP_SECONDS),
        repeated_lookup=_number(hardware, "repeated_lookup_seconds", REPEATED_LOOKUP_SECONDS),
        sequence_lookup=_number(hardware, "sequence_lookup_seconds", SEQUENCE_LOOKUP_SECONDS),
        bag=_number(hardware, "bag_seconds", BAG_SECONDS),
        backward_lookup=_number(hardware, "backward_lookup_seconds", BACKWARD_LOOKUP_SECONDS),
        gradient_row=_number(hardware, "gradient_row_seconds", GRADIENT_ROW_SECONDS),
        update_rate=_number(hardware, "update_bytes_per_second", UPDATE_RATE_SHARE * rate),
        update_row=_number(hardware, "update_row_seconds", by_root * UPDATE_ROW_SECONDS),
        update_column=_number(hardware, "update_column_seconds", by_root * UPDATE_COLUMN_SECONDS),
        moment_row=_number(hardware, "moment_row_seconds", MOMENT_ROW_SECONDS),
        cache_lookup=_number(hardware, "cache_lookup_seconds", CACHE_LOOKUP_BYTES / rate),
    )


def index_seconds(hardware: Hardware) -> Quantity:
    """Return what an id takes between the exchange and the forward kernel of a GPU, 0 of other hardware."""
    if not is_gpu(hardware):
        return Quantity(value=0.0, unit="seconds", evidence=Evidence.MEASURED, source="No GPU")
    rate = _stated_rate(hardware, table_memory(hardware).rate)
    return _number(hardware, "index_lookup_seconds", INDEX_LOOKUP_BYTES / rate)


def host_reads(hardware: Hardware, lookups: Floats, distinct: Floats) -> Floats:
    """Rows that kernels read from the host's memory: a GPU merges a third of the lookups that repeat a row."""
    if not is_gpu(hardware):
        return lookups
    return distinct + HOST_REPEATS_READ * np.maximum(lookups - distinct, 0.0)


def _stated_rate(hardware: Hardware, rate: Quantity) -> float:
    """Return the rate of the memory before it was taken at a limit: what follows from it has limits of its own."""
    return rate.value / replace(rate, value=1.0).at_limit(hardware.limit).value


def _number(hardware: Hardware, name: str, of_kind: float) -> Quantity:
    """Return a number of the profile, or what follows from GPUs that were measured."""
    if hardware.has(name):
        return hardware.quantity(name, needed_for="the kernels of a GPU")
    scaled = Quantity(
        value=of_kind,
        unit=FIELDS[name].unit,
        evidence=Evidence.ESTIMATED,
        source="Scaled from an H100",
        relative_error=SCALED_ERROR,
    )
    return scaled.at_limit(hardware.limit)


def _weakest(*numbers: Quantity) -> Evidence:
    return Evidence(max(number.evidence for number in numbers))
