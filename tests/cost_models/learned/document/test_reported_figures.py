"""What a document tells people is checked like the rest of it."""

import copy
from typing import Any

import pytest

from cost_models.errors import InvalidModelFile
from cost_models.learned.document.file import document_digest, model_bytes, parse_model
from cost_models.learned.document.reported_figures import MOST_GROUPS, MOST_POINTS, checked_figures
from tests.support.cost_models.launches import document

LONG = "x" * 201


def changed(place: tuple[str | int, ...], value: object) -> bytes:
    """A document with one value replaced, and the digest that belongs to it."""
    found: Any = copy.deepcopy(document(40))
    part = found
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return model_bytes(found | {"digest": document_digest(found)})


@pytest.mark.parametrize(
    ("place", "value", "reported"),
    [
        (("figures",), [], "figures"),
        (("figures", "split"), "by\nline", "figures.split"),
        (("figures", "split"), LONG, "figures.split"),
        (("figures", "more"), 1, "figures"),
        (("figures", "groups"), {}, "figures.groups"),
        (("figures", "groups"), [{}] * (MOST_GROUPS + 1), "figures.groups"),
        (("figures", "groups", 0), 3, "figures.groups[0]"),
        (("figures", "groups", 0, "kind"), "<b>", "figures.groups[0].kind"),
        (("figures", "groups", 0, "by"), "name", "figures.groups[0].by"),
        (("figures", "groups", 0, "group"), LONG, "figures.groups[0].group"),
        (("figures", "groups", 0, "num_rows"), -1, "figures.groups[0].num_rows"),
        (("figures", "groups", 0, "num_rows"), True, "figures.groups[0].num_rows"),
        (("figures", "groups", 0, "mean_relative_error"), "1", "figures.groups[0].mean_relative_error"),
        (("figures", "groups", 0, "mean_relative_error"), -0.1, "figures.groups[0].mean_relative_error"),
        (("figures", "groups", 0, "mean_relative_error"), 10**400, "figures.groups[0].mean_relative_error"),
        (("figures", "groups", 0, "coverage"), 1.1, "figures.groups[0].coverage"),
        (("figures", "groups", 0, "rank_correlation"), -2, "figures.groups[0].rank_correlation"),
        (("figures", "points_seconds"), {"other": []}, "figures.points_seconds"),
        (("figures", "points_seconds", "lookup"), [[1, 1]] * (MOST_POINTS + 1), "figures.points_seconds.lookup"),
        (("figures", "points_seconds", "lookup"), [[1]], "figures.points_seconds.lookup[0]"),
        (("figures", "points_seconds", "lookup"), [[1, None]], "figures.points_seconds.lookup[0]"),
        (("trained_on",), {}, "trained_on"),
        (("trained_on", "libraries"), ["torch\x1b[2J"], "trained_on.libraries[0]"),
        (("trained_on", "implementations"), "gloo", "trained_on.implementations"),
        (("trained_on", "repeats"), {"launches": 5}, "trained_on.repeats"),
        (("trained_on", "repeats"), {"launches": -1, "mean_relative_difference": 0.1}, "trained_on.repeats.launches"),
        (
            ("trained_on", "repeats"),
            {"launches": 5, "mean_relative_difference": "0"},
            "trained_on.repeats.mean_relative_difference",
        ),
        (("trained_on", "rows"), {"lookup": 1.5}, "trained_on.rows.lookup"),
        (("trained_on", "rows_digest"), 3, "trained_on.rows_digest"),
        (("trained_on", "seed"), None, "trained_on.seed"),
    ],
)
def test_what_pages_could_not_show_is_refused_by_place(
    place: tuple[str | int, ...], value: object, reported: str
) -> None:
    with pytest.raises(InvalidModelFile) as refused:
        parse_model(changed(place, value))
    assert refused.value.place == reported


def test_a_model_without_held_out_rows_has_no_figures() -> None:
    assert parse_model(changed(("figures",), {})).figures == {}
    assert checked_figures({}) == {}
