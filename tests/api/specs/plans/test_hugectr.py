"""Plans of HugeCTR's embedding collection, wherever a plan is accepted."""

import json
from typing import Any

import pytest

from api.services.plans.reports import evaluation_of
from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_plan, parse_spec
from planner.options.runtimes.hugectr.geometry import layout_of
from tests.planner.options.runtimes.hugectr.test_export import ALL
from tests.support.paths import SHARED
from tests.support.planning.export_documents import document
from tests.support.planning.exports import exporter
from tests.support.service.specs import raw

export_plan = exporter("hugectr")


def spec_of(export: dict[str, Any], **changes: object) -> dict[str, Any]:
    """A spec of the tables of an export, on two hosts of two ranks."""
    tables = [
        {"name": one["name"], "num_embeddings": one["max_vocabulary_size"], "embedding_dim": one["ev_size"],
         "optimizer": "adagrad", "pooling": {"average": "mean"}.get(one["combiner"], "sum"), "pooling_factor": 2.0}
        for one in export["tables"]
    ]  # fmt: skip
    hardware = {"profile": "dgx-h100-80g", "num_hosts": 2, "ranks_per_host": 2}
    model = {"batch_size_per_rank": 8, "tables": tables}
    return {"name": "x", "model": model, "hardware": hardware, "runtime": "hugectr", **changes}


EXPORT = export_plan(document(*ALL))
SPEC = spec_of(EXPORT)


def read(plan: dict[str, Any], spec: dict[str, Any] = SPEC) -> Any:
    return parse_plan(raw(plan), parse_spec(raw(spec)).problem)


def refused(plan: dict[str, Any], spec: dict[str, Any] = SPEC) -> list[tuple[str, str]]:
    with pytest.raises(RejectedDocument) as error:
        read(plan, spec)
    return [(issue.pointer, issue.message) for issue in error.value.issues]


def test_what_is_exported_is_read_back_as_hugectr_holds_it() -> None:
    given = read(EXPORT)
    sizes = {one["name"]: (one["max_vocabulary_size"], one["ev_size"]) for one in EXPORT["tables"]}
    schemes = {one["name"]: one["sharding_type"] for one in ALL}
    assert {table.name: table.sharding_type.label for table in given.placement.tables} == schemes
    for table in given.placement.tables:
        holdings = {one["name"]: one["shards"] for one in EXPORT["tables"]}[table.name]
        layout = layout_of(table, sizes[table.name], 4)
        assert [one._asdict() for one in layout.holdings()] == holdings
    assert [warning.code for warning in given.warnings] == ["modulo-rows"]
    again = export_plan(document(*(table for name in schemes for table in tables_of(given) if table["name"] == name)))
    assert {key: again[key] for key in ("shard_matrix", "shard_strategy")} == {
        key: EXPORT[key] for key in ("shard_matrix", "shard_strategy")
    }


def tables_of(given: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": table.name, "pooling": "sum", "data_type": "fp32", "sharding_type": table.sharding_type.label,
            "compute_kernel": table.compute_kernel.label, "cache_load_factor": None,
            "shards": [
                {"rank": s.rank, "row_offset": s.row_offset, "num_rows": s.num_rows, "column_offset": s.column_offset,
                 "num_columns": s.num_columns, "tier": "hbm"}
                for s in table.shards
            ],
        }
        for table in given.placement.tables
    ]  # fmt: skip


def test_a_plan_of_hugectr_is_rated_over_http_and_as_a_previous_plan() -> None:
    whole = export_plan(document(ALL[1], ALL[2]))
    spec = spec_of(whole)
    request, given = parse_evaluation(raw({"spec": spec, "plan": whole}))
    assert evaluation_of(request, given).valid
    previous = parse_spec(raw({**spec, "previous_plan": {"plan": whole}})).previous
    assert previous is not None
    assert [table.name for table in previous.placement.tables] == ["whole", "rows"]
    wrong = {**whole, "shard_strategy": [["mp", ["whole", "rows", "gone"]]]}
    with pytest.raises(RejectedDocument) as error:
        parse_evaluation(raw({"spec": spec, "plan": wrong}))
    assert [issue.pointer for issue in error.value.issues] == ["/plan/shard_strategy/0/1/2"]


def test_the_arguments_of_shard_alone_are_enough() -> None:
    bare = {key: EXPORT[key] for key in ("shard_matrix", "shard_strategy")}
    assert read(bare).placement == read(EXPORT).placement


def test_tables_by_their_position() -> None:
    names = [one["name"] for one in EXPORT["tables"]]
    bare = json.loads(json.dumps({key: EXPORT[key] for key in ("shard_matrix", "shard_strategy")}))
    for positions in ({name: at for at, name in enumerate(names)}, {name: str(at) for at, name in enumerate(names)}):
        numbered = {
            "shard_matrix": [[positions[name] for name in row] for row in bare["shard_matrix"]],
            "shard_strategy": [
                [kind, [positions[one] if isinstance(one, str) else [positions[one[0]], one[1]] for one in members]]
                for kind, members in bare["shard_strategy"]
            ],
        }
        given = read(numbered)
        assert given.placement == read(EXPORT).placement
        assert [warning.code for warning in given.warnings] == ["table-by-position", "modulo-rows"]


@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"shard_matrix": [["whole"], [], []], "shard_strategy": [["mp", ["whole"]]]}, "/shard_matrix", "3 GPUs are"),
        ({"shard_strategy": [["mp", ["whole", "whole"]]]}, "/shard_strategy/0/1/1", "stands twice"),
        ({"shard_strategy": [["mp", ["gone"]]]}, "/shard_strategy/0/1/0", "no table of this name"),
        ({"shard_strategy": [["mp", [["whole", 2]]]]}, "/shard_strategy/0/1/0", "1 GPUs are no multiple of 2 column"),
        ({"shard_strategy": [["dp", ["whole"]]]}, "/shard_strategy/0/1/0", "the matrix has it on 2 alone"),
        ({"shard_strategy": [["dp", [["copied", 2]]]]}, "/shard_strategy/0/1/0", "a dp table has no column pieces"),
        ({"shard_matrix": [[], [], [], []], "shard_strategy": [["mp", ["whole"]]]}, "/shard_strategy/0/1/0", "no GPU"),
        ({"shard_matrix": [["whole"], ["whole"], ["whole"], []], "shard_strategy": [["mp", ["whole"]]]},
         "/shard_strategy/0/1/0", "rows are cut over GPUs 0 and 1 and 2, which are neither all 4 nor those of whole"),
        ({"shard_matrix": [["whole", "whole"], [], [], []], "shard_strategy": [["mp", ["whole"]]]},
         "/shard_strategy/0/1/0", "a GPU of the matrix lists it twice"),
        ({"shard_matrix": [["whole"], [], [], []], "shard_strategy": [["mp", []]]}, "/shard_strategy", "in no group"),
        ({"tables": [{"name": "whole", "max_vocabulary_size": 8}], "shard_strategy": [["mp", ["whole"]]]},
         "/shard_strategy/0/1/0", "/tables/0/max_vocabulary_size is 8, and the spec says 7"),
        ({"num_nodes": 3, "shard_strategy": [["mp", ["whole"]]]}, "/shard_matrix", "4 GPUs are no multiple of 3"),
        ({"shard_strategy": [["xp", ["whole"]]]}, "/shard_strategy/0/0", "not one of the values"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(changes: dict[str, Any], pointer: str, message: str) -> None:
    found = refused({**EXPORT, **changes})
    assert found[0][0] == pointer
    assert message in found[0][1]


def test_public_plans_of_mlperf_are_refused_for_their_row_blocks_alone() -> None:
    path = SHARED / "measured_gpu/mlperf_dlrm_dcnv2_plans.json"
    if not path.exists():
        pytest.skip(f"{path} is absent: public plans are not part of the repository")
    spec = spec_of(EXPORT, model={
        "batch_size_per_rank": 64,
        "tables": [{"name": f"cat_{i}", "num_embeddings": 1000, "embedding_dim": 128, "optimizer": "adagrad",
                    "pooling_factor": 1.0} for i in range(26)],
    })  # fmt: skip
    plans = json.loads(path.read_text())["plans"]
    for plan in plans:
        matrix, copied = plan["shard_matrix"], set(plan["data_parallel"])
        spec["hardware"] |= {"num_hosts": 1, "ranks_per_host": len(matrix)}
        cut = sorted({one for row in matrix for one in row} - copied)
        groups = [["mp", cut], ["dp", sorted(copied)]]
        messages = [message for _, message in refused({"shard_matrix": matrix, "shard_strategy": groups}, spec)]
        assert all("no scheme has such row blocks" in message for message in messages)
    assert len(plans) == 18
