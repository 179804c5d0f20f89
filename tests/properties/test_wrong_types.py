"""A field of another JSON type than its own is an issue with a pointer, whichever field it is."""

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from api.schemas.spec import SpecDocument
from api.specs.parse import parse_spec
from planner.errors import InvalidProblem, Issue
from tests.support.service.specs import tiny
from tests.support.thorough import THOROUGH

WRONG: tuple[object, ...] = (None, True, 3, -1.5, "x", [], [1], {"a": 1}, "", 0, ["a"], {}, [[]], [None], 1e308, 10**30)
Path = tuple[str | int, ...]


def fields_below(model: type[BaseModel], path: Path = ()) -> Iterator[Path]:
    """Yield the path of every field of a document, the first item standing for all of a list."""
    for name, field in model.model_fields.items():
        here = (*path, name)
        yield here
        for found, in_list in models_in(field.annotation):
            yield from fields_below(found, (*here, 0) if in_list else here)


def models_in(annotation: Any, *, in_list: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, in_list
    is_list = in_list or getattr(annotation, "__origin__", None) is list
    for argument in get_args(annotation):
        yield from models_in(argument, in_list=is_list)


def with_value(path: Path, value: object) -> dict[str, Any]:
    """A spec of two tables with a field set, and what holds it where that was absent."""
    document = copy.deepcopy(tiny())
    place: Any = document
    for part, following in itertools.pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            if not place:
                place.append(empty)
        elif not isinstance(place.get(part), type(empty)):
            place[part] = empty
        place = place[part]
    place[path[-1]] = value
    return document


FIELDS = list(dict.fromkeys(fields_below(SpecDocument)))


def test_all_fields_are_tried() -> None:
    assert len(FIELDS) > 90
    assert ("model", "tables", 0, "module_path") in FIELDS
    assert ("model", "tables", 0, "constraints", "pinned", "shards", 0, "rank") in FIELDS


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: "/".join(map(str, path)))
def test_a_field_of_another_type_is_an_issue(path: Path) -> None:
    start = FIELDS.index(path)
    tried = WRONG if THOROUGH else [WRONG[(start + step) % len(WRONG)] for step in (0, 3, 7)]
    refusals = [issues for value in tried if (issues := refused(with_value(path, value)))]
    assert all(issue.message and issue.pointer[:1] in ("", "/") for issues in refusals for issue in issues)
    assert refusals or not THOROUGH, "every value of WRONG is taken"


def refused(document: dict[str, Any]) -> tuple[Issue, ...]:
    try:
        parse_spec(json.dumps(document).encode())
    except InvalidProblem as error:
        return tuple(error.issues)
    return ()


@pytest.mark.parametrize("value", [value for value in WRONG if not isinstance(value, str)], ids=repr)
def test_a_module_path_that_is_no_text_is_refused_where_it_stands(value: object) -> None:
    issues = refused(with_value(("model", "tables", 0, "module_path"), value))
    assert [issue.pointer for issue in issues] == ["/model/tables/0/module_path"]


@pytest.mark.parametrize("value", [3, -1.5, True, [], [1]], ids=repr)
def test_a_previous_plan_that_is_none_is_refused_where_it_stands(value: object) -> None:
    issues = refused(with_value(("previous_plan", "plan"), value))
    assert {issue.pointer for issue in issues} == {"/previous_plan/plan"}
