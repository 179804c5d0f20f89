"""The plan document: the contract's keys, and a digest that timing never changes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import canonical_bytes, canonical_members, of_members, plan_digest
from planner.domain.formats.compact_form import long_parts
from planner.domain.formats.compaction import compact_document
from planner.domain.plan.plan import Plan
from planner.domain.problem.table import TableConstraints
from planner.output.exporters import generic
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_problem, make_table
from tests.support.planning.long_plans import to_document


def small_plan() -> Plan:
    result = plan(
        make_problem(make_table("a", module_path="sparse.ebc"), make_table("b")),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1),
    )
    assert result.plan is not None
    return result.plan


def document(found: Plan) -> dict[str, Any]:
    return to_document(found, name="model", spec_digest="sha256:spec", hardware_profile="test")


def test_keys_of_the_contract() -> None:
    found = document(small_plan())
    assert set(found) >= {
        "plan_digest",
        "schema_version",
        "spec_digest",
        "name",
        "world_size",
        "ranks_per_host",
        "objective",
        "termination",
        "tables",
        "ranks",
        "phases",
        "tiers",
        "provenance",
        "movement",
        "checkpoint",
        "serving",
        "prediction",
        "surrogate",
    }
    assert {"name", "seconds", "lower_bound_seconds", "relative_gap"} <= set(found["objective"])
    assert {"reason", "limit", "detail"} <= set(found["termination"])
    assert {"sharding_type", "compute_kernel", "cache_load_factor", "shards"} <= set(found["tables"][0])
    assert set(found["tables"][0]["shards"][0]) == {
        "rank",
        "row_offset",
        "num_rows",
        "column_offset",
        "num_columns",
        "tier",
        "bytes",
    }
    assert {"rank", "host", "seconds", "bytes", "capacity_bytes"} <= set(found["ranks"][0])
    assert {"name", "slowest_rank", "seconds", "mean_seconds"} <= set(found["phases"][0])
    assert {"cost_model", "hardware_profile", "evidence", "seed", "solver_seconds", "versions"} <= set(
        found["provenance"]
    )


def test_what_launchers_compare_with_their_model() -> None:
    tables = {table["name"]: table for table in document(small_plan())["tables"]}
    assert tables["a"]["module_path"] == "sparse.ebc"
    assert "module_path" not in tables["b"]
    assert tables["a"]["data_type"] == "fp32"
    assert tables["a"]["pooling"] == "sum"


def test_timing_does_not_change_the_digest() -> None:
    found = small_plan()
    later = replace(found, solver_seconds=99.0, lower_bound_seconds=0.0, relative_gap=None)
    assert document(later)["plan_digest"] == document(found)["plan_digest"]


def test_what_determines_training_changes_the_digest() -> None:
    found = document(small_plan())
    for change in (
        {"world_size": 8},
        {"ranks_per_host": 2},
        {"spec_digest": "sha256:other"},
        {"tables": found["tables"][::-1]},
    ):
        assert plan_digest({**found, **change}) != found["plan_digest"]
    moved = json.loads(json.dumps(found))
    moved["tables"][0]["shards"][0]["rank"] ^= 1
    assert plan_digest(moved) != found["plan_digest"]
    resized = json.loads(json.dumps(found))
    resized["tables"][0]["shards"][0]["bytes"] += 1
    assert plan_digest(resized) == found["plan_digest"]


def test_canonical_bytes() -> None:
    assert canonical_bytes({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'.encode()


def test_an_object_may_be_serialised_value_by_value() -> None:
    document = {"b": [1.5, None], "a\u00e9": {"y": 1, "x": "\u20ac"}, 'quo"te': "", "A": 1e300}
    assert of_members(canonical_members(document)) == canonical_bytes(document)
    assert of_members({}) == canonical_bytes({})


@pytest.mark.parametrize("table", ["a", '"shards":[]', 'quo"te\\', "große Tabelle"])
def test_bytes_are_the_canonical_ones_of_the_document(table: str) -> None:
    by_rows = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    result = plan(
        make_problem(make_table(table), make_table("rows", 1003, constraints=by_rows), make_table("more")),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1),
    )
    assert result.plan is not None
    whole = document(result.plan)
    short = generic.to_document(result.plan, name="model", spec_digest="sha256:spec", hardware_profile="test")
    assert b"".join(long_parts(short)) == canonical_bytes(whole)
    assert short == compact_document(whole)
    assert whole["plan_digest"] == plan_digest(whole)
    assert [shard["rank"] for shard in whole["tables"][1]["shards"]] == [0, 1, 2, 3]
