"""SparseCores of TPUs: where the library jax-tpu-embedding puts the rows of a table, and what it pads.

Every SparseCore of every chip holds part of every table. Of ``S`` SparseCores in all, number ``(row + rotation) mod S``
holds a row; the rotation is 0 for the first table of a stack and grows from table to table. Rows are padded to a
multiple of ``8 S``, columns to a multiple of 8. Numbers of rows are 32-bit, and ``S`` must be a power of two.

Our row blocks are ranges. The block of a chip stands for the remainders of its SparseCores: as many rows, or a few
more or fewer, and read as often where nothing is known of single ids.

References
----------
jax-ml/jax-tpu-embedding 0.1.0: ``lib/nn/table_stacking.py`` (padding, stacks, rotation), ``lib/core/coo_format.h``
(numbers of rows), ``lib/core/process_coo_tensors_impl.h`` (powers of two), ``utils/utils.py`` (SparseCores by device).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.domain.plan.placement import TablePlacement
from planner.options.runtimes.geometry import Size, UnheldGeometry, check_row_blocks, ranks_once

#: Columns, and rows on each SparseCore, are multiples of this.
ALIGNMENT = 8
MAX_ROW_NUMBER = 2**31 - 1
#: Numbers of SparseCores that the library accepts of a device.
CORES_PER_DEVICE = (2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """The SparseCores of a job: chips are our ranks, devices are what JAX counts."""

    num_chips: int
    devices_per_chip: int
    cores_per_device: int
    source: str

    @property
    def num_devices(self) -> int:
        """``global_device_count`` of the library."""
        return self.num_chips * self.devices_per_chip

    @property
    def per_chip(self) -> int:
        """SparseCores of a rank."""
        return self.devices_per_chip * self.cores_per_device

    @property
    def num(self) -> int:
        """All SparseCores."""
        return self.num_chips * self.per_chip


_LIBRARY = "jax-tpu-embedding 0.1.0, utils.NUM_SC_PER_DEVICE_MAP"
_TPU7X = f"{_LIBRARY}, for each of the two devices that JAX sees on a chip; Google Cloud TPU7x documentation"
#: By hardware profile: devices of a chip, SparseCores of a device, and who says so. The library knows no TPU v4.
CORES_BY_PROFILE: Mapping[str, tuple[int, int, str]] = MappingProxyType(
    {"tpu-v5p": (1, 4, _LIBRARY), "tpu-v6e": (1, 2, _LIBRARY), "tpu7x-ironwood": (2, 2, _TPU7X)}
)


def cores_of(num_chips: int, profile: str | None, cores_per_chip: int | None) -> Cores:
    """Return the SparseCores of a job.

    ``cores_per_chip`` is for hardware that is no profile of ours; its chips are one device each.

    Raises
    ------
    UnheldGeometry
        It is not known how many there are, or the library does not take so many.
    """
    known = CORES_BY_PROFILE.get(profile or "")
    if known is not None:
        cores = Cores(num_chips=num_chips, devices_per_chip=known[0], cores_per_device=known[1], source=known[2])
        if cores_per_chip not in (None, cores.per_chip):
            raise UnheldGeometry(f"A chip of {profile} has {cores.per_chip} SparseCores, not {cores_per_chip}.")
    elif cores_per_chip is None:
        raise UnheldGeometry(
            f"How many SparseCores a chip of {profile or 'this hardware'} has is not known: give"
            f" sparsecores_per_chip (--sparsecores-per-chip). Known are {', '.join(CORES_BY_PROFILE)}."
        )
    elif cores_per_chip not in CORES_PER_DEVICE:
        raise UnheldGeometry(f"sparsecores_per_chip is {cores_per_chip}; the library takes 2 or 4.")
    else:
        cores = Cores(
            num_chips=num_chips, devices_per_chip=1, cores_per_device=cores_per_chip, source="sparsecores_per_chip"
        )
    if not is_power_of_two(num_chips):
        raise UnheldGeometry(
            f"{num_chips} chips have {cores.num} SparseCores in all; rows are dealt out to a power of two."
        )
    return cores


def is_power_of_two(number: int) -> bool:
    """Whether ids can be dealt out to so many by their last bits."""
    return number > 0 and number & (number - 1) == 0


def padded(number: int, multiple: int) -> int:
    """Return the least multiple that is not smaller."""
    return -(-number // multiple) * multiple


def check_shards(placed: TablePlacement, size: Size, num_chips: int) -> None:
    """Check that the shards of a table are ranges of whole rows, one on each chip and none larger than an even share.

    Raises
    ------
    UnheldGeometry
        They are not; the message says why.
    """
    (num_rows, num_columns), shards = size, placed.shards
    if any(shards.column_offset) or any(shards.num_columns != num_columns):
        raise UnheldGeometry("it is cut by columns; every SparseCore holds whole rows")
    chips = ranks_once(shards, "chip", "one share of the rows")
    if len(chips) != num_chips:
        raise UnheldGeometry(f"it is on {len(chips)} of {num_chips} chips; every chip holds a share of the rows")
    check_row_blocks(shards.row_offset, shards.num_rows, num_rows, num_chips, how="dealt out evenly", each="chip")
