"""What one table's slots take and cost in addition to its rows, in the words that all modes of hash tables share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCosts:
    """What the slots of a table take in the device's memory, and what a step does with them."""

    bytes_per_slot: float  # of the id, its place, and what evictions and the model keep of it
    bytes_per_shard: float  # whatever its slots
    history_numbers_per_lookup: float  # ids kept until the next eviction, for each lookup of a step
    history_number_bytes: float  # of each of these
    lookup_bytes: float  # read and written to find the slot of an id, as a mean over steps
    upkeep_bytes_per_slot: float  # read and written by evictions, as a mean over steps
    launches: float  # kernels of a step, besides those that look the slots up, as a mean over steps


NO_SLOTS = SlotCosts(
    bytes_per_slot=0.0,
    bytes_per_shard=0.0,
    history_numbers_per_lookup=0.0,
    history_number_bytes=0.0,
    lookup_bytes=0.0,
    upkeep_bytes_per_slot=0.0,
    launches=0.0,
)
