"""Rules of single fields of a spec that its schema cannot tell: names of parts.

They read plain JSON, so that a document whose form is broken elsewhere is told of them at once.
"""

import difflib
from collections.abc import Iterator, Mapping

from api.schemas.spec import HardwareOverrides
from api.specs.input.json import is_quotable
from api.specs.references.cost_model import LEARNED, SPELLINGS, is_reference
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import profile_ids
from cost_models.registry import cost_model_names
from planner.errors import Issue
from planner.solver.partitioners.registry import partitioner_names

_LISTS_BY_RANK = tuple(HardwareOverrides.model_fields)
#: Nothing is slower, and what takes bytes at such a rate is still a number of seconds.
_LEAST_RATE = 1
_MAX_COMPARED_LENGTH = 80


def single_fields(spec: object, base: str) -> Iterator[Issue]:
    """Yield what is wrong with single fields of a spec, whatever the form of the rest."""
    hardware = _object(spec, "hardware")
    overrides = _object(hardware, "overrides")
    yield from check_overrides({key: overrides[key] for key in overrides if key not in _LISTS_BY_RANK}, base)
    names = (hardware.get("profile"), _object(spec).get("cost_model"), _object(spec, "solver").get("partitioner"))
    yield from check_names_of_parts(*names, base)


def check_names_of_parts(profile: object, cost_model: object, partitioner: object, base: str) -> Iterator[Issue]:
    """Yield the names of parts that do not exist; what is no text is not judged."""
    for where, what, name, known in (
        ("/cost_model", "cost model", cost_model, (*cost_model_names(), LEARNED)),
        ("/solver/partitioner", "partitioner", partitioner, partitioner_names()),
        ("/hardware/profile", "hardware profile", profile, profile_ids()),
    ):
        if what == "cost model" and isinstance(name, str) and name.startswith(LEARNED):
            if not is_reference(name):
                yield Issue(
                    code="unknown-cost-model",
                    pointer=base + where,
                    message="no name of a learned cost model",
                    hint=f"spell it {SPELLINGS}",
                )
        elif isinstance(name, str) and name not in known:
            yield Issue(
                code=f"unknown-{what.replace(' ', '-')}",
                pointer=base + where,
                message=f"no {what} of this name",
                hint=names_hint(name, known),
            )


def names_hint(name: str, known: tuple[str, ...]) -> str:
    """Return the way out where a name is none of the known ones: all of these, before them those that are close."""
    close = difflib.get_close_matches(name[:_MAX_COMPARED_LENGTH], known, n=3)
    suggestion = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{suggestion}use one of {', '.join(known)}"


def check_overrides(values: Mapping[str, object], base: str) -> Iterator[Issue]:
    """Yield the overrides that name no number of a profile, and rates that nothing has."""
    for name, value in values.items():
        where = f"{base}/hardware/overrides" + (f"/{name}" if is_quotable(name) else "")
        if name not in FIELDS:
            close = difflib.get_close_matches(name[:_MAX_COMPARED_LENGTH], FIELDS, n=1)
            hint = f"did you mean {close[0]}?" if close else "the names are listed in docs/spec.md and under /docs"
            message = "no hardware number of this name"
            yield Issue(code="unknown-field", pointer=where, message=message, hint=hint)
        elif isinstance(value, int | float) and not FIELDS[name].may_be_zero and value < _LEAST_RATE:
            message = f"a rate below {_LEAST_RATE} {FIELDS[name].unit.replace('_', ' ')}"
            yield Issue(code="invalid-value", pointer=where, message=message, hint="leave out what is not known")


def _object(value: object, key: str | None = None) -> Mapping[str, object]:
    """Return an object, or the object behind a key of it; an empty one where there is none."""
    if key is not None:
        value = _object(value).get(key)
    return value if isinstance(value, dict) else {}
