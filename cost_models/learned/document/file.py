"""The file of a learned model: one JSON document with a format, a version and a digest over all the rest.

Members: ``format``, ``format_version``, ``name``, ``device``, ``compute`` and ``exchange`` (each may be null),
``trained_on`` (what rows, how many, which libraries), ``figures`` (held-out errors, for people) and ``digest``, the
SHA-256 of the canonical JSON of the others. There is no code in it, and reading it runs none.
"""

import hashlib
import json
from collections.abc import Mapping

from cost_models.errors import InvalidModelFile
from cost_models.learned.document.compute import fitted_document, parse_fitted
from cost_models.learned.document.exchange import exchange_document, parse_exchange
from cost_models.learned.document.fields import members
from cost_models.learned.document.reported_figures import checked_figures, checked_trained_on
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.model import LearnedModel

FORMAT = "shardplan-cost-model"
FORMAT_VERSION = 2
MAX_FILE_BYTES = 4 * 2**20
MAX_NAME_LENGTH = 100
_MEMBERS = ("format", "format_version", "name", "device", "compute", "exchange", "trained_on", "figures", "digest")


def model_document(
    *,
    name: str,
    device: str,
    fitted: FittedCompute | None,
    exchange: LearnedExchange | None,
    trained_on: Mapping[str, object],
    figures: Mapping[str, object],
) -> dict[str, object]:
    """Return the document of a model, its digest included."""
    document: dict[str, object] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": name,
        "device": device,
        "compute": fitted_document(fitted) if fitted else None,
        "exchange": exchange_document(exchange) if exchange else None,
        "trained_on": dict(trained_on),
        "figures": dict(figures),
    }
    return document | {"digest": document_digest(document)}


def document_digest(document: Mapping[str, object]) -> str:
    """Return the digest of all members but ``digest``."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def parse_model(content: bytes) -> LearnedModel:
    """Return the model of a file's content; raises ``InvalidModelFile`` with the place and the reason."""
    if len(content) > MAX_FILE_BYTES:
        raise InvalidModelFile("file", f"has {len(content)} bytes, more than {MAX_FILE_BYTES}")
    try:
        document = json.loads(content, parse_constant=_reject_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidModelFile("file", "is not JSON") from error
    top = members(document, _MEMBERS, "file")
    if top["format"] != FORMAT:
        raise InvalidModelFile("format", f'expected "{FORMAT}"')
    if top["format_version"] != FORMAT_VERSION or isinstance(top["format_version"], bool):
        raise InvalidModelFile("format_version", f"expected {FORMAT_VERSION}")
    if top["digest"] != _digest(top):
        raise InvalidModelFile("digest", "does not match the content: the file is damaged or was edited")
    try:
        return LearnedModel(
            name=_text(top["name"], "name"),
            device=_text(top["device"], "device"),
            digest=str(top["digest"]),
            fitted=None if top["compute"] is None else parse_fitted(top["compute"]),
            exchange=None if top["exchange"] is None else parse_exchange(top["exchange"]),
            trained_on=checked_trained_on(top["trained_on"]),
            figures=checked_figures(top["figures"]),
        )
    except ValueError as error:
        raise InvalidModelFile("file", str(error)) from error


def model_bytes(document: Mapping[str, object]) -> bytes:
    """Return a document as the content of a file."""
    return (json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _reject_constant(name: str) -> object:
    raise InvalidModelFile("file", f"has {name}, which is no number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidModelFile("file", "has an object with one name twice")
    return found


def _digest(document: Mapping[str, object]) -> str:
    try:
        return document_digest(document)
    except (ValueError, RecursionError) as error:  # 1e999 reads as infinity; a lone surrogate has no UTF-8
        raise InvalidModelFile("file", "has a number or a text that JSON cannot write") from error


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME_LENGTH or not value.isprintable():
        raise InvalidModelFile(place, f"expected a printable text of 1 to {MAX_NAME_LENGTH} characters")
    return value
