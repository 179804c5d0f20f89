"""The words that columns of numbers are coded with: schemes, kernels, tiers, phases, evidence.

Spelling follows TorchRec (``torchrec.distributed.types.ShardingType`` and
``EmbeddingComputeKernel``): a member's ``label`` is its name in lower case, which is also
its spelling in every JSON document. Values are the codes used in arrays.
"""

from enum import IntEnum
from typing import Self


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


class Scheme(Code):
    """How one table is cut."""

    DATA_PARALLEL = 0
    TABLE_WISE = 1
    COLUMN_WISE = 2
    ROW_WISE = 3
    TABLE_ROW_WISE = 4
    TABLE_COLUMN_WISE = 5
    GRID_SHARD = 6


class Kernel(Code):
    """Which code looks rows up, and in which memory tier they live."""

    DENSE = 0
    FUSED = 1
    FUSED_UVM = 2
    FUSED_UVM_CACHING = 3
    KEY_VALUE = 4


class Tier(Code):
    """A level of memory, nearest first."""

    HBM = 0
    DDR = 1
    SCM = 2  #: storage-class memory: byte-addressable, beside host memory or in its place
    SSD = 3


#: Kernels that keep a share of their rows in the device's memory and all rows in another tier.
CACHED_KERNELS = (Kernel.FUSED_UVM_CACHING, Kernel.KEY_VALUE)
#: Where the rows of a kernel usually lie; those of all others lie in the device's own memory.
TIER_OF_KERNEL = {Kernel.FUSED_UVM: Tier.DDR, Kernel.FUSED_UVM_CACHING: Tier.DDR, Kernel.KEY_VALUE: Tier.SSD}
#: Kernels that read the host's memory by the byte: their rows may lie in storage-class memory as well.
SCM_KERNELS = (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING)
#: Memories of the host that such kernels read.
HOST_TIERS = (Tier.DDR, Tier.SCM)


class Phase(Code):
    """A part of the training step that ends when its slowest rank ends."""

    INPUT_COMM = 0
    FORWARD_COMPUTE = 1
    FORWARD_COMM = 2
    BACKWARD_COMM = 3
    BACKWARD_COMPUTE = 4
    PREFETCH = 5
    #: no part of a step that a cost model prices: what checkpoints cost per step, where the user asks to balance it
    CHECKPOINT = 6


#: The phases that cost models price.
STEP_PHASES = tuple(phase for phase in Phase if phase is not Phase.CHECKPOINT)


class Evidence(Code):
    """How well a number is known; a larger code is weaker, so ``max`` gives the weakest."""

    MEASURED = 0  #: somebody ran it and published or uploaded the number
    GIVEN = 1  #: stated by the user in the spec
    DATASHEET = 2  #: vendor or system specification
    ESTIMATED = 3  #: a model assumption or a ratio: calibrate before trusting it


NUM_PHASES = len(Phase)
NUM_TIERS = len(Tier)
