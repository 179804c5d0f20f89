r"""Which bytes the shards of a step send through which collective, phase by phase.

A scheme decides the route of its rows (``cost_models.vocabulary.Scheme.route``), and the route decides the collectives.
Symbols, per step: ``W`` ranks, ``G`` ranks per group (a host, or a pod of hosts), ``N`` groups, ``d`` columns of the
shard, ``R`` its rows,
``b`` output rows of the table for one local batch, ``n`` lookups of the shard, ``e`` bytes of
a weight, ``f`` bytes of an element on the wire (by direction, fp32 where not given), ``P`` bytes
of output of all tables for one local batch in the direction's own type, ``I`` bytes of their
ids, with the weights of weighted features.

=========================  ===============================  =======  ===============================  =======
route                      forward                          message  backward                         message
=========================  ===============================  =======  ===============================  =======
WHOLE                      all-to-all of W b d f            P        all-to-all                       P
WORLD_SUM                  reduce-scatter of W b d f        W P      all-gather                       W P
HOST_SUM                   reduce-scatter of W b d f        G P      all-to-all over groups, then     P
                           inside the group, then                    all-gather inside the group      G P
                           all-to-all of N b d f over       P
                           groups
WHOLE, of a sequence       all-to-all of n d f              P        all-to-all                       P
NONE                       none                                      all-reduce of R d e              bucket
=========================  ===============================  =======  ===============================  =======

Rows of a sequence are never added up: each route but NONE is WHOLE for them.

Ids travel first: an all-to-all of the ids that the shard looks up, message I. Row cuts send an
id to one rank, column pieces send it to each piece; both are in ``lookups`` already.
Replicated tables send no ids.

A message is as large as if every table used that collective: tables of one collective are
sent together, and a shard's seconds may not depend on what the other tables choose.
Where the ranks are a part of a job, gradients of replicated tables are added up over all ranks of the job.
Gradients of replicated tables have the type of the weights and travel in the buckets
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
from cost_models.arrays import Bools, Codes, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import ROUTES, Phase, Route

BUCKET_BYTES = 25.0 * 2**20  # PyTorch DistributedDataParallel, bucket_cap_mb

#: Who takes part: all ranks, the ranks of each group, the ranks of equal position, one in each group; or all ranks of
#: the job that these are a part of.
Group = Literal["all", "inside", "across", "job"]


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
        """Return what each rank holds, shape (num_ranks,), for shard i on ``rank[i]``."""
        return np.bincount(rank, weights=self.shard_bytes, minlength=num_ranks).astype(np.float64)


def exchanges_of(work: ShardWork) -> Iterator[Exchange]:
    """Yield each collective that some shard of ``work`` takes part in, in the order in which a step runs them."""
    routes = _routes(work)
    rows = (_rows(work, phase, routes) for phase in (Phase.FORWARD_COMM, Phase.BACKWARD_COMM))
    found = (_ids(work, routes), *itertools.chain(*rows), _dense_gradients(work, routes))
    size: dict[Group, int] = {"all": work.num_ranks, "inside": work.ranks_per_group, "across": work.num_groups}
    size["job"] = work.num_ranks if work.job is None else work.job.num_ranks
    for exchange in found:
        if size[exchange.group] > 1 and np.any(exchange.shard_bytes > 0):
            yield exchange


def buffers(exchange: Exchange, held_bytes: Floats, group_ranks: int) -> tuple[Floats, Floats]:
    """Return the bytes that each rank sends and receives, both of the shape of ``held_bytes`` (..., group_ranks).

    In an all-to-all each rank receives an equal share of what every rank holds (forward), or sends one (backward). The
    other collectives have one buffer size for all ranks, that of the rank that holds most.
    """
    if exchange.operation == "all_to_all":
        even = np.broadcast_to(held_bytes.mean(axis=-1, keepdims=True), held_bytes.shape)
        return (held_bytes, even) if exchange.direction == "forward" else (even, held_bytes)
    most = np.broadcast_to(held_bytes.max(axis=-1, keepdims=True), held_bytes.shape)
    part = most / group_ranks
    sent = part if exchange.operation == "all_gather" else most
    received = part if exchange.operation == "reduce_scatter" else most
    return sent, received


def _routes(work: ShardWork) -> Codes:
    """Return the Route codes of the rows of each shard, shape (num_shards,); rows of a sequence are never added up."""
    route = ROUTES[work.scheme]
    is_sum = (route == Route.WORLD_SUM) | (route == Route.HOST_SUM)
    return np.where(is_sum & ~work.is_pooled, np.int8(Route.WHOLE), route)


def _ids(work: ShardWork, routes: Codes) -> Exchange:
    """Return the exchange of ids. The ranks that look them up are the uneven side: like gradients, ids come in."""
    return Exchange(
        phase=Phase.INPUT_COMM,
        operation="all_to_all",
        direction="backward",
        group="all",
        shard_bytes=_only(routes != Route.NONE, work.lookups * id_bytes(work.is_weighted)),
        message_bytes=np.array([work.id_message_bytes]),
    )


def _rows(work: ShardWork, phase: Phase, routes: Codes) -> Iterator[Exchange]:
    """Yield the exchanges of output rows to the ranks of their samples (forward), or of their gradients back."""
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

    whole, world_sum, host_sum = (routes == route for route in (Route.WHOLE, Route.WORLD_SUM, Route.HOST_SUM))
    if np.any(whole):
        rows = np.where(work.is_pooled, bags, work.lookups * row_bytes)
        yield exchange("all_to_all", "all", _only(whole, rows), message)
    if np.any(world_sum):
        yield exchange(ring, "all", _only(world_sum, bags), message * work.num_ranks)
    if np.any(host_sum):
        across = work.num_groups * work.batch_outputs * row_bytes
        inside = exchange(ring, "inside", _only(host_sum, bags), message * work.ranks_per_group)
        between = exchange("all_to_all", "across", _only(host_sum, across), message)
        yield from (between, inside) if gathers else (inside, between)


def _dense_gradients(work: ShardWork, routes: Codes) -> Exchange:
    """Return the all-reduce of the gradients of replicated tables after the backward pass."""
    sent = _only(routes == Route.NONE, dense_gradient_bytes(work, work.shard_rows))
    return Exchange(
        phase=Phase.BACKWARD_COMM,
        operation="all_reduce",
        direction="",
        group="all" if work.job is None else "job",
        shard_bytes=sent,
        message_bytes=np.maximum(sent, BUCKET_BYTES),
    )


def _only(shards: Bools, sent: NDArray[np.float64]) -> Floats:
    """Return the bytes of some shards, 0 for the others."""
    return np.where(shards, sent, 0.0)
