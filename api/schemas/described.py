"""pydantic's view of documents that the planner defines: names, types, descriptions and examples come from there.

The planner may not import pydantic, so :mod:`planner.output.documents.plan` has plain ``TypedDict`` classes.
"""

from collections.abc import Callable, Container, Iterator
from functools import cache, partial, reduce
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions
from pydantic import BaseModel, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from api.schemas.base import Document
from planner.output.documents.field_example import Example

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)


class DefinedField(NamedTuple):
    """A field of a definition."""

    name: str
    type: Any
    description: str | None
    examples: list[object] | None
    is_required: bool

    @property
    def is_nullable(self) -> bool:
        """Whether null and absence mean the same."""
        return type(None) in get_args(self.type)


def fields_of(definition: type) -> Iterator[DefinedField]:
    """Yield the fields of a definition in its order."""
    for name, annotation in get_type_hints(definition, include_extras=True).items():
        is_required = get_origin(annotation) is not NotRequired
        hint = annotation if is_required else get_args(annotation)[0]
        about = getattr(hint, "__metadata__", ())
        yield DefinedField(
            name=name,
            type=get_args(hint)[0] if about else hint,
            description=next((one for one in about if isinstance(one, str)), None),
            examples=[one.value for one in about if isinstance(one, Example)] or None,
            is_required=is_required,
        )


def described_by(definition: type, *, others: Any = None) -> Callable[[type[Model]], type[Model]]:
    """Give the fields that a model declares the descriptions and examples of a definition.

    The model declares what it accepts of each field; its own descriptions have precedence. If ``others`` is a type, the
    model also has all other fields of the definition, optional and of that type, and may declare no field of its own;
    their schemas are those of the definition.
    """

    def describe(model: type[Model]) -> type[Model]:
        declared, hints = model.model_fields, get_type_hints(model, include_extras=True)
        unknown = declared.keys() - get_type_hints(definition)
        if others is not None and unknown:
            raise TypeError(f"{definition.__name__} has no {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = {}
        for field in fields_of(definition):
            own = declared.get(field.name)
            if own is not None:
                about = Field(description=own.description or field.description, examples=own.examples or field.examples)
                default = ... if own.is_required() else own.default
                fields[field.name] = (Annotated[hints[field.name], about], default)
            elif others is not None:
                about = Field(default=None, description=field.description, examples=field.examples)
                fields[field.name] = (Annotated[others, PublishedAs(field.type | None)], about)
        return create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
        )

    return describe


class _AsDefined:
    """Lets pydantic read a definition: unknown keys and missing ones are errors."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(_readable(source))


#: The type of a part of an answer that a definition describes.
Defined = Annotated[T, _AsDefined()]


class PublishedAs:
    """Publishes the schema of a definition, or of a type with definitions in it, for a field that accepts more.

    Documents that were stored by an earlier version, or that come from elsewhere, are not refused for such a field, and
    readers still learn what this version writes.
    """

    def __init__(self, definition: Any) -> None:
        self._definition = definition

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(source)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(_published_schema(self._definition))


@cache
def _published_schema(definition: Any) -> CoreSchema:
    return TypeAdapter(_readable(definition)).core_schema


@cache
def reader_of_any_version(definition: type) -> TypeAdapter[Any]:
    """Return what reads documents of other versions too: unknown keys pass, and nullable fields may be missing."""
    return TypeAdapter(_readable(definition, any_version=True))


@cache
def _typed_dict(definition: type, *, any_version: bool) -> Any:
    """Return a definition as a ``TypedDict`` that pydantic reads: before Python 3.12 it takes those of this library."""
    make = cast("Any", typing_extensions.TypedDict)
    fields = {field.name: _annotation(field, any_version=any_version) for field in fields_of(definition)}
    made = make(definition.__name__, fields)
    nullable = {field.name for field in fields_of(definition) if field.is_nullable}
    made.__doc__ = definition.__doc__
    made.__pydantic_config__ = {**Document.model_config, "json_schema_extra": partial(_relax, nullable)}
    if any_version:
        made.__pydantic_config__ = {**Document.model_config, "extra": "ignore", "strict": True}
    return made


def _relax(nullable: Container[str], schema: dict[str, Any]) -> None:
    """Take nullable fields out of the required ones: documents of earlier versions may lack them."""
    schema["required"] = [name for name in schema.get("required", ()) if name not in nullable]


def _annotation(field: DefinedField, *, any_version: bool) -> Any:
    about: dict[str, Any] = {"description": field.description, "examples": field.examples}
    readable = _readable(field.type, any_version=any_version)
    if field.is_required and not (any_version and field.is_nullable):
        return Annotated[readable, Field(**about)]
    return NotRequired[Annotated[readable, Field(default=None, **about)]]


def _readable(annotation: Any, *, any_version: bool = False) -> Any:
    """Return a type with every definition in it as a type that pydantic reads."""
    if is_typeddict(annotation):
        return _typed_dict(annotation, any_version=any_version)
    origin = get_origin(annotation)
    if origin not in (UnionType, list, dict):
        return annotation
    arguments = tuple(_readable(one, any_version=any_version) for one in get_args(annotation))
    return reduce(or_, arguments) if origin is UnionType else origin[arguments]
