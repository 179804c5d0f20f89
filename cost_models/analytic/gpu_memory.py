r"""What the embedding kernels of a GPU take: FBGEMM's table batched embeddings, forward and backward.

A row that a launch looks up again is read from the GPU's L2, if the L2 still holds it, and else from the memory. With
``n`` lookups of ``u`` distinct rows among ``R``, ``C`` bytes of L2 and ``x`` bytes of a row's sectors, lookups are of
two kinds. The lookups of hot rows repeat within a short time and find their rows in the L2. The other lookups fall on
all rows alike: ``n' = min(n, -R log(1 - u / R))`` of them touch ``u`` distinct rows, and find the share
``min(1, C / (R x))`` in the L2. So the memory is read ``max(u, n' (1 - min(1, C / (R x))))`` times: no row comes from
the L2 before the memory was read once. Tables follow one another in a launch, so each has the whole L2.

- forward: the ids, the rows, the outputs; a time per lookup bounds the rows that come from the L2, if they are
  narrow [1];
- backward: the ids, the sort, the gradient row of each lookup, a time per lookup, and the distinct rows with their
  state, read and written at a rate of their own, which is less than that of gathers, or a least time per row [2];
- caches: finding every id takes a time per lookup; the backward pass reads the tags of every id's set again [1].

What a GPU's profile does not state follows from the H100, on which the most was measured. Rates are the same share of
the rate of the memory (that of the L2 lies between 1.6 times, on an H100, and 1.8 times), and times that move bytes
are those of as many bytes. Such numbers are estimates.

References
----------
.. [1] NVIDIA recsys-examples, ``corelib/dynamicemb/benchmark`` at commits 6ac3d68, 342da56, 8cd3339: FBGEMM on one
   H100, 128 columns of fp32. Public TorchRec benchmark of pull request 2365: 4 to 1,024 columns.
.. [2] The same, and FBGEMM pull request 5835: backward kernels of an MI350, 8 to 1,024 columns.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.table_memory import TAG_SET_BYTES, TableMemory, table_memory
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.vocabulary import Evidence

#: Families whose accelerators run these kernels. "custom" is a machine of the user, most often with GPUs.
GPU_FAMILIES = ("gpu", "custom")

#: Of an H100, as shares of the rate of its memory, as bytes at that rate, and by themselves.
L2_RATE_SHARE = 1.7
UPDATE_RATE_SHARE = 0.70
BACKWARD_LOOKUP_BYTES = 510.0
CACHE_LOOKUP_BYTES = 5950.0
INDEX_LOOKUP_BYTES = 85.0  # of an A100
LOOKUP_SECONDS = 41.5e-12
L2_BYTES = 40e6

#: Of the lookups of rows in host memory that repeat a row, the share that reads it over the link again [1].
HOST_REPEATS_READ = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory(TableMemory):
    """The memory of a GPU with its L2 and its kernels."""

    l2_rate: Quantity
    l2_bytes: Quantity
    lookup: Quantity  # seconds, as all that follow but the rate
    backward_lookup: Quantity
    update_rate: Quantity
    update_row: Quantity
    cache_lookup: Quantity

    @property
    def forward_evidence(self) -> Evidence:
        """The weakest of the numbers that forward kernels are priced by."""
        return _weakest(self.rate, self.l2_rate, self.l2_bytes, self.lookup)

    @property
    def backward_evidence(self) -> Evidence:
        """The same of backward kernels."""
        return _weakest(self.rate, self.l2_rate, self.l2_bytes, self.backward_lookup, self.update_rate, self.update_row)

    @property
    def cache_evidence(self) -> Evidence:
        """The same of what finds ids in a cache."""
        return self.cache_lookup.evidence

    def gather_seconds(
        self, lookups: Floats, distinct: Floats, rows: Floats, row_bytes: Floats, least_seconds: Floats | float = 0.0
    ) -> Floats:
        """Seconds of reading a row for every lookup: from the memory, or from the L2."""
        sectors = self.whole_bytes(row_bytes)
        share = np.divide(distinct, rows, out=np.ones_like(lookups), where=distinct < rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.where(share < 1, np.minimum(lookups, -rows * np.log1p(-share)), lookups)
        held = np.minimum(1.0, self.l2_bytes.value / np.maximum(rows * sectors, 1.0))
        read = np.minimum(lookups, np.maximum(distinct, alike * (1 - held)))
        repeated = np.maximum(least_seconds, (lookups - read) * sectors / self.l2_rate.value)
        seconds: Floats = read * sectors / self.rate.value + repeated
        return seconds

    def forward_lookup_seconds(self, lookups: Floats) -> Floats:
        """Seconds that a forward kernel takes at least for rows that repeat."""
        return lookups * self.lookup.value

    def backward_lookup_seconds(self, lookups: Floats, cached_lookups: Floats) -> Floats:
        """Seconds of backward kernels beyond the bytes that they move, and of tags read again."""
        return lookups * self.backward_lookup.value + cached_lookups * TAG_SET_BYTES / self.rate.value

    def update_seconds(self, distinct: Floats, row_bytes: Floats) -> Floats:
        """Seconds of reading and writing so many bytes of every distinct row."""
        return distinct * np.maximum(self.update_row.value, 2 * row_bytes / self.update_rate.value)

    def cache_seconds(self, cached_lookups: Floats, sort_bytes: Floats) -> Floats:
        """Seconds of finding ids in a cache."""
        del sort_bytes  # in the time of a lookup
        return cached_lookups * self.cache_lookup.value


def is_gpu(hardware: Hardware) -> bool:
    """Whether the tables' kernels are those of a GPU."""
    return hardware.family in GPU_FAMILIES and table_memory(hardware).is_accelerator


def kernel_memory(hardware: Hardware) -> TableMemory:
    """Return the memory that kernels gather rows from, a GPU's with its laws; raises as :func:`table_memory`."""
    memory = table_memory(hardware)
    if not is_gpu(hardware):
        return memory
    rate = memory.rate.value
    return GpuMemory(
        rate=memory.rate,
        is_accelerator=True,
        l2_rate=_number(hardware, "l2_bytes_per_second", L2_RATE_SHARE * rate),
        l2_bytes=_number(hardware, "l2_bytes", L2_BYTES),
        lookup=_number(hardware, "lookup_seconds", LOOKUP_SECONDS),
        backward_lookup=_number(hardware, "backward_lookup_seconds", BACKWARD_LOOKUP_BYTES / rate),
        update_rate=_number(hardware, "update_bytes_per_second", UPDATE_RATE_SHARE * rate),
        update_row=_number(hardware, "update_row_seconds", 0.0),
        cache_lookup=_number(hardware, "cache_lookup_seconds", CACHE_LOOKUP_BYTES / rate),
    )


def index_seconds(hardware: Hardware) -> Quantity:
    """Return what an id takes between the exchange and the forward kernel of a GPU, 0 of other hardware."""
    if not is_gpu(hardware):
        return Quantity(value=0.0, unit="seconds", evidence=Evidence.MEASURED, source="No GPU")
    return _number(hardware, "index_lookup_seconds", INDEX_LOOKUP_BYTES / table_memory(hardware).rate.value)


def host_reads(hardware: Hardware, lookups: Floats, distinct: Floats) -> Floats:
    """Rows that kernels read from the host's memory: a GPU merges a third of the lookups that repeat a row."""
    if not is_gpu(hardware):
        return lookups
    return distinct + HOST_REPEATS_READ * np.maximum(lookups - distinct, 0.0)


def _number(hardware: Hardware, name: str, of_kind: float) -> Quantity:
    """Return a number of the profile, or what follows from GPUs that were measured."""
    if hardware.has(name):
        return hardware.quantity(name, needed_for="the kernels of a GPU")
    return Quantity(value=of_kind, unit="", evidence=Evidence.ESTIMATED, source="Scaled from an H100")


def _weakest(*numbers: Quantity) -> Evidence:
    return Evidence(max(number.evidence for number in numbers))
