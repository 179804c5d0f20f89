"""Dense compute is given once, and what is given twice is reported where it stands."""

from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from tests.support.service.specs import raw, tiny

LAYERS = {"mlp_widths": [[13, 512, 64]]}
TYPE = {"compute_dtype": "fp16"}


def pointers(dense: dict[str, Any]) -> list[str]:
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(tiny(model__dense=dense)))
    assert all(issue.hint for issue in raised.value.issues)
    return [issue.pointer.removeprefix("/model/dense/") for issue in raised.value.issues]


@pytest.mark.parametrize(
    ("dense", "broken"),
    [
        ({"forward_seconds": 0.1, "forward_flops_per_sample": 1.0, **TYPE}, ["forward_flops_per_sample"]),
        ({"backward_seconds": 0.1, "layers": LAYERS, **TYPE}, ["layers"]),
        ({"forward_flops_per_sample": 1.0, "layers": LAYERS, **TYPE}, ["layers"]),
        (
            {"forward_seconds": 1, "forward_flops_per_sample": 1, "backward_flops_per_sample": 1, "layers": LAYERS}
            | TYPE,
            ["forward_flops_per_sample", "backward_flops_per_sample", "layers"],
        ),
        ({"backward_flops_per_sample": 1.0, **TYPE}, ["backward_flops_per_sample"]),
        ({"layers": LAYERS}, ["compute_dtype"]),
        ({"forward_flops_per_sample": 1.0}, ["compute_dtype"]),
        (TYPE, ["compute_dtype"]),
        ({"forward_seconds": 0.1, **TYPE}, ["compute_dtype"]),
    ],
)
def test_what_is_given_twice_or_by_half_is_refused(dense: dict[str, Any], broken: list[str]) -> None:
    assert pointers(dense) == broken


@pytest.mark.parametrize(
    "dense",
    [
        {"forward_seconds": 0.1, "backward_seconds": 0.2},
        {"forward_flops_per_sample": 0.0, "backward_flops_per_sample": 1.0, **TYPE},
        {"layers": LAYERS, **TYPE},
        {"parameter_bytes": 1e6, "gradient_dtype": "fp16"},
    ],
)
def test_what_is_given_once_is_taken(dense: dict[str, Any]) -> None:
    assert parse_spec(raw(tiny(model__dense=dense))).problem.dense is not None


def test_a_field_of_another_type_is_one_issue() -> None:
    assert pointers({"forward_flops_per_sample": "many", **TYPE}) == ["forward_flops_per_sample"]
