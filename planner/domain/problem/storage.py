"""How the rows of a table are kept: which kernel, in which memory, how much of them cached, in which type."""

from dataclasses import dataclass

from cost_models.vocabulary import Kernel, Tier
from planner.domain.expect import expect
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
        share, hot, facts = self.cache_load_factor, self.hot_row_share, self.kernel.facts
        expect((share is not None) == facts.is_cached, "cache_load_factor exactly where the kernel has a cache")
        expect(share is None or 0 < share <= 1, "cache_load_factor in (0, 1]")
        may_be_hot = hot == 0 or (0 < hot < 1 and self.kernel is Kernel.FUSED_UVM)
        expect(may_be_hot, "hot_row_share in [0, 1), above 0 only for fused_uvm")
        may_be_scm = facts.reads_host_memory or not self.in_scm
        expect(may_be_scm, "in_scm only where the kernel reads the host's memory by the byte")

    def tier(self, device_tier: Tier) -> Tier:
        """Where the rows lie."""
        return Tier.SCM if self.in_scm else self.kernel.tier(device_tier)
