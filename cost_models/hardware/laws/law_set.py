"""Laws of collectives that belong together, by operation, reach and library."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cost_models.hardware.laws.domain_law import DomainLaw
from cost_models.hardware.laws.hosts_law import HostsLaw
from cost_models.vocabulary import Evidence

#: Intervals of a law widen by this on another machine with the same links.
OTHER_MACHINE = 1.25

Law = TypeVar("Law", DomainLaw, HostsLaw)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawSet:
    """The laws of one platform. Of several libraries the first stands for all."""

    name: str
    description: str
    domain: tuple[DomainLaw, ...] = ()
    hosts: tuple[HostsLaw, ...] = ()

    def as_estimate(self) -> "LawSet":
        """Return the laws as those of another machine of the same kind: estimates, with wider intervals."""
        return replace(
            self, domain=tuple(_estimate(law) for law in self.domain), hosts=tuple(_estimate(law) for law in self.hosts)
        )

    def domain_law(self, operation: str, library: str = "") -> DomainLaw | None:
        """Return the law inside a domain, of this library if there is one, else the first."""
        return _pick(self.domain, operation, library)

    def hosts_law(self, operation: str, library: str = "") -> HostsLaw | None:
        """Return the law over hosts."""
        return _pick(self.hosts, operation, library)


def _estimate(law: Law) -> Law:
    basis = replace(law.basis, evidence=Evidence.ESTIMATED)
    return replace(law, basis=basis, intervals=law.intervals.wider(OTHER_MACHINE))


def _pick(laws: Sequence[Law], operation: str, library: str) -> Law | None:
    found = [law for law in laws if law.operation == operation]
    return next((law for law in found if law.basis.library == library), found[0] if found else None)
