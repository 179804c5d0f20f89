"""The export for HugeCTR: what it says, that lookups through it equal the unsharded tables, and what it refuses."""

import hashlib
from typing import Any

import numpy as np
import pytest

from planner.domain.formats.canonical_json import canonical_bytes
from planner.options.runtimes.export import UnexportablePlan
from tests.support.planning.export_documents import document, table
from tests.support.planning.exports import exporter
from tests.support.runtimes.hugectr_simulator import Collection, SetupFailed, unsharded

export_plan = exporter("hugectr")

COPIED = table("copied", "data_parallel", [(rank, 0, 5, 0, 4) for rank in range(4)])
WHOLE = table("whole", "table_wise", [(2, 0, 7, 0, 8)], pooling="mean")
ROWS = table("rows", "row_wise", [(0, 0, 3, 0, 4), (1, 3, 3, 0, 4), (2, 6, 3, 0, 4), (3, 9, 1, 0, 4)], pooling="mean")
HOST = table("host", "table_row_wise", [(2, 0, 6, 0, 4), (3, 6, 5, 0, 4)])
PIECES = table("pieces", "column_wise", [(3, 0, 9, 0, 8), (1, 0, 9, 8, 8)])
GRID = table("grid", "grid_shard", [(2, 0, 5, 0, 4), (3, 5, 4, 0, 4), (0, 0, 5, 4, 4), (1, 5, 4, 4, 4)])
ALL = (COPIED, WHOLE, ROWS, HOST, PIECES, GRID)


def weights_of(export: dict[str, Any], seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    rows = {one["name"]: sum(shard["num_rows"] for shard in one["shards"]) for one in export["tables"]}
    for one in export["tables"]:  # a dynamic table has no size: as many ids as its GPUs are planned to have
        if one["max_vocabulary_size"] >= 0:
            rows[one["name"]] = one["max_vocabulary_size"]
    return {one["name"]: draw.normal(size=(rows[one["name"]], one["ev_size"])) for one in export["tables"]}


def assert_lookups_are_right(export: dict[str, Any], *, seed: int = 0) -> None:
    """Bags of 0 to 5 ids on every GPU, with repetitions, and every id of every table at least once."""
    weights, draw = weights_of(export, seed), np.random.default_rng(seed + 1)
    collection = Collection(export, weights)
    for one in export["tables"]:
        for gpu in range(collection.num_gpus):
            bags = [draw.integers(len(weights[one["name"]]), size=draw.integers(6)).tolist() for _ in range(8)]
            bags.append(list(range(len(weights[one["name"]]))))
            want = unsharded(weights[one["name"]], one["combiner"], bags)
            np.testing.assert_allclose(collection.lookup(gpu, one["name"], bags), want, rtol=1e-12, atol=1e-12)


def test_the_whole_export() -> None:
    plan = document(WHOLE, COPIED, PIECES)
    export = export_plan(plan)
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    assert content == {
        "format": "hugectr",
        "format_version": 1,
        "plan_digest": plan["plan_digest"],
        "num_gpus": 4,
        "num_nodes": 2,
        "vvgpu": [[0, 1], [0, 1]],
        "comm_strategy": "Uniform",
        "rows": "modulo",
        "tables": [
            {
                "name": "whole",
                "max_vocabulary_size": 7,
                "ev_size": 8,
                "combiner": "average",
                "shards": [holding(2, 0, 1, 7, 0, 8)],
            },
            {
                "name": "copied",
                "max_vocabulary_size": 5,
                "ev_size": 4,
                "combiner": "sum",
                "shards": [holding(gpu, 0, 1, 5, 0, 4) for gpu in range(4)],
            },
            {
                "name": "pieces",
                "max_vocabulary_size": 9,
                "ev_size": 16,
                "combiner": "sum",
                "shards": [holding(1, 0, 1, 9, 0, 8), holding(3, 0, 1, 9, 8, 8)],
            },
        ],
        "shard_matrix": [["copied"], ["copied", "pieces"], ["whole", "copied"], ["copied", "pieces"]],
        "shard_strategy": [["dp", ["copied"]], ["mp", ["whole", ["pieces", 2]]]],
        "compression_strategy": {"Reduction": ["whole", "pieces"]},
    }


def holding(gpu: int, first: int, step: int, rows: int, column: int, columns: int) -> dict[str, int]:
    return {
        "gpu": gpu,
        "first_row": first,
        "row_step": step,
        "num_rows": rows,
        "column_offset": column,
        "num_columns": columns,
    }


def test_dynamic_tables_have_no_vocabulary_size() -> None:
    whole, rows = WHOLE | {"hash_table_mode": "hugectr"}, ROWS | {"hash_table_mode": "hugectr"}
    export = export_plan(document(whole, rows))
    assert [one["max_vocabulary_size"] for one in export["tables"]] == [-1, -1]
    assert [shard["num_rows"] for shard in export["tables"][1]["shards"]] == [3, 3, 2, 2]
    assert export["shard_strategy"] == [["mp", ["whole", "rows"]]]
    assert_lookups_are_right(export)
    with pytest.raises(UnexportablePlan, match='Table "whole": it has a fixed size next to "rows", which has none'):
        export_plan(document(WHOLE, rows))
    with pytest.raises(UnexportablePlan, match="a dynamic table is not copied to all GPUs"):
        export_plan(document(COPIED | {"hash_table_mode": "hugectr"}))
    with pytest.raises(UnexportablePlan, match="it is a hash table of zch; dynamic tables are hugectr"):
        export_plan(document(ROWS | {"hash_table_mode": "zch"}))


@pytest.mark.parametrize("seed", range(3))
def test_lookups_equal_the_unsharded_tables(seed: int) -> None:
    assert_lookups_are_right(export_plan(document(*ALL)), seed=seed)


def test_the_simulator_reports_wrong_exports_from_right_ones() -> None:
    """Lookups of ids whose rows are elsewhere fail, and HugeCTR's own checks are made."""
    export = export_plan(document(*ALL))
    weights = weights_of(export, 0)
    ((_, others),) = mp_without(export, "whole")
    for changes, message in (
        ({"shard_matrix": export["shard_matrix"][:3]}, "shard matrix"),
        ({"shard_strategy": [["mp", ["whole"]]]}, "in no group"),
        ({"shard_strategy": [["dp", ["copied", "whole"]], *mp_without(export, "whole")]}, "no lookup"),
        (
            {"shard_strategy": [["dp", ["copied"]], ["mp", [["whole", 3], *others]]]},
            "ev_size",
        ),
        (
            {"shard_strategy": [["dp", ["copied"]], ["mp", [["whole", 2], *others]]]},
            "divided",
        ),
        ({"compression_strategy": {"Reduction": ["whole"]}}, "does not match"),
    ):
        with pytest.raises(SetupFailed, match=message):
            Collection(export | changes, weights)
    undivided = Collection(export, weights)
    undivided.tables["rows"]["combiner"] = "sum"
    right = unsharded(weights["rows"], "average", [[1, 2]])
    np.testing.assert_allclose(Collection(export, weights).lookup(0, "rows", [[1, 2]]), right)
    assert not np.allclose(undivided.lookup(0, "rows", [[1, 2]]), right)


def mp_without(export: dict[str, Any], name: str) -> list[list[Any]]:
    return [[kind, [one for one in group if one != name]] for kind, group in export["shard_strategy"] if kind == "mp"]


def test_a_round_trip_has_the_same_placement() -> None:
    """Read back, every GPU has the piece and the share of rows that the plan put there; which one, HugeCTR says."""
    plan = document(*ALL)
    export = export_plan(plan)
    collection = Collection(export, weights_of(export, 0))
    for planned, exported in zip(plan["tables"], export["tables"], strict=True):
        name, held = planned["name"], {}
        for gpu in range(4):
            cells = collection.held_cells(gpu, name)
            if cells:
                held[gpu] = cells
        assert set(held) == {shard["rank"] for shard in planned["shards"]}
        for shard in planned["shards"]:
            columns = {column for _, column in held[shard["rank"]]}
            rows = {row for row, _ in held[shard["rank"]]}
            blocks = sum(other["column_offset"] == shard["column_offset"] for other in planned["shards"])
            assert len(columns) == shard["num_columns"]
            if name == "copied":
                assert len(rows) == shard["num_rows"]
            else:
                assert abs(len(rows) - shard["num_rows"]) < max(blocks, 1)
                assert len(rows) <= max(other["num_rows"] for other in planned["shards"])
        if name != "copied":  # every cell once
            assert sum(map(len, held.values())) == exported["max_vocabulary_size"] * exported["ev_size"]
            assert len(set().union(*held.values())) == exported["max_vocabulary_size"] * exported["ev_size"]


def test_what_is_written_of_shards_is_what_hugectr_holds() -> None:
    export = export_plan(document(*ALL))
    collection = Collection(export, weights_of(export, 0))
    for one in export["tables"]:
        for shard in one["shards"]:
            rows = range(shard["first_row"], one["max_vocabulary_size"], shard["row_step"])
            columns = range(shard["column_offset"], shard["column_offset"] + shard["num_columns"])
            assert len(rows) == shard["num_rows"]
            assert collection.held_cells(shard["gpu"], one["name"]) == {(r, c) for r in rows for c in columns}
        assert len(one["shards"]) == sum(one["name"] in held for held in export["shard_matrix"])


def random_table(draw: np.random.Generator, name: str, num_gpus: int) -> dict[str, Any]:
    """Any pieces on any neighbours among any GPUs, their blocks in any order."""
    blocks = int(draw.integers(1, num_gpus + 1))
    pieces = int(draw.integers(1, num_gpus // blocks + 1))
    gpus = np.sort(draw.permutation(num_gpus)[: blocks * pieces]).reshape(pieces, blocks)
    rows, width = int(draw.integers(blocks * blocks, 40 + blocks * blocks)), 4 * int(draw.integers(1, 4))
    share = -(-rows // blocks)
    shards = [
        (int(gpu), block * share, min(share, rows - block * share), width * place, width)
        for place, piece in enumerate(draw.permutation(pieces))
        for block, gpu in enumerate(draw.permutation(gpus[piece]))
    ]
    return table(name, "grid_shard", shards, pooling=str(draw.choice(["sum", "mean"])))


@pytest.mark.parametrize("seed", range(40))
def test_random_plans(seed: int) -> None:
    draw = np.random.default_rng(seed)
    num_gpus = int(draw.choice([1, 2, 4, 6, 8]))
    tables = [random_table(draw, f"t{number}", num_gpus) for number in range(4)]
    plan = document(*tables, world_size=num_gpus, ranks_per_host=num_gpus)
    assert_lookups_are_right(export_plan(plan), seed=seed)


def test_a_plan_of_copies_alone_has_one_group_and_compresses_nothing() -> None:
    export = export_plan(document(COPIED))
    assert export["shard_strategy"] == [["dp", ["copied"]]]
    assert export["compression_strategy"] == {}
    assert_lookups_are_right(export)


def test_an_unknown_pooling_is_left_to_the_script() -> None:
    export = export_plan(document({key: value for key, value in WHOLE.items() if key not in ("pooling", "data_type")}))
    assert export["tables"][0]["combiner"] is None


HALVES = [(0, 0, 9, 0, 8), (1, 0, 9, 8, 8)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (table("t", "column_wise", [(1, 0, 9, 0, 8), (1, 0, 9, 8, 8)]), "two shards are on GPU 1"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 8, 4)]), "4 and 8 wide; they must be equally wide"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 16, 8)]), "column pieces leave gaps or overlap"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 4, 8)]), "column pieces leave gaps or overlap"),
        (table("t", "grid_shard", [(0, 0, 5, 0, 8), (1, 5, 4, 0, 8), (2, 0, 9, 8, 8)]), "on 1 and 2 GPUs"),
        (
            table("t", "grid_shard", [(0, 0, 5, 0, 8), (2, 5, 4, 0, 8), (1, 0, 5, 8, 8), (3, 5, 4, 8, 8)]),
            "the GPUs of its column pieces interleave",
        ),
        (
            table("t", "row_wise", [(0, 0, 6, 0, 8), (1, 6, 3, 0, 8)]),
            "6 rows; .* at most 5 to each of 2",
        ),
        (table("t", "row_wise", [(0, 0, 4, 0, 8), (1, 5, 4, 0, 8)]), "row blocks leave gaps or overlap"),
        (table("t", "row_wise", [(0, 0, 5, 0, 8), (1, 4, 5, 0, 8)]), "row blocks leave gaps or overlap"),
        (table("t", "table_wise", [(0, 0, 5, 0, 260)]), "260 columns are on one GPU; gradients are 256 wide at most"),
        (table("t", "data_parallel", [(rank, 0, 5, 0, 260) for rank in range(4)]), "260 columns are on one GPU"),
        (table("t", "data_parallel", [(rank, 0, 5, 0, 4) for rank in range(3)]), "without one whole copy on every GPU"),
        (table("t", "data_parallel", [(rank, rank, 5, 0, 4) for rank in range(4)]), "without one whole copy"),
        (table("t", "column_wise", HALVES, pooling="none"), "looked up without pooling"),
        (table("t", "column_wise", HALVES, data_type="fp16"), "weights are fp16; they must be fp32"),
        (table("t", "column_wise", HALVES, compute_kernel="fused_uvm_caching"), r"lie in ddr \(fused_uvm_caching\)"),
    ],
)
def test_what_hugectr_does_not_run_is_refused_by_table(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=f'Table "t": .*{reason}'):
        export_plan(document(WHOLE, wrong))


def test_rows_outside_the_gpu_are_refused() -> None:
    far = table("t", "column_wise", HALVES)
    far["shards"][1]["tier"] = "ddr"
    with pytest.raises(UnexportablePlan, match="its rows lie in ddr and hbm"):
        export_plan(document(far))


def test_every_table_that_is_refused_is_named_up_to_a_number() -> None:
    wrong = [table(f"t{number}", "table_wise", [(0, 0, 9, 0, 8)], pooling="none") for number in range(23)]
    with pytest.raises(UnexportablePlan) as caught:
        export_plan(document(WHOLE, *wrong))
    reported = str(caught.value)
    assert all(f'Table "t{number}": ' in reported for number in range(20))
    assert '"t20"' not in reported
    assert '"whole"' not in reported
    assert "And 3 more." in reported


def test_changed_plans_and_other_devices_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match="was changed after it was published"):
        export_plan(document(WHOLE) | {"world_size": 8})
    with pytest.raises(UnexportablePlan, match="device must be cuda, not cpu"):
        export_plan(document(WHOLE), device="cpu")
