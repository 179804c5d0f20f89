"""Plans whose fields are missing or of another type, under a digest that fits them: each is read or refused by name."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.cli.errors import BadInput
from api.cli.files import read_plan
from planner.domain.formats.canonical_json import plan_digest
from planner.errors import InvalidProblem
from planner.output.explain.difference import difference
from planner.output.explain.text.difference import compare_plans
from planner.output.plan_document import PlanDocument
from tests.api.cli.test_cli import spec
from tests.support.cli.run import Run

REMOVED = object()
#: What stands in the place of a value.
OTHERS = (REMOVED, None, "x", -5, [], {})


@pytest.fixture
def plan(run: Run, tmp_path: Path) -> PlanDocument:
    (tmp_path / "spec.json").write_text(json.dumps(spec()))
    assert run("plan", tmp_path / "spec.json", "-o", tmp_path / "plan.json", "--quiet").code == 0
    return read_plan(str(tmp_path / "plan.json"))


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of each value in a document, of a list that of the first."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def broken(plan: PlanDocument, place: tuple[str | int, ...], other: object) -> Any:
    """Return a copy with another value at a place, and the digest of that copy."""
    document: Any = copy.deepcopy(plan)
    around: Any = document
    for key in place[:-1]:
        around = around[key]
    if other is REMOVED:
        del around[place[-1]]
    else:
        around[place[-1]] = other
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # what is no plan has no digest
        document["plan_digest"] = plan_digest(document)
    return document


def test_a_plan_that_is_read_can_be_compared(plan: PlanDocument, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    num_read = num_refused = 0
    for place in places(plan):
        for other in OTHERS:
            path.write_text(json.dumps(broken(plan, place, other)))
            try:
                read = read_plan(str(path))
            except (InvalidProblem, BadInput):
                num_refused += 1
                continue
            num_read += 1
            for pair in ((plan, read), (read, plan)):
                assert difference(*pair).to_document()
                assert compare_plans(*pair)
    assert num_read > 100
    assert num_refused > 300


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (("phases", 0, "seconds"), "1 ms"),
        (("phases", 0, "counted"), REMOVED),
        (("ranks", 0, "bytes"), [1]),
        (("provenance", "cost_model"), 5),
        (("objective", "seconds"), None),
        (("starts",), {}),
    ],
)
def test_a_wrong_field_is_refused_by_its_place(
    run: Run, plan: PlanDocument, tmp_path: Path, place: tuple[str | int, ...], other: object
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken(plan, place, other)))
    answer = run("compare", path, path)
    assert answer.code == 1
    assert "/" + "/".join(map(str, place)) in answer.err


def test_ranks_may_be_left_out_of_a_list(plan: PlanDocument) -> None:
    without = broken(plan, ("ranks",), [])
    assert difference(plan, without).changes
