"""The seam between planning and pricing: columns of shard work in, seconds per phase out.

This is a leaf module: it knows no table, feature, plan or spec, so that the same model
prices the options of a solve, the shards of a foreign plan and the rows of a measurement
file. Adding a column to :class:`ShardWork` is a reviewed change to this one class.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cost_models.arrays import Bools, Codes, Floats, Ints, arrays_of, freeze, take_rows
from cost_models.collectives.whole_job import WholeJob
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import NUM_PHASES, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """What each shard does in one training step, or for one request that a host serves; one row per shard.

    A shard stands for the rectangle that one rank holds. Every array has shape
    ``(num_shards,)``. "All ranks' batches" means ``num_ranks`` local batches together.
    """

    # The cluster and the messages that all tables share.
    num_ranks: int
    ranks_per_host: int
    #: whether the rows that a cache misses are fetched before the step that needs them begins
    prefetches: bool
    #: bytes of output rows (all tables) that one rank's local batch receives in the forward
    #: pass, in the type that the forward exchange has: the size of the real collective,
    #: which carries all tables at once
    forward_message_bytes: float
    #: bytes of the gradients of these rows, in the type that the backward exchange has
    backward_message_bytes: float
    #: bytes of ids (all tables), with the weights of weighted features, in one rank's local batch
    id_message_bytes: float

    scheme: Codes  # Scheme codes
    kernel: Codes  # Kernel codes
    table_rows: Ints  # rows of the whole table
    table_columns: Ints  # columns of the whole table
    shard_rows: Ints  # rows of this shard (row cuts: the full block)
    shard_columns: Ints  # columns of this shard
    #: columns of the widest shard of its launch, taken as cut like this one: kernels run as wide as that
    launch_columns: Floats
    #: ranks that share the rows of this shard's column range, by its scheme: 1, the ranks of
    #: a host, or all ranks
    row_shards: Ints
    element_bytes: Floats  # stored bytes of one weight (0.5 for int4)
    row_overhead_bytes: Floats  # scale and bias of a quantised row, else 0
    row_alignment_bytes: Floats  # what a stored row is padded to a multiple of; 1 for no padding
    #: optimizer state read and written per updated weight, bytes
    optimizer_element_bytes: Floats
    #: optimizer state read and written per updated row, bytes
    optimizer_row_bytes: Floats

    batch_ids: Floats  # ids of this table in one rank's local batch
    #: output rows of this table for one rank's local batch: bags, or ids of a sequence
    batch_outputs: Floats
    #: the same as TorchRec counts it: a feature with pooling factor L < 1 counts L of its bags
    expected_outputs: Floats
    lookups: Floats  # rows that this shard gathers per step, over all ranks' batches
    distinct_rows: Floats  # expected distinct rows among them; NaN if nothing is known
    #: share of the shard's rows that its kernel caches in the device's memory; NaN if it has no cache
    cache_load_factor: Floats
    #: share of the distinct rows of a step that the cache does not hold; NaN if it has no cache, or nothing is known
    missed_share: Floats
    #: share of the lookups served by rows in the device's memory, of a kernel that stores its rows in host memory
    hot_lookup_share: Floats
    hot_distinct_share: Floats  # the same of the distinct rows of a step
    hot_row_share: Floats  # the same of the shard's rows; 0 if it is not split between tiers
    slot_lookup_bytes: Floats  # read and written to find the slot of an id; 0 where ids are row numbers
    slot_upkeep_bytes: Floats  # read and written per row of the shard to give ids other slots, as a mean over steps
    slot_launches: Floats  # kernels that do so, as a mean over steps
    in_scm: Bools  # whether rows that the kernel stores in the host lie in storage-class memory, else in host memory
    is_weighted: Bools
    is_pooled: Bools
    is_trained: Bools  # whether an optimizer changes the rows that were looked up
    #: all ranks of the job, where these are a sharding group of it: gradients of replicas are added up over all of them
    job: WholeJob | None = None

    # Bytes of one element on the wire and in the output; NaN if the spec leaves it to
    # the model (TorchRec: the table's type; roofline: fp32).
    output_element_bytes: Floats
    forward_comm_element_bytes: Floats
    backward_comm_element_bytes: Floats

    #: ranks of a pod of hosts, over which row cuts then go instead of over a host; ``None`` for none
    pod_size: int | None = None

    def __post_init__(self) -> None:
        """Check shapes and make the columns read-only."""
        if self.num_ranks < 1:
            raise ValueError("Expected num_ranks >= 1.")
        if self.ranks_per_host < 1 or self.num_ranks % self.ranks_per_host:
            raise ValueError("Expected num_ranks to be a multiple of ranks_per_host.")
        if self.ranks_per_group % self.ranks_per_host or self.num_ranks % self.ranks_per_group:
            raise ValueError("Expected pod_size to be a multiple of ranks_per_host that divides num_ranks.")
        for name, column in arrays_of(self):
            if column.shape != self.scheme.shape:
                raise ValueError(f"Expected column {name} of shape {self.scheme.shape}.")
        freeze(self)

    @property
    def num_shards(self) -> int:
        """Number of rows."""
        return int(self.scheme.shape[0])

    def take(self, rows: Ints) -> "ShardWork":
        """Return the work of some shards, or of the same ones several times."""
        return take_rows(self, rows)

    @property
    def num_hosts(self) -> int:
        """Number of hosts of the cluster."""
        return self.num_ranks // self.ranks_per_host

    @property
    def ranks_per_group(self) -> int:
        """Ranks of a group that row cuts go over: of a pod, or else of a host."""
        return self.pod_size or self.ranks_per_host

    @property
    def num_groups(self) -> int:
        """Number of pods, or else of hosts."""
        return self.num_ranks // self.ranks_per_group


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSeconds:
    """Predicted time of each shard on its rank, per phase, and how well it is known."""

    seconds: Floats  # (num_shards, NUM_PHASES), >= 0; a planner may add phases of its own
    #: Evidence codes, (num_shards, NUM_PHASES): the weakest hardware number in each entry;
    #: entries of zero seconds carry MEASURED, since nothing was needed to know them
    evidence: Codes

    def __post_init__(self) -> None:
        """Check shapes and make the arrays read-only."""
        if self.seconds.ndim != 2 or self.seconds.shape[1] < NUM_PHASES:
            raise ValueError("Expected seconds of shape (num_shards, NUM_PHASES).")
        if self.evidence.shape != self.seconds.shape:
            raise ValueError("Expected evidence of the shape of seconds.")
        if not np.all(np.isfinite(self.seconds)) or np.any(self.seconds < 0):
            raise ValueError("Expected finite seconds >= 0.")
        freeze(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsLimits:
    """Between which limits the seconds of each shard lie, each by itself with the probability that the model states."""

    lower_seconds: Floats  # (num_shards, NUM_PHASES)
    upper_seconds: Floats

    def __post_init__(self) -> None:
        """Check shape and order, and make the arrays read-only."""
        if self.lower_seconds.shape != self.upper_seconds.shape:
            raise ValueError("Expected lower_seconds and upper_seconds of one shape.")
        if not np.all((self.lower_seconds >= 0) & (self.lower_seconds <= self.upper_seconds)):
            raise ValueError("Expected 0 <= lower_seconds <= upper_seconds.")
        freeze(self)


class CostModel(Protocol):
    """Predicts the time of one shard on one rank. Pure: same columns, same seconds.

    A model never guesses: a hardware number that it needs and the profile lacks raises
    ``MissingHardwareNumber``; a scheme or kernel without a formula raises ``UnsupportedWork``.
    ``hardware.quantity`` is how a formula declares the numbers that it needs. Which numbers
    these are depends on the work and on which numbers exist, never on their values, so that
    one call of ``predict`` on ``hardware.collecting_missing()`` finds every missing number.
    """

    @property
    def name(self) -> str:
        """The name used in specs, such as ``roofline``."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever a prediction can change; part of the plan's provenance."""
        ...

    @property
    def counted_phases(self) -> Bools:
        """Which phases enter the objective, shape (NUM_PHASES,)."""
        ...

    @property
    def rounding(self) -> float:
        """Relative difference between prices of equal work next to other work: of single precision, else 0."""
        ...

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work`` on ``hardware``."""
        ...


@runtime_checkable
class IntervalModel(CostModel, Protocol):
    """A cost model of single shards that knows how far measured seconds lie from its own.

    Searches never ask for limits, so that an interval costs a solve nothing but the scores of its plans.
    """

    @property
    def coverage(self) -> float:
        """Probability that a measured time lies within its limits."""
        ...

    def limits(self, work: ShardWork, hardware: Hardware, *, launch_lookups: float) -> SecondsLimits:
        """Return the limits of the seconds that :meth:`predict` returns.

        ``launch_lookups`` are the lookups of one rank in a step: small launches are known less well than large ones.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeconds:
    """Predicted time of every rank of a whole assignment, per phase, and between which limits it lies.

    Every array has shape ``(num_ranks, NUM_PHASES)``. The intervals hold each number by itself with
    the probability that the model states.
    """

    seconds: Floats
    lower_seconds: Floats
    upper_seconds: Floats
    #: the part of ``seconds`` that was learned from measurements; the rest is the analytic model's
    learned_seconds: Floats
    evidence: Codes

    def __post_init__(self) -> None:
        """Check shapes and order, and make the arrays read-only."""
        for name, array in arrays_of(self):
            if array.shape != self.seconds.shape or array.ndim != 2 or array.shape[1] != NUM_PHASES:
                raise ValueError(f"Expected {name} of shape (num_ranks, NUM_PHASES).")
        freeze(self)
        if not np.all((self.lower_seconds <= self.seconds) & (self.seconds <= self.upper_seconds)):
            raise ValueError("Expected lower_seconds <= seconds <= upper_seconds.")


class Assigned(Protocol):
    """Shards on ranks under a model that prices ranks as a whole, ready to price changes."""

    @property
    def seconds(self) -> Floats:
        """Seconds of every rank and phase, (num_ranks, NUM_PHASES)."""
        ...

    def after(self, shards: Ints, ranks: Ints) -> Floats:
        """Return the seconds after each of K changes, (K, num_ranks, NUM_PHASES).

        In change k the shards ``shards[k]``, M different ones, go to ``ranks[k]``, which may be where they are.
        """
        ...

    def moved(self, shards: Ints, ranks: Ints) -> "Assigned":
        """Return the assignment after one change, shards (M,) to ranks (M,)."""
        ...


@runtime_checkable
class AssignmentModel(CostModel, Protocol):
    """A cost model whose price of a shard depends on what else lies on its rank.

    ``predict`` prices each shard additively, which is what searches need; ``predict_ranks`` prices a whole
    assignment, ``assigned`` prices changes of a few of its shards quickly, and ``around`` returns the additive
    model that agrees best near one.
    """

    @property
    def coverage(self) -> float:
        """Probability that a measured time lies within the interval of its prediction."""
        ...

    @property
    def analytic(self) -> CostModel:
        """The additive model that prices what was not measured."""
        ...

    def predict_ranks(self, work: ShardWork, rank: Ints, hardware: Hardware) -> RankSeconds:
        """Price the shards of ``work``, of which shard i lies on ``rank[i]``, together."""
        ...

    def assigned(self, work: ShardWork, rank: Ints, hardware: Hardware) -> Assigned:
        """Return an assignment whose seconds are those of ``predict_ranks``, ready to price changes."""
        ...

    def around(self, work: ShardWork, rank: Ints, hardware: Hardware) -> CostModel:
        """Return an additive model, linear near the assignment of ``work`` to ``rank``."""
        ...

    def unknown(self, work: ShardWork, hardware: Hardware) -> tuple[str, ...]:
        """Return, for each shard, what lies outside the range that was measured; ``""`` if nothing does."""
        ...

    def unmeasured_collectives(self, work: ShardWork) -> tuple[tuple[Phase, str], ...]:
        """Return phase and reason of the collectives of a step that the model does not price, each once, in its order.

        ``work`` are the shards that take part, each kind of them at least once: which collectives a step runs does
        not depend on how many there are, nor on where they lie.
        """
        ...
