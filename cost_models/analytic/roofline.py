r"""Our analytic model: bytes moved over what the hardware sustains, phase by phase.

Every phase is bound by memory or links, never by arithmetic. Tables do not share costs except
through the message that carries them all (:mod:`cost_models.collectives.collectives`), so seconds add up.

Symbols: ``n`` lookups of the shard, ``u`` distinct rows among them, ``o`` output rows that it
writes, ``r`` bytes of a stored row of the shard, ``d`` columns, ``g(.)`` bytes that a random
access takes by row bytes (:mod:`cost_models.analytic.table_memory`), ``W`` ranks, ``G`` ranks per host,
``N`` hosts.

Computation (:class:`_Compute`), divided by the gather rate of the table's memory:

- forward: ``n (8 + 4 [weighted]) + n g(r) + o d e_out``. A gather is paid per id: how much of
  it repeated rows save in a cache is not known well enough to be priced [1];
- backward: each id's gradient row is read, ``n g(d e_out)``; ids are sorted by row so that
  equal rows meet, ``n (8 + 4 [weighted] + 8 + 24 ceil(log2(rows) / 8))`` bytes of a radix sort
  of 8-byte keys and 4-byte positions, 8 bits per pass, read and written; then each distinct
  row and its optimizer state is read and written once, ``2 u (g(r) + state)`` [2]. Unknown
  ``u`` is taken as the most there can be, min(n, rows): repeats only make the update cheaper than
  predicted;
- rows that lie in host memory or block storage, and the caches before them: :mod:`cost_models.analytic.tiers`;
- the ``dense`` kernel writes a full gradient in the type of the weights, of ``h`` bytes per row,
  and the optimizer passes over the whole table: ``u g(h) + R (2 h + 2 r + 2 state)``.

Communication (:mod:`cost_models.collectives.collective_bytes`) follows the collectives that each scheme runs [3].

References
----------
.. [1] Neo/ZionEX, arXiv 2104.05158 (row gathers set the pace of embedding kernels); TorchRec
   1.8.0 ``planner/estimator/estimator.py`` (input, lookup and output bytes of a forward pass).
.. [2] FBGEMM ``split_embeddings_utils`` and ``embedding_backward_split`` (sort by linear row,
   one fused update per distinct row). The radix sort's passes are those of CUB's
   least-significant-digit sort (Adinets and Merrill, arXiv 2206.01784).
.. [3] TorchRec ``torchrec/distributed/sharding`` (one module per scheme).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import (
    ID_BYTES,
    REMAP_BYTES,
    dense_gradient_bytes,
    distinct_rows,
    element_bytes,
    id_bytes,
    output_rows,
    stored_row_bytes,
)
from cost_models.analytic.table_memory import TableMemory, table_memory
from cost_models.analytic.tally import Tally
from cost_models.analytic.tiers import add_tiers, is_cached, tag_bytes
from cost_models.arrays import Bools, Floats
from cost_models.collectives.collective_bytes import exchanges_of
from cost_models.collectives.exchange import add_exchange
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Kernel, Phase

SORT_POSITION_BYTES = 4.0  # int32 beside each sort key
SORT_BITS_PER_PASS = 8


class RooflineModel:
    """Bytes over rates, with message-size curves and distinct rows."""

    name = "roofline"
    version = "1"
    rounding = 0.0

    @property
    def counted_phases(self) -> Bools:
        """All of them."""
        return np.ones(NUM_PHASES, dtype=np.bool_)

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work``; see :class:`cost_models.protocol.CostModel`."""
        tally = Tally(work.num_shards)
        if work.num_shards:
            add_lookups(tally, work, hardware)
            add_exchange(tally, work, hardware, exchanges_of(work))
        return tally.result()


def add_lookups(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add what happens on a rank: everything but communication."""
    memory = table_memory(hardware)
    compute, rate = _Compute(work=work, memory=memory), memory.rate
    tally.add(Phase.FORWARD_COMPUTE, compute.forward_bytes() / rate.value, rate.evidence)
    tally.add(Phase.BACKWARD_COMPUTE, compute.backward_bytes() / rate.value, rate.evidence)
    tally.add(Phase.PREFETCH, compute.cache_bytes() / rate.value, rate.evidence)
    add_tiers(tally, work, hardware)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compute:
    """Bytes that the kernels of each shard move, as bytes at the gather rate; all (num_shards,)."""

    work: ShardWork
    memory: TableMemory

    def forward_bytes(self) -> Floats:
        """Ids read, rows gathered, outputs written."""
        work = self.work
        row = self._device_share(work.hot_lookup_share) * self.memory.gather_bytes(self._row_bytes())
        outputs = output_rows(work) * work.shard_columns * self._output_element_bytes()
        remap = np.where(work.hot_row_share > 0, self.memory.state_bytes(np.full_like(row, REMAP_BYTES)), 0.0)
        return work.lookups * (id_bytes(work.is_weighted) + row + remap) + outputs

    def backward_bytes(self) -> Floats:
        """Gradient rows read, ids sorted, distinct rows updated or a dense gradient applied."""
        work, memory = self.work, self.memory
        gradient = memory.gather_bytes(work.shard_columns * self._output_element_bytes())
        per_id = gradient + id_bytes(work.is_weighted) + self._sort_bytes()
        distinct = distinct_rows(work)
        is_dense = work.kernel == Kernel.DENSE
        update = np.where(is_dense, self._dense_update_bytes(distinct), self._fused_update_bytes(distinct))
        return work.lookups * per_id + update

    def _fused_update_bytes(self, distinct: Floats) -> Floats:
        """Weights and optimizer state of each distinct row, read and written once."""
        work, memory = self.work, self.memory
        row = self._device_share(work.hot_distinct_share) * memory.gather_bytes(self._row_bytes())
        with_state = np.where(work.kernel == Kernel.FUSED_UVM_CACHING, 0.0, self._device_share(work.hot_distinct_share))
        element_state = with_state * memory.gather_bytes(work.shard_columns * work.optimizer_element_bytes)
        return 2 * distinct * (row + element_state + memory.state_bytes(work.optimizer_row_bytes))

    def cache_bytes(self) -> Floats:
        """Tags of caches read, and ids sorted ahead of the step to find the distinct ones."""
        return tag_bytes(self.work) + np.where(is_cached(self.work), self.work.lookups * self._sort_bytes(), 0.0)

    def _dense_update_bytes(self, distinct: Floats) -> Floats:
        """Gradient rows written, then one optimizer pass over the whole table."""
        work = self.work
        gradient_row = dense_gradient_bytes(work, np.ones_like(work.shard_rows))
        state_row = work.shard_columns * work.optimizer_element_bytes + work.optimizer_row_bytes
        # The gradient is cleared and read; weights and state are read and written.
        whole_pass = work.shard_rows * 2 * (gradient_row + self._row_bytes() + state_row)
        return distinct * self.memory.gather_bytes(gradient_row) + whole_pass

    def _sort_bytes(self) -> Floats:
        """Bytes per id of making sort keys and sorting them by row."""
        bits = np.log2(np.maximum(self.work.shard_rows, 2))
        passes = np.ceil(bits / SORT_BITS_PER_PASS)
        return ID_BYTES + passes * 2 * (ID_BYTES + SORT_POSITION_BYTES)

    def _row_bytes(self) -> Floats:
        return stored_row_bytes(self.work)

    def _device_share(self, hot_share: Floats) -> Floats:
        """Share of the rows that lie in the device's memory: where kernels read host memory, the hot ones."""
        return np.where(self.work.kernel == Kernel.FUSED_UVM, hot_share, 1.0)

    def _output_element_bytes(self) -> Floats:
        return element_bytes(self.work.output_element_bytes)
