"""Files of tables, in every form: what is read, and what is refused with its place."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from api.specs.drafts.registry import read_draft
from api.specs.input.json import RejectedDocument
from tests.support.planning.print_outs import Printed, print_out

SHEET = """\
table,rows,dim,features,ids_per_sample,zipf_alpha,ids
user,1000,64,user,1,,
item,50,32,item;recent,20.5,1.05,hashed
"""


def refused(content: str | bytes) -> list[tuple[str, str]]:
    with pytest.raises(RejectedDocument) as error:
        read_draft(content if isinstance(content, bytes) else content.encode())
    return [(issue.pointer, issue.message) for issue in error.value.issues]


def configs(*tables: dict[str, Any]) -> bytes:
    return json.dumps(tables).encode()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_sheet_is_read_by_the_names_of_its_columns(delimiter: str) -> None:
    text = SHEET.replace("item;recent", "item recent").replace(",", delimiter)
    draft = read_draft(f"\ufeff{text}".encode())
    assert draft.tables == (
        {
            "name": "user",
            "num_embeddings": 1000,
            "embedding_dim": 64,
            "features": [{"name": "user", "pooling_factor": 1.0}],
        },
        {
            "name": "item",
            "num_embeddings": 50,
            "embedding_dim": 32,
            "features": [{"name": "item", "pooling_factor": 20.5}, {"name": "recent", "pooling_factor": 20.5}],
            "access": {"ids": "hashed", "zipf_alpha": 1.05},
        },
    )
    assert draft.features_without_ids == ()


def test_every_broken_cell_of_a_sheet_is_reported_with_its_line() -> None:
    text = 'name,num_embeddings,embedding_dim,colour\na,1_000,64,red\nb,10\n"c d",,8,\n'
    assert refused(text) == [
        ("", 'line 2, num_embeddings: "1_000" is not a whole number'),
        ("", "line 3 has 2 cells, and line 1 has 4 columns"),
        ("", "line 4 has no num_embeddings"),
    ]
    assert refused("name,rows,hash_size\n") == [
        ("", "line 1 has no column embedding_dim"),
        ("", "line 1 names the column num_embeddings more than once"),
    ]
    assert refused("name,rows,dim\n") == [("", "no line has a table")]
    (issue,) = read_draft(b"name,rows,dim,colour\na,10,4,red\n").warnings
    assert issue.message == "the column colour is not read"


def test_configs_of_torchrec_are_read_as_they_are_written() -> None:
    one = {
        "name": "a",
        "num_embeddings": 10,
        "embedding_dim": 8,
        "feature_names": ["x", "y"],
        "data_type": "DataType.FP16",
        "pooling": "PoolingType.MEAN",
        "init_fn": None,
        "stash_weights": True,
    }
    draft = read_draft(configs(one, {"name": "b", "num_embeddings": 3, "embedding_dim": 4, "pooling_factor": 2.0}))
    assert draft.tables == (
        {
            "name": "a",
            "num_embeddings": 10,
            "embedding_dim": 8,
            "feature_names": ["x", "y"],
            "data_type": "fp16",
            "pooling": "mean",
        },
        {"name": "b", "num_embeddings": 3, "embedding_dim": 4, "pooling_factor": 2.0},
    )
    assert draft.features_without_ids == ("x", "y")
    assert [issue.pointer for issue in draft.warnings] == ["/0/stash_weights"]
    assert draft.spec_tables({"x": 3.0}, 1.5)[0]["features"] == [
        {"name": "x", "pooling_factor": 3.0},
        {"name": "y", "pooling_factor": 1.5},
    ]


@pytest.mark.parametrize(("factors", "expected"), [([2.0], [2.0, 2.0]), ([2.0, 7.0], [2.0, 7.0])])
def test_pooling_factors_are_by_feature_or_one_for_all(factors: Sequence[float], expected: Sequence[float]) -> None:
    one = {"name": "a", "num_embeddings": 10, "embedding_dim": 8, "feature_names": ["x", "y"]}
    (table,) = read_draft(configs({**one, "pooling_factors": factors})).spec_tables({}, None)
    assert [feature["pooling_factor"] for feature in table["features"]] == expected  # type: ignore[attr-defined]


def test_broken_configs_point_into_the_file() -> None:
    one = {"name": "a", "num_embeddings": 10, "embedding_dim": 8}
    assert refused(configs(one, {**one, "num_embeddings": "x", "embeding_dim": 3})) == [
        ("/1/num_embeddings", "expected a whole number"),
        ("/1/embeding_dim", "unknown field"),
    ]
    assert refused(configs({**one, "use_virtual_table": True}, {**one, "pooling_factors": [1.0, 2.0]})) == [
        ("/0/use_virtual_table", 'table "a" is a virtual table, which has no rows to place'),
        ("/1/pooling_factors", 'table "a" has 2 pooling factors for 1 features'),
    ]
    tables = json.dumps({"tables": [{**one, "name": 3}]})
    assert [place for place, _ in refused(tables)] == ["/tables/0/name"]


def test_a_feature_without_ids_and_a_number_without_feature_are_refused() -> None:
    draft = read_draft(configs({"name": "a", "num_embeddings": 10, "embedding_dim": 8}))
    with pytest.raises(RejectedDocument) as error:
        draft.spec_tables({"b": 1.0}, None)
    assert [(issue.code, issue.pointer) for issue in error.value.issues] == [
        ("unknown-name", ""),
        ("missing-field", "/model/tables/0"),
    ]


def shard(rank: int, offsets: list[int], sizes: list[int]) -> dict[str, object]:
    return {"shard_offsets": offsets, "shard_sizes": sizes, "placement": f"rank:{rank}/cuda:{rank}"}


def test_tables_of_a_torchrec_plan_are_as_large_as_their_shards_together() -> None:
    halves = [shard(0, [0, 0], [10, 32]), shard(5, [0, 32], [10, 32])]
    cut = {"sharding_type": "column_wise", "compute_kernel": "fused", "ranks": [0, 5], "shards": halves}
    draft = read_draft(json.dumps({"plan": {"m.ebc": {"a": cut}, "n": {"a": cut}}}).encode())
    sizes = {"num_embeddings": 10, "embedding_dim": 64}
    assert draft.tables == (
        {"name": "m.ebc/a", **sizes, "module_path": "m.ebc"},
        {"name": "n/a", **sizes, "module_path": "n"},
    )
    assert draft.world_size == 6
    copied = {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1]}
    assert [place for place, _ in refused(json.dumps({"plan": {"m": {"a": copied, "b": cut}}}))] == ["/plan/m/a/shards"]


def test_a_print_out_has_tables_ranks_batch_and_pooling_factors() -> None:
    one = Printed(path="m.ebc.a", sharding="TW", ranks="2", rows=7, columns="256")
    draft = read_draft(print_out([one], ["1.0"] * 4).encode())
    assert draft.tables == (
        {
            "name": "a",
            "num_embeddings": 7,
            "embedding_dim": 256,
            "module_path": "m.ebc",
            "features": [{"name": "a", "pooling_factor": 1.0}],
        },
    )
    assert (draft.world_size, draft.batch_size_per_rank) == (4, 64)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "nothing of the kind\nat all", '{"plan_digest": "x"}'])
def test_what_has_no_tables_is_refused_with_the_forms_that_do(content: str) -> None:
    with pytest.raises(RejectedDocument) as error:
        read_draft(content.encode())
    (issue,) = error.value.issues
    assert issue.code == "unknown-form"
    assert issue.hint
