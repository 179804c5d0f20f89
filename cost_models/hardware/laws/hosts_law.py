r"""The law of a collective over hosts (or over several NVLink domains).

N hosts of G ranks each, n = N G, m bytes of one rank's whole buffer:

.. math::

    t_{all-to-all} &= a + b (N-1) G + \sum_k c_k \min(m, K_k) + m \, G \frac{N-1}{N} \Big/ \min(G \, nic, cap)

    t_{ring} &= a + b \, n + \sum_k c_k \min(m, K_k) + k \, m \frac{n-1}{n} \Big/ \min(G \, nic, cap)

An all-to-all has (N-1)/N of the bytes leave through a rank's network card, and a start for every remote peer. The
other three collectives are hierarchical rings (k = 2 of an all-reduce, else 1): the cards of a host carry a ring side
by side, and every rank is a hop. ``cap`` is what a host lets through in all, however many cards it has.

References
----------
nccl-tests, ``doc/PERFORMANCE.md``; NVIDIA/nccl-tests issue 130 (all-to-all over hosts: N/(N-1) x network card).
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats
from cost_models.hardware.laws.domain_law import Basis
from cost_models.hardware.laws.intervals import Intervals
from cost_models.vocabulary import Evidence

#: Bytes per second: a byte at a lower rate takes longer than any step, and 0 has no time at all.
LEAST_RATE = 1.0
#: How often a ring moves the buffer.
ROUNDS = {"reduce_scatter": 1.0, "all_gather": 1.0, "all_reduce": 2.0}

#: Intervals widen by this for another ring: all-reduces of many hosts go by trees, and rings of 80 ranks took twice as
#: long as such an all-reduce says.
OTHER_RING = 2.0


class Ramp(NamedTuple):
    """What the first bytes of a message cost beyond their bandwidth."""

    up_to_bytes: float
    seconds_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsLaw:
    """Seconds of one collective among ranks of several hosts."""

    operation: str
    start_seconds: float
    hop_seconds: float  # for every remote peer (all-to-all) or rank (rings)
    ramps: tuple[Ramp, ...]
    nic_bytes_per_second: float
    host_bytes_per_second: float  # limit of all ranks of a host together; infinite if none was seen
    hosts: tuple[int, ...]  # numbers of hosts measured, increasing
    basis: Basis
    intervals: Intervals

    def __post_init__(self) -> None:
        """Refuse what no collective does."""
        parts = {"start_seconds": self.start_seconds, "hop_seconds": self.hop_seconds}
        parts |= {f"ramps/{i}/seconds_per_byte": ramp.seconds_per_byte for i, ramp in enumerate(self.ramps)}
        for name, value in parts.items():
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a number >= 0, not {value:g}")
        for name in ("nic_bytes_per_second", "host_bytes_per_second"):
            if not getattr(self, name) >= LEAST_RATE:
                raise ValueError(f"{name}: expected a rate >= {LEAST_RATE:g}, not {getattr(self, name):g}")
        if not self.hosts or list(self.hosts) != sorted(set(self.hosts)) or self.hosts[0] < 2:
            raise ValueError("hosts: expected increasing numbers of hosts >= 2, at least one")

    def whole_start_seconds(self, num_hosts: float, ranks_per_host: float) -> float:
        """Return the start of one collective with all its hops."""
        hops = (num_hosts - 1) * ranks_per_host if self.operation == "all_to_all" else num_hosts * ranks_per_host
        return self.start_seconds + self.hop_seconds * hops

    def pace(self, message_bytes: Floats, num_hosts: float, ranks_per_host: float) -> Floats:
        """Return seconds per byte of a message that has started, of the shape of ``message_bytes``."""
        size = np.maximum(np.asarray(message_bytes, dtype=np.float64), np.finfo(np.float64).tiny)
        pace = np.full_like(size, self._bandwidth(num_hosts, ranks_per_host))
        with np.errstate(over="ignore"):
            for ramp in self.ramps:
                pace += ramp.seconds_per_byte * np.minimum(1.0, ramp.up_to_bytes / size)
        return pace

    def _bandwidth(self, num_hosts: float, ranks_per_host: float) -> float:
        rate = min(ranks_per_host * self.nic_bytes_per_second, self.host_bytes_per_second)
        if self.operation == "all_to_all":
            return ranks_per_host * (num_hosts - 1) / num_hosts / rate
        ranks = num_hosts * ranks_per_host
        return ROUNDS[self.operation] * (ranks - 1) / ranks / rate

    def doublings_beyond(self, num_hosts: float) -> float:
        """Return how many doublings a cluster lies beyond the most hosts measured; 0 if it does not."""
        return max(0.0, math.log2(num_hosts / self.hosts[-1]))

    def evidence_at(self, largest_message: float, num_hosts: float, num_ranks: float) -> Evidence:
        """Return the evidence: beyond the sizes, hosts and ranks measured, a law is an estimate."""
        inside = self.hosts[0] <= num_hosts <= self.hosts[-1]
        return self.basis.evidence_at(largest_message, num_ranks) if inside else Evidence.ESTIMATED

    def of_other_ring(self, operation: str) -> "HostsLaw":
        """Return the law of another ring over the same links: an estimate, of which starts are passes of the buffer."""
        passes = ROUNDS[operation] / ROUNDS[self.operation]
        return replace(
            self,
            operation=operation,
            start_seconds=self.start_seconds * passes,
            hop_seconds=self.hop_seconds * passes,
            ramps=tuple(Ramp(ramp.up_to_bytes, ramp.seconds_per_byte * passes) for ramp in self.ramps),
            basis=replace(self.basis, evidence=Evidence.ESTIMATED),
            intervals=self.intervals.wider(OTHER_RING),
        )

    def of_part_of_hosts(self, share: float) -> "HostsLaw":
        """Return the law of ranks that are a share of each host, whose others send as much at the same time."""
        return replace(self, host_bytes_per_second=max(self.host_bytes_per_second * share, LEAST_RATE))

    def faster(self, factor: float) -> "HostsLaw":
        """Return the law of network cards that are ``factor`` times as fast; starts, and links inside hosts, stay."""
        ramps = tuple(Ramp(ramp.up_to_bytes, ramp.seconds_per_byte / factor) for ramp in self.ramps)
        return replace(self, nic_bytes_per_second=self.nic_bytes_per_second * factor, ramps=ramps)
