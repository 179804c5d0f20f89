r"""What checkpoints take of each shard: bytes on the store, the stall of a snapshot, and what both cost a step.

A checkpoint (Check-N-Run [1]) is a snapshot, for which training stands still while every rank copies the rows that are
stored, and an upload from host memory during training. A stored row has its weights in the type that the spec names, at
most as wide as they are, and the optimizer state that training needs to go on. An increment names its rows, by
8 bytes for each or one bit for every row of the shard, and is never larger than the full one. Rows of the ``dense``
kernel, whose optimizer passes over all of them, are always stored in full. A row block has its share of the modified
rows; of a replicated table, which is stored once, every rank stores an equal part.

Of sharding groups that are replicas of each other every shard is stored once, too: ``torch.distributed.checkpoint``
has each of the ranks that hold it store as much as the others, as near as whole shards allow. They are taken to store
equal parts. Snapshots and restores are of all that a rank holds.

Snapshots copy rows as they are, before they are quantised: what lies in the device's memory over the host link, what
lies in host memory there, read and written, and what lies in storage-class memory is read there and written to host
memory. Block storage has old versions by itself; rows in its caches and in those
of host memory are written back first.

The price of checkpoints per step, with ``s`` steps between them and ``f`` steps between failures:

.. math:: \frac{\mathrm{snapshot}}{s} + \frac{\mathrm{upload} + \mathrm{restore}}{f}

A failure loses the steps since the last checkpoint that was stored whole. Half an interval of them is lost whatever the
plan; the upload adds its own seconds to it, and the restore adds reading. Averages over the checkpoints of a cycle.
Reports have the snapshot of the slowest rank and the upload and restore of the slowest host, which shares its rate
with no other host. Searches see loads of ranks: their prices give every rank an equal part of its host's rate.

References
----------
.. [1] A. Eisenman et al., "Check-N-Run" (NSDI 2022, arXiv 2010.08679).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import stored_row_bytes
from cost_models.analytic.tiers import return_link
from cost_models.arrays import Floats, Ints
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import (
    IN_DEVICE_MEMORY,
    IN_HOST_MEMORY,
    IS_CACHED,
    IS_REPLICATED,
    Evidence,
    Kernel,
    Phase,
    Tier,
)
from planner.access.modified_rows import ModifiedRows
from planner.access.table_columns import table_columns
from planner.domain.formats.units import format_seconds
from planner.domain.problem.checkpoint import Checkpoint, CheckpointLoad, CheckpointSize
from planner.domain.problem.problem import Problem
from planner.errors import Issue

#: Adds up what the shards of each rank have: (num_shards, columns) to (num_ranks, columns).
ByRank = Callable[[Floats], Floats]

ROW_NUMBER_BYTES = 8.0  # int64 with each row of an increment
BITS_PER_BYTE = 8.0
FP32_BYTES = 4.0


def with_checkpoints(
    problem: Problem, work: ShardWork, predicted: ShardSeconds, *, table: Ints, hardware: Hardware
) -> ShardSeconds:
    """Return the seconds of each shard in every phase with those of checkpoints, if they count."""
    checkpoint = problem.checkpoint
    if checkpoint is None:
        return predicted
    copies = _Copies.of(problem, work, hardware)  # a rate that reports need is found missing before a search
    if not checkpoint.balance:
        return predicted
    lost = _Shards.of(problem, checkpoint, work, table, work.shard_rows, copies).lost_seconds()
    seconds, evidence = predicted.seconds.copy(), predicted.evidence.copy()
    seconds[:, Phase.CHECKPOINT] = lost
    evidence[:, Phase.CHECKPOINT] = np.where(
        lost > 0, max(copies.evidence, checkpoint.rate_evidence), Evidence.MEASURED
    )
    return ShardSeconds(seconds=seconds, evidence=evidence)


def checkpoint_load(
    problem: Problem,
    work: ShardWork,
    *,
    table: Ints,
    stored_rows: Ints,
    by_rank: ByRank,
    step_seconds: float,
    hardware: Hardware,
) -> CheckpointLoad | None:
    """Return what checkpoints take under a plan; ``None`` if the problem has none.

    ``stored_rows`` are the rows that each shard really holds, and ``step_seconds`` those of a whole step.
    """
    checkpoint = problem.checkpoint
    if checkpoint is None:
        return None
    shards = _Shards.of(problem, checkpoint, work, table, stored_rows, _Copies.of(problem, work, hardware))
    last = shards.increments[-1] if shards.increments else np.zeros(work.num_shards)
    amounts = (
        shards.stored_bytes(shards.held) * shards.stored_part,
        shards.increment_bytes(last) * shards.stored_part,
        shards.snapshot_seconds(shards.held),
        shards.snapshot_seconds(last),
        shards.most_restored_bytes(),
        *shards.mean_seconds(),
        shards.mean_bytes() * shards.stored_part,
        shards.most_restored_bytes() * shards.stored_part,
        shards.full_fp32_bytes() * shards.stored_part,
    )
    columns = by_rank(np.stack(amounts, axis=1)).T
    full, increment, full_snapshot, snapshot, restored, stall, store = columns[:7]
    hosts = _Hosts.of(problem)
    mean_bytes, stored_bytes, full_fp32_bytes = (columns[7:].sum(axis=1) * hosts.num_replicas).tolist()
    return CheckpointLoad(
        policy=checkpoint.policy,
        full_every=shards.modified.full_every,
        interval_steps=checkpoint.interval_steps,
        interval_seconds=checkpoint.interval_steps * step_seconds,
        full=_size(checkpoint, full, full_snapshot, hosts),
        incremental=_size(checkpoint, increment, snapshot, hosts) if shards.increments else None,
        mean_bytes=mean_bytes,
        stored_bytes=stored_bytes,
        full_fp32_bytes=full_fp32_bytes,
        restore_seconds=float(hosts.sums(restored).max() / checkpoint.download_bytes_per_second),
        lost_seconds_per_step=float(
            stall.max() / checkpoint.interval_steps + hosts.sums(store).max() / checkpoint.steps_between_failures
        ),
        balanced=checkpoint.balance,
        snapshot_evidence=shards.copies.evidence,
    )


def full_checkpoint_bytes(problem: Problem, work: ShardWork, *, table: Ints, rows: Ints) -> Floats:
    """Return the bytes of shards of so many rows in a full checkpoint, (num_shards,); 0 if there are none."""
    checkpoint = problem.checkpoint
    if checkpoint is None:
        return np.zeros(work.num_shards)
    shards = _Shards.of(problem, checkpoint, work, table, rows, _Copies.of(problem, work, problem.cluster.hardware))
    return shards.stored_bytes(shards.held) * shards.stored_part


def _size(checkpoint: Checkpoint, by_rank: Floats, snapshot: Floats, hosts: "_Hosts") -> CheckpointSize:
    by_host = hosts.sums(by_rank)
    return CheckpointSize(
        bytes=float(by_rank.sum() * hosts.num_replicas),
        snapshot_seconds=float(snapshot.max()),
        slowest_rank=int(np.argmax(snapshot)),
        upload_seconds=float(by_host.max() / checkpoint.upload_bytes_per_second),
        slowest_host=int(np.argmax(by_host)),
        mean_upload_seconds=float(by_host.mean() / checkpoint.upload_bytes_per_second),
        bytes_by_rank=tuple(by_rank.tolist()),
        bytes_by_host=tuple(by_host.tolist()),
    )


def late_upload(load: CheckpointLoad) -> Issue | None:
    """Return a warning if a checkpoint is not stored before the next one is due."""
    if load.fits:
        return None
    step_seconds = load.interval_seconds / load.interval_steps
    longer = f"checkpoint.interval_steps of at least {np.ceil(load.full.upload_seconds / step_seconds):.0f}, "
    return Issue(
        code="checkpoint-late",
        pointer="/checkpoint",
        message=(
            f"host {load.full.slowest_host} uploads a full checkpoint for {format_seconds(load.full.upload_seconds)},"
            f" and the next one is due after {format_seconds(load.interval_seconds)}"
        ),
        hint=f"use {longer if step_seconds > 0 else ''}fewer checkpoint.bits, or a faster upload",
        severity="warning",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hosts:
    """How the ranks of a plan lie on hosts of the job."""

    shape: tuple[int, int]  # hosts that one sharding group uses, and its ranks on each
    num_replicas: int  # sharding groups of the job
    replicas_on_host: int  # ranks of a host with the same shards

    @classmethod
    def of(cls, problem: Problem) -> "_Hosts":
        cluster, job = problem.cluster, problem.all_ranks
        return cls(
            shape=(cluster.num_hosts, cluster.ranks_per_host),
            num_replicas=job.world_size // cluster.world_size,
            replicas_on_host=job.ranks_per_host // cluster.ranks_per_host,
        )

    def sums(self, by_rank: Floats) -> Floats:
        """Return what all ranks of each host have, from what the ranks of one group have each."""
        sums: Floats = by_rank.reshape(self.shape).sum(axis=1) * self.replicas_on_host
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """Seconds that a snapshot takes per byte, by where the byte lies; 0 for memories without bytes."""

    device: float
    host: float
    scm: float
    written_back: float  # to block storage
    evidence: Evidence

    @classmethod
    def of(cls, problem: Problem, work: ShardWork, hardware: Hardware) -> "_Copies":
        """Read the rates that the shards need; raises ``MissingHardwareNumber``."""
        needed_for = "snapshots of checkpoints"
        on_device = problem.cluster.device_tier is Tier.HBM
        in_host = IN_HOST_MEMORY[work.kernel]
        in_ddr = (in_host & ~work.in_scm).any() or not on_device
        in_scm = (in_host & work.in_scm).any()
        read: list[Quantity] = []

        def seconds(rate: Quantity) -> float:
            read.append(rate)
            return 1.0 / rate.value

        def named(name: str) -> Quantity:
            return hardware.quantity(name, needed_for=needed_for)

        link = seconds(return_link(hardware, needed_for=needed_for)) if on_device else 0.0
        host = 2 * seconds(named("ddr_bytes_per_second")) if in_ddr else 0.0
        is_stored = (work.kernel == Kernel.KEY_VALUE).any()
        return cls(
            device=link if on_device else host,
            host=host,
            scm=seconds(named("scm_bytes_per_second")) + seconds(named("ddr_bytes_per_second")) if in_scm else 0.0,
            written_back=seconds(named("ssd_write_bytes_per_second")) if is_stored else 0.0,
            evidence=Evidence(max((one.evidence for one in read), default=Evidence.MEASURED)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shards:
    """Rows that checkpoints store of each shard, and what a row takes; arrays of shape (num_shards,)."""

    checkpoint: Checkpoint
    work: ShardWork
    ranks_per_host: int  # of the job
    modified: ModifiedRows  # of the tables
    copies: _Copies
    held: Floats  # rows of the shard that its rank copies and reads
    stored_part: Floats  # of them that this rank stores, and not a replica
    increments: tuple[Floats, ...]  # rows of those that stand for all, growing

    @classmethod
    def of(
        cls, problem: Problem, checkpoint: Checkpoint, work: ShardWork, table: Ints, rows: Ints, copies: _Copies
    ) -> "_Shards":
        """Distribute the modified rows of tables over their shards of ``rows`` rows."""
        modified = table_columns(problem).modified
        assert modified is not None
        is_copy = IS_REPLICATED[work.scheme]
        held = rows / np.where(is_copy, float(problem.all_ranks.world_size), 1.0)
        in_full = (work.kernel == Kernel.DENSE) & work.is_trained
        return cls(
            checkpoint=checkpoint,
            work=work,
            ranks_per_host=problem.all_ranks.ranks_per_host,
            modified=modified,
            copies=copies,
            held=held,
            stored_part=np.where(is_copy, 1.0, problem.world_size / problem.all_ranks.world_size),
            increments=tuple(
                np.where(in_full, held, of_table[table] * (held / work.table_rows)) for of_table in modified.rows.T
            ),
        )

    def stored_bytes(self, rows: Floats) -> Floats:
        """Return the bytes of rows on the store, from all ranks."""
        work = self.work
        weights = self.checkpoint.weight_bytes(
            as_held=stored_row_bytes(work), element_bytes=work.element_bytes, columns=work.shard_columns
        )
        return rows * (weights + self._state_bytes())

    def full_fp32_bytes(self) -> Floats:
        """Return the bytes of a full checkpoint whose weights are fp32, without scales and biases."""
        return self.held * (self.work.shard_columns * FP32_BYTES + self._state_bytes())

    def _state_bytes(self) -> Floats:
        """Return the bytes of the optimizer state of one row."""
        work = self.work
        return work.shard_columns * work.optimizer_element_bytes + work.optimizer_row_bytes

    def increment_bytes(self, rows: Floats) -> Floats:
        """Return the bytes of an increment of so many rows, with the numbers of the rows."""
        which = np.minimum(rows * ROW_NUMBER_BYTES, self.held / BITS_PER_BYTE)
        return np.minimum(self.stored_bytes(rows) + which, self.stored_bytes(self.held))

    def snapshot_seconds(self, rows: Floats) -> Floats:
        """Return the seconds in which rows are copied to where uploads read them."""
        work, copies = self.work, self.copies
        weights, state = stored_row_bytes(work), work.shard_columns * work.optimizer_element_bytes
        cached = np.where(IS_CACHED[work.kernel], np.nan_to_num(work.cache_load_factor), 0.0)
        near = np.minimum(rows, cached * self.held) * weights
        on_device, in_host_memory = IN_DEVICE_MEMORY[work.kernel], IN_HOST_MEMORY[work.kernel]
        hot = np.where(on_device, rows, np.minimum(rows, work.hot_row_share * self.held))
        device = rows * work.optimizer_row_bytes + near + hot * (weights + state)
        host_bytes = np.where(in_host_memory, (rows - hot) * (weights + state), 0.0)
        host, scm = np.where(work.in_scm, 0.0, host_bytes), np.where(work.in_scm, host_bytes, 0.0)
        written_back = np.where(work.kernel == Kernel.KEY_VALUE, near, 0.0)
        in_host = host * copies.host + scm * copies.scm
        return device * copies.device + in_host + written_back * copies.written_back

    def most_restored_bytes(self) -> Floats:
        """Return the bytes that are read if the checkpoint before the next full one is restored."""
        full = self.stored_bytes(self.held)
        if not self.increments:
            return full
        times = self.modified.full_every - 1 if self.checkpoint.policy == "consecutive" else 1
        return full + times * self.increment_bytes(self.increments[-1])

    def mean_bytes(self) -> Floats:
        """Return the mean bytes of a checkpoint over a cycle, of all ranks that store."""
        return (self.stored_bytes(self.held) + self._all_increments()) / self.modified.full_every

    def _all_increments(self) -> Floats:
        """Return the bytes of all increments of a cycle."""
        found = np.zeros(self.work.num_shards)
        for count, rows in zip(self.modified.num_increments.tolist(), self.increments, strict=True):
            found = found + count * self.increment_bytes(rows)
        return found

    def lost_seconds(self) -> Floats:
        """Return the expected seconds per step by the module's formula, at a rank's part of its host's rate."""
        snapshot, store = self.mean_seconds()
        checkpoint = self.checkpoint
        return snapshot / checkpoint.interval_steps + store * self.ranks_per_host / checkpoint.steps_between_failures

    def mean_seconds(self) -> tuple[Floats, Floats]:
        """Return the mean seconds over a cycle: of a snapshot; of an upload and a restore at a host's whole rate."""
        checkpoint, cycle = self.checkpoint, self.modified.full_every
        snapshot, stored = self.snapshot_seconds(self.held), self.stored_bytes(self.held)
        for count, rows in zip(self.modified.num_increments.tolist(), self.increments, strict=True):
            snapshot = snapshot + count * self.snapshot_seconds(rows)
        increments = self._all_increments()
        # After k of a cycle's increments a restore reads all k, on average half of all there are, or the last alone.
        read = increments / (2 if checkpoint.policy == "consecutive" else cycle)
        upload = self.stored_part * (stored + increments) / cycle / checkpoint.upload_bytes_per_second
        restore = (stored + read) / checkpoint.download_bytes_per_second
        return snapshot / cycle, upload + restore
