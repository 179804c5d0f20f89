r"""Which bytes each scheme sends through which collective, phase by phase.

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

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cost_models.analytic.sizes import dense_gradient_bytes, element_bytes, id_bytes
from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import CUTS_ROWS, HOLDERS, IS_REPLICATED, Holders, Phase

BUCKET_BYTES = 25.0 * 2**20  # PyTorch DistributedDataParallel, bucket_cap_mb

#: Who takes part: all ranks, the ranks of each host, or the ranks of equal position, one on each host.
Group = Literal["all", "host", "across"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One collective of one phase. Bytes are of shape (num_shards,): what each shard adds to its rank's buffer."""

    phase: Phase
    operation: str
    #: which side of the collective grows with what a rank holds: forward it sends, backward it receives
    direction: str
    group: Group
    shard_bytes: Floats
    #: bytes of one rank's whole message if every table used this collective: (1,), or (num_shards,) of an all-reduce
    message_bytes: Floats

    def rank_bytes(self, rank: Ints, num_ranks: int) -> Floats:
        """What each rank holds, shape (num_ranks,), for shard i on ``rank[i]``."""
        return np.bincount(rank, weights=self.shard_bytes, minlength=num_ranks).astype(np.float64)


def exchanges_of(work: ShardWork) -> Iterator[Exchange]:
    """Every collective that some shard of ``work`` takes part in, in the order in which a step runs them."""
    routes = _Routes.of(work)
    rows = (_rows(work, phase, routes) for phase in (Phase.FORWARD_COMM, Phase.BACKWARD_COMM))
    found = (_ids(work, routes), *itertools.chain(*rows), _dense_gradients(work, routes))
    size: dict[Group, int] = {"all": work.num_ranks, "host": work.ranks_per_host, "across": work.num_hosts}
    for exchange in found:
        if size[exchange.group] > 1 and np.any(exchange.shard_bytes > 0):
            yield exchange


def buffers(exchange: Exchange, held_bytes: Floats, group_ranks: int) -> tuple[Floats, Floats]:
    """Bytes that each rank sends and receives, both of the shape of ``held_bytes`` (..., group_ranks).

    In an all-to-all everybody gets an equal share of what each holds (forward), or gives it (backward). The other
    collectives have one buffer size for all ranks, that of the rank that holds most.
    """
    if exchange.operation == "all_to_all":
        even = np.broadcast_to(held_bytes.mean(axis=-1, keepdims=True), held_bytes.shape)
        return (held_bytes, even) if exchange.direction == "forward" else (even, held_bytes)
    most = np.broadcast_to(held_bytes.max(axis=-1, keepdims=True), held_bytes.shape)
    part = most / group_ranks
    sent = part if exchange.operation == "all_gather" else most
    received = part if exchange.operation == "reduce_scatter" else most
    return sent, received


@dataclass(frozen=True, slots=True)
class _Routes:
    """Which way the rows of each shard go; all (num_shards,)."""

    replicated: Bools  # nowhere
    row_wise: Bools  # added up over all ranks
    host_rows: Bools  # added up inside hosts, then between them
    exchanged: Bools  # from their rank to all others

    @classmethod
    def of(cls, work: ShardWork) -> "_Routes":
        """Tell by scheme; rows of a sequence are never added up."""
        replicated = IS_REPLICATED[work.scheme]
        row_wise = CUTS_ROWS[work.scheme] & (HOLDERS[work.scheme] == Holders.WORLD) & work.is_pooled
        host_rows = CUTS_ROWS[work.scheme] & (HOLDERS[work.scheme] == Holders.HOST) & work.is_pooled
        return cls(replicated, row_wise, host_rows, ~(replicated | row_wise | host_rows))


def _ids(work: ShardWork, routes: _Routes) -> Exchange:
    """Ids to the ranks that look them up, which is the uneven side: like gradients, they come in."""
    return Exchange(
        phase=Phase.INPUT_COMM,
        operation="all_to_all",
        direction="backward",
        group="all",
        shard_bytes=_only(~routes.replicated, work.lookups * id_bytes(work.is_weighted)),
        message_bytes=np.array([work.id_message_bytes]),
    )


def _rows(work: ShardWork, phase: Phase, routes: _Routes) -> Iterator[Exchange]:
    """Output rows to the ranks of their samples (forward), or their gradients back."""
    gathers = phase is Phase.BACKWARD_COMM
    direction = "backward" if gathers else "forward"
    ring = "all_gather" if gathers else "reduce_scatter"
    message = work.backward_message_bytes if gathers else work.forward_message_bytes
    given = work.backward_comm_element_bytes if gathers else work.forward_comm_element_bytes
    row_bytes = work.shard_columns * element_bytes(given)
    bags = work.num_ranks * work.batch_outputs * row_bytes

    def exchange(operation: str, group: Group, shard_bytes: Floats, message_bytes: float) -> Exchange:
        return Exchange(
            phase=phase,
            operation=operation,
            direction=direction if operation == "all_to_all" else "",
            group=group,
            shard_bytes=shard_bytes,
            message_bytes=np.array([message_bytes]),
        )

    if np.any(routes.exchanged):
        rows = np.where(work.is_pooled, bags, work.lookups * row_bytes)
        yield exchange("all_to_all", "all", _only(routes.exchanged, rows), message)
    if np.any(routes.row_wise):
        yield exchange(ring, "all", _only(routes.row_wise, bags), message * work.num_ranks)
    if np.any(routes.host_rows):
        across = work.num_hosts * work.batch_outputs * row_bytes
        inside = exchange(ring, "host", _only(routes.host_rows, bags), message * work.ranks_per_host)
        between = exchange("all_to_all", "across", _only(routes.host_rows, across), message)
        yield from (between, inside) if gathers else (inside, between)


def _dense_gradients(work: ShardWork, routes: _Routes) -> Exchange:
    """Gradients of replicated tables, summed over all ranks after the backward pass."""
    sent = _only(routes.replicated, dense_gradient_bytes(work, work.shard_rows))
    return Exchange(
        phase=Phase.BACKWARD_COMM,
        operation="all_reduce",
        direction="",
        group="all",
        shard_bytes=sent,
        message_bytes=np.maximum(sent, BUCKET_BYTES),
    )


def _only(shards: Bools, sent: NDArray[np.float64]) -> Floats:
    """Bytes of some shards, 0 for the others."""
    return np.where(shards, sent, 0.0)
