"""Fields that are set by dotted paths: what changes, and what stays shared."""

import copy

import pytest

from api.specs.input.changes import UnknownPlace, with_field

DOCUMENT = {"model": {"tables": [{"name": "a", "rows": 1}, {"name": "b", "rows": 2}]}, "solver": None}


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (["model", "tables", "b", "rows"], [1, 9]),
        (["model", "tables", "0", "rows"], [9, 2]),
        (["model", "tables", "*", "rows"], [9, 9]),
    ],
)
def test_items_are_meant_by_name_by_number_or_all(path: list[str], changed: list[int]) -> None:
    found = with_field(DOCUMENT, path, 9)
    assert [table["rows"] for table in found["model"]["tables"]] == changed


def test_objects_on_the_way_are_made() -> None:
    assert with_field(DOCUMENT, ["solver", "seed"], 1)["solver"] == {"seed": 1}
    assert with_field({}, ["a", "b", "c"], 1) == {"a": {"b": {"c": 1}}}


def test_the_given_document_stays_and_all_else_is_shared() -> None:
    before = copy.deepcopy(DOCUMENT)
    found = with_field(DOCUMENT, ["model", "tables", "b", "rows"], 9)
    assert before == DOCUMENT
    assert found["model"]["tables"][0] is DOCUMENT["model"]["tables"][0]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (["model", "tables", "c", "rows"], "tables has no item c; items are 0 to 1, a name, or \\* for all"),
        (["model", "tables", "a", "rows", "x"], "rows is not an object, nor a list"),
    ],
)
def test_places_that_are_none_are_refused(path: list[str], message: str) -> None:
    with pytest.raises(UnknownPlace, match=message):
        with_field(DOCUMENT, path, 9)
