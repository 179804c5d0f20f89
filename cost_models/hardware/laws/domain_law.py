r"""The law of a collective in one NVLink domain (or on one host): seconds over message bytes and ranks.

.. math:: t(m, n) = \sum_i c_i \, r_i(n) \, s_i(m, n), \qquad c_i \ge 0

with m bytes of one rank's whole buffer (as nccl-tests counts them), n ranks, and

- sizes s: ``once`` 1; ``bytes`` min(m, bend); ``piece`` min(m / n, bend). Bends stand where protocols and channels
  change their ways; without a bend the term goes on for ever, which is a bandwidth;
- rank factors r: :data:`RANK_FACTORS`. ``share`` (n-1)/n is the part of a buffer that leaves its rank.

Terms of ``once`` are the start. No coefficient is negative, so that neither a byte nor a start is ever gained, and a
byte of a larger message never costs more than one of a smaller message.

References
----------
Hockney, "The communication challenge for MPP", 1994 (start and rate). Thakur, Rabenseifner and Gropp, "Optimization of
collective communication operations in MPICH", 2005 (log2 n and n - 1 rounds). nccl-tests, ``doc/PERFORMANCE.md``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats
from cost_models.hardware.laws.intervals import Intervals
from cost_models.vocabulary import Evidence

#: Collectives that laws are of.
OPERATIONS = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce")
SIZES = ("once", "bytes", "piece")
#: GPUs of a tray of an NVL72 rack, and of one socket of a server of eight.
_TRAY_RANKS = 4
_SOCKET_RANKS = 4

RANK_FACTORS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "one": lambda n: n**0,
        "rounds": lambda n: np.log2(n),
        "hops": lambda n: n - 1,
        "pairs": lambda n: n * n,
        "share": lambda n: (n - 1) / n,
        #: PCIe: a third rank no longer shares the switch of the first two, nor a fifth the socket of the first four
        "beyond_pair": lambda n: np.maximum(n - 2, 0.0),
        "beyond_socket": lambda n: np.maximum(n - _SOCKET_RANKS, 0.0),
        #: schedules of an all-to-all are made for powers of two: what they leave idle of other groups
        "padding": lambda n: 2 ** np.ceil(np.log2(n)) / n - 1,
        #: runtimes that take another way inside a tray
        "one_tray": lambda n: (n <= _TRAY_RANKS).astype(np.float64),
    }
)


class Term(NamedTuple):
    """One term of a law."""

    of: str  # one of SIZES
    up_to_bytes: float  # the bend; infinite without one, and of "once"
    times: str  # one of RANK_FACTORS
    seconds: float  # >= 0: per byte, of "once" as such

    def column(self, message_bytes: Floats, num_ranks: Floats) -> Floats:
        """Return what one unit of the coefficient adds, shape of both arguments broadcast."""
        size = np.ones_like(message_bytes)
        if self.of != "once":
            counted = message_bytes if self.of == "bytes" else message_bytes / num_ranks
            size = np.minimum(counted, self.up_to_bytes)
        found: Floats = size * RANK_FACTORS[self.times](num_ranks)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a law rests on."""

    library: str  # what ran the collectives, with its version if known
    ranks: tuple[int, ...]  # group sizes measured, increasing
    least_bytes: float  # of a message
    most_bytes: float
    num_rows: int
    evidence: Evidence
    source: str

    def __post_init__(self) -> None:
        """Check that the range is one."""
        if not self.ranks or list(self.ranks) != sorted(set(self.ranks)) or self.ranks[0] < 2:
            raise ValueError("expected increasing numbers of ranks >= 2, at least one")
        if not 0 < self.least_bytes <= self.most_bytes < math.inf:
            raise ValueError(f"expected 0 < least_bytes <= most_bytes, not {self.least_bytes:g}, {self.most_bytes:g}")
        if self.num_rows < 1:
            raise ValueError(f"expected num_rows >= 1, not {self.num_rows}")

    def doublings_away(self, num_ranks: float) -> float:
        """Return how many doublings a group lies from the nearest measured group, beyond them or between; 0 of one."""
        return min(abs(math.log2(num_ranks / measured)) for measured in self.ranks)

    def evidence_at(self, largest_message: float, num_ranks: float) -> Evidence:
        """Return the evidence for a message: beyond the sizes and groups measured, a law is an estimate."""
        inside = self.ranks[0] <= num_ranks <= self.ranks[-1] and largest_message <= self.most_bytes
        return self.evidence if inside else Evidence.ESTIMATED


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLaw:
    """Seconds of one collective among the ranks of one domain."""

    operation: str  # one of OPERATIONS
    terms: tuple[Term, ...]
    basis: Basis
    intervals: Intervals

    def __post_init__(self) -> None:
        """Refuse what no collective does: negative parts, and bytes that cost nothing however many there are."""
        for index, term in enumerate(self.terms):
            if not 0 <= term.seconds < math.inf:
                raise ValueError(f"term {index}: expected seconds >= 0, not {term.seconds:g}")
            if not term.up_to_bytes > 0:
                raise ValueError(f"term {index}: expected up_to_bytes > 0, not {term.up_to_bytes:g}")
        if not any(term.of != "once" and math.isinf(term.up_to_bytes) and term.seconds > 0 for term in self.terms):
            raise ValueError("expected a bandwidth: a term of bytes without up_to_bytes and with seconds > 0")

    def start_seconds(self, num_ranks: int) -> float:
        """Return the start of one collective."""
        n = np.array([float(num_ranks)])
        return sum(float(t.seconds * t.column(n, n)[0]) for t in self.terms if t.of == "once")

    def pace(self, message_bytes: Floats, num_ranks: int) -> Floats:
        """Return seconds per byte of a message that has started, of the shape of ``message_bytes``."""
        n = float(num_ranks)
        factor = np.array([n])
        size = np.maximum(np.asarray(message_bytes, dtype=np.float64), np.finfo(np.float64).tiny)
        pace = np.zeros_like(size)
        with np.errstate(over="ignore"):
            for term in self.terms:
                if term.of == "once":
                    continue
                parts = n if term.of == "piece" else 1.0
                filled = np.minimum(1.0, term.up_to_bytes * parts / size)
                pace += term.seconds * RANK_FACTORS[term.times](factor)[0] / parts * filled
        return pace

    def bus_bytes_per_second(self, message_bytes: Floats, num_ranks: int) -> Floats:
        """Return bus bandwidths as nccl-tests prints them, start included: bytes / seconds x share of a buffer."""
        share = (2.0 if self.operation == "all_reduce" else 1.0) * (num_ranks - 1) / num_ranks
        seconds = self.start_seconds(num_ranks) + message_bytes * self.pace(message_bytes, num_ranks)
        rates: Floats = message_bytes * share / seconds
        return rates

    def faster(self, factor: float) -> "DomainLaw":
        """Return the law of links that are ``factor`` times as fast; starts stay."""
        terms = tuple(
            term if term.of == "once" else term._replace(seconds=term.seconds / factor) for term in self.terms
        )
        return DomainLaw(operation=self.operation, terms=terms, basis=self.basis, intervals=self.intervals)
