"""The cluster: hosts of ranks, what each rank can hold and how fast it computes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from cost_models.collectives.whole_job import WholeJob
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import NUM_PHASES, Phase, Tier
from planner.domain.expect import expect

MAX_RANKS = 4096
#: Ten times the profile's speed is another machine and wants another profile; a thousandth is a fault.
MIN_RELATIVE_SPEED, MAX_RELATIVE_SPEED = 0.001, 10.0
#: Phases that a rank spends on its own; in the others it waits for messages of all.
COMPUTE_PHASES = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)


def tier_of_devices(hardware: Hardware, hbm_bytes_by_rank: Sequence[float] | None) -> Tier:
    """Return where a rank's fused tables live: HBM, or DDR on a host without accelerators."""
    has_hbm = hbm_bytes_by_rank is not None or (hardware.has("hbm_bytes") and hardware.numbers["hbm_bytes"].value > 0)
    return Tier.HBM if has_hbm else Tier.DDR


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``num_hosts`` hosts of ``ranks_per_host`` ranks each; rank r is on host r // ranks_per_host.

    A *group* is what schemes cut tables over that stay near: the ranks of a host, or of a pod of hosts.
    """

    hardware: Hardware
    num_hosts: int
    ranks_per_host: int
    #: ranks of a pod: hosts that share one NVLink domain, and whose ranks the runtime takes for a group; ``None`` if
    #: groups are hosts
    pod_size: int | None = None
    #: HBM of each rank where they differ, bytes; else the hardware's ``hbm_bytes``
    hbm_bytes_by_rank: tuple[float, ...] | None = None
    #: speed of each rank's lookups and updates where they differ, 1.0 is the hardware's; else all 1.0
    relative_speed_by_rank: tuple[float, ...] | None = None
    #: all ranks of the job, where this is one of its sharding groups
    job: WholeJob | None = None

    def __post_init__(self) -> None:
        expect(self.num_hosts >= 1, "num_hosts >= 1")
        expect(self.ranks_per_host >= 1, "ranks_per_host >= 1")
        expect(self.world_size <= MAX_RANKS, f"at most {MAX_RANKS} ranks")
        expect(self.ranks_per_group % self.ranks_per_host == 0, "pod_size a multiple of ranks_per_host")
        expect(self.world_size % self.ranks_per_group == 0, "pod_size to divide the number of ranks")
        for name in ("hbm_bytes_by_rank", "relative_speed_by_rank"):
            numbers = getattr(self, name)
            expect(numbers is None or len(numbers) == self.world_size, f"{name} to list {self.world_size} ranks")
        are_speeds = all(MIN_RELATIVE_SPEED <= one <= MAX_RELATIVE_SPEED for one in self.relative_speed_by_rank or ())
        expect(are_speeds, f"relative_speed_by_rank in [{MIN_RELATIVE_SPEED:g}, {MAX_RELATIVE_SPEED:g}]")

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.num_hosts * self.ranks_per_host

    @property
    def ranks_per_group(self) -> int:
        """Ranks of a group: of a pod, or else of a host."""
        return self.pod_size or self.ranks_per_host

    @property
    def group_noun(self) -> str:
        """What a group is, in a word: ``"pod"`` or ``"host"``."""
        return "host" if self.pod_size is None else "pod"

    @property
    def num_groups(self) -> int:
        """Number of pods, or else of hosts."""
        return self.world_size // self.ranks_per_group

    @property
    def job_ranks(self) -> int:
        """Number of ranks of the whole job."""
        return self.world_size if self.job is None else self.job.num_ranks

    @property
    def device_tier(self) -> Tier:
        """The tier where a rank's fused tables live: HBM, or DDR on a host without accelerators."""
        return tier_of_devices(self.hardware, self.hbm_bytes_by_rank)

    def has_tier(self, tier: Tier) -> bool:
        """Whether every rank has some of a tier."""
        if tier is Tier.HBM and self.hbm_bytes_by_rank is not None:
            return min(self.hbm_bytes_by_rank) > 0
        return self.tier_bytes(0, tier) > 0

    def tier_bytes(self, rank: int, tier: Tier) -> float:
        """Bytes of ``tier`` that ``rank`` has, before reservations."""
        if tier is Tier.HBM and self.hbm_bytes_by_rank is not None:
            return self.hbm_bytes_by_rank[rank]
        name = f"{tier.label}_bytes"
        if tier is self.device_tier:
            return self.hardware.quantity(name, needed_for=f"the {tier.label} capacity of every rank").value
        return self.hardware.numbers[name].value if self.hardware.has(name) else 0.0

    def bytes_by_rank(self) -> Floats:
        """Return what :meth:`tier_bytes` says of every rank and tier, shape (world_size, num_tiers)."""
        found = np.tile([self.tier_bytes(0, tier) for tier in Tier], (self.world_size, 1))
        if self.hbm_bytes_by_rank is not None:
            found[:, Tier.HBM] = self.hbm_bytes_by_rank
        return found

    def phase_slowdown(self) -> Floats:
        """Return what multiplies each rank's seconds of each phase, shape (world_size, NUM_PHASES).

        1 / relative speed in the compute phases, 1 in the others: a rank of half the speed takes
        twice as long to look rows up and to update them, and sends and receives as fast as any.
        """
        slowdown = np.ones((self.world_size, NUM_PHASES))
        if self.relative_speed_by_rank is not None:
            slowdown[:, COMPUTE_PHASES] = 1.0 / np.array(self.relative_speed_by_rank)[:, None]
        return slowdown

    def host_of(self, rank: int) -> int:
        """The host of a rank."""
        return rank // self.ranks_per_host

    def group_of(self, rank: int) -> int:
        """The pod of a rank, or else its host."""
        return rank // self.ranks_per_group
