"""Laws of collectives of round numbers."""

import math

from cost_models.hardware.laws.domain_law import Basis, DomainLaw, Term
from cost_models.hardware.laws.hosts_law import HostsLaw, Ramp
from cost_models.hardware.laws.intervals import Intervals, SizeInterval
from cost_models.hardware.laws.law_set import LawSet
from cost_models.vocabulary import Evidence


def basis(*ranks: int, library: str = "NCCL 2.29.2", evidence: Evidence = Evidence.MEASURED) -> Basis:
    """What a law rests on: messages of 1 kB to 1 GB."""
    return Basis(
        library=library,
        ranks=ranks,
        least_bytes=1e3,
        most_bytes=1e9,
        num_rows=100,
        evidence=evidence,
        source="a test bench",
    )


INTERVALS = Intervals(sizes=(SizeInterval(0.0, 0.8, 1.25), SizeInterval(1e6, 0.9, 1.1)), beyond=2.0)


def domain_law(operation: str = "all_to_all", ranks: tuple[int, ...] = (2, 4, 8)) -> DomainLaw:
    """10 us and 1 us a hop to start; 20 us for the first 100 kB; then 100 GB/s of what leaves a rank."""
    terms = (
        Term("once", math.inf, "one", 10e-6),
        Term("once", math.inf, "hops", 1e-6),
        Term("bytes", 1e5, "one", 20e-6 / 1e5),
        Term("bytes", math.inf, "share", 1e-11),
    )
    return DomainLaw(operation=operation, terms=terms, basis=basis(*ranks), intervals=INTERVALS)


def hosts_law(operation: str = "all_to_all", cap: float = math.inf) -> HostsLaw:
    """20 us and 4 us a hop to start; 1 ms for the first 10 MB; then 10 GB/s of a card."""
    return HostsLaw(
        operation=operation,
        start_seconds=20e-6,
        hop_seconds=4e-6,
        ramps=(Ramp(1e7, 1e-10),),
        nic_bytes_per_second=1e10,
        host_bytes_per_second=cap,
        hosts=(2, 4),
        basis=basis(16, 32),
        intervals=INTERVALS,
    )


def laws(*found: DomainLaw | HostsLaw) -> LawSet:
    """Return a set of some laws."""
    return LawSet(
        name="test",
        description="of a test",
        domain=tuple(law for law in found if isinstance(law, DomainLaw)),
        hosts=tuple(law for law in found if isinstance(law, HostsLaw)),
    )
