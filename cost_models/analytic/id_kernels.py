"""What happens to the ids of a batch around their exchange: ranks are found before it, places are changed after it.

- Where ranks share the rows of a table, each rank finds the rank of every id of its own batch before the exchange
  ("bucketizes" it), once for every column range that it has a piece of [1]. On a processor one thread does so, id by
  id, for tens of nanoseconds each; a GPU takes a launch (:mod:`cost_models.collectives.starts`) and next to nothing
  per id. A rank that has no piece of a table cut inside another host does this, too, which is left out.
- On a GPU ids that arrive from other ranks are checked and permuted.

References
----------
.. [1] TorchRec ``bucketize_kjt_before_all2all`` in ``distributed/embedding_sharding.py``, FBGEMM
   ``block_bucketize_sparse_features``.
"""

import numpy as np

from cost_models.analytic.gpu_memory import index_seconds
from cost_models.analytic.tally import Tally
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_REPLICATED, Phase

BUCKETIZE_SECONDS = "bucketize_lookup_seconds"


def add_id_kernels(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add the seconds of ids before and after their exchange, which are part of ``input_comm``."""
    is_exchanged = ~IS_REPLICATED[work.scheme] & (work.num_ranks > 1)
    index = index_seconds(hardware)
    tally.add(Phase.INPUT_COMM, np.where(is_exchanged, work.lookups, 0.0) * index.value, index.evidence)
    if hardware.has(BUCKETIZE_SECONDS):
        bucketize = hardware.quantity(BUCKETIZE_SECONDS, needed_for="the ranks of ids before their exchange")
        bucketized = np.where(is_exchanged & (work.row_shards > 1), work.batch_ids, 0.0)
        tally.add(Phase.INPUT_COMM, bucketized * bucketize.value, bucketize.evidence)
