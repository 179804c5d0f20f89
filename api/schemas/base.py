"""What every document that comes from outside has in common: strict types, no unknown keys."""

import math
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

#: Names start with a letter, a digit or an underscore, so that none can be a formula in a
#: spreadsheet, a flag on a command line or a path that climbs.
NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.:/@+#|,()\[\]\-]*$"
MAX_NAME_LENGTH = 200
TITLE_PATTERN = r"^[A-Za-z0-9_][ -~]*$"
DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
TAG_PATTERN = "^[a-z0-9._=-]{1,64}$"
#: Times of RFC 3339.
TIME_PATTERN = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
#: A digest of statistics and, after #, the name of a table in them.
STATISTICS_PATTERN = rf"{DIGEST_PATTERN[:-1]}(#{NAME_PATTERN[1:-1]})?$"

#: Names of learned models are parts of addresses and of references; with the version, they are ids.
MODEL_NAME = r"[a-z0-9_][a-z0-9._-]{0,63}"
MODEL_ID = rf"{MODEL_NAME}@[1-9][0-9]{{0,8}}"

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]
Title = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=TITLE_PATTERN)]
Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
StatisticsReference = Annotated[str, Field(max_length=300, pattern=STATISTICS_PATTERN)]
ModulePath = Annotated[str, Field(max_length=MAX_NAME_LENGTH, pattern=r"^([A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*)?$")]
#: What a planner printed, with whatever stands around it in a log.
PrintOut = Annotated[str, Field(min_length=1, max_length=2**23)]

#: Whole bytes of answers: what is taken or needed is rounded up, what is there is rounded down.
BytesTaken = Annotated[int, BeforeValidator(math.ceil)]
BytesThere = Annotated[int, BeforeValidator(math.floor)]


def _moment(value: object) -> object:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


#: A time; of a record in seconds since the epoch, which is what is stored.
Moment = Annotated[datetime, BeforeValidator(_moment)]


class StrictModel(BaseModel):
    """A document from outside: no coercion, no unknown key, no NaN, no infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    #: Where a reader of the document, or of what is wrong with it, finds its fields.
    listed: ClassVar[str] = "under /docs of a server"


def fields_disagree(message: str, *names: str) -> PydanticCustomError:
    """Return the error of an object whose fields do not go together; ``names`` are those fields."""
    return PydanticCustomError("fields_disagree", "{message}", {"message": message, "fields": names})


class Document(BaseModel):
    """A document that the service itself writes."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, from_attributes=True)

    @classmethod
    def of(cls, record: object, **fields: object) -> Self:
        """Return the document of a record: the attributes that have the names of fields, and ``fields``."""
        attributes = {name: getattr(record, name) for name in cls.model_fields if hasattr(record, name)}
        return cls.model_validate({**attributes, **fields})
