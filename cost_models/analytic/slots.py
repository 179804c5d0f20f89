"""What it takes to find the slots of ids, where a table's rows are not the numbers of its ids, and to keep them.

Both run before the forward kernel, in its phase: bytes of every lookup and of every slot at the rate of the memory, and
a launch for each kernel, where the hardware has that number. None of it was measured.
"""

import numpy as np

from cost_models.analytic.table_memory import table_memory
from cost_models.analytic.tally import Tally
from cost_models.collectives.starts import LAUNCH_SECONDS
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Evidence, Phase

#: By how much of themselves times may be wrong that were counted in bytes and measured nowhere.
COUNTED_ERROR = 0.9


def add_slots(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add the seconds of slots, which are part of ``forward_compute``."""
    moved = work.lookups * work.slot_lookup_bytes + work.shard_rows * work.slot_upkeep_bytes
    if not np.any(moved):
        return
    second = Quantity(
        value=1.0,
        unit="seconds",
        evidence=Evidence.ESTIMATED,
        source="Bytes counted operation by operation",
        relative_error=COUNTED_ERROR,
    ).at_limit(hardware.limit)
    tally.add(Phase.FORWARD_COMPUTE, moved / table_memory(hardware).rate.value * second.value, second.evidence)
    if hardware.has(LAUNCH_SECONDS):
        launch = hardware.quantity(LAUNCH_SECONDS, needed_for="the launch of a kernel")
        tally.add(Phase.FORWARD_COMPUTE, work.slot_launches * launch.value, Evidence.ESTIMATED)
