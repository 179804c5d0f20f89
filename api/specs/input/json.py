"""Bytes from outside to a checked document, or a list of issues with JSON pointers.

Two readers look at the bytes: the standard library's for duplicate keys, and pydantic's strict one for everything else.
Of the input, numbers alone are repeated in a message, and a message fits a body and a file alike.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from api.schemas.base import StrictModel
from api.specs.input.messages import NEED_VALUE, describe
from planner.errors import InvalidProblem, Issue

MAX_ISSUES = 50
MAX_QUOTED_LENGTH = 80
MAX_UNKNOWN_KEYS = 200_000
#: Rows of keys that a reader knows to be right: documents have thousands of objects, and few kinds of them.
_MAX_SHAPES = 100
_KEY = itemgetter(0)
_QUOTABLE = re.compile(r"[A-Za-z0-9_.\-]{1,80}")
#: Codes of documents that are not read beyond their bytes.
UNREADABLE = frozenset({"not-json", "duplicate-key"})
#: How alike a key and a field must be for one to be a slip of the other.
_LEAST_LIKENESS = 0.7
#: A whole number of more digits than Python reads.
_LONG_WHOLE = r"(?<![\d.eE+\-])-?\d{4301,}(?![\d.eE])"
_STRINGS_AND_BRACES = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?|[{}]', re.DOTALL)
_KEYS_HINT, _NUMBERS_HINT = "name every known key once", "write finite numbers of ordinary length"
_CODES = {"missing": "missing-field", "extra_forbidden": "unknown-field"}

Model = TypeVar("Model", bound=StrictModel)


class RejectedDocument(InvalidProblem):
    """A document with issues: the first of them, and how many there are in all."""

    def __init__(self, issues: Sequence[Issue], num_issues: int | None = None) -> None:
        super().__init__(tuple(issues[:MAX_ISSUES]))
        self.num_issues = len(issues) if num_issues is None else num_issues


def pointer(parts: Iterable[str | int]) -> str:
    """Return the RFC 6901 JSON pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def is_quotable(text: str) -> bool:
    """Whether a text from outside, not checked yet, may be repeated in an answer."""
    return _QUOTABLE.fullmatch(text) is not None


def quoted(name: str) -> str:
    """Return a checked name in quotes, cut to 80 characters."""
    return f'"{name}"' if len(name) <= MAX_QUOTED_LENGTH else f'"{name[:MAX_QUOTED_LENGTH]}..."'


def parse_document(raw: bytes, model: type[Model]) -> Model:
    """Check ``raw`` against ``model``.

    Raises
    ------
    RejectedDocument
        With one issue where the bytes are no JSON that can be trusted, else with one issue
        for each broken rule of the model (the first 50 of them, and their number).
    """
    check_json(raw, model)
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as error:
        details = form_errors(error, read_json(raw))
        raise RejectedDocument([form_issue(detail, model) for detail in details[:MAX_ISSUES]], len(details)) from None


def form_errors(error: ValidationError, content: object) -> list[ErrorDetails]:
    """Return what pydantic found in ``content``; raises ``RejectedDocument`` if it could not read the JSON itself.

    Those that are shown have the number or the text at their place as ``input``, where a message needs it: with all
    inputs, which pydantic copies, one body could fill the memory.
    """
    details = error.errors(include_url=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        message, hint = describe(details[0])
        raise _not_json(message, hint)
    for detail in details[:MAX_ISSUES]:
        if detail["type"] in NEED_VALUE:
            detail["input"] = _scalar_at(content, detail["loc"])
    return details


def _scalar_at(content: Any, location: Iterable[str | int]) -> str | int | float | None:
    """Return the text or the number at a place of a document; the place may end with the name of a form of it."""
    for part in location:
        if isinstance(content, dict):
            content = content.get(part)
        elif isinstance(content, list):
            content = content[part] if isinstance(part, int) and part < len(content) else None
    return content if isinstance(content, str | int | float) else None


def read_json(raw: bytes) -> Any:
    """Return the value of a JSON text; ``None`` for what is none, of which ``parse_document`` says what is wrong."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


class _ObjectReader:
    """Rejects objects that name a key twice, and documents that are mostly unknown keys.

    The second rule bounds the number of issues that one body can cause.
    """

    def __init__(self, text: str, known: frozenset[str]) -> None:
        self._text, self._known = text, known
        self._right: set[tuple[str, ...]] = set()
        self._num_unknown = 0

    def __call__(self, pairs: list[tuple[str, object]]) -> None:
        """Look at one object; its members are not needed."""
        shape = tuple(map(_KEY, pairs))
        if shape in self._right:
            return
        keys = frozenset(shape)
        if len(keys) != len(shape):
            twice, position = next(_repeated_keys(self._text))
            name = f'"{twice}"' if is_quotable(twice) else "a key"
            message = f"{name} stands twice in one object ({_place(self._text, position)})"
            raise _not_json(message, _KEYS_HINT, code="duplicate-key")
        num_unknown = len(keys - self._known)
        self._num_unknown += num_unknown
        if self._num_unknown > MAX_UNKNOWN_KEYS:
            raise _not_json(f"more than {MAX_UNKNOWN_KEYS} unknown fields", _KEYS_HINT, code="unknown-field")
        if num_unknown == 0 and len(self._right) < _MAX_SHAPES:
            self._right.add(shape)


def check_json(raw: bytes, model: type[BaseModel]) -> None:
    """Reject bytes that two JSON readers could take for two different documents, and documents of unknown fields.

    Raises
    ------
    RejectedDocument
        With one issue, at the whole document.
    """
    if not raw.strip():
        raise _not_json("the document is empty", "a JSON object is expected")
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise _not_json("the document starts with a byte order mark", "write UTF-8 without one")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_json(f"the document is not UTF-8 (byte {error.start})", "write UTF-8") from None
    if "\x00" in text:
        raise _not_json("the document holds NUL characters", "write UTF-8, not UTF-16")
    reader = _ObjectReader(text, field_names(model))
    try:
        json.loads(text, object_pairs_hook=reader, parse_constant=partial(_no_constant, text))
    except json.JSONDecodeError as error:
        where = _place(text, error.pos)
        raise _not_json(f"the document is not JSON ({where})", "check the syntax at that place") from None
    except RecursionError:
        raise _not_json("the document is nested too deeply", "a spec needs fewer than 10 levels") from None
    except ValueError:  # its message has the number
        where = _place(text, _first_outside_strings(text, _LONG_WHOLE))
        raise _not_json(f"the document holds a number with too many digits ({where})", _NUMBERS_HINT) from None


def _no_constant(text: str, name: str) -> None:
    """Reject the first NaN or Infinity of a text, which is JSON up to there."""
    where = _place(text, _first_outside_strings(text, re.escape(name)))
    raise _not_json(f"{name} is not JSON ({where})", _NUMBERS_HINT)


def _repeated_keys(text: str) -> Iterator[tuple[str, int]]:
    """Yield each key that its object has already, and where it stands again."""
    objects: list[set[str]] = []
    for token in _STRINGS_AND_BRACES.finditer(text):
        if token[0] == "{":
            objects.append(set())
        elif token[0] == "}":
            objects.pop()
        elif token["colon"]:
            key = json.loads(token["string"]) if "\\" in token["string"] else token["string"][1:-1]
            if key in objects[-1]:
                yield key, token.start()
            objects[-1].add(key)


def _first_outside_strings(text: str, pattern: str) -> int:
    """Return where a pattern first matches a JSON text outside of its strings; the end if nowhere."""
    found = re.finditer(rf'"(?:[^"\\]|\\.)*"|(?P<found>{pattern})', text, re.DOTALL)
    return next((match.start() for match in found if match["found"]), len(text))


def _place(text: str, position: int) -> str:
    """Return the line and the column of a position, both from 1."""
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - text.rfind(chr(10), 0, position)}"


def _not_json(message: str, hint: str, *, code: str = "not-json") -> RejectedDocument:
    return RejectedDocument([Issue(code=code, pointer="", message=message, hint=hint)])


def form_issue(detail: ErrorDetails, model: type[StrictModel]) -> Issue:
    """Turn an error of pydantic into an issue that repeats no text of the input."""
    kind, location = detail["type"], list(detail["loc"])
    message, hint = describe(detail)
    if kind == "extra_forbidden":
        likely = likely_field(detail, model)
        hint = f"did you mean {likely}?" if likely else f"remove it; the fields are listed {model.listed}"
    if location and isinstance(location[-1], str) and not is_quotable(location[-1]):
        location = location[:-1]
    code = _CODES.get(kind, "invalid-value")
    return Issue(code=code, pointer=pointer(location), message=message, hint=hint)


def likely_field(detail: ErrorDetails, model: type[BaseModel]) -> str | None:
    """Return the field of the same object that an unknown field is probably a slip of."""
    *parents, key = detail["loc"]
    if not is_quotable(str(key)):
        return None
    close = difflib.get_close_matches(str(key), _fields_at(model, parents), n=1, cutoff=_LEAST_LIKENESS)
    return close[0] if close else None


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> tuple[str, ...]:
    """Return the fields of the object at a place of a document, for suggestions."""
    here = [model]
    for part in location:
        if isinstance(part, str):
            annotations = [found.model_fields[part].annotation for found in here if part in found.model_fields]
            here = [found for annotation in annotations for found in models_in(annotation)]
    return tuple(name for found in here for name in found.model_fields)


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the models of an annotation such as ``Annotated[list[TableSpec], ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in models_in(part)]


@cache
def field_names(model: type[BaseModel]) -> frozenset[str]:
    """Return all field names of a model and of the models inside it."""
    inner = [found for field in model.model_fields.values() for found in models_in(field.annotation)]
    return frozenset(model.model_fields).union(*map(field_names, inner))


def is_plan(document: object) -> bool:
    """Whether what is no spec is one of our plans."""
    return isinstance(document, dict) and "plan_digest" in document and "model" not in document


def is_spec(document: object) -> bool:
    """Whether what is no plan is a spec."""
    return isinstance(document, dict) and "model" in document and "tables" not in document
