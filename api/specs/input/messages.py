"""What is wrong with a field, and the way out, in our own words: of the input, numbers alone are repeated."""

import re

from pydantic_core import ErrorDetails

from api.schemas.base import DIGEST_PATTERN, NAME_PATTERN, STATISTICS_PATTERN, TAG_PATTERN, TIME_PATTERN
from api.specs.input.known_names import nearest_names
from cost_models.text.number_text import digits_text
from cost_models.text.read_number import finite_number
from planner.domain.formats.compact_form import RANKS_PATTERN

_REFERENCE = "docs/spec.md and /docs describe every field"
_PLAIN = {
    "missing": ("this field is required", "add it"),
    "extra_forbidden": ("unknown field", "remove it; the fields are listed in /docs"),
    "int_parsing": ("expected a whole number", "write digits alone"),
    "float_parsing": ("expected a finite number", "write digits, such as 0.5"),
    "int_type": ("expected a whole number", "write digits alone, without quotes"),
    "int_from_float": ("expected a whole number", "write it without a fraction"),
    "float_type": ("expected a number", "write digits, without quotes"),
    "finite_number": ("expected a finite number", "leave out what is not known"),
    "bool_type": ("expected true or false", "write true or false, without quotes"),
    "string_type": ("expected a text", "write it in double quotes"),
    "list_type": ("expected a list", "write it in square brackets"),
    "model_type": ("expected an object", "write it in curly braces"),
    "dict_type": ("expected an object", "write it in curly braces"),
    "none_required": ("expected null", "write null, or leave the field out"),
}
#: Kind of error: what is wrong, and the way out, with the limit of the field.
_LIMITS = {
    "greater_than_equal": ("ge", "below the least value", "use at least {}"),
    "greater_than": ("gt", "not above the limit", "use more than {}"),
    "less_than_equal": ("le", "above the largest value", "use at most {}"),
    "less_than": ("lt", "not below the limit", "use less than {}"),
    "too_short": ("min_length", "too few items", "give at least {}"),
    "too_long": ("max_length", "too many items", "give at most {}"),
    "string_too_short": ("min_length", "the text is too short", "write at least {} characters"),
    "string_too_long": ("max_length", "the text is too long", "write at most {} characters"),
    "literal_error": ("expected", "not one of the values that are taken", "use {}"),
}
_PATTERNS = {
    NAME_PATTERN: "use letters, digits and _.:/@+#|,()[]-, and begin with a letter, a digit or an underscore",
    DIGEST_PATTERN: "a digest is sha256: and 64 digits 0-9 a-f",
    TAG_PATTERN: "a tag is 1 to 64 of a-z 0-9 . _ = -, such as team=ads",
    TIME_PATTERN: "write a time as in 2026-11-23T18:00:00Z",
    RANKS_PATTERN: "list the ranks in order, such as 0-1023 or 17,903,4-7",
    STATISTICS_PATTERN: "give the digest of statistics, and after # the name of a table where it differs",
}


#: Larger numbers are not repeated: no field takes them.
_MOST_REPEATED = 1e30
#: Kinds of errors whose messages depend on the value.
NEED_VALUE = frozenset({"int_type", "int_from_float", *_LIMITS})
_QUOTED = re.compile(r"'([^']*)'")


def describe(detail: ErrorDetails) -> tuple[str, str]:
    """Return what is wrong and the way out, for one error of pydantic.

    Where the value is a number (``input``), the message repeats it; a text is compared with the texts that are taken,
    and not repeated.
    """
    kind, limits, value = detail["type"], detail.get("ctx", {}), detail.get("input")
    number = _number(value)
    if kind in _PLAIN:
        message, hint = _PLAIN[kind]
        return f"{message}, not {number}" if number else message, hint
    if kind in _LIMITS:
        name, message, hint = _LIMITS[kind]
        hint = hint.format(limits[name])
        if kind == "literal_error" and isinstance(value, str):
            nearest = nearest_names(value, _QUOTED.findall(limits[name]))
            hint = f"did you mean {' or '.join(nearest)}? {hint}" if nearest else hint
        if kind in ("too_short", "too_long") and (length := limits.get("actual_length")) is not None:
            message += f" ({length})"
        return f"{number} is {message}" if number else message, hint
    if kind == "string_pattern_mismatch":
        pattern = limits["pattern"]
        return "the text has characters that are not taken here", _PATTERNS.get(pattern, f"write what fits {pattern}")
    message = detail["msg"].removeprefix("Value error, ")
    if kind == "json_invalid":
        return "the document is not JSON that can be read", message
    return message, _REFERENCE


_PARAMETERS = {
    "page_token": "take next_page_token of the page before, or leave it out for the first page",
    "cost_model": "take a reference that GET /v1/cost-models lists, or leave it out for the cost model of the spec",
}


def describe_parameter(detail: ErrorDetails) -> tuple[str, str]:
    """Return the same as ``describe`` for a parameter of an address: query, path or header."""
    value = detail.get("input")
    message, hint = describe({**detail, "input": finite_number(value) if isinstance(value, str) else value})
    name = str(detail["loc"][-1])
    if detail["type"] == "string_pattern_mismatch":
        message = "the value is not one that this parameter takes"
    return message, _PARAMETERS.get(name, "" if hint == _REFERENCE else hint)


def _number(value: object) -> str:
    """Return a number as a document has it, and nothing of any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST_REPEATED:
        return ""
    return str(value) if isinstance(value, int) else digits_text(value)
