"""The compact form of plans stands for the long form: byte for byte, under the same digest, in few bytes."""

import copy
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.formats.compact_form import (
    MAX_SHARDS_OF_GROUP,
    is_compact,
    long_document,
    long_parts,
    num_shards,
    ranks_of,
    ranks_text,
    rows_of,
    shards_of,
    shards_on,
)
from planner.domain.formats.compaction import bare_tables, columns_of, compact_document
from planner.domain.problem.table import TableConstraints
from planner.output.exporters import generic
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.long_plans import to_document

NUM_RANKS = 8
FACTS = {"name": "m", "spec_digest": "sha256:spec", "hardware_profile": "test"}
JSON_VALUE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def shard(rank: int, rows: tuple[int, int] = (0, 10), columns: tuple[int, int] = (0, 4), **more: Any) -> dict[str, Any]:
    """Rows and columns are offset and number."""
    place = {"row_offset": rows[0], "num_rows": rows[1], "column_offset": columns[0], "num_columns": columns[1]}
    return {"rank": rank, **place, "tier": "hbm", "bytes": 40, **more}


@st.composite
def shard_runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Copies, row blocks or column pieces on ranks of some order; or a single shard with what no release knows."""
    ranks = draw(st.lists(st.integers(0, NUM_RANKS - 1), min_size=1, max_size=6) | st.just(list(range(NUM_RANKS))))
    size = draw(st.integers(0, 3))
    tier, num_bytes = draw(st.sampled_from(["hbm", "ddr"])), draw(st.integers(0, 2))
    more = {"tier": tier, "bytes": num_bytes} | draw(st.dictionaries(st.text(max_size=2), JSON_VALUE, max_size=1))
    return [
        {**first, **more}
        for first in draw(
            st.sampled_from(
                [
                    [shard(rank) for rank in ranks],
                    [shard(rank, rows=(i * size, size)) for i, rank in enumerate(ranks)],
                    [shard(rank, columns=(i * size, size)) for i, rank in enumerate(ranks)],
                    [shard(rank, rows=(i, 2), columns=(i, 2)) for i, rank in enumerate(ranks)],
                ]
            )
        )
    ]


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Plan documents in long form, with loads of ranks of which some are equal."""
    runs = draw(st.lists(st.lists(shard_runs(), min_size=1, max_size=4), min_size=0, max_size=3))
    numbers = st.sampled_from([0, 0.0, -0.0, 1.5, 1e300, None])
    row = st.fixed_dictionaries({"host": numbers, "seconds": st.dictionaries(st.sampled_from("ab"), numbers)})
    ranks = [{"rank": rank, **draw(row)} for rank in range(draw(st.integers(0, 4)))]
    by_rank = [{"rank": rank, "full_bytes": draw(st.integers(0, 1))} for rank in range(2)]
    document = {
        "schema_version": 1,
        "spec_digest": "sha256:é",
        "name": draw(st.text()),
        "world_size": NUM_RANKS,
        "ranks_per_host": 4,
        "ranks": ranks,
        "checkpoint": draw(st.sampled_from([None, {"interval_steps": 3, "by_rank": by_rank}])),
        "tables": [
            {"name": f"t{i}", "zz": draw(JSON_VALUE), "shards": [one for run in of_table for one in run]}
            for i, of_table in enumerate(runs)
        ],
    }
    return {**document, "plan_digest": plan_digest(document)}


@given(plans())
def test_a_plan_comes_back_byte_for_byte_under_its_digest(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    compact = json.loads(canonical_bytes(compact_document(document)))
    assert is_compact(compact)
    assert document == before
    assert long_document(compact) == document
    assert canonical_bytes(long_document(compact)) == canonical_bytes(document)
    assert b"".join(long_parts(compact)) == canonical_bytes(document)
    assert plan_digest(compact) == document["plan_digest"]
    assert compact_document(compact) == compact == compact_document(long_document(compact))


@given(plans())
def test_what_remains_of_a_previous_plan_is_the_same_for_both_forms(document: dict[str, Any]) -> None:
    compact = compact_document(document)
    bare = {**compact, "tables": bare_tables(document)}
    assert bare_tables(compact) == bare_tables(document)
    assert "bytes" not in {key for table in bare["tables"] for group in table["shards"] for key in group}
    assert plan_digest(bare) == document["plan_digest"]


@st.composite
def regrouped(draw: st.DrawFn, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same shards in other groups, which no release writes: cut in two, or with ranks written one by one."""
    parts = []
    for group in groups:
        ranks = ranks_of(group["ranks"])
        at = draw(st.integers(0, len(ranks)))
        listed = shards_of([group])
        for some, first in ((ranks[:at], 0), (ranks[at:], at)):
            if some:
                place = {key: listed[first][key] for key in ("row_offset", "column_offset")}
                text = draw(st.sampled_from([ranks_text(some), ",".join(map(str, some))]))
                parts.append({**group, **place, "ranks": text})
    return parts


@given(plans(), st.data())
def test_what_remains_of_a_previous_plan_is_the_same_however_shards_are_grouped(
    document: dict[str, Any], data: st.DataObject
) -> None:
    compact = compact_document(document)
    tables = [{**table, "shards": data.draw(regrouped(table["shards"]))} for table in compact["tables"]]
    other = {**compact, "tables": tables}
    assert long_document(other) == document
    assert bare_tables(other) == bare_tables(document)


@pytest.mark.parametrize(
    "group",
    [
        {"ranks": "0,1,2,3"},
        {"ranks": "0-1,2-3"},
        {"ranks": "5", "cut": "rows"},
        {"ranks": "0-3", "cut": "rows", "num_rows": 0},
        {"ranks": "0-3", "cut": "columns", "num_columns": 0},
        {"ranks": "0-3", "cut": "rows", "num_rows": 10.0},
        {"ranks": "0-3", "cut": "rows", "num_rows": 2**62},
    ],
)
def test_a_group_that_could_be_written_otherwise_has_one_normal_form(group: dict[str, Any]) -> None:
    first = {key: value for key, value in shard(0).items() if key != "rank"} | {"cut": None} | group
    tables = [{"name": "t", "shards": [first]}]
    assert bare_tables({"form": "compact", "tables": tables}) == bare_tables(
        {"tables": [{"name": "t", "shards": shards_of([first])}]}
    )


def test_groups_are_joined_without_an_object_for_each_shard() -> None:
    copies = {key: value for key, value in shard(0).items() if key != "rank"} | {"cut": None}
    tables = [{"name": "t", "shards": [{**copies, "ranks": "0-9999"}, {**copies, "ranks": "10000-19999"}]}]
    tracemalloc.start()
    try:
        (table,) = bare_tables({"form": "compact", "tables": tables})
        assert tracemalloc.get_traced_memory()[1] < 20_000 * 200  # an object has more than 300 bytes
    finally:
        tracemalloc.stop()
    assert [group["ranks"] for group in table["shards"]] == ["0-19999"]


@given(plans())
def test_the_shards_of_a_rank_are_those_of_the_long_form(document: dict[str, Any]) -> None:
    for listed, grouped in zip(document["tables"], compact_document(document)["tables"], strict=True):
        assert sum(map(num_shards, grouped["shards"])) == len(listed["shards"])
        for rank in range(NUM_RANKS):
            own = [one for one in listed["shards"] if one["rank"] == rank]
            assert canonical_bytes(shards_on(rank, grouped["shards"])) == canonical_bytes(own)


@pytest.mark.parametrize("scheme", Scheme)
def test_plans_of_every_scheme(scheme: Scheme) -> None:
    constraints = TableConstraints(sharding_types=frozenset({scheme}))
    problem = make_problem(
        *(make_table(f"t{rows}", rows, 64, constraints=constraints) for rows in (1000, 1003)),
        cluster=make_cluster(num_hosts=2),
        runtime="generic",
    )
    found = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=5)).plan
    assert found is not None
    listed, compact = to_document(found, **FACTS), generic.to_document(found, **FACTS)
    assert compact == compact_document(listed)
    assert plan_digest(listed) == compact["plan_digest"]
    assert {table["sharding_type"] for table in listed["tables"]} == {scheme.label}


@pytest.mark.parametrize(
    ("shards", "groups"),
    [
        ([shard(rank) for rank in range(4)], [("0-3", None)]),
        ([shard(rank) for rank in (3, 2, 5, 6, 0)], [("3,2,5-6,0", None)]),
        ([shard(i, rows=(10 * i, 10)) for i in range(3)], [("0-2", "rows")]),
        ([*(shard(i, rows=(10 * i, 10)) for i in range(3)), shard(3, rows=(30, 7))], [("0-2", "rows"), ("3", None)]),
        ([shard(7 - i, columns=(4 * i, 4)) for i in range(3)], [("7,6,5", "columns")]),
        # The first two are row blocks; what follows begins a group of its own, though the last block is in its column.
        (
            [shard(0), shard(1, rows=(10, 10)), shard(2, rows=(10, 10), columns=(4, 4))],
            [("0-1", "rows"), ("2", None)],
        ),
        ([shard(0), shard(1, bytes=41), shard(2, tier="ddr")], [("0", None), ("1", None), ("2", None)]),
        ([shard(0), shard(1, rows=(11, 10))], [("0", None), ("1", None)]),
        ([], []),
    ],
)
def test_groups_are_as_long_as_they_can_be(shards: list[Any], groups: list[tuple[str, str | None]]) -> None:
    compact = compact_document({"tables": [{"shards": shards}]})
    assert [(one["ranks"], one["cut"]) for one in compact["tables"][0]["shards"]] == groups


def test_equal_loads_are_stated_once() -> None:
    rows = [
        {"rank": 0, "seconds": {"a": 1.0, "b": 2.0}, "bytes": {"hbm": 5}, "lookups": None},
        {"rank": 1, "seconds": {"a": 1.0, "b": 3.0}, "bytes": {"ddr": 5}, "lookups": None},
    ]
    columns = columns_of(rows, "rank")
    assert columns == {
        "rank": [0, 1],
        "seconds": {"a": 1.0, "b": [2.0, 3.0]},
        "bytes": [{"hbm": 5}, {"ddr": 5}],
        "lookups": None,
    }
    assert rows_of(columns) == rows
    assert columns_of(rows[:1], "rank") == {**rows[0], "rank": [0]}


@pytest.mark.parametrize("num_ranks", [8, 1024, 4096])
def test_a_thousand_tables_take_less_than_a_megabyte_whatever_the_ranks(num_ranks: int) -> None:
    tables = [
        {
            "name": f"t{number}",
            "cache_load_factor": None,
            "compute_kernel": "fused",
            "data_type": "fp16",
            "module_path": "model.sparse",
            "pooling": "sum",
            "sharding_type": "row_wise",
            "shards": [shard(rank, rows=(977 * rank, 977 - (rank == num_ranks - 1))) for rank in range(num_ranks)],
        }
        for number in range(20)
    ]
    compact = compact_document({"tables": tables})
    assert 50 * len(canonical_bytes(compact)) < 1_000_000


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_ranks_are_read_back(ranks: list[int]) -> None:
    assert ranks_of(ranks_text(ranks)) == ranks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "listed like"),
        ("0-", "listed like"),
        ("0,,1", "listed like"),
        ("-1", "listed like"),
        ("0-1023\n", "listed like"),
        ("3-2", "ends before it begins"),
        (f"0-{MAX_SHARDS_OF_GROUP}", "more than 1,000,000 shards"),
        (",".join(["0-999999"] * 2), "more than 1,000,000 shards"),
    ],
)
def test_other_texts_are_no_ranks(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shards_of([{**shard(0), "ranks": text, "cut": None}])


@pytest.mark.parametrize(
    ("columns", "message"),
    [({"rank": [0, 1], "host": [0]}, "not equally long"), ({"rank": 0}, "have no list"), ({}, "have no list")],
)
def test_columns_that_stand_for_no_rows(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of(columns)
