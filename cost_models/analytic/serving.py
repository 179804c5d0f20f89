r"""The time of one request on a card of a serving host: ids in, rows gathered, pooled rows out.

A host with several cards answers a request of ``N`` samples by sending each card the ids of the tables that lie there
[1]. The cards work side by side and none waits for another, so that a request takes as long as its slowest card.
A card works on one request at a time and does three things, one after the other. Symbols, per shard: ``n`` lookups,
``o`` output rows, ``d`` columns, ``r`` bytes of a stored row with its padding, ``e`` bytes of an output element,
``f`` of one on the link (fp32 where not given). Cards of serving hosts gather rows at the rate of their own memory, in
whole sectors (:mod:`cost_models.analytic.table_memory`); where GPUs serve, by the laws of their kernels.

- ``input_comm``: ``n (8 + 4 [weighted])`` bytes over the link from the host;
- ``prefetch``: the rows that a cache misses, from host memory or storage (:mod:`cost_models.analytic.tiers`), before
  they are gathered;
- ``forward_compute``: ids, a row of ``r`` bytes for every lookup, and ``o d e`` bytes of outputs, as the roofline's;
  rows of ``fused_uvm`` are read over the link instead, and caches look every id up in their tags;
- ``forward_comm``: ``o d f`` bytes over the link to the host.

By scheme, for ``N`` samples of ``l`` ids and ``p`` pooled rows each, on ``W`` cards:

=================================  ==================  ==============================================
scheme                             n                   o
=================================  ==================  ==============================================
table_wise, column pieces          N l                 N p
data_parallel: a replica serves    ceil(N / W) l       ceil(N / W) p
whole samples
row cuts                           N l / W             N p: partial sums, which the host adds up
=================================  ==================  ==============================================

(sequences return one row per lookup, o = n). Transfers are merged: a card gets one message of ids and returns one of
rows, whatever lies on it [1]. Starting these takes :func:`message_seconds` each. It is the same for every card that
is asked at all, so it is no part of a shard's seconds and is added once per card by the code that adds up shards.

Not priced, for want of a number: adding partial sums and dense layers, the uplink and the memory of the host that all
cards share, ids that are compressed, and waiting for the requests before.

References
----------
.. [1] First-generation inference accelerator deployment at Facebook (arXiv 2107.04140): six cards on one host,
   tables split over the cards, few merged PCIe messages.
"""

import numpy as np

from cost_models.analytic.gpu_memory import kernel_memory
from cost_models.analytic.limits import limits_of
from cost_models.analytic.sizes import distinct_rows, element_bytes, id_bytes, output_rows, stored_row_bytes
from cost_models.analytic.tally import Tally
from cost_models.analytic.tiers import Sought, add_tiers, host_links, tag_bytes
from cost_models.arrays import Bools
from cost_models.errors import UnsupportedWork
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.intervals.factors import COVERAGE
from cost_models.protocol import SecondsLimits, ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Kernel, Phase

#: Phases in which a card of a request gets or sends one message.
MESSAGE_PHASES = (Phase.INPUT_COMM, Phase.FORWARD_COMM)
_KERNELS = (Kernel.DENSE, Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)
_COUNTED = (Phase.INPUT_COMM, Phase.PREFETCH, Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM)


def message_seconds(hardware: Hardware) -> Quantity:
    """Return the start of one message; raises ``MissingHardwareNumber``."""
    return hardware.quantity("host_link_message_seconds", needed_for="the messages between a host and its cards")


class ServingModel:
    """A request's bytes over the rates of a card's link and memory."""

    name = "serving"
    version = "3"
    rounding = 0.0
    coverage = COVERAGE

    @property
    def counted_phases(self) -> Bools:
        """Those of a forward pass."""
        return np.isin(np.arange(NUM_PHASES), _COUNTED)

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work``; see :class:`cost_models.protocol.CostModel`."""
        for code in np.unique(work.kernel):
            if code not in _KERNELS:
                raise UnsupportedWork(self.name, f"kernel {Kernel(int(code)).label}")
        tally = Tally(work.num_shards)
        if work.num_shards == 0:
            return tally.result()
        message_seconds(hardware)  # every plan needs it: what lacks it is refused before it is searched
        memory = kernel_memory(hardware)
        link, back = host_links(hardware, needed_for="ids and rows between a host and its cards")
        ids = work.lookups * id_bytes(work.is_weighted)
        outputs = output_rows(work)
        elements = outputs * work.shard_columns
        gathered = memory.gather_seconds(
            work.lookups,
            distinct_rows(work),
            work.shard_rows.astype(np.float64),
            stored_row_bytes(work),
        )
        gathered = np.where(work.kernel == Kernel.FUSED_UVM, 0.0, gathered)
        moved = ids + tag_bytes(work) + elements * element_bytes(work.output_element_bytes)
        forward = memory.output_seconds(moved / memory.rate.value + gathered, outputs, work.is_pooled)
        returned = elements * element_bytes(work.forward_comm_element_bytes)
        tally.add(Phase.INPUT_COMM, ids / link.value, link.evidence)
        tally.add(Phase.FORWARD_COMPUTE, forward, memory.forward_evidence)
        add_tiers(tally, work, hardware, Sought(seconds=np.zeros(work.num_shards), evidence=memory.forward_evidence))
        tally.add(Phase.FORWARD_COMM, returned / back.value, back.evidence)
        return tally.result()

    def limits(self, work: ShardWork, hardware: Hardware, *, launch_lookups: float) -> SecondsLimits:
        """Return between which limits the seconds lie; see :class:`cost_models.protocol.IntervalModel`."""
        return limits_of(self, work, hardware, launch_lookups)
