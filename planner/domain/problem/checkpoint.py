"""Checkpoints of a training job: how often, what each one stores, and what they cost under a plan."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats
from cost_models.vocabulary import Evidence
from planner.domain.expect import expect
from planner.domain.problem.data_type import DATA_TYPES

#: What an incremental checkpoint stores: nothing (every one is full), the rows changed since the last full one
#: (``one_shot``; ``intermittent`` takes a full one again once that is cheaper), or those since the last of any kind.
POLICIES = ("full", "one_shot", "consecutive", "intermittent")
#: Types of weights on the store by bits.
STORED_TYPES = {32: "fp32", 16: "fp16", 8: "int8", 4: "int4", 2: "int2"}
#: Checkpoints from one full one to the next, unless the user says; a full one is the first of them.
DEFAULT_FULL_EVERY = 12
#: Intervals between failures, unless the user says: Check-N-Run (arXiv 2010.08679) takes a checkpoint every 30
#: minutes, and its jobs of 16 hosts fail after some ten hours. An estimate.
DEFAULT_INTERVALS_BETWEEN_FAILURES = 20.0
#: Remote store of checkpoints, one host's share: an estimate, no measurement is known.
DEFAULT_UPLOAD_BYTES_PER_SECOND = 1e9
DEFAULT_DOWNLOAD_BYTES_PER_SECOND = 2e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """When checkpoints are taken, what they store, and how fast a host reaches the store."""

    interval_steps: int
    policy: str = "full"
    full_every: int = 1
    bits: int | None = None  # per weight on the store; ``None`` stores weights as they are
    upload_bytes_per_second: float = DEFAULT_UPLOAD_BYTES_PER_SECOND  # of one host
    download_bytes_per_second: float = DEFAULT_DOWNLOAD_BYTES_PER_SECOND  # of one host
    rate_evidence: Evidence = Evidence.ESTIMATED  # of the weaker of the two rates
    intervals_between_failures: float = DEFAULT_INTERVALS_BETWEEN_FAILURES
    balance: bool = False  # whether what checkpoints cost is a part of the objective

    def __post_init__(self) -> None:
        expect(self.interval_steps >= 1, "interval_steps >= 1")
        expect(self.policy in POLICIES, f"policy to be one of {', '.join(POLICIES)}")
        expect(self.full_every >= 1, "full_every >= 1")
        expect(self.policy != "full" or self.full_every == 1, "full_every 1 where every checkpoint is full")
        expect(self.bits in (None, *STORED_TYPES), f"bits to be one of {', '.join(map(str, STORED_TYPES))}")
        for name in ("upload_bytes_per_second", "download_bytes_per_second", "intervals_between_failures"):
            expect(0 < getattr(self, name) < math.inf, f"{name} > 0")

    @property
    def steps_between_failures(self) -> float:
        """Steps from one failure to the next, on average."""
        return self.interval_steps * self.intervals_between_failures

    def weight_bytes(self, *, as_held: Floats, element_bytes: Floats, columns: NDArray[np.int64]) -> Floats:
        """Bytes on the store of the weights of one row, with a quantised one's scale and bias; shapes as given.

        ``as_held`` are bytes of the row in memory, of ``columns`` weights of ``element_bytes`` each.
        """
        if self.bits is None:
            return as_held
        narrower = DATA_TYPES[STORED_TYPES[self.bits]]
        quantised = columns * narrower.element_bytes + narrower.row_overhead_bytes
        return np.where(narrower.element_bytes < element_bytes, quantised, as_held)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSize:
    """One kind of checkpoint under a plan."""

    bytes: float  # of all hosts together
    snapshot_seconds: float  # training stands still until the slowest rank has copied its rows
    slowest_rank: int
    upload_seconds: float  # of the slowest host, during training
    slowest_host: int
    mean_upload_seconds: float  # over all hosts
    bytes_by_rank: tuple[float, ...]
    bytes_by_host: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoad:
    """What checkpoints take under a plan."""

    policy: str
    full_every: int  # checkpoints from one full one to the next; of intermittent, those that its rule comes to
    interval_steps: int
    interval_seconds: float  # under the plan's own step time, with the dense part
    full: CheckpointSize
    incremental: CheckpointSize | None  # the largest before the next full one; ``None`` where all are full
    mean_bytes: float  # of a checkpoint of all hosts, average over those from one full one to the next
    stored_bytes: float  # of all hosts, that a restore needs at most: the full checkpoint and increments since
    full_fp32_bytes: float  # of all hosts, in a full checkpoint whose weights are fp32
    restore_seconds: float  # slowest host's reading of the full checkpoint and of the increments, at most
    #: expected seconds per step: snapshots of the slowest rank, and work that a failure loses to the slowest host's
    #: uploads and restores, averages over the checkpoints of a cycle
    lost_seconds_per_step: float
    balanced: bool  # whether the objective counts them
    snapshot_evidence: Evidence  # of the weakest rate behind the snapshots

    @property
    def mean_write_bytes_per_second(self) -> float:
        """Rate at which all hosts together write, average over intervals; 0 if a step takes no time."""
        return self.mean_bytes / self.interval_seconds if self.interval_seconds > 0 else 0.0

    @property
    def write_reduction(self) -> float | None:
        """How many times as much would be written if every checkpoint were full and fp32; None if nothing is."""
        return self.full_fp32_bytes / self.mean_bytes if self.mean_bytes > 0 else None

    @property
    def stored_reduction(self) -> float | None:
        """How many times as much a full fp32 checkpoint stores as a restore needs at most; None if that is nothing."""
        return self.full_fp32_bytes / self.stored_bytes if self.stored_bytes > 0 else None

    @property
    def fits(self) -> bool:
        """Whether every checkpoint is stored before the next one is due."""
        return self.full.upload_seconds <= self.interval_seconds
