"""Rules of single tables that need more than one field."""

import json

import pytest

from api.specs.parse import parse_spec
from planner.errors import InvalidProblem
from tests.support.paths import ROOT
from tests.support.service.specs import raw, tiny


@pytest.mark.parametrize(("runtime", "types"), [("torchrec", "fp32 or fp16"), ("generic", "fp32 or fp16 or bf16")])
@pytest.mark.parametrize("field", ["data_type", "constraints__data_types"])
def test_only_types_that_the_runtime_looks_up_are_advised(runtime: str, types: str, field: str) -> None:
    value = "int8" if field == "data_type" else ["int8", "int4"]
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(tiny(runtime=runtime, **{f"model__tables__0__{field}": value})))
    where = {"data_type": "data_type", "constraints__data_types": "constraints/data_types"}[field]
    if runtime == "generic" and field == "data_type":
        where = "optimizer"  # which alone is wrong there
    (issue,) = caught.value.issues
    assert issue.pointer == f"/model/tables/0/{where}"
    assert types in issue.hint
    assert ("bf16" in issue.hint) is (runtime == "generic")


@pytest.mark.parametrize("runtime", ["torchrec", "torcheasyrec"])
def test_an_optimizer_that_torchrec_cannot_build_is_refused(runtime: str) -> None:
    spec = tiny(runtime=runtime, model__tables__1__optimizer="lars_sgd")
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    (issue,) = caught.value.issues
    assert issue.pointer == "/model/tables/1"
    assert "builds no operator that trains with lars_sgd: use another optimizer" in issue.message
    parse_spec(raw({**spec, "runtime": "generic"}))


@pytest.mark.parametrize("data_type", ["int8", "int4", "int2"])
@pytest.mark.parametrize(
    ("runtime", "types"),
    [("torchrec", "fp32 or fp16"), ("torcheasyrec", "fp32 or fp16"), ("hugectr", "fp32"), ("generic", None)],
)
def test_quantised_weights_are_refused_in_training_without_an_optimizer_too(
    runtime: str, types: str | None, data_type: str
) -> None:
    spec = tiny(runtime=runtime, **{f"model__tables__{i}__optimizer": "none" for i in (0, 1)})
    spec["model"]["tables"][1]["data_type"] = data_type
    if types is None:
        assert parse_spec(raw(spec)).problem.tables[1].data_type.name == data_type
        return
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    (issue,) = (issue for issue in caught.value.issues if issue.pointer.startswith("/model/tables/1/data_type"))
    assert f"the runtime {runtime} does not" in issue.message
    assert f"use {types};" in issue.hint


def test_quantised_weights_are_served() -> None:
    spec = json.loads((ROOT / "examples" / "serving_6card.json").read_bytes())
    tables = parse_spec(raw(spec)).problem.tables
    assert {"int4", "int8"} <= {table.data_type.name for table in tables}


def test_a_pinned_table_has_its_own_type_whatever_is_listed() -> None:
    shard = {"rank": 0, "row_offset": 0, "num_rows": 1000, "column_offset": 0, "num_columns": 8}
    pinned = {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    changes = {
        "model__tables__0__data_type": "int8",
        "model__tables__0__optimizer": "none",
        "model__tables__0__constraints": {"data_types": ["fp16"], "pinned": pinned},
    }
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(tiny(**changes)))
    assert [issue.pointer for issue in caught.value.issues] == ["/model/tables/0/data_type"]
    changes["model__tables__0__constraints"] = {"data_types": ["fp16"]}
    assert parse_spec(raw(tiny(**changes)))


def test_a_dot_in_a_shared_name_is_blamed_on_the_path_that_it_comes_from() -> None:
    spec = tiny(runtime="torcheasyrec")
    first, second = spec["model"]["tables"][:2]
    first.update(name="user", module_path="tower.a")
    second.update(name="user", module_path="b")
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(spec))
    (issue,) = caught.value.issues
    assert issue.pointer == "/model/tables/0/module_path"
    assert '"tower.a/user"' in issue.message
    first["module_path"] = "a"
    assert [table.name for table in parse_spec(raw(spec)).problem.tables][:2] == ["a/user", "b/user"]
    first["name"] = "user.x"
    with pytest.raises(InvalidProblem, match="/model/tables/0/name"):
        parse_spec(raw(spec))
