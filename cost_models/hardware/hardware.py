"""Hardware profiles: numbers that know their unit, evidence and source.

A profile is data (``cost_models/hardware/profiles/*.json``, read by :mod:`cost_models.hardware.profiles_loader`).
A number that a profile lacks raises, it is never guessed; a number that the user states
replaces the profile's and has the evidence GIVEN.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.laws.domain_law import DomainLaw
from cost_models.hardware.laws.hosts_law import HostsLaw
from cost_models.hardware.laws.law_set import LawSet
from cost_models.intervals.factors import number_error
from cost_models.vocabulary import Evidence

#: Rates of single uses of the link to host memory, where the general one is not enough.
_USES_OF_LINK = tuple(f"host_link_{use}_bytes_per_second" for use in ("gather", "update", "cache"))
#: Sizes at which :attr:`Hardware.intra_host_curves` shows a law.
_SHOWN_BYTES = tuple(2.0**power for power in range(16, 31, 2))
#: Names of operations in ``intra_host_curves``, where they differ.
_SHOWN_NAMES = {"all_to_all": "alltoall"}

#: Numbers of links among ranks have intervals by the size of a message: ``Network`` applies them.
_LINK_PREFIXES = ("intra_host_", "inter_host_")

Value = TypeVar("Value")


class Limit(Enum):
    """How hardware is taken: as stated, or every number as fast or as slow as it may be."""

    NONE = "none"
    FASTEST = "fastest"
    SLOWEST = "slowest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One number of a profile."""

    value: float
    unit: str  # "bytes", "bytes_per_second", "operations_per_second", "flops_per_second", "seconds" or "share"
    evidence: Evidence
    source: str  # who says so, in words that stand alone
    note: str = ""
    rows: int | None = None  # measured rows that it rests on, where that is known
    #: by how much of itself it may be wrong where it is used, as far as held-out rows or neighbouring devices show
    relative_error: float | None = None

    @property
    def basis(self) -> str:
        """Source, note, rows and error in one line."""
        parts = [self.source, self.note]
        if self.rows is not None:
            parts.append(f"rests on {self.rows} measured rows")
        if self.relative_error is not None:
            parts.append(f"known to about {100 * self.relative_error:g}%")
        return "; ".join(part for part in parts if part)

    def at_limit(self, limit: Limit) -> "Quantity":
        """Return the fastest or slowest value within the limits of a rate or a time; other numbers stay as they are."""
        is_rate = self.unit.endswith("_per_second")
        if limit is Limit.NONE or not (is_rate or self.unit == "seconds"):
            return self
        factor = 1 + (number_error() if self.relative_error is None else self.relative_error)
        grows = is_rate == (limit is Limit.FASTEST)
        return replace(self, value=self.value * factor if grows else self.value / factor)

    def __post_init__(self) -> None:
        """Reject numbers that no hardware has."""
        if not 0 <= self.value < float("inf"):
            raise ValueError("Expected a finite value >= 0.")
        if self.unit.endswith("_per_second") and self.value == 0:
            raise ValueError("Expected a rate > 0; leave out what is not known.")
        if self.unit == "share" and not 0 < self.value <= 1:
            raise ValueError("Expected a share in (0, 1]; leave out what is not known.")
        if self.rows is not None and self.rows < 1:
            raise ValueError("Expected rows >= 1.")
        if self.relative_error is not None and not 0 < self.relative_error < 1:
            raise ValueError("Expected relative_error between 0 and 1.")


#: Stands for a missing number while missing numbers are collected.
_PLACEHOLDER = Quantity(value=1.0, unit="", evidence=Evidence.ESTIMATED, source="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Bus bandwidth of one collective by message size: how a law is shown.

    ``message_bytes`` is the whole buffer of one rank and ``bus_bytes_per_second`` follows
    nccl-tests: bytes / time x (n-1)/n, for all-reduce x 2(n-1)/n; the start is in the time.
    """

    message_bytes: tuple[float, ...]
    bus_bytes_per_second: tuple[float, ...]  # of the same length
    num_ranks: int
    evidence: Evidence
    source: str


class _Recorded(Mapping[str, Value]):
    """A mapping that records which of its keys were read."""

    def __init__(self, values: Mapping[str, Value], read: set[str], name: str) -> None:
        self._values, self._read, self._name = values, read, name

    def __getitem__(self, key: str) -> Value:
        value = self._values[key]
        self._read.add(self._name.format(key))
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._values  # no read: whether a number exists reveals nothing of its value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One accelerator, its host and its links.

    Numbers (all per rank unless the name says otherwise): ``hbm_bytes``, ``ddr_bytes``,
    ``hbm_bytes_per_second`` (row gathers of full-width rows), ``ddr_bytes_per_second``,
    ``host_link_bytes_per_second``, ``intra_host_bytes_per_second`` (all-to-all),
    ``inter_host_bytes_per_second`` (all-to-all), and more that profiles may add; the list
    with units is ``cost_models.hardware.profile_fields.FIELDS``.
    """

    profile: str
    family: str  # "gpu", "tpu", "cpu", "inference", "custom"
    ranks_per_host: int  # of the profile; a spec may use fewer
    numbers: Mapping[str, Quantity]
    #: measured laws by operation: inside one domain, and over several
    domain_laws: Mapping[str, DomainLaw] = field(default_factory=dict)
    hosts_laws: Mapping[str, HostsLaw] = field(default_factory=dict)
    #: ranks that share the links of a domain, whole hosts of them (an NVL72 rack: 72); 0: those of a host
    domain_ranks: int = 0
    description: str = ""  # what machine this is, for people
    devices: tuple[str, ...] = ()  # names that drivers have for its accelerators; () if none is known
    limit: Limit = Limit.NONE  # of a copy that :meth:`at_limit` returned
    #: missing numbers by name, of a copy that collects them instead of raising
    _missing: dict[str, MissingHardwareNumber] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the mappings read-only."""
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))
        object.__setattr__(self, "domain_laws", MappingProxyType(dict(self.domain_laws)))
        object.__setattr__(self, "hosts_laws", MappingProxyType(dict(self.hosts_laws)))

    @property
    def intra_host_curves(self) -> Mapping[str, Curve]:
        """The laws inside a domain as bus bandwidths by message size, of as many ranks as a host has."""
        ranks = max(self.ranks_per_host, 2)
        sizes = np.array(_SHOWN_BYTES)
        return {
            _SHOWN_NAMES.get(operation, operation): Curve(
                message_bytes=_SHOWN_BYTES,
                bus_bytes_per_second=tuple(law.bus_bytes_per_second(sizes, ranks).tolist()),
                num_ranks=ranks,
                evidence=law.basis.evidence_at(sizes[-1], ranks),
                source=law.basis.source,
            )
            for operation, law in sorted(self.domain_laws.items())
        }

    def has(self, name: str) -> bool:
        """Whether the profile has a number of this name."""
        return name in self.numbers

    def quantity(self, name: str, *, needed_for: str) -> Quantity:
        """Return a number, or raise ``MissingHardwareNumber`` naming what it was needed for."""
        found = self.numbers.get(name)
        if found is not None:
            return found
        error = MissingHardwareNumber(self.profile, name, needed_for)
        if self._missing is None:
            raise error
        self._missing.setdefault(name, error)
        return _PLACEHOLDER

    def collecting_missing(self) -> tuple["Hardware", Mapping[str, MissingHardwareNumber]]:
        """Return a copy that never raises, and the missing numbers that pricing with the copy will find.

        Each call to :meth:`quantity` declares that a formula needs a number. One pricing with the copy therefore finds
        every missing number, in the order of the formulas, and there is no second list of needs that could disagree
        with the formulas. The copy returns 1 for a missing number: prices of it mean nothing.
        """
        missing: dict[str, MissingHardwareNumber] = {}
        copy = replace(self)
        object.__setattr__(copy, "_missing", missing)
        return copy, missing

    def recorded(self) -> tuple["Hardware", set[str]]:
        """Return a copy, and a set that collects the names of all numbers read from the copy.

        Laws are named ``<operation>_law`` and ``<operation>_hosts_law``. A plan lists the numbers that its prices
        used, not everything that is known of a machine.
        """
        read: set[str] = set()
        copy = replace(self)
        object.__setattr__(copy, "numbers", _Recorded(self.numbers, read, "{}"))
        object.__setattr__(copy, "domain_laws", _Recorded(self.domain_laws, read, "{}_law"))
        object.__setattr__(copy, "hosts_laws", _Recorded(self.hosts_laws, read, "{}_hosts_law"))
        return copy, read

    def at_limit(self, limit: Limit) -> "Hardware":
        """Return a copy with every rate and time at its limit, all at once; prices of it are limits of prices.

        Links among ranks keep their numbers and laws: ``Network`` takes them at the limit by the size of a message.
        """
        if limit is Limit.NONE:
            return self
        numbers = {
            name: number if name.startswith(_LINK_PREFIXES) else number.at_limit(limit)
            for name, number in self.numbers.items()
        }
        return replace(self, numbers=numbers, limit=limit)

    def with_overrides(self, values: Mapping[str, float], units: Mapping[str, str]) -> "Hardware":
        """Return a copy where the user's values replace the profile's, with evidence GIVEN.

        A given ``intra_host_bytes_per_second`` also replaces the laws inside a domain, and a given
        ``inter_host_bytes_per_second`` those over hosts: the user knows better than a law of another machine. A given
        ``host_link_bytes_per_second`` likewise replaces the rates of single uses of the link, of which it is the
        general one.
        """
        replaced = _USES_OF_LINK if "host_link_bytes_per_second" in values else ()
        numbers = {name: number for name, number in self.numbers.items() if name not in replaced}
        for name, value in values.items():
            numbers[name] = Quantity(
                value=float(value), unit=units[name], evidence=Evidence.GIVEN, source="hardware.overrides of the spec"
            )
        domain_laws = {} if "intra_host_bytes_per_second" in values else dict(self.domain_laws)
        hosts_laws = {} if "inter_host_bytes_per_second" in values else dict(self.hosts_laws)
        return replace(self, numbers=numbers, domain_laws=domain_laws, hosts_laws=hosts_laws)

    def with_laws(self, laws: LawSet) -> "Hardware":
        """Return a copy with the laws of a set in place of those of the same operation and reach."""
        domain = {law.operation: law for law in reversed(laws.domain)}
        hosts = {law.operation: law for law in reversed(laws.hosts)}
        return replace(self, domain_laws=dict(self.domain_laws) | domain, hosts_laws=dict(self.hosts_laws) | hosts)
