"""Numbers of a query: only what people write as a number is read as the number."""

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from cost_models.text.read_number import finite_number, whole_number


def _strict_whole(value: object) -> object:
    """Return a value that is no text, or the whole number that it is; pydantic shows the error."""
    if isinstance(value, str) and whole_number(value) is None:
        raise PydanticCustomError("int_parsing", "Input should be a whole number")
    return value


def _strict_number(value: object) -> object:
    """Return a value that is no text, or the finite number that it is; pydantic shows the error."""
    if isinstance(value, str) and finite_number(value) is None:
        raise PydanticCustomError("float_parsing", "Input should be a finite number")
    return value


#: For parameters: stands after ``Query``, whose limits a schema then states as those of a number.
WHOLE_NUMBER = BeforeValidator(_strict_whole)
NUMBER = BeforeValidator(_strict_number)
