"""The export for NVIDIA distributed-embeddings, through the loader of the docs: what ranks hold, answer, and refuse."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from planner.domain.formats.canonical_json import canonical_bytes
from planner.options.runtimes.export import UnexportablePlan
from tests.support.paths import ROOT
from tests.support.planning.export_documents import document, table
from tests.support.planning.exports import exporter
from tests.support.runtimes import distributed_embeddings_simulator as simulator
from tests.support.runtimes.distributed_embeddings_simulator import DistEmbeddingStrategy, SetupFailed, together

export_plan = exporter("distributed_embeddings")

DOCS = ROOT / "docs" / "runtimes.md"


COPIED = table("copied", "data_parallel", [(rank, 0, 30, 0, 4) for rank in range(4)], pooling="mean")
WHOLE = table("whole", "table_wise", [(2, 0, 7, 0, 4)], pooling="mean")
BELOW = table("below", "table_wise", [(2, 0, 6, 0, 4)], pooling="mean")
OTHER = table("other", "table_wise", [(0, 0, 6, 0, 4)])
ROWS = table("rows", "row_wise", [(1, 0, 3, 0, 4), (0, 3, 3, 0, 4), (2, 6, 3, 0, 4), (3, 9, 1, 0, 4)])
SLICES = table("slices", "column_wise", [(3, 0, 9, 0, 4), (1, 0, 9, 4, 5), (2, 0, 9, 9, 4)], pooling="mean")
NEXT_TO = table("beside", "table_wise", [(2, 0, 3, 0, 4)])
ALL = (WHOLE, COPIED, BELOW, ROWS, OTHER, SLICES, NEXT_TO)


def weights_of(export: dict[str, Any], seed: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(one["input_dim"], one["output_dim"])) for one in export["tables"]]


def the_loader() -> str:
    """Return the script of the docs."""
    section = DOCS.read_text().split("## NVIDIA distributed-embeddings")[1]
    return section.split("```python\n")[1].split("```")[0]


def load(
    export: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    input_table_map: Sequence[int] | None = None,
    num_ranks: int | None = None,
) -> list[simulator.DistributedEmbedding]:
    """Run the loader of the docs as every rank does."""
    (tmp_path / "distributed_embeddings.json").write_text(json.dumps(export))
    monkeypatch.chdir(tmp_path)
    workers = []
    world_size = export["num_ranks"] if num_ranks is None else num_ranks
    for rank in range(world_size):
        dmp: Any = ModuleType("dist_model_parallel")
        dmp.DistEmbeddingStrategy = DistEmbeddingStrategy

        def layer(embeddings: Any, rank: int = rank, dmp: Any = dmp) -> simulator.DistributedEmbedding:
            return simulator.DistributedEmbedding(
                embeddings, rank, world_size, input_table_map, dmp.DistEmbeddingStrategy
            )

        dmp.DistributedEmbedding = layer
        horovod: Any = ModuleType("horovod.tensorflow")
        horovod.init, horovod.size = lambda: None, lambda: world_size
        layers: Any = ModuleType("layers")
        layers.dist_model_parallel = dmp
        embedding: Any = ModuleType("embedding")
        embedding.Embedding = simulator.Embedding
        package = "distributed_embeddings"
        for name, module in (
            ("horovod", ModuleType("horovod")),
            ("horovod.tensorflow", horovod),
            (package, ModuleType(package)),
            (f"{package}.python", ModuleType("python")),
            (f"{package}.python.layers", layers),
            (f"{package}.python.layers.embedding", embedding),
        ):
            monkeypatch.setitem(sys.modules, name, module)
        sys.modules["horovod"].tensorflow = horovod  # type: ignore[attr-defined]
        names: dict[str, Any] = {}
        exec(compile(the_loader(), "runtimes.md", "exec"), names)
        workers.append(names["embeddings"])
    return workers


def inputs_of(export: dict[str, Any], looked_up: Sequence[int], num_ranks: int, seed: int) -> list[list[Any]]:
    """Bags of 1 to 5 ids on every rank; of tables cut by rows 5 ids, some of which stand for none."""
    draw = np.random.default_rng(seed)
    inputs: list[list[Any]] = []
    for _ in range(num_ranks):
        of_rank: list[Any] = []
        for number in looked_up:
            one = export["tables"][number]
            bags = [draw.integers(one["input_dim"], size=draw.integers(1, 6)).tolist() for _ in range(6)]
            bags[0] = draw.integers(one["input_dim"], size=2).tolist()  # more ids than samples
            if one["group"] == "row_slice":
                of_rank.append(np.array([[*bag, *[-1] * (5 - len(bag))] for bag in bags]))
            else:
                of_rank.append(bags)
        inputs.append(of_rank)
    return inputs


def assert_lookups_are_right(
    export: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    seed: int = 0,
    input_table_map: Sequence[int] | None = None,
) -> None:
    workers = load(export, monkeypatch, tmp_path, input_table_map=input_table_map)
    weights = weights_of(export, seed)
    for worker in workers:
        worker.set_weights(weights)
    looked_up = range(len(weights)) if input_table_map is None else input_table_map
    inputs = inputs_of(export, looked_up, len(workers), seed + 1)
    for given, answers in zip(inputs, together(workers, inputs), strict=True):
        for one, answer, number in zip(given, answers, looked_up, strict=True):
            bags = [[int(row) for row in bag if row >= 0] for bag in one]
            want = simulator.unsharded(weights[number], export["tables"][number]["combiner"], bags)
            np.testing.assert_allclose(answer, want, rtol=1e-12, atol=1e-12)


def holding(rank: int, row: int, rows: int, column: int, columns: int) -> dict[str, int]:
    return {"rank": rank, "row_offset": row, "num_rows": rows, "column_offset": column, "num_columns": columns}


def test_the_whole_export() -> None:
    plan = document(*ALL)
    export = export_plan(plan)
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    copies = [holding(rank, 0, 30, 0, 4) for rank in range(4)]
    blocks = [holding(0, 0, 3, 0, 4), holding(1, 3, 3, 0, 4), holding(2, 6, 2, 0, 4), holding(3, 8, 2, 0, 4)]
    slices = [holding(1, 0, 9, 0, 5), holding(2, 0, 9, 5, 4), holding(3, 0, 9, 9, 4)]

    def written(name: str, rows: int, columns: int, combiner: str, group: str, *shards: Any) -> dict[str, Any]:
        sizes = {"input_dim": rows, "output_dim": columns, "combiner": combiner}
        return {"name": name, **sizes, "group": group, "shards": list(shards)}

    assert content == {
        "format": "distributed_embeddings",
        "format_version": 1,
        "plan_digest": plan["plan_digest"],
        "num_ranks": 4,
        "ranks_per_host": 2,
        "tables": [
            written("whole", 7, 4, "mean", "table_parallel", holding(2, 0, 7, 0, 4)),
            written("copied", 30, 4, "mean", "data_parallel", *copies),
            written("below", 6, 4, "mean", "table_parallel", holding(2, 0, 6, 0, 4)),
            written("rows", 10, 4, "sum", "row_slice", *blocks),
            written("other", 6, 4, "sum", "table_parallel", holding(0, 0, 6, 0, 4)),
            written("slices", 9, 13, "mean", "table_parallel", *slices),
            written("beside", 3, 4, "sum", "table_parallel", holding(2, 0, 3, 0, 4)),
        ],
        "strategy": {
            "table_groups": [[1], [0, 2, 4, 5, 6], [3]],
            "column_slices": [1, 1, 1, 1, 1, 3, 1],
            "table_ids": [[2], [3], [0, 1, 3, 4], [3]],
        },
        "concatenated": [
            [{"tables": ["other"], "num_rows": 6, "num_columns": 4, "row_offsets": [0]}],
            [{"tables": ["slices"], "num_rows": 9, "num_columns": 5, "row_offsets": [0]}],
            [
                {"tables": ["whole", "below", "slices"], "num_rows": 22, "num_columns": 4, "row_offsets": [0, 7, 13]},
                {"tables": ["beside"], "num_rows": 3, "num_columns": 4, "row_offsets": [0]},
            ],
            [{"tables": ["slices"], "num_rows": 9, "num_columns": 4, "row_offsets": [0]}],
        ],
    }


@pytest.mark.parametrize("seed", range(3))
def test_lookups_through_the_loader_equal_the_unsharded_tables(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    export = export_plan(document(*ALL))
    assert_lookups_are_right(export, monkeypatch, tmp_path, seed=seed)


def test_tables_that_several_inputs_are_looked_up_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    export = export_plan(document(*ALL))
    shared = [5, 3, 0, 1, 5, 4, 2, 3, 1, 0]
    assert_lookups_are_right(export, monkeypatch, tmp_path, input_table_map=shared)


def test_the_loader_stops_where_the_plan_is_for_another_number_of_ranks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match="the plan is for 4 ranks, not 2"):
        load(export_plan(document(*ALL)), monkeypatch, tmp_path, num_ranks=2)


def set_up(export: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for worker in load(export, monkeypatch, tmp_path):
        worker.set_weights(weights_of(export, 0))


def held_cells(worker: simulator.DistributedEmbedding, number: int, export: dict[str, Any]) -> set[tuple[int, int]]:
    """Return the cells of a table on a rank, told by weights that name their cell."""
    weights = [np.full((one["input_dim"], one["output_dim"]), -1.0) for one in export["tables"]]
    rows, columns = weights[number].shape
    weights[number] = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    worker.set_weights(weights)
    cells: set[tuple[int, int]] = set()
    for variable in (*worker.dp, *worker.tp, *worker.row):
        cells |= {divmod(int(cell), columns) for cell in variable[variable >= 0]}
    return cells


def test_what_is_written_of_shards_is_what_ranks_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    export = export_plan(document(*ALL))
    for worker in load(export, monkeypatch, tmp_path):
        for number, one in enumerate(export["tables"]):
            reported = {
                (row, column)
                for shard in one["shards"]
                if shard["rank"] == worker.rank
                for row in range(shard["row_offset"], shard["row_offset"] + shard["num_rows"])
                for column in range(shard["column_offset"], shard["column_offset"] + shard["num_columns"])
            }
            assert held_cells(worker, number, export) == reported


def test_what_is_written_of_variables_is_what_ranks_make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    export = export_plan(document(*ALL))
    names = [export["tables"][number]["name"] for number in export["strategy"]["table_groups"][1]]
    for worker, reported in zip(load(export, monkeypatch, tmp_path), export["concatenated"], strict=True):
        rank = worker.strategy.ranks[worker.rank]
        shapes = [(config["input_dim"], config["output_dim"]) for config in rank.variables]
        assert [(one["num_rows"], one["num_columns"]) for one in reported] == shapes
        assert [one["tables"] for one in reported] == [[names[rank.tables[place]] for place in p] for p in rank.members]
        first = {name: row for one in reported for name, row in zip(one["tables"], one["row_offsets"], strict=True)}
        inputs = [names[number] for number in rank.inputs]
        assert [first[name] for name in inputs] == rank.offset_of_input


def test_every_rectangle_of_the_plan_is_accounted_for() -> None:
    """As many columns as planned on each rank, and of row blocks fewer than one row for each rank more."""
    plan = document(*ALL)
    export = export_plan(plan)
    for planned, exported in zip(plan["tables"], export["tables"], strict=True):
        held = {shard["rank"]: shard for shard in exported["shards"]}
        assert set(held) == {shard["rank"] for shard in planned["shards"]}
        for shard in planned["shards"]:
            more = held[shard["rank"]]["num_rows"] - shard["num_rows"]
            assert held[shard["rank"]]["num_columns"] == shard["num_columns"]
            assert more < plan["world_size"] if planned["name"] == "rows" else more == 0
            assert held[shard["rank"]]["num_rows"] <= max(other["num_rows"] for other in planned["shards"])


def test_blocks_of_an_even_share_on_fewer_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nine rows in blocks of three leave the last of four ranks out; the library gives it some all the same."""
    nine = table("t", "row_wise", [(0, 0, 3, 0, 4), (1, 3, 3, 0, 4), (2, 6, 3, 0, 4)])
    export = export_plan(document(nine))
    assert [(one["rank"], one["row_offset"], one["num_rows"]) for one in export["tables"][0]["shards"]] == [
        (0, 0, 3),
        (1, 3, 2),
        (2, 5, 2),
        (3, 7, 2),
    ]
    assert_lookups_are_right(export, monkeypatch, tmp_path)


def random_table(draw: np.random.Generator, name: str, num_ranks: int) -> dict[str, Any]:
    """A table whole, copied, cut into any even slices, or cut by rows, on ranks in any order."""
    scheme = str(draw.choice(["table_wise", "data_parallel", "column_wise", "row_wise"]))
    rows, columns = int(draw.integers(num_ranks**2 + 1, num_ranks**2 + 40)), int(draw.integers(8, 20))
    pooling = str(draw.choice(["sum", "mean"])) if scheme != "row_wise" else "sum"
    if scheme == "table_wise":
        shards = [(int(draw.integers(num_ranks)), 0, rows, 0, columns)]
    elif scheme == "data_parallel":
        shards = [(rank, 0, rows, 0, columns) for rank in range(num_ranks)]
    elif scheme == "row_wise":
        share = -(-rows // num_ranks)
        shards = [
            (int(rank), block * share, min(share, rows - block * share), 0, columns)
            for block, rank in enumerate(draw.permutation(num_ranks))
        ]
    else:
        number = int(draw.integers(1, num_ranks + 1))
        ranks = sorted(draw.permutation(num_ranks)[:number].tolist())
        narrow, wider = divmod(columns, number)
        widths = {rank: narrow + (place < wider) for place, rank in enumerate(ranks)}
        offset, shards = 0, []
        for rank in draw.permutation(ranks).tolist():
            shards.append((rank, 0, rows, offset, widths[rank]))
            offset += widths[rank]
    return table(name, scheme, shards, pooling=pooling)


@pytest.mark.parametrize("seed", range(40))
def test_random_plans(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    num_ranks = int(draw.choice([1, 2, 3, 4, 6, 8]))
    tables = [random_table(draw, f"t{number}", num_ranks) for number in range(5)]
    tables += [table(f"on{rank}", "table_wise", [(rank, 0, 5, 0, 4)]) for rank in range(num_ranks)]
    draw.shuffle(tables)  # type: ignore[arg-type]
    plan = document(*tables, world_size=num_ranks, ranks_per_host=num_ranks)
    assert_lookups_are_right(export_plan(plan), monkeypatch, tmp_path, seed=seed)


@pytest.mark.parametrize("tables", [(COPIED,), (ROWS,), (ROWS, COPIED)])
def test_plans_without_a_table_parallel_table(
    tables: tuple[dict[str, Any], ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    export = export_plan(document(*tables))
    assert export["strategy"]["table_ids"] == [[], [], [], []]
    assert_lookups_are_right(export, monkeypatch, tmp_path)


def test_one_rank_has_neither_copies_nor_row_slices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The library falls back to tables of the rank then."""
    copied = table("a", "data_parallel", [(0, 0, 5, 0, 4)], pooling="mean")
    plan = document(copied, table("b", "row_wise", [(0, 0, 5, 0, 4)]), world_size=1, ranks_per_host=1)
    export = export_plan(plan)
    assert export["strategy"]["table_groups"] == [[], [0, 1], []]
    assert_lookups_are_right(export, monkeypatch, tmp_path)


def test_the_simulator_reports_wrong_exports_from_right_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    export = export_plan(document(*ALL))
    right = export["strategy"]
    for changes, message in (
        ({"table_groups": [[1], [0, 2, 4], [3]]}, "in no group"),
        ({"table_ids": [[2, 3], [3], [0, 1, 3], []]}, "Not enough table"),
        ({"table_ids": [[2], [3, 3], [0, 1], [3]]}, "shape of the variable"),  # slices that meet
    ):
        wrong = export | {"strategy": right | changes}
        with pytest.raises(SetupFailed, match=message):
            set_up(wrong, monkeypatch, tmp_path)
    few = export_plan(document(table("t", "row_wise", [(rank, rank, 1, 0, 4) for rank in range(4)])))
    few["tables"][0]["input_dim"] = 3
    with pytest.raises(SetupFailed, match="should be positive"):
        set_up(few, monkeypatch, tmp_path)
    swapped = export | {"strategy": right | {"column_slices": [1] * len(ALL)}}
    with pytest.raises(IndexError):
        load(swapped, monkeypatch, tmp_path)


def changed(inputs: list[list[Any]], number: int, bags: Any) -> list[list[Any]]:
    return [[bags if place == number else one for place, one in enumerate(of_rank)] for of_rank in inputs]


def test_what_the_docs_say_of_inputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ragged inputs of row slices stop, empty bags have no mean, mixed kinds of inputs are mistaken for one another."""
    export = export_plan(document(*ALL))
    workers, weights = load(export, monkeypatch, tmp_path), weights_of(export, 0)
    for worker in workers:
        worker.set_weights(weights)
    inputs = inputs_of(export, range(len(ALL)), 4, seed=1)
    right = together(workers, inputs)
    with pytest.raises(SetupFailed, match="only tensors can be gathered"):
        together(workers, changed(inputs, 3, [[0]] * 6))
    bags = [[0, 1, 2], [], [1, 2], [3], [1], [2]]
    assert np.isnan(together(workers, changed(inputs, 0, bags))[0][0][1]).all()
    assert not np.isnan(together(workers, changed(inputs, 0, [[0], *bags[2:], [1, 2]]))[0][0]).any()
    one_id_each = together(workers, changed(inputs, 2, [[0, 1], [], [1], [1], [1], [2]]))[0][2]
    np.testing.assert_allclose(one_id_each[1], weights[2][1])  # not that of an empty bag
    mixed = together(workers, changed(inputs, 2, np.array([[5]] * 6)))
    assert not np.allclose(mixed[0][0], right[0][0])


HALVES = [(0, 0, 9, 0, 8), (1, 0, 9, 8, 8)]
GAP_AND_OVERLAP = [(0, 0, 9, 0, 8), (1, 0, 9, 4, 8), (2, 0, 9, 16, 8)]  # as many columns as to the end of the last
QUARTERS = [(0, 0, 5, 0, 8), (1, 5, 4, 0, 8), (2, 0, 5, 8, 8), (3, 5, 4, 8, 8)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (table("t", "column_wise", [(1, 0, 9, 0, 8), (1, 0, 9, 8, 8)]), "two shards are on rank 1"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 8, 4)]), "4 and 8 wide; 12 .* into slices of 6"),
        (table("t", "column_wise", [(0, 0, 9, 0, 4), (1, 0, 9, 4, 5)]), "4 and 5 wide; .* on the lower ranks"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 16, 8)]), "column slices leave gaps or overlap"),
        (table("t", "column_wise", [(0, 0, 9, 0, 8), (1, 0, 9, 4, 8)]), "column slices leave gaps or overlap"),
        (table("t", "column_wise", GAP_AND_OVERLAP), "column slices leave gaps or overlap"),
        (table("t", "grid_shard", QUARTERS), "cut by rows and by columns"),
        (table("t", "row_wise", [(0, 0, 5, 0, 8), (1, 5, 4, 0, 8)]), "5 rows; .* at most 3 to each of 4"),
        (table("t", "row_wise", [(r, r, 1, 0, 8) for r in range(3)]), "its 3 rows are cut, .* over all 4 ranks"),
        (table("t", "row_wise", [(0, 0, 2, 0, 8), (1, 3, 2, 0, 8), (2, 5, 3, 0, 8)]), "row blocks leave gaps"),
        (table("t", "row_wise", [(0, 0, 3, 0, 8), (1, 2, 3, 0, 8), (2, 5, 3, 0, 8)]), "row blocks leave gaps"),
        (table("t", "data_parallel", [(rank, 0, 5, 0, 4) for rank in range(3)]), "without one whole copy on every"),
        (table("t", "data_parallel", [(rank, rank, 5, 0, 4) for rank in range(4)]), "without one whole copy"),
        (table("t", "row_wise", [(r, 2 * r, 2, 0, 8) for r in range(4)], pooling="mean"), "its bags have means"),
        (table("t", "column_wise", HALVES, pooling="none"), "looked up without pooling"),
        (table("t", "column_wise", HALVES, pooling=None), "does not say how it is pooled"),
        (table("t", "column_wise", HALVES, data_type="fp16"), "weights are fp16"),
        (table("t", "column_wise", HALVES, compute_kernel="fused_uvm_caching"), r"lie in ddr \(fused_uvm_caching\)"),
    ],
)
def test_what_is_not_run_is_refused_by_table(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=f'Table "t": .*{reason}') as caught:
        export_plan(document(*ALL, wrong))
    assert '"whole"' not in str(caught.value)
    assert 'set runtime to "distributed_embeddings" in the spec' in str(caught.value)


def test_rows_outside_the_gpu_are_refused() -> None:
    far = table("t", "column_wise", HALVES)
    far["shards"][1]["tier"] = "ddr"
    with pytest.raises(UnexportablePlan, match="its rows lie in ddr and hbm"):
        export_plan(document(far))


def test_ranks_that_would_not_take_part_in_exchanges_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match=r"there is none on rank 1, 3\. .*sharding_types"):
        export_plan(document(WHOLE, COPIED, OTHER, ROWS))
    many = document(table("t", "table_wise", [(2, 0, 7, 0, 4)]), world_size=64, ranks_per_host=8)
    with pytest.raises(UnexportablePlan, match=r"none on rank 0, 1, 3, .*, 19, 20 and 43 more"):
        export_plan(many)


def test_every_table_that_is_refused_is_named_up_to_a_number() -> None:
    wrong = [table(f"t{number}", "table_wise", [(0, 0, 9, 0, 8)], pooling="none") for number in range(23)]
    with pytest.raises(UnexportablePlan) as caught:
        export_plan(document(WHOLE, *wrong))
    reported = str(caught.value)
    assert all(f'Table "t{number}": ' in reported for number in range(20))
    assert '"t20"' not in reported
    assert "And 3 more." in reported


def test_changed_plans_and_other_devices_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match="was changed after it was published"):
        export_plan(document(*ALL) | {"world_size": 8})
    with pytest.raises(UnexportablePlan, match="device must be cuda, not cpu"):
        export_plan(document(*ALL), device="cpu")
