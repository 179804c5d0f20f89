"""A planning problem: everything that determines which plans are legal and how good they are."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from planner.domain.cluster import Cluster
from planner.domain.table import Table

OBJECTIVES = ("step_time", "max_rank_time")
#: What a training pipeline holds at once (TorchRec ``PipelineType``).
PIPELINES = ("none", "train_sparse_dist", "train_prefetch_sparse_dist")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """The dense part of the model, where the user gives it."""

    forward_seconds: float | None = None
    backward_seconds: float | None = None
    parameter_bytes: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("forward_seconds", "backward_seconds"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"Expected {name} >= 0.")
        if not (math.isfinite(self.parameter_bytes) and self.parameter_bytes >= 0):
            raise ValueError("Expected parameter_bytes >= 0.")

    @property
    def window_seconds(self) -> float:
        """Dense compute under which a pipeline can hide the next batch's input communication."""
        return (self.forward_seconds or 0.0) + (self.backward_seconds or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Memory of every rank that tables may not use (TorchRec ``HeuristicalStorageReservation``).

    ``hbm_fraction`` of the capacity, ``dense_multiplier`` x dense parameters (weights,
    gradients, optimizer state, DDP buckets), and ``input_copies`` copies of one local
    batch's ids (two pipelined batches with ten internal copies each).
    """

    hbm_fraction: float = 0.15
    dense_multiplier: float = 6.0
    input_copies: int = 20

    def __post_init__(self) -> None:
        """Check the fraction."""
        if not (math.isfinite(self.hbm_fraction) and 0 <= self.hbm_fraction < 1):
            raise ValueError("Expected reserved_hbm_fraction in [0, 1).")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Tables, cluster, joint constraints and objective. Names are unique and cross-checked."""

    tables: tuple[Table, ...]
    cluster: Cluster
    batch_size_per_rank: int
    #: element types on the wire and in outputs; ``None`` leaves them to the cost model
    forward_comm_dtype: str | None = None
    backward_comm_dtype: str | None = None
    output_dtype: str | None = None
    dense: Dense = field(default_factory=Dense)
    pipeline: str = "train_sparse_dist"
    reservation: Reservation = field(default_factory=Reservation)
    same_rank: tuple[frozenset[int], ...] = ()  # groups of table indices
    apart: tuple[frozenset[int], ...] = ()  # groups of table indices
    runtime: str = "torchrec"
    objective: str = "step_time"

    def __post_init__(self) -> None:
        """Check what can be checked without names; ``api.convert`` reports the rest with pointers."""
        if not self.tables:
            raise ValueError("Expected at least one table.")
        if self.batch_size_per_rank < 1:
            raise ValueError("Expected batch_size_per_rank >= 1.")
        if self.objective not in OBJECTIVES:
            raise ValueError(f"Expected objective to be one of {', '.join(OBJECTIVES)}.")
        if self.pipeline not in PIPELINES:
            raise ValueError(f"Expected pipeline to be one of {', '.join(PIPELINES)}.")
        if len({t.name for t in self.tables}) != len(self.tables):
            raise ValueError("Expected table names to be unique.")

    @cached_property
    def batch_pooling(self) -> float:
        """Ids that a local batch brings to all tables, as their pooling factors have it."""
        return sum(f.pooling_factor for t in self.tables for f in t.features) * self.batch_size_per_rank

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.cluster.world_size
