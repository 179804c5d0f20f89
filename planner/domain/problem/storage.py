"""How the rows of a table are kept: which kernel, in which memory, how much of them cached, in which type."""

from dataclasses import dataclass

from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.data_type import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """One way to keep a table's rows."""

    kernel: Kernel
    data_type: DataType
    cache_load_factor: float | None = None  # share of the rows that a cached kernel keeps near, in (0, 1]
    #: share of the rows, the hottest ones, that lie in the device's memory though the others do not; 0 where none do
    hot_row_share: float = 0.0
    in_scm: bool = False  # whether rows that the kernel reads from the host lie in storage-class memory

    def __post_init__(self) -> None:
        """A cached kernel has a share, and no other has one."""
        if (self.cache_load_factor is not None) != self.kernel.facts.is_cached:
            raise ValueError("Expected cache_load_factor exactly where the kernel has a cache.")
        if self.cache_load_factor is not None and not 0 < self.cache_load_factor <= 1:
            raise ValueError("Expected cache_load_factor in (0, 1].")
        if not 0 <= self.hot_row_share < 1 or (self.hot_row_share > 0 and self.kernel is not Kernel.FUSED_UVM):
            raise ValueError("Expected hot_row_share in [0, 1), above 0 only for fused_uvm.")
        if self.in_scm and not self.kernel.facts.reads_host_memory:
            raise ValueError("Expected in_scm only where the kernel reads the host's memory by the byte.")

    def tier(self, device_tier: Tier) -> Tier:
        """Where the rows lie."""
        return Tier.SCM if self.in_scm else self.kernel.tier(device_tier)
