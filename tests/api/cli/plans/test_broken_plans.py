"""Plans whose fields are missing or of another type, under a digest that fits them: each is read or refused by name."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from api.cli.errors import BadInput
from api.cli.files import read_plan
from planner.domain.formats.canonical_json import plan_digest
from planner.domain.formats.compaction import compact_document
from planner.errors import InvalidProblem
from planner.output.explain.difference import difference
from planner.output.explain.text.difference import compare_plans
from tests.api.cli.test_cli import spec
from tests.support.cli.run import Run
from tests.support.thorough import thorough

Plan = dict[str, Any]
REMOVED = object()
#: What stands in the place of a value.
OTHERS = (REMOVED, None, "x", -5, [], {})


@pytest.fixture(params=[pytest.param("long", marks=thorough), "compact"])
def plan(run: Run, tmp_path: Path, request: pytest.FixtureRequest) -> Plan:
    """A plan as it is written in each form."""
    content = {**spec(), "checkpoint": {"interval_steps": 20_000, "upload_bytes_per_second": 2.5e9}}
    (tmp_path / "spec.json").write_text(json.dumps(content))
    written = tmp_path / "plan.json"
    assert run("plan", tmp_path / "spec.json", "-o", written, "--form", request.param, "--quiet").code == 0
    found: Plan = json.loads(written.read_bytes())
    return found


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of each value in a document, of a list that of the first."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def broken(plan: Plan, place: tuple[str | int, ...], other: object) -> Any:
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


def test_a_plan_that_is_read_can_be_compared(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    whole: Any = compact_document(plan)
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
            for pair in ((whole, read), (read, whole)):
                assert difference(*pair).to_document()
                assert compare_plans(*pair)
    assert num_read > 100
    assert num_refused > 300


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (("phases", 0, "seconds"), "1 ms"),
        (("phases", 0, "counted"), REMOVED),
        (("provenance", "cost_model"), 5),
        (("objective", "seconds"), None),
        (("starts",), {}),
    ],
)
def test_a_wrong_field_is_refused_by_its_place(
    run: Run, plan: Plan, tmp_path: Path, place: tuple[str | int, ...], other: object
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken(plan, place, other)))
    answer = run("compare", path, path)
    assert answer.code == 1
    assert "/" + "/".join(map(str, place)) in answer.err


@pytest.mark.parametrize("place", [("ranks", "host"), ("checkpoint", "by_rank", "full_bytes")])
@pytest.mark.parametrize("plan", ["compact"], indirect=True)
def test_columns_of_unequal_length_are_refused(run: Run, plan: Plan, tmp_path: Path, place: tuple[str, ...]) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken(plan, place, [0, 0, 0])))
    answer = run("compare", path, path)
    assert answer.code == 1
    assert f"/{place[0]}: the lists of the columns are not equally long" in answer.err


def test_ranks_may_be_left_out_of_a_list(plan: Plan) -> None:
    without = broken(plan, ("ranks",), [])
    first, second = (cast("Any", compact_document(one)) for one in (plan, without))
    assert difference(first, second).changes
