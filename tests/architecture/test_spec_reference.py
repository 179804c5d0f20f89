"""docs/spec.md says what the schema of a spec says: every field, default and limit, with examples that are accepted."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from api.schemas.spec import HardwareOverrides, SpecDocument
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import CUSTOM, load_profile, profile_ids
from cost_models.registry import cost_model_names
from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.options.enumerate import enumerate_families
from planner.options.schemes.geometry import DEFAULT_MIN_PARTITION
from planner.options.storages import CACHE_LOAD_FACTORS
from planner.pricing.price_options import price
from planner.solver.partitioners.registry import partitioner_names
from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "spec.md").read_text()
TOP = "Top level"
INTERVAL = re.compile(r"([\[(])([0-9.e^-]+), ([0-9.e^-]+)([\])])")
Row = list[str]


def sections() -> dict[str, str]:
    """Text under each heading of the second level, by the heading without backticks."""
    parts = re.split(r"^## (.+)$", TEXT, flags=re.MULTILINE)
    return {heading.strip("`"): text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def rows(text: str) -> list[Row]:
    """Cells of all table rows."""
    return [[cell.strip() for cell in line.split("|")] for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE)]


def row_of(text: str, name: str) -> Row:
    """The one row whose first cell is ``name`` in backticks, bold or not."""
    (found,) = [row for row in rows(text) if row[0].strip("*") == f"`{name}`"]
    return found


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Models that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def described(model: type[BaseModel] = SpecDocument, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every model of the spec with the heading that it has in the reference."""
    yield path or TOP, model
    for name, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            suffix = "[]" if "list[" in str(field.annotation) else ""
            yield from described(inner, f"{path}.{name}{suffix}".lstrip("."))


def fields() -> list[tuple[str, str, type[BaseModel]]]:
    return [(heading, name, model) for heading, model in described() for name in model.model_fields]


def schema_of(model: type[BaseModel], name: str) -> Mapping[str, Any]:
    """JSON schema of a field, without the alternative null; of several forms, the first, which is ours."""
    schema = model.model_json_schema()
    found = schema["properties"][name]
    return next(part for part in found.get("anyOf", [found]) if part.get("type") != "null")


def number(text: str) -> float:
    base, _, power = text.partition("^")
    return float(base) ** float(power or 1)


def documented_limits(cell: str) -> list[tuple[float, float, bool, bool]]:
    """Least and greatest value of each interval of a cell, and whether they belong to it."""
    return [
        (number(low), number(high), opening == "[", closing == "]")
        for opening, low, high, closing in INTERVAL.findall(cell)
    ]


def limits_of(schema: Mapping[str, Any]) -> tuple[float, float, bool, bool] | None:
    """The same of a schema; ``None`` where a number is not bounded on both sides."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    return None if low is None or high is None else (float(low), float(high), "minimum" in schema, "maximum" in schema)


def test_every_model_of_the_spec_has_a_section() -> None:
    assert {heading for heading, _ in described()} <= set(sections())


@pytest.mark.parametrize(("heading", "name", "model"), fields(), ids=lambda part: part if isinstance(part, str) else "")
def test_every_field_is_described_with_its_default_and_limits(heading: str, name: str, model: type[BaseModel]) -> None:
    _, _, default, meaning = row_of(sections()[heading], name)
    field: FieldInfo = model.model_fields[name]
    if field.is_required():
        assert default == "required"
    else:
        value = field.get_default(call_default_factory=True)
        reported = json.loads(default.strip("`"))
        assert reported == (value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value)
    schema = schema_of(model, name)
    leaf = schema.get("items", schema)
    for choice in (*leaf.get("enum", ()), *([leaf["const"]] if "const" in leaf else ())):
        assert f"`{choice}`" in sections()[heading], choice
    limits = limits_of(leaf)
    if limits is not None:
        assert limits in documented_limits(meaning)
    if schema.get("maxItems", 0) >= 1000:  # shorter lists are bounded by their choices
        assert re.search(rf"\b{schema['maxItems']}\b", meaning)


def test_every_override_is_described_with_its_unit() -> None:
    section = sections()["hardware.overrides"]
    reported = {row[0].strip("*`") for row in rows(section)} - {"field", "---"}
    assert reported == {*FIELDS, *HardwareOverrides.model_fields}
    for name, field in FIELDS.items():
        assert row_of(section, name)[1] == field.unit, name


def test_numbers_in_bold_are_those_that_prices_read() -> None:
    bold = {row[0].strip("*`") for row in rows(sections()["hardware.overrides"]) if row[0].startswith("**")}
    read: set[str] = set()
    for model in cost_model_names():
        for without_hbm in (False, True):
            numbers = {name: 0.5 if field.unit == "share" else 1e11 for name, field in FIELDS.items()}
            if without_hbm:
                del numbers["hbm_bytes_per_second"]
                numbers["hbm_bytes"] = 0.0
            hardware = {"profile": "custom", "num_hosts": 2, "ranks_per_host": 2, "overrides": numbers}
            if model == "serving":
                if without_hbm:  # cards have memory of their own
                    continue
                hardware["num_hosts"] = 1
                request = parsed(merged(base(), serving_example() | {"hardware": hardware}))
            else:
                request = parsed(merged(base(), {"hardware": hardware, "cost_model": model}))
            copy, names = request.problem.cluster.hardware.recorded()
            problem = replace(request.problem, cluster=replace(request.problem.cluster, hardware=copy))
            if model == "roofline" and not without_hbm:
                problem = replace(problem, kernels=frozenset(Kernel), runtime="generic")
            price(problem, enumerate_families(problem), request.cost_model)
            read |= names
    assert bold == read


def test_every_profile_is_described() -> None:
    section = sections()["hardware"]
    for profile in profile_ids():
        ranks = "any" if profile == CUSTOM else str(load_profile(profile).ranks_per_host)
        assert row_of(section, profile)[1] == ranks, profile
    assert f"`null`: all of the profile, {load_profile(CUSTOM).ranks_per_host} for `custom`" in section


def test_row_bytes_of_data_types() -> None:
    reported = {name: row for row in rows(TEXT) for name in row[0].replace("`", "").split(", ") if name in DATA_TYPES}
    assert reported.keys() == DATA_TYPES.keys()
    for name, kind in DATA_TYPES.items():
        assert float(reported[name][2]) == kind.row_bytes(128), name
        assert reported[name][3] == ("any" if kind.trainable else "`none`"), name


def test_state_bytes_of_optimizers() -> None:
    section = TEXT.partition("### Optimizers")[2].partition("### ")[0]
    reported = {row[0].split("`")[1]: row[1:] for row in rows(section)[2:]}
    assert reported == {name: [str(kind.element_bytes), str(kind.row_bytes)] for name, kind in OPTIMIZERS.items()}


def test_names_of_registries() -> None:
    assert all(f"`{name}`" in row_of(sections()[TOP], "cost_model")[3] for name in cost_model_names())
    assert all(f"`{name}`" in row_of(sections()["solver"], "partitioner")[3] for name in partitioner_names())


def test_least_width_of_a_piece() -> None:
    meaning = row_of(sections()["model.tables[].constraints"], "min_partition")[3]
    assert f"Not given: {DEFAULT_MIN_PARTITION}," in meaning


def examples(text: str) -> list[dict[str, Any]]:
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def base() -> dict[str, Any]:
    """The whole spec at the beginning, over which the other examples go."""
    return examples(TEXT)[0]


def serving_example() -> dict[str, Any]:
    """The part of a spec that serves."""
    (found,) = examples(sections()["serving"])
    return found


def merged(whole: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Objects key by key, everything else replaced."""
    result = dict(whole)
    for key, value in part.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def parsed(spec: Mapping[str, Any]) -> SolveRequest:
    return parse_spec(json.dumps(spec).encode())


def given(spec: object, path: str) -> list[object]:
    """What an example says at ``model.tables[].access`` and the like."""
    found = [spec]
    for step in path.replace("[]", "").split("."):
        inside = [value for item in found for value in (item if isinstance(item, list) else [item])]
        found = [item[step] for item in inside if isinstance(item, dict) and step in item]
    return found


@pytest.mark.parametrize("number", range(len(examples(TEXT))))
def test_examples_are_accepted(number: int) -> None:
    example = examples(TEXT)[number]
    request = parsed(merged(base(), example))
    assert [table.name for table in request.problem.tables] == [
        table["name"] for table in merged(base(), example)["model"]["tables"]
    ]


@pytest.mark.parametrize(
    ("heading", "model"), list(described()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_every_section_has_an_example_of_its_own(heading: str, model: type[BaseModel]) -> None:
    found = examples(sections()[heading])
    where = [found] if heading == TOP else [given(example, heading) for example in found]
    assert any(where), model


def test_kernels_and_their_tiers_are_described() -> None:
    """The table of kernels says where rows lie, as the ledger has it."""
    words = {Tier.HBM: "accelerator", Tier.DDR: "host memory", Tier.SSD: "block storage"}
    reported = {row[0].strip("`"): row[1] for row in rows(TEXT.partition("### Kernels")[2].partition("## ")[0])[2:]}
    assert reported.keys() == set(Kernel.labels())
    for kernel in Kernel:
        assert reported[kernel.label].startswith(words[kernel.tier(Tier.HBM)]), kernel
        assert ("cached" in reported[kernel.label]) is (kernel.facts.is_cached), kernel


def test_default_cached_shares_are_described() -> None:
    meaning = row_of(sections()["model.tables[].constraints"], "cache_load_factors")[3]
    *others, last = map(str, CACHE_LOAD_FACTORS)
    assert f"Not given: {', '.join(others)} and {last}" in meaning
