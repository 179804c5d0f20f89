"""What the roofline predicts for what was not measured."""

from collections.abc import Iterable

import numpy as np

from cost_models.analytic.id_kernels import add_id_kernels
from cost_models.analytic.roofline import add_lookups
from cost_models.analytic.slots import add_slots
from cost_models.analytic.tally import Tally
from cost_models.arrays import Bools
from cost_models.collectives.collective_bytes import Exchange
from cost_models.collectives.exchange import add_exchange
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardSeconds, ShardWork


def analytic_seconds(
    work: ShardWork, hardware: Hardware, lookups_of: Bools, exchanges: Iterable[Exchange]
) -> ShardSeconds:
    """Return seconds of the lookups of some shards, 0 for those of the others, and of some collectives of all.

    What happens to ids around their exchange is analytic for all shards, and so are slots: measured lookups begin after
    both.
    """
    tally = Tally(work.num_shards)
    if np.all(lookups_of):
        add_lookups(tally, work, hardware)
    elif np.any(lookups_of):
        shards = np.flatnonzero(lookups_of)
        some = Tally(len(shards))
        add_lookups(some, work.take(shards), hardware)
        tally.put(shards, some.result())
    add_id_kernels(tally, work, hardware)
    add_slots(tally, work, hardware)
    add_exchange(tally, work, hardware, exchanges)
    return tally.result()
