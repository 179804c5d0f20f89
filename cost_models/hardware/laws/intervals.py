"""Intervals of a law: how far measured seconds lie from predicted ones by size, and of other groups farther."""

import math
from dataclasses import dataclass

#: A share of unseen measurements that intervals are made to hold.
COVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class SizeInterval:
    """Measured over predicted seconds of messages of ``from_bytes`` and more, up to the next interval."""

    from_bytes: float
    lower: float  # 0 < lower <= 1
    upper: float  # >= 1

    def __post_init__(self) -> None:
        """Check that the factors are ones."""
        if not (self.from_bytes >= 0 and 0 < self.lower <= 1 <= self.upper < math.inf):
            raise ValueError(
                f"expected 0 < lower <= 1 <= upper, not {self.lower:g}, {self.upper:g}, from {self.from_bytes:g} bytes"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Intervals by size, and what a doubling of the ranks away from the measured groups multiplies them by."""

    sizes: tuple[SizeInterval, ...]  # by from_bytes, increasing; the first holds for smaller messages as well
    beyond: float  # >= 1

    def __post_init__(self) -> None:
        """Check that there are some, in order."""
        starts = [one.from_bytes for one in self.sizes]
        if not starts or starts != sorted(set(starts)):
            raise ValueError("expected intervals by increasing from_bytes, at least one")
        if not 1 <= self.beyond < math.inf:
            raise ValueError(f"expected beyond >= 1, not {self.beyond:g}")

    def at(self, message_bytes: float, doublings: float) -> tuple[float, float]:
        """Return the factors of a message, so many doublings of the ranks away from what was measured (0: measured)."""
        found = [one for one in self.sizes if one.from_bytes <= message_bytes]
        here = found[-1] if found else self.sizes[0]
        wider = self.beyond**doublings
        return here.lower / wider, here.upper * wider

    def wider(self, factor: float) -> "Intervals":
        """Return intervals whose limits lie farther out by a factor."""
        sizes = tuple(SizeInterval(one.from_bytes, one.lower / factor, one.upper * factor) for one in self.sizes)
        return Intervals(sizes=sizes, beyond=self.beyond)
