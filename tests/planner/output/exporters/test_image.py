"""Parts of a document out of domain values, as the types of the definition have them."""

from dataclasses import dataclass
from typing import TypedDict

import pytest

from cost_models.vocabulary import Evidence, Tier
from planner.output.exporters.image import image_of


class _Line(TypedDict):
    evidence: str
    bytes: int


class _Document(TypedDict):
    name: str
    seconds: float
    counted: bool
    bytes: dict[str, int]
    lines: list[_Line]
    largest: _Line | None
    total: int


@dataclass(frozen=True)
class _Value:
    bytes: float
    evidence: Evidence = Evidence.MEASURED


@dataclass(frozen=True)
class _Load:
    name: str
    seconds: float
    counted: bool
    bytes: dict[Tier, float]
    lines: tuple[_Value, ...]
    largest: _Value | None
    unread: int = 0


LOAD = _Load(name="a", seconds=0.5, counted=True, bytes={Tier.HBM: 1.6}, lines=(_Value(2.4),), largest=None)


def test_an_image_has_codes_as_labels_and_whole_bytes() -> None:
    assert image_of(_Document, LOAD, total=4) == {
        "name": "a",
        "seconds": 0.5,
        "counted": True,
        "bytes": {"hbm": 2},
        "lines": [{"evidence": "measured", "bytes": 2}],
        "largest": None,
        "total": 4,
    }


def test_a_field_without_a_value_is_an_error() -> None:
    with pytest.raises(AttributeError, match="total"):
        image_of(_Document, LOAD)
