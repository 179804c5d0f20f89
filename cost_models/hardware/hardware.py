"""Hardware profiles: numbers that know their unit, evidence and source.

A profile is data (``cost_models/hardware/profiles/*.json``, read by :mod:`cost_models.hardware.profiles_loader`).
A number that a profile lacks raises, it is never guessed; a number that the user states
replaces the profile's and has the evidence GIVEN.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from cost_models.errors import MissingHardwareNumber
from cost_models.vocabulary import Evidence

#: Collectives that a profile may have curves of, as the keys of ``Hardware.intra_host_curves``.
COLLECTIVES = ("alltoall", "reduce_scatter", "all_gather", "all_reduce")

#: Rates of single uses of the link to host memory, where the general one is not enough.
_USES_OF_LINK = tuple(f"host_link_{use}_bytes_per_second" for use in ("gather", "update", "cache"))

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One number of a profile."""

    value: float
    unit: str  # "bytes", "bytes_per_second", "operations_per_second" or "seconds"
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

    def __post_init__(self) -> None:
        """Reject numbers that no hardware has."""
        if not 0 <= self.value < float("inf"):
            raise ValueError("Expected a finite value >= 0.")
        if self.unit.endswith("_per_second") and self.value == 0:
            raise ValueError("Expected a rate > 0; leave out what is not known.")
        if self.rows is not None and self.rows < 1:
            raise ValueError("Expected rows >= 1.")
        if self.relative_error is not None and not 0 < self.relative_error < 1:
            raise ValueError("Expected relative_error between 0 and 1.")


#: Stands for a missing number while missing numbers are collected.
_PLACEHOLDER = Quantity(value=1.0, unit="", evidence=Evidence.ESTIMATED, source="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Bus bandwidth of one collective by message size, as measured.

    ``message_bytes`` is the whole buffer of one rank and ``bus_bytes_per_second`` follows
    nccl-tests: bytes / time x (n-1)/n, for all-reduce x 2(n-1)/n.
    """

    message_bytes: tuple[float, ...]  # increasing
    bus_bytes_per_second: tuple[float, ...]  # of the same length
    num_ranks: int  # ranks that took part in the measurement
    evidence: Evidence
    source: str

    def __post_init__(self) -> None:
        """Check that the curve is one."""
        if len(self.message_bytes) < 1 or len(self.message_bytes) != len(self.bus_bytes_per_second):
            raise ValueError("Expected as many message sizes as bandwidths, at least one.")
        if any(b <= a for a, b in zip(self.message_bytes, self.message_bytes[1:], strict=False)):
            raise ValueError("Expected increasing message sizes.")
        if not (self.message_bytes[0] > 0 and self.message_bytes[-1] < float("inf")):
            raise ValueError("Expected finite message sizes > 0.")
        if not all(0 < rate < float("inf") for rate in self.bus_bytes_per_second):
            raise ValueError("Expected finite bandwidths > 0.")
        if self.num_ranks < 2:
            raise ValueError("Expected num_ranks >= 2.")


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
    #: by collective (COLLECTIVES), inside one host
    intra_host_curves: Mapping[str, Curve] = field(default_factory=dict)
    description: str = ""  # what machine this is, for people
    devices: tuple[str, ...] = ()  # names that drivers have for its accelerators; () if none is known
    #: missing numbers by name, of a copy that collects them instead of raising
    _missing: dict[str, MissingHardwareNumber] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the mappings read-only."""
        object.__setattr__(self, "numbers", MappingProxyType(dict(self.numbers)))
        object.__setattr__(self, "intra_host_curves", MappingProxyType(dict(self.intra_host_curves)))

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

        Curves are named ``<collective>_curve``. A plan lists the numbers that its prices
        used, not everything that is known of a machine.
        """
        read: set[str] = set()
        copy = replace(self)
        object.__setattr__(copy, "numbers", _Recorded(self.numbers, read, "{}"))
        object.__setattr__(copy, "intra_host_curves", _Recorded(self.intra_host_curves, read, "{}_curve"))
        return copy, read

    def with_overrides(self, values: Mapping[str, float], units: Mapping[str, str]) -> "Hardware":
        """Return a copy where the user's values replace the profile's, with evidence GIVEN.

        A given ``intra_host_bytes_per_second`` also replaces the measured curves: the user
        knows better than a curve that was taken on another machine. A given ``host_link_bytes_per_second``
        likewise replaces the rates of single uses of the link, of which it is the general one.
        """
        replaced = _USES_OF_LINK if "host_link_bytes_per_second" in values else ()
        numbers = {name: number for name, number in self.numbers.items() if name not in replaced}
        for name, value in values.items():
            numbers[name] = Quantity(
                value=float(value), unit=units[name], evidence=Evidence.GIVEN, source="hardware.overrides of the spec"
            )
        curves = {} if "intra_host_bytes_per_second" in values else dict(self.intra_host_curves)
        return replace(self, numbers=numbers, intra_host_curves=curves)
