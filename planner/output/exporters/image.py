"""Parts of the plan document that show domain values field by field, under the same names."""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

from cost_models.vocabulary import Code

_D = TypeVar("_D")
_Convert = Callable[[Any], object]


def image_of(definition: type[_D], value: object, **given: object) -> _D:
    """Return the part of the plan document that shows a domain value.

    A field has the value of the attribute of its name, in the form that its type in the definition asks for: codes as
    labels, integers rounded, domain values as parts of the document. ``given`` has the fields without an attribute.
    """
    fields = {
        name: given[name] if name in given else convert(getattr(value, name))
        for name, convert in _converters(cast("type", definition))
    }
    return cast("_D", fields)


@cache
def _converters(definition: type) -> tuple[tuple[str, _Convert], ...]:
    return tuple((name, _converter(annotation)) for name, annotation in get_type_hints(definition).items())


def _converter(annotation: Any) -> _Convert:
    if is_typeddict(annotation):
        return lambda value: image_of(annotation, value)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        convert = _converter(next(one for one in arguments if one is not NoneType))
        return lambda value: None if value is None else convert(value)
    if origin is list:
        convert = _converter(arguments[0])
        return lambda values: [convert(value) for value in values]
    if origin is dict:
        convert = _converter(arguments[1])
        return lambda values: {_label(key): convert(value) for key, value in values.items()}
    return round if annotation is int else _label


def _label(value: Any) -> Any:
    """Return the label of a code; any other value as it is."""
    return value.label if isinstance(value, Code) else value
