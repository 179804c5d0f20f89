"""Reads the hardware profiles that ship with the package, and checks them as strictly as a spec.

One JSON document per profile in ``cost_models/hardware/profiles``: ``id``, ``family``,
``description``, ``devices`` (names that drivers have for its accelerators), ``ranks_per_host``,
``numbers`` (name -> value, unit, evidence, source, note, rows, relative_error) and ``intra_host_curves`` (collective ->
message sizes, bus bandwidths, ranks, evidence, source).

The profile ``custom`` is not a file: it has no numbers of its own.
"""

import json
from collections.abc import Mapping
from importlib.resources import files

from cost_models.errors import UnknownProfile
from cost_models.hardware.hardware import COLLECTIVES, Curve, Hardware, Quantity
from cost_models.hardware.profile_fields import FIELDS
from cost_models.vocabulary import Evidence

CUSTOM = "custom"
FAMILIES = ("gpu", "tpu", "cpu", "inference", "custom")

#: Ranks of a host of the profile "custom" where the spec does not say: the usual size of an
#: accelerator host. It bounds nothing, since "custom" describes no machine.
CUSTOM_RANKS_PER_HOST = 8


class InvalidProfile(ValueError):
    """A profile document breaks the rules; a defect of the package, not of a request."""


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
    text = (files("cost_models") / "hardware" / "profiles" / f"{profile}.json").read_text(encoding="utf-8")
    return parse_profile(json.loads(text), expected_id=profile)


def parse_profile(document: object, *, expected_id: str) -> Hardware:
    """Turn a profile document into a value; raises ``InvalidProfile`` for whatever is unknown or missing."""
    required = {"id", "family", "description", "ranks_per_host", "numbers"}
    top = _members(document, "profile", required, {"devices", "intra_host_curves"})
    if top["id"] != expected_id:
        raise InvalidProfile(f"Expected id {expected_id}.")
    if top["family"] not in FAMILIES:
        raise InvalidProfile(f"Expected family to be one of {', '.join(FAMILIES)}.")
    ranks_per_host = top["ranks_per_host"]
    if type(ranks_per_host) is not int or ranks_per_host < 1:
        raise InvalidProfile("Expected ranks_per_host to be an integer >= 1.")
    return Hardware(
        profile=expected_id,
        family=_text(top["family"], "family"),
        ranks_per_host=ranks_per_host,
        description=_text(top["description"], "description"),
        devices=_texts(top.get("devices", []), "devices"),
        numbers={name: _quantity(name, value) for name, value in _mapping(top["numbers"], "numbers").items()},
        intra_host_curves={
            name: _curve(name, value)
            for name, value in _mapping(top.get("intra_host_curves", {}), "intra_host_curves").items()
        },
    )


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


def _curve(name: str, document: object) -> Curve:
    """One entry of ``intra_host_curves``."""
    if name not in COLLECTIVES:
        raise InvalidProfile(f"Unknown collective {name}.")
    members = _members(
        document, name, {"message_bytes", "bus_bytes_per_second", "num_ranks", "evidence", "source"}, set()
    )
    num_ranks = members["num_ranks"]
    if type(num_ranks) is not int or num_ranks < 2:
        raise InvalidProfile(f"Expected num_ranks of {name} to be an integer >= 2.")
    try:
        return Curve(
            message_bytes=_numbers(members["message_bytes"], name),
            bus_bytes_per_second=_numbers(members["bus_bytes_per_second"], name),
            num_ranks=num_ranks,
            evidence=_evidence(members["evidence"], name),
            source=_text(members["source"], f"source of {name}"),
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


def _numbers(value: object, what: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise InvalidProfile(f"Expected {what} to hold lists of numbers.")
    return tuple(_number(item, what) for item in value)


def _evidence(value: object, what: str) -> Evidence:
    try:
        return Evidence.from_label(_text(value, f"evidence of {what}"))
    except KeyError as error:
        raise InvalidProfile(f"Expected evidence of {what} to be one of {', '.join(Evidence.labels())}.") from error
