"""Documents and models follow the definition of the plan document: every field, and nothing else."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, NotRequired, TypedDict, is_typeddict

import pytest
from pydantic import JsonValue, TypeAdapter, ValidationError, create_model

from api.schemas.base import StrictModel
from api.schemas.described import Defined, described_by, fields_of
from api.schemas.plan import CompactPlanDocument as AcceptedCompactPlan
from api.schemas.plan import PlanDocument as AcceptedPlan
from planner.domain.formats.canonical_json import canonical_bytes
from planner.output import documents
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.field_example import Example
from planner.output.documents.plan import PlanDocument, ScoreDocument
from planner.output.exporters.generic import score_document
from tests.support.planning.long_plans import compact, to_document
from tests.support.planning.whole_plan import whole_plan

FACTS = {"name": "model", "spec_digest": "sha256:" + "1" * 64, "hardware_profile": "test"}
MODULES = [import_module(f"{documents.__name__}.{one.name}") for one in iter_modules(documents.__path__)]
DEFINITIONS = [
    one
    for module in MODULES
    for one in vars(module).values()
    if is_typeddict(one) and one.__module__ == module.__name__
]


def test_a_plan_with_every_part_is_as_the_definition_has_it() -> None:
    document = to_document(whole_plan(), **FACTS)
    assert TypeAdapter(Defined[PlanDocument]).validate_python(document, strict=True) == document
    assert None not in document.values()
    assert AcceptedPlan.model_validate_json(canonical_bytes(document))


def test_the_compact_form_with_every_part_is_as_the_definition_has_it() -> None:
    document = compact(to_document(whole_plan(), **FACTS))
    assert TypeAdapter(Defined[CompactPlanDocument]).validate_python(document, strict=True) == document
    assert AcceptedCompactPlan.model_validate_json(canonical_bytes(document))


def test_a_score_is_as_the_definition_has_it() -> None:
    document = score_document(whole_plan().evaluation)
    assert TypeAdapter(Defined[ScoreDocument]).validate_python(document, strict=True) == document


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_every_field_has_a_description(definition: type) -> None:
    assert definition.__doc__
    for field in fields_of(definition):
        parts = [field.type, *getattr(field.type, "__args__", ())]
        assert field.description or any(is_typeddict(part) for part in parts), field.name


class _Part(TypedDict):
    """A part."""

    number: Annotated[int, "A number. Unit: rows.", Example(3)]


class _Whole(TypedDict):
    """A document."""

    parts: Annotated[list[_Part], "Parts."]
    by_name: dict[str, _Part | None]
    word: NotRequired[Annotated[str | None, "A word."]]


def test_answers_have_the_fields_of_the_definition_alone() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Defined[_Whole])
    document = {"parts": [{"number": 1}], "by_name": {"a": None, "b": {"number": 2}}}
    assert adapter.validate_python(document) == {**document, "word": None}
    for wrong in ({}, {**document, "parts": [{}]}, {**document, "more": 1}, {**document, "parts": [{"number": "x"}]}):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
    schema = adapter.json_schema()
    assert schema["description"] == "A document."
    assert schema["required"] == ["parts", "by_name"]
    assert schema["$defs"]["_Part"]["properties"]["number"] == {
        "description": "A number. Unit: rows.",
        "examples": [3],
        "title": "Number",
        "type": "integer",
    }


@described_by(_Whole, others=JsonValue)
class _Request(StrictModel):
    """A document, as it is accepted."""

    word: str


def test_requests_take_any_json_for_fields_that_they_do_not_declare() -> None:
    assert list(_Request.model_fields) == ["word", "parts", "by_name"]
    assert _Request.model_validate({"word": "a", "parts": 5}).model_dump() == {"word": "a", "parts": 5, "by_name": None}
    assert _Request.model_fields["word"].description == "A word."
    with pytest.raises(TypeError, match="_Whole has no words"):
        described_by(_Whole, others=JsonValue)(create_model("Renamed", __base__=StrictModel, words=(str, "")))
    for wrong in ({}, {"word": None}, {"word": "a", "more": 1}):
        with pytest.raises(ValidationError):
            _Request.model_validate(wrong)
