"""Reads the hardware profiles that ship with the package, and checks them as strictly as a spec.

One JSON document per profile in ``cost_models/hardware/profiles``: ``id``, ``family``,
``description``, ``devices`` (names that drivers have for its accelerators), ``ranks_per_host``,
``numbers`` (name -> value, unit, evidence, source, note, rows, relative_error), ``collective_laws`` (names of sets in
``cost_models/hardware/laws/sets``), ``laws_of_kind`` (sets of other machines with the same links, taken as estimates)
and ``domain_ranks`` where several hosts share a domain.

The profile ``custom`` is not a file: it has no numbers of its own.
"""

import functools
import json
from collections.abc import Mapping
from importlib.resources import files

from cost_models.errors import UnknownProfile
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.laws.shipped import load_law_set
from cost_models.hardware.profile_fields import FIELDS
from cost_models.vocabulary import Evidence

CUSTOM = "custom"
FAMILIES = ("gpu", "tpu", "cpu", "inference", "custom")

#: Ranks of a host of the profile "custom" where the spec does not say: the usual size of an
#: accelerator host. It bounds nothing, since "custom" describes no machine.
CUSTOM_RANKS_PER_HOST = 8


class InvalidProfile(ValueError):
    """A profile document breaks the rules; a defect of the package, not of a request."""


@functools.cache
def profile_ids() -> tuple[str, ...]:
    """Return the ids of all profiles, sorted, ``custom`` last."""
    names = (entry.name for entry in (files("cost_models") / "hardware" / "profiles").iterdir())
    return (*sorted(name.removesuffix(".json") for name in names if name.endswith(".json")), CUSTOM)


def load_profile(profile: str) -> Hardware:
    """Return the hardware profile of this id.

    Raises
    ------
    UnknownProfile
        No profile has this id.
    """
    if profile == CUSTOM:
        return Hardware(
            profile=CUSTOM,
            family="custom",
            ranks_per_host=CUSTOM_RANKS_PER_HOST,
            numbers={},
            description="No numbers of its own: every number comes from hardware.overrides",
        )
    known = profile_ids()
    if profile not in known:
        raise UnknownProfile(profile, known)
    return _shipped(profile)


@functools.cache
def _shipped(profile: str) -> Hardware:
    """Return a profile that ships; read once, as every spec names one and values are immutable."""
    text = (files("cost_models") / "hardware" / "profiles" / f"{profile}.json").read_text(encoding="utf-8")
    return parse_profile(json.loads(text), expected_id=profile)


def parse_profile(document: object, *, expected_id: str) -> Hardware:
    """Turn a profile document into a value; raises ``InvalidProfile`` for whatever is unknown or missing."""
    required = {"id", "family", "description", "ranks_per_host", "numbers"}
    top = _members(document, "profile", required, {"devices", "collective_laws", "laws_of_kind", "domain_ranks"})
    if top["id"] != expected_id:
        raise InvalidProfile(f"Expected id {expected_id}.")
    if top["family"] not in FAMILIES:
        raise InvalidProfile(f"Expected family to be one of {', '.join(FAMILIES)}.")
    ranks_per_host = top["ranks_per_host"]
    if type(ranks_per_host) is not int or ranks_per_host < 1:
        raise InvalidProfile("Expected ranks_per_host to be an integer >= 1.")
    domain_ranks = top.get("domain_ranks", 0)
    if type(domain_ranks) is not int or domain_ranks < 0 or domain_ranks % ranks_per_host:
        raise InvalidProfile("Expected domain_ranks to be a multiple of ranks_per_host.")
    hardware = Hardware(
        profile=expected_id,
        family=_text(top["family"], "family"),
        ranks_per_host=ranks_per_host,
        description=_text(top["description"], "description"),
        devices=_texts(top.get("devices", []), "devices"),
        numbers={name: _quantity(name, value) for name, value in _mapping(top["numbers"], "numbers").items()},
        domain_ranks=domain_ranks,
    )
    for member in ("laws_of_kind", "collective_laws"):
        for name in reversed(_texts(top.get(member, []), member)):  # of an operation the first law counts
            try:
                laws = load_law_set(name)
            except KeyError:
                raise InvalidProfile(f"No {member} {name} ship.") from None
            hardware = hardware.with_laws(laws.as_estimate() if member == "laws_of_kind" else laws)
    return hardware


def _quantity(name: str, document: object) -> Quantity:
    """One entry of ``numbers``."""
    if name not in FIELDS:
        raise InvalidProfile(f"Unknown number {name}.")
    members = _members(document, name, {"value", "unit", "evidence", "source"}, {"note", "rows", "relative_error"})
    rows = members.get("rows")
    if rows is not None and type(rows) is not int:
        raise InvalidProfile(f"Expected rows of {name} to be an integer.")
    if members["unit"] != FIELDS[name].unit:
        raise InvalidProfile(f"Expected {name} in {FIELDS[name].unit}.")
    try:
        return Quantity(
            value=_number(members["value"], name),
            unit=FIELDS[name].unit,
            evidence=_evidence(members["evidence"], name),
            source=_text(members["source"], f"source of {name}"),
            note=_text(members["note"], f"note of {name}") if "note" in members else "",
            rows=rows,
            relative_error=_number(members["relative_error"], name) if "relative_error" in members else None,
        )
    except ValueError as error:
        raise InvalidProfile(f"{name}: {error}") from error


def _mapping(document: object, what: str) -> Mapping[str, object]:
    if not isinstance(document, dict):
        raise InvalidProfile(f"Expected {what} to be an object.")
    return document


def _members(document: object, what: str, required: set[str], optional: set[str]) -> Mapping[str, object]:
    """Return an object's members after checking that none is missing or unknown."""
    members = _mapping(document, what)
    if missing := sorted(required - members.keys()):
        raise InvalidProfile(f"{what} lacks {', '.join(missing)}.")
    if unknown := sorted(members.keys() - required - optional):
        raise InvalidProfile(f"{what} has unknown members {', '.join(unknown)}.")
    return members


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidProfile(f"Expected {what} to be a text.")
    return value


def _texts(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidProfile(f"Expected {what} to be a list.")
    return tuple(_text(item, what) for item in value)


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidProfile(f"Expected {what} to be a number.")
    return float(value)


def _evidence(value: object, what: str) -> Evidence:
    try:
        return Evidence.from_label(_text(value, f"evidence of {what}"))
    except KeyError as error:
        raise InvalidProfile(f"Expected evidence of {what} to be one of {', '.join(Evidence.labels())}.") from error
