"""Laws of collectives as JSON: written by a fit, read by profiles and specs.

A document has ``format``, ``name``, ``description``, and the lists ``domain`` and ``hosts`` of laws, each with what it
rests on. Numbers have six digits, far more than any measurement carries.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cost_models.hardware.laws.domain_law import OPERATIONS, RANK_FACTORS, SIZES, Basis, DomainLaw, Term
from cost_models.hardware.laws.hosts_law import HostsLaw, Ramp
from cost_models.hardware.laws.intervals import Intervals, SizeInterval
from cost_models.hardware.laws.law_set import LawSet
from cost_models.vocabulary import Evidence

FORMAT = "shardplan-collective-laws-1"
MAX_LAWS, MAX_TERMS, MAX_TEXT = 200, 200, 500
#: As of numbers of hardware: beyond it products of sizes, ranks and seconds are infinite.
MAX_NUMBER = 10**18
Made = TypeVar("Made")


class InvalidLaw(ValueError):
    """A document of laws breaks a rule; ``place`` is a JSON pointer into it."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"{place or '/'}: {reason}")


def law_document(laws: LawSet) -> dict[str, object]:
    """Return the document of some laws."""
    return {
        "format": FORMAT,
        "name": laws.name,
        "description": laws.description,
        "domain": [_domain_document(law) for law in laws.domain],
        "hosts": [_hosts_document(law) for law in laws.hosts],
    }


def parse_laws(document: object) -> LawSet:
    """Return the laws of a document.

    Raises
    ------
    InvalidLaw
        A member is missing, unknown or of another type; or a law has a part that no collective has. The place and the
        number are in the text.
    """
    top = _members(document, "", {"format", "name", "description", "domain", "hosts"})
    if top["format"] != FORMAT:
        raise InvalidLaw("/format", f'expected "{FORMAT}"')
    return LawSet(
        name=_text(top["name"], "/name"),
        description=_text(top["description"], "/description"),
        domain=_each(top["domain"], "/domain", MAX_LAWS, _domain_law),
        hosts=_each(top["hosts"], "/hosts", MAX_LAWS, _hosts_law),
    )


def _domain_document(law: DomainLaw) -> dict[str, object]:
    terms = [
        {
            "of": term.of,
            **({} if math.isinf(term.up_to_bytes) else {"up_to_bytes": term.up_to_bytes}),
            "times": term.times,
            "seconds": _rounded(term.seconds),
        }
        for term in law.terms
    ]
    return {"operation": law.operation, "terms": terms, **_basis_document(law.basis, law.intervals)}


def _hosts_document(law: HostsLaw) -> dict[str, object]:
    cap = (
        {} if math.isinf(law.host_bytes_per_second) else {"host_bytes_per_second": _rounded(law.host_bytes_per_second)}
    )
    return {
        "operation": law.operation,
        "start_seconds": _rounded(law.start_seconds),
        "hop_seconds": _rounded(law.hop_seconds),
        "ramps": [
            {"up_to_bytes": ramp.up_to_bytes, "seconds_per_byte": _rounded(ramp.seconds_per_byte)} for ramp in law.ramps
        ],
        "nic_bytes_per_second": _rounded(law.nic_bytes_per_second),
        **cap,
        "num_hosts": list(law.hosts),
        **_basis_document(law.basis, law.intervals),
    }


def _basis_document(basis: Basis, intervals: Intervals) -> dict[str, object]:
    return {
        "library": basis.library,
        "num_ranks": list(basis.ranks),
        "least_bytes": basis.least_bytes,
        "most_bytes": basis.most_bytes,
        "num_rows": basis.num_rows,
        "evidence": basis.evidence.label,
        "source": basis.source,
        "interval": [
            {"from_bytes": one.from_bytes, "lower": round(one.lower, 4), "upper": round(one.upper, 4)}
            for one in intervals.sizes
        ],
        "interval_per_doubling_beyond": round(intervals.beyond, 4),
    }


_BASIS = {
    "operation", "library", "num_ranks", "least_bytes", "most_bytes", "num_rows", "evidence", "source", "interval",
    "interval_per_doubling_beyond",
}  # fmt: skip


def _domain_law(document: object, place: str) -> DomainLaw:
    members = _members(document, place, _BASIS | {"terms"})
    basis, intervals = _basis(members, place)
    terms = _each(members["terms"], f"{place}/terms", MAX_TERMS, _term)
    return _checked(
        place,
        lambda: DomainLaw(
            operation=_choice(members["operation"], OPERATIONS, f"{place}/operation"),
            terms=terms,
            basis=basis,
            intervals=intervals,
        ),
    )


def _term(document: object, place: str) -> Term:
    members = _members(document, place, {"of", "times", "seconds"}, {"up_to_bytes"})
    return Term(
        of=_choice(members["of"], SIZES, f"{place}/of"),
        up_to_bytes=_number(members["up_to_bytes"], f"{place}/up_to_bytes") if "up_to_bytes" in members else math.inf,
        times=_choice(members["times"], tuple(RANK_FACTORS), f"{place}/times"),
        seconds=_number(members["seconds"], f"{place}/seconds"),
    )


def _hosts_law(document: object, place: str) -> HostsLaw:
    numbers = {"start_seconds", "hop_seconds", "nic_bytes_per_second"}
    members = _members(document, place, _BASIS | numbers | {"ramps", "num_hosts"}, {"host_bytes_per_second"})
    basis, intervals = _basis(members, place)
    read = {name: _number(members[name], f"{place}/{name}") for name in numbers}
    cap = members.get("host_bytes_per_second")
    ramps = _each(members["ramps"], f"{place}/ramps", MAX_TERMS, _ramp)
    return _checked(
        place,
        lambda: HostsLaw(
            operation=_choice(members["operation"], OPERATIONS, f"{place}/operation"),
            ramps=ramps,
            host_bytes_per_second=math.inf if cap is None else _number(cap, f"{place}/host_bytes_per_second"),
            hosts=_each(members["num_hosts"], f"{place}/num_hosts", MAX_TERMS, _count),
            basis=basis,
            intervals=intervals,
            **read,
        ),
    )


def _ramp(document: object, place: str) -> Ramp:
    members = _members(document, place, {"up_to_bytes", "seconds_per_byte"})
    return Ramp(
        up_to_bytes=_number(members["up_to_bytes"], f"{place}/up_to_bytes"),
        seconds_per_byte=_number(members["seconds_per_byte"], f"{place}/seconds_per_byte"),
    )


def _basis(members: Mapping[str, Any], place: str) -> tuple[Basis, Intervals]:
    basis = _checked(
        place,
        lambda: Basis(
            library=_text(members["library"], f"{place}/library"),
            ranks=_each(members["num_ranks"], f"{place}/num_ranks", MAX_TERMS, _count),
            least_bytes=_number(members["least_bytes"], f"{place}/least_bytes"),
            most_bytes=_number(members["most_bytes"], f"{place}/most_bytes"),
            num_rows=_count(members["num_rows"], f"{place}/num_rows"),
            evidence=Evidence.from_label(_choice(members["evidence"], Evidence.labels(), f"{place}/evidence")),
            source=_text(members["source"], f"{place}/source"),
        ),
    )
    sizes = _each(members["interval"], f"{place}/interval", MAX_TERMS, _interval)
    beyond = _number(members["interval_per_doubling_beyond"], f"{place}/interval_per_doubling_beyond")
    return basis, _checked(f"{place}/interval", lambda: Intervals(sizes=sizes, beyond=beyond))


def _interval(document: object, place: str) -> SizeInterval:
    members = _members(document, place, {"from_bytes", "lower", "upper"})
    numbers = [_number(members[name], f"{place}/{name}") for name in ("from_bytes", "lower", "upper")]
    return _checked(place, lambda: SizeInterval(*numbers))


def _checked(place: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except InvalidLaw:
        raise
    except ValueError as error:
        raise InvalidLaw(place, str(error)) from None


def _members(document: object, place: str, required: set[str], optional: set[str] = frozenset()) -> Mapping[str, Any]:  # type: ignore[assignment]
    if not isinstance(document, dict):
        raise InvalidLaw(place, "expected an object")
    if missing := sorted(required - document.keys()):
        raise InvalidLaw(place, f"lacks {', '.join(missing)}")
    if unknown := sorted(document.keys() - required - optional):
        raise InvalidLaw(
            place, f"has {len(unknown)} unknown members; known are {', '.join(sorted(required | optional))}"
        )
    return document


def _each(value: object, place: str, most: int, read: Callable[[object, str], Any]) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) > most:
        raise InvalidLaw(place, f"expected a list of at most {most}")
    return tuple(read(one, f"{place}/{index}") for index, one in enumerate(value))


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise InvalidLaw(place, f"expected a text of 1 to {MAX_TEXT} characters")
    return value


def _choice(value: object, choices: tuple[str, ...], place: str) -> str:
    if value not in choices:
        raise InvalidLaw(place, f"expected one of {', '.join(choices)}")
    return str(value)


def _number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise InvalidLaw(place, f"expected a finite number of at most {MAX_NUMBER:.0e}")
    return float(value)


def _count(value: object, place: str) -> int:
    if type(value) is not int or not 1 <= value <= MAX_NUMBER:
        raise InvalidLaw(place, f"expected an integer >= 1 of at most {MAX_NUMBER:.0e}")
    return value


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
