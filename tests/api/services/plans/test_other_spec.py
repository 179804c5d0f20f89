"""A plan of another spec is one issue with the count, and a few tables that differ are listed one by one."""

from typing import Any

import pytest

from api.services.plans.reports import certificate_of, evaluation_of, explain_given
from api.specs.parse import parse_evaluation, parse_spec
from planner.errors import InvalidProblem
from tests.support.service.specs import raw, tiny

OTHER = "sha256:" + "0" * 64


def asked(*names: str, rows: int = 1000) -> dict[str, Any]:
    tables = [{"name": name, "num_embeddings": rows, "embedding_dim": 8, "pooling_factor": 1} for name in names]
    return tiny(model__tables=tables)


def placed(*names: str, rows: int = 1000, **fields: object) -> dict[str, Any]:
    shard = {"rank": 0, "row_offset": 0, "num_rows": rows, "column_offset": 0, "num_columns": 8, "tier": "hbm"}
    how = {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard]}
    return {"world_size": 2, "ranks_per_host": 2, "tables": [{"name": name, **how} for name in names], **fields}


def test_other_names_are_one_issue() -> None:
    spec = asked("a", "b", "c", "d")
    request, plan = parse_evaluation(raw({"spec": spec, "plan": placed("a", "x", "y", spec_digest=OTHER)}))
    evaluation = evaluation_of(request, plan)
    (violation,) = evaluation.violations
    assert (evaluation.valid, evaluation.num_violations, evaluation.warnings) == (False, 1, [])
    assert (violation.code, violation.pointer) == ("spec-mismatch", "/plan/spec_digest")
    assert violation.message == (
        f"this is a plan of another spec, made for the spec {OTHER}: the spec {parse_spec(raw(spec)).spec_digest} has"
        " 4 tables and the plan 3; 1 have a name in common, 1 of them the same rows and columns. 5 rules would be"
        ' broken, the first 3: no table "x" in the spec; no table "y" in the spec; table "b" is not placed'
    )
    for report in (
        lambda: explain_given(request, plan, spec_digest=request.spec_digest, max_tables=1),
        lambda: certificate_of(request, plan),
    ):
        with pytest.raises(InvalidProblem) as error:
            report()
        assert [(one.code, one.message) for one in error.value.issues] == [("spec-mismatch", violation.message)]


def test_other_sizes_are_one_issue() -> None:
    names = ("a", "b", "c", "d")
    evaluation = evaluation_of(*parse_evaluation(raw({"spec": asked(*names), "plan": placed(*names, rows=900)})))
    (violation,) = evaluation.violations
    assert violation.pointer == "/plan/tables"  # which states no spec
    assert "4 have a name in common, 0 of them the same rows" in violation.message
    assert '4 rules would be broken, the first 3: table "a": 800 cells are on no rank; ' in violation.message


@pytest.mark.parametrize(
    ("spec_names", "plan_names", "codes"),
    [
        (("a", "b"), ("a", "x"), {"unknown-table", "missing-table"}),  # few differ
        (tuple("abcdefghij"), tuple("abcdef"), {"missing-table"}),  # most agree
    ],
)
def test_a_few_tables_are_listed(spec_names: tuple[str, ...], plan_names: tuple[str, ...], codes: set[str]) -> None:
    content = {"spec": asked(*spec_names), "plan": placed(*plan_names, spec_digest=OTHER)}
    evaluation = evaluation_of(*parse_evaluation(raw(content)))
    assert {violation.code for violation in evaluation.violations} == codes
    assert [warning.code for warning in evaluation.warnings] == ["spec-mismatch"]


def test_rules_that_tables_of_the_spec_break_are_listed() -> None:
    names = ("a", "b", "c", "d", "e")
    plan = placed(*names)
    for table in plan["tables"]:
        table["sharding_type"] = "data_parallel"
    evaluation = evaluation_of(*parse_evaluation(raw({"spec": asked(*names), "plan": plan})))
    assert {violation.code for violation in evaluation.violations} == {"cover"}
    assert evaluation.num_violations == 5
