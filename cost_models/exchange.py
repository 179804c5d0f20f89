r"""Which bytes each scheme sends through which collective: the roofline's communication.

Symbols, per step: ``W`` ranks, ``G`` ranks per host, ``N`` hosts, ``d`` columns of the shard,
``b`` output rows of the table for one local batch, ``n`` lookups of the shard, ``e`` bytes of
a weight, ``f`` bytes of an element on the wire (by direction, fp32 where not given), ``P`` bytes
of output of all tables for one local batch in the direction's own type, ``I`` bytes of their
ids, with the weights of weighted features.

===================================  ==============================  ==========  ==================  ==========
scheme                               forward                         message     backward            message
===================================  ==============================  ==========  ==================  ==========
table_wise, column_wise,             all-to-all of W b d f           P           all-to-all          P
table_column_wise
row_wise                             reduce-scatter of W b d f       W P         all-gather          W P
table_row_wise, grid_shard           reduce-scatter of W b d f       G P         all-to-all over     P
                                     inside the host, then           P           hosts, then         G P
                                     all-to-all of N b d f over                  all-gather inside
                                     hosts                                       the host
row cuts of sequences                all-to-all of n d f             P           all-to-all          P
data_parallel                        none                                        all-reduce of R d e bucket
===================================  ==============================  ==========  ==================  ==========

Ids travel first: an all-to-all of the ids that the shard looks up, message I. Row cuts send an
id to one rank, column pieces send it to each piece; both are in ``lookups`` already.
data_parallel tables send no ids.

A message is as large as if every table used that collective: tables of one collective are
sent together, and a shard's seconds may not depend on what the other tables choose.
Gradients of data_parallel tables (R rows) have the type of the weights and travel in the buckets
of DistributedDataParallel: at least 25 MiB, more for a table whose gradient alone is larger.

References
----------
TorchRec ``torchrec/distributed/sharding/{tw,rw,twrw,grid,dp}_sharding.py``,
``rw_sequence_sharding.py``. PyTorch ``DistributedDataParallel`` (``bucket_cap_mb=25``).
"""

import numpy as np

from cost_models.collectives import Network
from cost_models.hardware import Hardware
from cost_models.protocol import Bools, Floats, ShardWork
from cost_models.sizes import dense_gradient_bytes, element_bytes, id_bytes
from cost_models.tally import Tally
from cost_models.vocabulary import Phase, Scheme

BUCKET_BYTES = 25.0 * 2**20  # PyTorch DistributedDataParallel, bucket_cap_mb

_HOST_ROWS = (Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD)


def add_exchange(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add the seconds of every communication phase."""
    network = Network(hardware=hardware, num_ranks=work.num_ranks, ranks_per_host=work.ranks_per_host)
    _add_ids(tally, work, network)
    _add_rows(tally, work, network, Phase.FORWARD_COMM)
    _add_rows(tally, work, network, Phase.BACKWARD_COMM)
    _add_dense_gradients(tally, work, network)


def _add_ids(tally: Tally, work: ShardWork, network: Network) -> None:
    """Ids to the ranks that look them up."""
    sent = np.where(work.scheme == Scheme.DATA_PARALLEL, 0.0, work.lookups * id_bytes(work.is_weighted))
    time = network.all_to_all(sent, work.id_message_bytes)
    tally.add(Phase.INPUT_COMM, time.seconds, time.evidence)


def _add_rows(tally: Tally, work: ShardWork, network: Network, phase: Phase) -> None:
    """Output rows to the ranks of their samples (forward), or their gradients back."""
    gathers = phase is Phase.BACKWARD_COMM
    message = work.backward_message_bytes if gathers else work.forward_message_bytes
    given = work.backward_comm_element_bytes if gathers else work.forward_comm_element_bytes
    row_bytes = work.shard_columns * element_bytes(given)
    row_wise = (work.scheme == Scheme.ROW_WISE) & work.is_pooled
    host_rows = np.isin(work.scheme, _HOST_ROWS) & work.is_pooled
    exchanged = (work.scheme != Scheme.DATA_PARALLEL) & ~row_wise & ~host_rows
    bags = work.num_ranks * work.batch_outputs * row_bytes

    rows = np.where(work.is_pooled, bags, work.lookups * row_bytes)
    times = [network.all_to_all(_only(exchanged, rows), message)]
    ring = network.all_gather if gathers else network.reduce_scatter
    times.append(ring(_only(row_wise, bags), message * work.num_ranks))
    host_ring = network.all_gather_inside_host if gathers else network.reduce_scatter_inside_host
    times.append(host_ring(_only(host_rows, bags), message * work.ranks_per_host))
    across = work.num_hosts * work.batch_outputs * row_bytes
    times.append(network.all_to_all_across_hosts(_only(host_rows, across), message))
    for time in times:
        tally.add(phase, time.seconds, time.evidence)


def _add_dense_gradients(tally: Tally, work: ShardWork, network: Network) -> None:
    """Gradients of replicated tables, summed over all ranks after the backward pass."""
    sent = _only(work.scheme == Scheme.DATA_PARALLEL, dense_gradient_bytes(work, work.shard_rows))
    time = network.all_reduce(sent, np.maximum(sent, BUCKET_BYTES))
    tally.add(Phase.BACKWARD_COMM, time.seconds, time.evidence)


def _only(shards: Bools, sent: Floats) -> Floats:
    """Bytes of some shards, 0 for the others."""
    return np.where(shards, sent, 0.0)
