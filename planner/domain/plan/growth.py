"""How hash tables of a plan grow with their ids."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthStep:
    """A size of a table on one of its ranks; bytes are those of keys, values and state, without caches."""

    ids: int  # of all ranks, up to which the table has this size
    slots_per_rank: int
    device_bytes: float
    host_bytes: float
    peak_device_bytes: float  # while the table comes to this size, the size before included


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrowth:
    """The sizes of a table, from the first to the one that the plan reserves."""

    table: str
    steps: tuple[GrowthStep, ...]
    #: ids of all ranks that there is memory for, all other tables as planned; None where the table evicts
    fits_ids: int | None
