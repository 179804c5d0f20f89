"""Options with which a key or a webhook is made."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from api.cli.errors import BadInput

Request = TypeVar("Request", bound=BaseModel)


def choices(given: Sequence[str], known: Sequence[str], kind: str) -> list[str]:
    """Return the values of an option that is repeated or has commas, sorted; raises ``BadInput`` for an unknown one."""
    values = [part.strip() for text in given for part in text.split(",")]
    unknown = [value for value in values if value not in known]
    if unknown:
        raise BadInput(f"no {kind} {unknown[0][:40]!r}; {kind}s are {', '.join(known)}")
    return sorted(set(values))


def named_request(model: type[Request], **fields: object) -> Request:
    """Return a request of which all but the name is checked; raises ``BadInput``."""
    try:
        return model.model_validate(fields)
    except ValidationError:
        raise BadInput("--name takes 1 to 200 printable ASCII characters, the first a letter or a digit") from None
