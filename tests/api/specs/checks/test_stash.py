"""Stashed weights in a spec: what they need, with a pointer and a way out, and what becomes of them."""

from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from planner.domain.problem.stash import Stash
from tests.support.service.specs import raw, tiny

DENSE: dict[str, Any] = {"forward_seconds": 0.01, "backward_seconds": 0.02, "activation_bytes": 1e9}


def issues(stash: dict[str, Any], dense: dict[str, Any] | None = None, **changes: object) -> dict[str, str]:
    spec = tiny(model__stash=stash, model__dense=DENSE if dense is None else dense, **changes)
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(raw(spec))
    return {issue.pointer: issue.message for issue in refused.value.issues}


def test_a_stash_becomes_one_of_the_problem() -> None:
    name = tiny()["model"]["tables"][0]["name"]
    stash = {"tables": [name], "link_share": 0.5, "max_wait_seconds": 0.001}
    found = parse_spec(raw(tiny(model__stash=stash, model__dense=DENSE))).problem.stash
    assert found == Stash(tables=frozenset([name]), link_share=0.5, max_wait_seconds=0.001)


def test_a_spec_without_a_stash_keeps_its_digest() -> None:
    plain, null, with_it = (
        parse_spec(raw(tiny(model__dense=DENSE, **changes))).spec_digest
        for changes in ({}, {"model__stash": None}, {"model__stash": {}})
    )
    assert plain == null != with_it


def test_all_that_is_missing_is_listed_at_once() -> None:
    found = issues({}, {"forward_seconds": 0.01}, model__pipeline="none", runtime="generic")
    assert found == {
        "/model/dense/activation_bytes": "stashed weights make room for activations, and no activations are given",
        "/model/dense/backward_seconds": "weights are copied while the dense part runs, and its seconds are not given",
        "/model/pipeline": "the pipeline none stashes nothing; train_sparse_dist has a variant that does",
        "/runtime": "the runtime generic stashes nothing",
    }


def test_tables_are_known_and_listed_once() -> None:
    name = tiny()["model"]["tables"][0]["name"]
    assert issues({"tables": [name, "nobody", name]}) == {
        "/model/stash/tables/1": 'no table "nobody" in the spec',
        "/model/stash/tables/2": f'table "{name}" is listed before',
    }


def test_hardware_without_a_link_or_memory_of_its_own_is_refused() -> None:
    assert "/model/stash" in issues({}, hardware={"profile": "cpu-xeon-vm"})


@pytest.mark.parametrize(
    ("stash", "pointer"),
    [
        ({"link_share": 0}, "/model/stash/link_share"),
        ({"max_wait_seconds": -1}, "/model/stash/max_wait_seconds"),
        ({"tables": []}, "/model/stash/tables"),
        ({"share": 1}, "/model/stash/share"),
    ],
)
def test_numbers_have_limits(stash: dict[str, Any], pointer: str) -> None:
    assert pointer in issues(stash)
