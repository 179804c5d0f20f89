"""The words that columns of numbers are coded with: schemes, kernels, tiers, phases, evidence.

Spelling follows TorchRec (``torchrec.distributed.types.ShardingType`` and
``EmbeddingComputeKernel``): a member's ``label`` is its name in lower case, which is also
its spelling in every JSON document. Values are the codes used in arrays.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np


class Code(IntEnum):
    """An integer code with a JSON label."""

    @property
    def label(self) -> str:
        """The spelling used in documents and by TorchRec."""
        return self.name.lower()

    @classmethod
    def labels(cls) -> tuple[str, ...]:
        """All labels, in the order of their codes."""
        return tuple(member.label for member in cls)

    @classmethod
    def from_label(cls, label: str) -> Self:
        """Return the member spelled ``label``; raises ``KeyError`` for an unknown one."""
        member = cls.__members__.get(label.upper())
        if member is None or member.label != label:
            raise KeyError(label)
        return member


class Tier(Code):
    """A level of memory, nearest first."""

    HBM = 0
    DDR = 1
    SCM = 2  #: storage-class memory: byte-addressable, next to host memory or in its place
    SSD = 3


#: Memories of the host that kernels read by the byte.
HOST_TIERS = (Tier.DDR, Tier.SCM)


class Holders(IntEnum):
    """The ranks that hold one piece of a table: a range of its columns with all rows."""

    RANK = 0  #: one rank
    HOST = 1  #: all ranks of one host, or of one pod of hosts
    WORLD = 2  #: all ranks


class Route(IntEnum):
    """How the pooled rows of a step reach the ranks of their samples; gradients come back the same way."""

    NONE = 0  #: not at all: each rank looks up its own samples
    WHOLE = 1  #: complete, from the rank that looks them up
    WORLD_SUM = 2  #: as parts that all ranks add up
    HOST_SUM = 3  #: as parts that the ranks of each host, or pod, add up, then from host to host, or pod to pod


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeFacts:
    """What is true of a scheme in every place that uses it. Code asks for these facts and names no scheme."""

    holders: Holders
    cuts_rows: bool = False  # the holders of a piece share its rows, in equal blocks; else each has all rows
    cuts_columns: bool = False  # two pieces or more, each a range of columns
    keeps_host: bool = False  # pieces on single ranks stay on one host, or in one pod
    words: str  # how the table is cut, for people; {} stands for the widths of the pieces, {group} for host or pod


class Scheme(Code):
    """How one table is cut. A new scheme is a new member with its facts; CONTRIBUTING.md lists the other steps."""

    facts: SchemeFacts

    def __new__(cls, code: int, facts: SchemeFacts) -> Self:
        """Return the member of a code, which is its value."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.facts = facts
        return member

    DATA_PARALLEL = 0, SchemeFacts(holders=Holders.WORLD, words="copied to every rank")
    TABLE_WISE = 1, SchemeFacts(holders=Holders.RANK, words="whole on one rank")
    COLUMN_WISE = 2, SchemeFacts(holders=Holders.RANK, cuts_columns=True, words="cut by columns ({})")
    ROW_WISE = 3, SchemeFacts(holders=Holders.WORLD, cuts_rows=True, words="cut by rows over all ranks")
    TABLE_ROW_WISE = 4, SchemeFacts(holders=Holders.HOST, cuts_rows=True, words="cut by rows over one {group}")
    TABLE_COLUMN_WISE = (
        5,
        SchemeFacts(
            holders=Holders.RANK, cuts_columns=True, keeps_host=True, words="cut by columns ({}) on one {group}"
        ),
    )
    GRID_SHARD = (
        6,
        SchemeFacts(
            holders=Holders.HOST,
            cuts_rows=True,
            cuts_columns=True,
            words="cut by columns ({}), each by rows over a {group}",
        ),
    )

    @property
    def is_replicated(self) -> bool:
        """Whether every rank has a full copy."""
        return self.facts.holders is Holders.WORLD and not self.facts.cuts_rows

    @property
    def is_whole(self) -> bool:
        """Whether one rank has all of the table."""
        return self.facts.holders is Holders.RANK and not self.facts.cuts_columns

    @property
    def route(self) -> Route:
        """How pooled rows reach the ranks of their samples."""
        if self.is_replicated:
            return Route.NONE
        if not self.facts.cuts_rows:
            return Route.WHOLE
        return Route.WORLD_SUM if self.facts.holders is Holders.WORLD else Route.HOST_SUM

    @property
    def collectives(self) -> tuple[str, str]:
        """The collectives of pooled rows and of their gradients inside one host; ``""`` for none."""
        return _COLLECTIVES[self.route]

    def row_blocks(self, num_ranks: int, ranks_per_group: int) -> int:
        """Return the number of ranks that share the rows of a piece; 1 if each holder has all rows."""
        return self.num_holders(num_ranks, ranks_per_group) if self.facts.cuts_rows else 1

    def site(self, rank: int, ranks_per_group: int) -> int:
        """Return the site of a piece that a rank holds: the rank, its group (a host or a pod), or 0 for all ranks."""
        return (rank, rank // ranks_per_group, 0)[self.facts.holders]

    def num_holders(self, num_ranks: int, ranks_per_group: int) -> int:
        """Return the number of ranks that hold a piece; groups are hosts or pods."""
        return (1, ranks_per_group, num_ranks)[self.facts.holders]


_COLLECTIVES = {
    Route.NONE: ("", "all_reduce"),
    Route.WHOLE: ("all_to_all", "all_to_all"),
    Route.WORLD_SUM: ("reduce_scatter", "all_gather"),
    Route.HOST_SUM: ("reduce_scatter", "all_gather"),
}

#: Facts by the code of a scheme, for arrays of codes; each (schemes,).
IS_REPLICATED = np.array([scheme.is_replicated for scheme in Scheme])
ROUTES = np.array([scheme.route for scheme in Scheme], dtype=np.int8)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """Where the rows of a kernel lie: what is true of it in every place that uses it."""

    tier: Tier | None = None  # where all rows usually lie; None: in the device's own memory
    is_cached: bool = False  # a share of the rows lies in the device's memory as well
    reads_host_memory: bool = False  # by the byte, so that rows may lie in storage-class memory too
    is_hashed: bool = False  # rows are found by key, in a hash table whose keys lie in the device's memory


class Kernel(Code):
    """Which code looks rows up, and in which memory tier they live."""

    facts: KernelFacts

    def __new__(cls, code: int, facts: KernelFacts = KernelFacts()) -> Self:
        """Return the member of a code, which is its value."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.facts = facts
        return member

    DENSE = 0
    FUSED = 1
    FUSED_UVM = 2, KernelFacts(tier=Tier.DDR, reads_host_memory=True)
    FUSED_UVM_CACHING = 3, KernelFacts(tier=Tier.DDR, is_cached=True, reads_host_memory=True)
    KEY_VALUE = 4, KernelFacts(tier=Tier.SSD, is_cached=True)
    HASH = 5, KernelFacts(is_hashed=True)
    HASH_HOST = 6, KernelFacts(tier=Tier.DDR, reads_host_memory=True, is_hashed=True)
    #: a share of the rows lies in the device's memory, the others in host memory
    HASH_HYBRID = 7, KernelFacts(tier=Tier.DDR, is_cached=True, reads_host_memory=True, is_hashed=True)
    HASH_CACHING = 8, KernelFacts(tier=Tier.DDR, is_cached=True, reads_host_memory=True, is_hashed=True)

    def tier(self, device_tier: Tier) -> Tier:
        """Return where all rows usually lie, on a device with this memory."""
        return device_tier if self.facts.tier is None else self.facts.tier


#: Kernels with all rows in the device's own memory.
DEVICE_KERNELS = frozenset(kernel for kernel in Kernel if kernel.facts.tier is None)
#: These, and the kernels whose rows lie in the memory of the host.
HOST_KERNELS = DEVICE_KERNELS | {kernel for kernel in Kernel if kernel.facts.reads_host_memory}
#: Kernels that hold a share of their rows in the device's memory and all rows in another tier.
CACHED_KERNELS = tuple(kernel for kernel in Kernel if kernel.facts.is_cached)

#: Facts by the code of a kernel, for arrays of codes; each (kernels,).
IN_DEVICE_MEMORY = np.array([kernel.facts.tier is None for kernel in Kernel])
IN_HOST_MEMORY = np.array([kernel.facts.tier is Tier.DDR for kernel in Kernel])
IS_CACHED = np.array([kernel.facts.is_cached for kernel in Kernel])
IS_HASHED = np.array([kernel.facts.is_hashed for kernel in Kernel])


class Phase(Code):
    """A part of the training step that ends when its slowest rank ends."""

    INPUT_COMM = 0
    FORWARD_COMPUTE = 1
    FORWARD_COMM = 2
    BACKWARD_COMM = 3
    BACKWARD_COMPUTE = 4
    PREFETCH = 5
    #: no part of a step that a cost model prices: what checkpoints cost per step, if the spec balances them
    CHECKPOINT = 6
    #: no part that a cost model prices either, and none of its arrays has a column for it: what a step pays for
    #: averaging the weights of sharding groups, which are replicas of each other, every so many steps
    REPLICA_SYNC = 7
    #: of requests, and no part that a cost model prices: keys and values of users that a cache next to the tables lacks
    KV_RECOMPUTE = 8


#: The phases that cost models price.
STEP_PHASES = tuple(phase for phase in Phase if phase < Phase.CHECKPOINT)


class Evidence(Code):
    """How well a number is known; a larger code is weaker, so ``max`` gives the weakest."""

    MEASURED = 0  #: measured, and the number published or uploaded
    GIVEN = 1  #: stated by the user in the spec
    DATASHEET = 2  #: vendor or system specification
    ESTIMATED = 3  #: a model assumption or a ratio: calibrate before trusting it


#: Columns of what cost models return: of every phase before ``replica_sync``.
NUM_PHASES = int(Phase.REPLICA_SYNC)
NUM_TIERS = len(Tier)
