r"""Our analytic model: bytes moved over what the hardware sustains, phase by phase.

Every phase is bound by memory or links, never by arithmetic. Tables do not share costs except
through the message that carries them all (:mod:`cost_models.collectives.collectives`), so seconds add up.

Symbols: ``n`` lookups of the shard, ``u`` distinct rows among them, ``o`` output rows that it
writes, ``r`` bytes of a stored row of the shard, ``d`` columns, ``W`` ranks, ``G`` ranks per host,
``N`` hosts.

Computation (:func:`add_lookups`), by the laws of the memory that the tables live in
(:mod:`cost_models.analytic.table_memory`, of a GPU :mod:`cost_models.analytic.gpu_memory`):

- forward: ``n (8 + 4 [weighted])`` bytes of ids, a row of ``r`` bytes gathered for every lookup [1], ``o d e_out``
  bytes of outputs;
- backward: each id's gradient row of ``d e_out`` bytes is gathered, of ``min(o, n)`` distinct ones; ids are sorted by
  row so that equal rows meet, ``n (8 + 4 [weighted] + 8 + 24 ceil(log2(rows) / 8))`` bytes of a radix sort
  of 8-byte keys and 4-byte positions, 8 bits per pass, read and written; then each distinct
  row and its optimizer state is read and written once [2]. Unknown
  ``u`` is taken as the most there can be, min(n, rows): repeats only make the update cheaper than
  predicted;
- rows that lie in host memory or block storage, and the caches before them: :mod:`cost_models.analytic.tiers`;
- hash tables, whose rows are found by key: :mod:`cost_models.analytic.hash_tables`;
- the ``dense`` kernel writes a full gradient in the type of the weights, of ``h`` bytes per row,
  and the optimizer passes over the whole table: ``u h + R (2 h + 2 r + 2 state)`` bytes;
- what happens to ids around their exchange, a part of ``input_comm``: :mod:`cost_models.analytic.id_kernels`;
- what finds the slots of ids in hash tables, a part of the forward pass: :mod:`cost_models.analytic.slots`.

Communication (:mod:`cost_models.collectives.collective_bytes`) follows the collectives that each scheme runs [3].

References
----------
.. [1] Neo/ZionEX, arXiv 2104.05158 (row gathers set the pace of embedding kernels).
.. [2] FBGEMM ``split_embeddings_utils`` and ``embedding_backward_split`` (sort by linear row,
   one fused update per distinct row). The radix sort's passes are those of CUB's
   least-significant-digit sort (Adinets and Merrill, arXiv 2206.01784).
.. [3] TorchRec ``torchrec/distributed/sharding`` (one module per scheme).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.gpu_memory import kernel_memory
from cost_models.analytic.hash_tables import add_hash_tables, host_rows, is_hashed
from cost_models.analytic.id_kernels import add_id_kernels
from cost_models.analytic.limits import limits_of
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
from cost_models.analytic.slots import add_slots
from cost_models.analytic.table_memory import TableMemory, Updated
from cost_models.analytic.tally import Tally
from cost_models.analytic.tiers import Sought, add_tiers, is_cached
from cost_models.arrays import Bools, Floats
from cost_models.collectives.collective_bytes import exchanges_of
from cost_models.collectives.exchange import add_exchange
from cost_models.collectives.starts import AnalyticStarts, StartPrices
from cost_models.hardware.hardware import Hardware
from cost_models.intervals.factors import COVERAGE
from cost_models.protocol import SecondsLimits, ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Kernel, Phase

SORT_POSITION_BYTES = 4.0  # int32 next to each sort key
SORT_BITS_PER_PASS = 8
#: fp32 of a first and a second moment (Adam and LAMB), the second of them per weight or per row.
MOMENTS_BYTES = 8.0


class RooflineModel:
    """Bytes over rates, with laws of kernels and collectives, and distinct rows."""

    name = "roofline"
    version = "2"
    rounding = 0.0
    coverage = COVERAGE

    @property
    def counted_phases(self) -> Bools:
        """All of them."""
        return np.ones(NUM_PHASES, dtype=np.bool_)

    @property
    def starts(self) -> StartPrices:
        """Those of the hardware profile."""
        return AnalyticStarts()

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work``; see :class:`cost_models.protocol.CostModel`."""
        tally = Tally(work.num_shards)
        if work.num_shards:
            add_lookups(tally, work, hardware)
            add_id_kernels(tally, work, hardware)
            add_slots(tally, work, hardware)
            add_exchange(tally, work, hardware, exchanges_of(work))
        return tally.result()

    def limits(self, work: ShardWork, hardware: Hardware, *, launch_lookups: float) -> SecondsLimits:
        """Return between which limits the seconds lie; see :class:`cost_models.protocol.IntervalModel`."""
        return limits_of(self, work, hardware, launch_lookups)


def add_lookups(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add what happens to rows on a rank: lookups, updates, and where rows lie off the device."""
    memory = kernel_memory(hardware)
    compute = _Compute(work=work, memory=memory)
    tally.add(Phase.FORWARD_COMPUTE, compute.forward_seconds(), memory.forward_evidence)
    tally.add(Phase.BACKWARD_COMPUTE, compute.backward_seconds(), memory.backward_evidence)
    add_tiers(tally, work, hardware, Sought(seconds=compute.cache_seconds(), evidence=memory.cache_evidence))
    add_hash_tables(tally, work, hardware)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compute:
    """Seconds of the kernels of each shard; all arrays (num_shards,)."""

    work: ShardWork
    memory: TableMemory

    def forward_seconds(self) -> Floats:
        """Ids read, rows gathered, outputs written."""
        work, memory = self.work, self.memory
        outputs = output_rows(work) * work.shard_columns * self._output_element_bytes()
        remap = np.where(work.hot_row_share > 0, memory.whole_bytes(np.full_like(outputs, REMAP_BYTES)), 0.0)
        moved = work.lookups * (id_bytes(work.is_weighted) + remap) + outputs
        rows = memory.gather_seconds(
            work.lookups * self._device_share(work.hot_lookup_share),
            distinct_rows(work) * self._device_share(work.hot_distinct_share),
            work.shard_rows * self._device_share(work.hot_row_share),
            stored_row_bytes(work),
        )
        return memory.output_seconds(moved / memory.rate.value + rows, output_rows(work), work.is_pooled)

    def backward_seconds(self) -> Floats:
        """Gradient rows read, ids sorted, distinct rows updated or a dense gradient applied."""
        work, memory = self.work, self.memory
        gradients = np.minimum(output_rows(work), work.lookups)
        gradient_bytes = work.shard_columns * self._output_element_bytes()
        gathered = memory.gradient_seconds(work.lookups, gradients, gradient_bytes)
        sorted_bytes = work.lookups * (id_bytes(work.is_weighted) + self._sort_bytes())
        searched = memory.backward_lookup_seconds(work.lookups, np.where(is_cached(work), work.lookups, 0.0))
        distinct = distinct_rows(work)
        is_dense = work.kernel == Kernel.DENSE
        fused = memory.update_seconds(distinct, self._updated())
        update = np.where(is_dense, self._dense_update_bytes(distinct) / memory.rate.value, fused)
        return gathered + sorted_bytes / memory.rate.value + searched + update

    def cache_seconds(self) -> Floats:
        """Ids found in a cache ahead of the step."""
        cached = np.where(is_cached(self.work), self.work.lookups, 0.0)
        return self.memory.cache_seconds(cached, self._sort_bytes())

    def _updated(self) -> Updated:
        """What a fused update reads and writes of a distinct row in the device's memory."""
        work, memory = self.work, self.memory
        distinct = np.maximum(distinct_rows(work), np.finfo(np.float64).tiny)
        hash_share = 1.0 - np.minimum(host_rows(work) / distinct, 1.0)
        on_device = np.where(is_hashed(work), hash_share, self._device_share(work.hot_distinct_share))
        with_state = np.where(work.kernel == Kernel.FUSED_UVM_CACHING, 0.0, on_device)
        element_state = with_state * memory.whole_bytes(work.shard_columns * work.optimizer_element_bytes)
        row = on_device * memory.whole_bytes(stored_row_bytes(work))
        # State of a row is part of a hash table's value, and lies where the row does.
        row_state = np.where(is_hashed(work), on_device, 1.0) * memory.whole_bytes(work.optimizer_row_bytes)
        return Updated(
            row_bytes=row + element_state + row_state,
            columns=work.launch_columns,
            has_row_state=work.optimizer_row_bytes > 0,
            has_moments=(element_state > 0)
            & (work.optimizer_element_bytes + work.optimizer_row_bytes >= MOMENTS_BYTES),
            on_device=on_device,
        )

    def _dense_update_bytes(self, distinct: Floats) -> Floats:
        """Gradient rows written, then one optimizer pass over the whole table."""
        work = self.work
        gradient_row = dense_gradient_bytes(work, np.ones_like(work.shard_rows))
        state_row = work.shard_columns * work.optimizer_element_bytes + work.optimizer_row_bytes
        # The gradient is cleared and read; weights and state are read and written.
        whole_pass = work.shard_rows * 2 * (gradient_row + stored_row_bytes(work) + state_row)
        return distinct * self.memory.whole_bytes(gradient_row) + whole_pass

    def _sort_bytes(self) -> Floats:
        """Bytes per id of making sort keys and sorting them by row."""
        bits = np.log2(np.maximum(self.work.shard_rows, 2))
        passes = np.ceil(bits / SORT_BITS_PER_PASS)
        return ID_BYTES + passes * 2 * (ID_BYTES + SORT_POSITION_BYTES)

    def _device_share(self, hot_share: Floats) -> Floats:
        """Share of the rows that lie in the device's memory: where kernels read host memory, the hot ones."""
        return np.where(self.work.kernel == Kernel.FUSED_UVM, hot_share, 1.0)

    def _output_element_bytes(self) -> Floats:
        return element_bytes(self.work.output_element_bytes)
