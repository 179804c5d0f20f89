r"""Bytes of device memory in each phase of a training step: what stays, and what lives in some phases only.

With :math:`O` the rows that the shards of a rank write in a step, :math:`P` the pooled rows that its local batch
receives, :math:`A` the activations of the dense part, and :math:`w`, :math:`s`, :math:`h` for the routes of rows
(whole, summed over all ranks, summed over hosts or pods), a phase holds

====================  ==========================================================================================
``forward_compute``   :math:`O`
``forward_comm``      :math:`O`, sent copies :math:`O_w + 2 O_h / L`, received :math:`P_w + P_s + P_h`
``output_concat``     received rows, and the joined ones :math:`P`; rows of one reduce-scatter alone are not copied
``dense_forward``     :math:`P`, and :math:`A` at its end
``dense_backward``    :math:`P`, its gradients as large, and :math:`A` at its beginning
``gradient_split``    gradients of :math:`P`, pieces and copies of one sharding type, messages :math:`P_w + P_h`
``backward_comm``     gradients of :math:`P`, copies, messages :math:`P_w + P_h`, received :math:`O_w + O_s + O_h / L`
``backward_compute``  gradients of :math:`O`, and :math:`O_h / L`
====================  ==========================================================================================

for hosts (or pods) of :math:`L` ranks. Copies are cut from the gradients of a module with several sharding types, and
once more for tables cut by columns, whose columns are put in order. Such a module goes through its sharding types one
by one, so that the sum is an upper bound, and gathers :math:`O_h` while the gradients of :math:`P` are there. Ids stay
through the step, for the backward pass needs them again; the pipelines differ in how many batches of them they hold,
not in the order of the phases. Stashed weights are held in all phases but the two of the dense part; ``stash`` and
``restore`` are the moments when the copies to the host end and those back begin (:mod:`planner.pricing.memory.stash`).

References
----------
TorchRec 1.8.0 ``comm_ops.py``: ``All2All_Pooled_Req`` copies what it sends, ``All2All_Pooled_Wait`` joins what it
received, ``All2All_Pooled_Wait.backward`` cuts and joins, ``ReduceScatterBase_Req`` sends in place;
``embeddingbag.py``: ``EmbeddingBagCollectionAwaitable`` joins sharding types. Lookups free their outputs when the
exchange has begun, exchanges free theirs when they have ended. A test compares all phases with the allocations of real
training.
"""

from collections.abc import Mapping

import numpy as np

from cost_models.analytic.sizes import element_bytes
from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import ROUTES, Route, Scheme
from planner.access.table_columns import table_columns
from planner.domain.plan.step_memory import MemoryPhase, StepMemory
from planner.domain.problem.problem import Problem
from planner.pricing.memory.ledger import EXACT, LINES, output_buffer_bytes, reserved_bytes, sparse_capacity_bytes
from planner.pricing.memory.stash import Copies
from planner.pricing.placed_work import PlacedWork

#: Lines of the ledger that are buffers of a step, and no part of the tables.
_BUFFERS = ("input_buffers", "output_buffers")
_MARGIN = "margin"
#: Reservations that are held throughout.
_RESERVED = ("dense_parameters", "input_batches", "collective_buffers", "index_dedup")
_CUTS_COLUMNS = np.array([scheme.facts.cuts_columns for scheme in Scheme])
#: Lines of buffers by phase, in which (num_ranks,) or one number for all ranks.
_Buffers = Mapping[MemoryPhase, Mapping[str, Floats]]


def step_memory(
    problem: Problem, placed: PlacedWork, ledger_lines: Floats, stashed_bytes: Floats
) -> tuple[StepMemory, ...] | None:
    """Return what every rank holds in each phase; ``None`` where requests are served.

    ``ledger_lines`` are the bytes of the ledger, shape (num_ranks, NUM_TIERS, len(LINES)), ``stashed_bytes`` those of
    weights that are stashed, (num_ranks,).
    """
    if problem.serving is not None:
        return None
    device = problem.cluster.device_tier
    held = dict(zip(LINES, ledger_lines[:, device].T, strict=True))
    tables: Floats = ledger_lines[:, device].sum(axis=1) - sum(held[line] for line in _BUFFERS)
    buffers = _buffers(problem, placed)
    if problem.stash is not None:
        free = sparse_capacity_bytes(problem) - ledger_lines[:, device].sum(axis=1)
        buffers, tables = _with_stash(problem, buffers, stashed_bytes, free), tables - stashed_bytes
    totals = np.stack([sum(lines.values(), np.zeros(problem.world_size)) for lines in buffers.values()], axis=1)
    by_phase = {phase: {name: line.tolist() for name, line in lines.items()} for phase, lines in buffers.items()}
    found = []
    for rank in range(problem.world_size):
        capacity = problem.cluster.tier_bytes(rank, device)
        reserved = reserved_bytes(problem, capacity)
        persistent = {
            "tables": float(tables[rank]),
            "input_buffers": float(held["input_buffers"][rank]),
            **{name: reserved[name] for name in _RESERVED if name in reserved},
        }
        in_phase = sum(persistent.values()) + totals[rank]
        highest = int(np.argmax(in_phase))
        found.append(
            StepMemory(
                device_bytes=capacity,
                peak_bytes=float(in_phase[highest]),
                peak_phase=list(buffers)[highest],
                persistent_bytes=persistent,
                buffer_bytes={
                    phase: {name: line[rank] for name, line in lines.items()} for phase, lines in by_phase.items()
                },
                phase_bytes=dict(zip(buffers, in_phase.tolist(), strict=True)),
            )
        )
    return tuple(found)


def _buffers(problem: Problem, placed: PlacedWork) -> _Buffers:
    """Return the lines of the buffers of every phase; each (num_ranks,)."""
    work, route = placed.work, ROUTES[placed.work.scheme]
    outputs = output_buffer_bytes(problem, work, EXACT)
    element = element_bytes(work.output_element_bytes)
    sent = outputs / element * element_bytes(work.forward_comm_element_bytes)
    returned = outputs / element * element_bytes(work.backward_comm_element_bytes)
    on_host = route == Route.HOST_SUM
    if problem.cluster.num_groups == 1:
        on_host = np.zeros_like(on_host)  # a host, or pod, is the world: nothing goes from one to another
    per_host = np.where(on_host, 1.0 / work.ranks_per_group, 0.0)
    crossing = (route == Route.WHOLE) + 2.0 * per_host
    pooled = _Pooled(problem, placed, is_message=(route == Route.WHOLE) | on_host)
    gathers_early = ~on_host | pooled.joins_kind
    by_rank = placed.by_rank(
        problem,
        np.stack(
            [
                outputs,
                sent * crossing,
                np.where(route == Route.NONE, 0.0, returned * (gathers_early + per_host)),
                np.where(route == Route.NONE, outputs, returned * (1.0 + per_host)),
            ],
            axis=1,
        ),
    )
    lookup_outputs, sent_rows, received_gradients, gradients_of_outputs = by_rank.T
    activations = problem.dense.activation_bytes or 0.0

    def everywhere(amount: float) -> Floats:
        return np.full(problem.world_size, amount)

    rows, messages = everywhere(pooled.rows), pooled.messages
    return {
        MemoryPhase.FORWARD_COMPUTE: {"lookup_outputs": lookup_outputs},
        MemoryPhase.FORWARD_COMM: {
            "lookup_outputs": lookup_outputs,
            "sent_rows": sent_rows,
            "received_rows": everywhere(pooled.received),
        },
        MemoryPhase.OUTPUT_CONCAT: {"received_rows": everywhere(pooled.joined), "pooled_rows": rows},
        MemoryPhase.DENSE_FORWARD: {"pooled_rows": rows, "activations": everywhere(activations)},
        MemoryPhase.DENSE_BACKWARD: {
            "pooled_rows": rows,
            "gradients_of_pooled_rows": rows,
            "activations": everywhere(activations),
        },
        MemoryPhase.GRADIENT_SPLIT: {
            "gradients_of_pooled_rows": rows,
            "gradient_copies": everywhere(pooled.pieces),
            "sent_gradients": everywhere(messages),
        },
        MemoryPhase.BACKWARD_COMM: {
            "gradients_of_pooled_rows": rows,
            "gradient_copies": everywhere(pooled.copies),
            "sent_gradients": everywhere(messages),
            "gradients_of_outputs": received_gradients,
        },
        MemoryPhase.BACKWARD_COMPUTE: {"gradients_of_outputs": gradients_of_outputs},
    }


def _with_stash(problem: Problem, buffers: _Buffers, stashed_bytes: Floats, free_bytes: Floats) -> _Buffers:
    """Return the lines of every phase with weights that leave the device, and the moments when they do.

    Activations grow evenly, and have what is free until the copies to the host have ended; the same backward.
    """
    copies = Copies.of(problem)
    if copies is None:
        return buffers
    then = []
    for seconds, rate in zip(copies.dense_seconds, copies.bytes_per_second, strict=True):
        grown = np.minimum(1.0, stashed_bytes / rate / seconds) if seconds > 0 else (stashed_bytes > 0) * 1.0
        then.append(np.minimum(copies.activation_bytes * grown, np.maximum(free_bytes, 0.0)))
    dense = (MemoryPhase.DENSE_FORWARD, MemoryPhase.DENSE_BACKWARD)
    found = {
        phase: lines if phase in dense else {**lines, "stashed_weights": stashed_bytes}
        for phase, lines in buffers.items()
    }
    for phase, like, activations in zip((MemoryPhase.STASH, MemoryPhase.RESTORE), dense, then, strict=True):
        found[phase] = {**buffers[like], "activations": activations, "stashed_weights": stashed_bytes}
    return {phase: found[phase] for phase in sorted(found)}


class _Pooled:
    """Bytes of the pooled rows that a local batch receives, of all tables; the same on every rank."""

    def __init__(self, problem: Problem, placed: PlacedWork, *, is_message: Bools) -> None:
        """Add up tables; ``is_message`` marks the kinds of shards whose rows travel in all-to-alls."""
        table, first = np.unique(placed.table, return_index=True)
        work = placed.work
        cells = (work.batch_outputs * work.table_columns)[first]
        stored = cells * element_bytes(work.output_element_bytes)[first]
        scheme = work.scheme[first]
        travels, is_message = ROUTES[scheme] != Route.NONE, is_message[first]
        joins = _has_several_schemes(problem, table, scheme)
        returned = cells * element_bytes(work.backward_comm_element_bytes)[first]
        repeated = stored * _repeats(problem, table)  # where repeated ids were left out of what travels
        self.rows = float(repeated.sum())
        self.received = float((cells * _forward_bytes(work)[first])[travels].sum())
        self.joined = float(stored[joins | is_message].sum())
        self.messages = float(returned[is_message].sum())
        in_pieces = stored * (is_message * (1.0 + joins) + _CUTS_COLUMNS[scheme])
        #: of the sharding type with the most of them: the copies of one are freed before those of the next are made
        self.pieces = float(np.bincount(scheme, weights=in_pieces).max())
        #: that exchanges send from, or that outlive the cutting
        self.copies = float((stored * ((joins & travels & ~is_message) * 1.0 + _CUTS_COLUMNS[scheme])).sum())
        #: (num_kinds,) whether the module of each kind of shards has several sharding types
        self.joins_kind = joins[np.searchsorted(table, placed.table)]


def _forward_bytes(work: ShardWork) -> Floats:
    """Return the bytes of an element on the wire forward."""
    return element_bytes(work.forward_comm_element_bytes)


def _repeats(problem: Problem, table: Ints) -> Floats:
    """Return how many rows of a rank's batch become of each row that it receives, by table."""
    unique = table_columns(problem).deduplicated
    if unique is None:
        return np.ones(len(table))
    received = unique.unique_ids[table]
    ids = np.where(unique.is_deduplicated[table], unique.batch_ids[table], received)
    return np.divide(ids, received, out=np.ones(len(table)), where=received > 0)


def _has_several_schemes(problem: Problem, table: np.ndarray, scheme: np.ndarray) -> Bools:
    """Mark the tables whose module has tables of several sharding types."""
    schemes: dict[str, set[int]] = {}
    for one, code in zip(table.tolist(), scheme.tolist(), strict=True):
        schemes.setdefault(problem.tables[one].module_path, set()).add(code)
    return np.array([len(schemes[problem.tables[one].module_path]) > 1 for one in table.tolist()])
