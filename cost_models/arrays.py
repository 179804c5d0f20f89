"""Names of numpy's arrays in annotations, and what dataclasses of arrays share. Imports no other module of ours."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]  # members of an enumeration, by number
Bools = NDArray[np.bool_]

_Arrays = TypeVar("_Arrays", bound="DataclassInstance")


def arrays_of(value: "DataclassInstance") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield name and array of each field that is an array."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            yield field.name, array


def freeze(value: "DataclassInstance") -> None:
    """Make the arrays of a dataclass read-only."""
    for _, array in arrays_of(value):
        array.flags.writeable = False


def sharing_arrays(value: _Arrays, other: _Arrays) -> _Arrays:
    """Return the same dataclass with the arrays of another one where they are equal, so that these exist once."""
    mine = dict(arrays_of(value))
    equal = {name: array for name, array in arrays_of(other) if name in mine and np.array_equal(array, mine[name])}
    return replace(value, **equal)


def take_rows(value: _Arrays, rows: NDArray[np.integer] | Bools | slice) -> _Arrays:
    """Return the same dataclass with some rows of each array, or the same ones several times; other fields stay."""
    return replace(value, **{name: array[rows] for name, array in arrays_of(value)})


def join_rows(parts: Sequence[_Arrays]) -> _Arrays:
    """Return the first part with the rows of all parts in each array."""
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name, _ in arrays_of(parts[0])}
    return replace(parts[0], **joined)
