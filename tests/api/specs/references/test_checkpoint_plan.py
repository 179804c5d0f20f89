"""The plan of a checkpoint in a spec: what is accepted, what is refused and where, and how it is normalised."""

from typing import Any

import pytest

from api.specs.parse import parse_spec, parse_stored_spec
from api.specs.references.resolve import Library
from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import plan_digest
from planner.errors import InvalidProblem, Issue
from tests.support.service.specs import raw, tiny


def shard(rank: int, row: int, rows: int, column: int, columns: int) -> dict[str, int]:
    return {"rank": rank, "row_offset": row, "num_rows": rows, "column_offset": column, "num_columns": columns}


def a_plan(**changes: Any) -> dict[str, Any]:
    """Of four ranks: table a whole, table b in pieces of 4 and 12 columns; both of the tiny spec."""
    tables = [
        {"name": "a", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard(3, 0, 1000, 0, 8)]},
        {
            "name": "b",
            "sharding_type": "column_wise",
            "compute_kernel": "fused",
            "shards": [shard(2, 0, 500, 0, 4), shard(0, 0, 500, 4, 12)],
        },
    ]
    document = {
        "schema_version": 1,
        "spec_digest": "sha256:" + 64 * "1",
        "world_size": 4,
        "ranks_per_host": 2,
        "tables": tables,
        **changes,
    }
    return {"plan_digest": plan_digest(document), **document}


def issues(**changes: Any) -> list[Issue]:
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(tiny(checkpoint_plan={"plan": a_plan()}, **changes)))
    return list(refused.value.issues)


def test_a_plan_is_read_and_reported() -> None:
    request = parse_spec(raw(tiny(checkpoint_plan={"plan": a_plan(), "keep": "schemes"})))
    found = request.problem.checkpoint_plan
    assert found is not None
    assert [placed.sharding_type for placed in found.placement.tables] == [Scheme.TABLE_WISE, Scheme.COLUMN_WISE]
    assert (found.placement.world_size, found.keep) == (4, "schemes")
    assert request.warnings == ()
    (note,) = [one for one in request.assumptions if one.subject == "checkpoint_plan"]
    assert note.value.startswith("2 tables of 2 keep weights, optimizer state and sharding types")


def test_it_is_a_part_of_the_digest_and_its_absence_is_none() -> None:
    free = parse_spec(raw(tiny()))
    resumed = {
        keep: parse_spec(raw(tiny(checkpoint_plan={"plan": a_plan(), "keep": keep}))) for keep in ("state", "schemes")
    }
    assert len({free.spec_digest, resumed["state"].spec_digest, resumed["schemes"].spec_digest}) == 3
    assert parse_spec(raw(tiny(checkpoint_plan=None))).spec_digest == free.spec_digest
    assert "checkpoint_plan" not in free.spec
    (default,) = [
        one
        for one in parse_spec(raw(tiny(checkpoint_plan={"plan": a_plan()}))).assumptions
        if one.subject == "checkpoint_plan.keep"
    ]
    assert default.value == "state"


def test_a_stored_spec_keeps_the_plan() -> None:
    plan = a_plan()
    inline = parse_spec(raw(tiny(checkpoint_plan={"plan": plan})))
    by_digest = parse_spec(
        raw(tiny(checkpoint_plan={"digest": plan["plan_digest"]})), Library(find_plan=lambda _: raw(plan))
    )
    assert by_digest.spec == inline.spec
    assert by_digest.spec_digest == inline.spec_digest
    stored = parse_stored_spec(raw(inline.spec))
    assert stored.problem.checkpoint_plan == inline.problem.checkpoint_plan
    assert parse_spec(raw(inline.spec)).spec == inline.spec


def test_all_tables_without_a_way_are_in_one_answer() -> None:
    found = issues(
        model__tables__0__constraints={"sharding_types": ["data_parallel"]},
        model__tables__1__constraints={"min_partition": 8},
    )
    assert [issue.pointer for issue in found] == ["/model/tables/0/constraints", "/model/tables/1/constraints"]
    assert found[0].message == (
        'table "a" keeps what the checkpoint has of it as table_wise or row_wise or table_row_wise: table_wise,'
        " row_wise, table_row_wise: not among the allowed sharding_types"
    )
    assert "in pieces of 4 + 12 columns" in found[1].message
    assert "column_wise, table_column_wise, grid_shard: no cut fits" in found[1].message
    assert all(issue.hint.endswith("or leave checkpoint_plan out and lose the state") for issue in found)


def test_a_pin_that_loses_state_is_refused_where_it_stands() -> None:
    pin = {"sharding_type": "table_wise", "compute_kernel": "fused", "shards": [shard(0, 0, 500, 0, 16)]}
    (found,) = issues(model__tables__1__constraints={"pinned": pin})
    assert found.pointer == "/model/tables/1/constraints/pinned"
    assert "the table is pinned to it, and optimizer state of the checkpoint would be lost" in found.message
    widths = {**pin, "sharding_type": "column_wise", "shards": [shard(0, 0, 500, 0, 8), shard(1, 0, 500, 8, 8)]}
    (other,) = issues(model__tables__1__constraints={"pinned": widths})
    assert "pinned to pieces of other widths" in other.message


def test_a_scheme_that_the_cluster_does_not_have_is_named() -> None:
    """Four rows are cut over two ranks, and not over eight."""
    tables = [{"name": "a", "num_embeddings": 4, "embedding_dim": 8, "pooling_factor": 1}]
    rows = [shard(rank, rank, 1, 0, 8) for rank in range(4)]
    plan = a_plan(tables=[{"name": "a", "sharding_type": "row_wise", "compute_kernel": "fused", "shards": rows}])
    resumed = {"plan": plan, "keep": "schemes"}
    spec = tiny(model__tables=tables, hardware__ranks_per_host=8, checkpoint_plan=resumed)
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(spec))
    (found,) = refused.value.issues
    assert found.message.endswith("row_wise: no cut fits the table's shape, the cluster and the constraints")
    assert "set checkpoint_plan.keep to state" in found.hint
    assert parse_spec(raw(tiny(model__tables=tables, hardware__ranks_per_host=2, checkpoint_plan=resumed)))


@pytest.mark.parametrize(
    ("changes", "pointer", "code"),
    [
        ({"runtime": "hugectr"}, "/checkpoint_plan", "invalid-value"),
        ({"checkpoint_plan": {"digest": "sha256:" + 64 * "0"}}, "/checkpoint_plan/digest", "unknown-plan"),
        ({"checkpoint_plan": {}}, "/checkpoint_plan", None),
        ({"checkpoint_plan": {"plan": {"tables": []}, "keep": "all"}}, "/checkpoint_plan/keep", None),
        (
            {"checkpoint_plan": {"plan": a_plan(tables=a_plan()["tables"][:1] * 2)}},
            "/checkpoint_plan/plan/tables/0/name",
            "invalid-value",
        ),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], pointer: str, code: str | None) -> None:
    spec = tiny(**{"checkpoint_plan": {"plan": a_plan()}, **changes})
    with pytest.raises(InvalidProblem) as refused:
        parse_spec(raw(spec))
    found = [(issue.pointer, issue.code) for issue in refused.value.issues]
    assert any(place == pointer and (code is None or code == its_code) for place, its_code in found), found
    assert all(issue.hint for issue in refused.value.issues)


def test_tables_in_another_shape_are_warned_of() -> None:
    request = parse_spec(raw(tiny(checkpoint_plan={"plan": a_plan()}, model__tables__0__num_embeddings=2000)))
    (warning,) = request.warnings
    assert (warning.code, warning.pointer) == ("checkpoint-table-changed", "/checkpoint_plan")
    assert '"a"' in warning.message
    (note,) = [one for one in request.assumptions if one.subject == "checkpoint_plan"]
    assert note.value.startswith("1 table of 2 keep weights, optimizer state; 1 start without stored state")


def test_a_plan_of_another_model_is_warned_of() -> None:
    spec = tiny(checkpoint_plan={"plan": a_plan()}, model__tables__0__name="c", model__tables__1__name="d")
    assert [warning.code for warning in parse_spec(raw(spec)).warnings] == ["no-common-table"]


def test_a_plan_that_torchrec_wrote_is_read_for_its_own_ranks() -> None:
    """Four ranks, though the job has two: the document says so."""
    written = {
        "world_size": 4,
        "local_world_size": 2,
        "plan": {
            "": {
                "a": {
                    "sharding_type": "table_wise",
                    "compute_kernel": "fused",
                    "ranks": [3],
                    "shards": [{"shard_offsets": [0, 0], "shard_sizes": [1000, 8], "placement": "rank:3/cuda:1"}],
                }
            }
        },
    }
    request = parse_spec(raw(tiny(checkpoint_plan={"plan": written})))
    plan = request.problem.checkpoint_plan
    assert plan is not None
    assert plan.placement.world_size == 4


@pytest.mark.parametrize(("ranks", "warned"), [(1, False), (2, False), (4, False), (3, True), (8, True)])
def test_slots_of_hash_tables_are_lost_where_blocks_do_not_join_up(ranks: int, warned: bool) -> None:
    """Of a checkpoint of four ranks: two blocks are one of two ranks, and none of three."""
    hash_table = {"mode": "zch", "eviction": "lru", "eviction_interval": 10}
    spec = tiny(
        checkpoint_plan={"plan": a_plan()},
        model__tables__0__hash_table=hash_table,
        hardware__ranks_per_host=ranks,
    )
    found = [one for one in parse_spec(raw(spec)).warnings if one.code == "checkpoint-slots-lost"]
    assert [one.message.endswith(': "a"') for one in found] == [True] * warned
