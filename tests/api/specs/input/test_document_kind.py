"""A spec and a plan are told apart by their keys, and what is both or neither is no reason to say anything."""

import pytest

from api.specs.input.json import is_plan, is_spec


@pytest.mark.parametrize(
    ("document", "spec", "plan"),
    [
        ({"name": "n", "model": {}}, True, False),
        ({"name": "n", "plan_digest": "sha256:0", "tables": []}, False, True),
        ({"model": {}, "plan_digest": "sha256:0"}, True, False),  # a spec with a field too many
        ({"model": "dlrm", "tables": []}, False, False),  # a plan from elsewhere, of a model that it names
        ({}, False, False),
        (["model"], False, False),
        (None, False, False),
    ],
)
def test_documents_are_distinguished(document: object, spec: bool, plan: bool) -> None:
    assert (is_spec(document), is_plan(document)) == (spec, plan)
