"""The export for TorchEasyRec: what it says, what TorchRec's planner makes of it, and what it refuses."""

import hashlib
import json
import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from cost_models.vocabulary import Scheme
from planner.domain.formats.canonical_json import canonical_bytes
from planner.options.runtimes.export import UnexportablePlan
from tests.support.paths import ROOT
from tests.support.planning.export_documents import document, table
from tests.support.planning.exports import exporter
from tests.support.runtimes.torcheasyrec_simulator import (
    MESSAGES,
    Landed,
    checkpoint_plan,
    features_of,
    lookup,
    train,
    unsharded,
)
from tests.support.thorough import thorough

export_plan = exporter("torcheasyrec")

COPIED = table("copied_emb", "data_parallel", [(rank, 0, 5, 0, 4) for rank in range(4)])
WHOLE = table("whole", "table_wise", [(2, 0, 7, 0, 8)], compute_kernel="fused_uvm_caching", data_type="fp16")
ROWS = table("rows_emb", "row_wise", [(0, 0, 3, 0, 4), (1, 3, 3, 0, 4), (2, 6, 3, 0, 4), (3, 9, 1, 0, 4)])
HOST = table("host_emb", "table_row_wise", [(2, 0, 6, 0, 4), (3, 6, 5, 0, 4)], compute_kernel="fused_uvm")
PIECES = table("pieces_emb", "column_wise", [(3, 0, 9, 0, 128), (1, 0, 9, 128, 128)])
NEXT_TO = table("beside_emb", "table_column_wise", [(3, 0, 9, 0, 132), (3, 0, 9, 132, 132), (2, 0, 9, 264, 132)])
GRID = table("grid_emb", "grid_shard", [(2, 0, 5, 0, 128), (3, 5, 4, 0, 128), (0, 0, 5, 128, 128), (1, 5, 4, 128, 128)])
LONG = table("click__item_emb", "row_wise", [(r, 3 * r, 3 if r < 3 else 1, 0, 8) for r in range(4)], pooling="none")
ALL = (COPIED, WHOLE, ROWS, HOST, PIECES, NEXT_TO, GRID, LONG)


def shard(rank: int | None, planned: int, row: int, rows: int, column: int, columns: int) -> dict[str, int | None]:
    return {
        "rank": rank,
        "planned_rank": planned,
        "row_offset": row,
        "num_rows": rows,
        "column_offset": column,
        "num_columns": columns,
    }


def text(scheme: str, kernel: str) -> str:
    return f'embedding_constraints {{\n  sharding_types: "{scheme}"\n  compute_kernels: "{kernel}"\n}}\n'


def test_the_whole_export() -> None:
    plan = document(WHOLE, COPIED, table("wide_emb_wide", "table_wise", [(1, 0, 7, 0, 4)]))
    export = export_plan(plan, module_path="ignored")
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    shared = {"data_type": "FP32", "pooling": "sum"}
    assert content == {
        "format": "torcheasyrec",
        "format_version": 1,
        "plan_digest": plan["plan_digest"],
        "nnodes": 2,
        "nproc_per_node": 2,
        "tables": [
            {
                "name": "whole",
                "embedding_name": "whole",
                "feature_name": None,
                "num_embeddings": 7,
                "zch_size": None,
                "embedding_dim": 8,
                "data_type": "FP16",
                "pooling": "sum",
                "sharding_type": "table_wise",
                "compute_kernel": "fused_uvm_caching",
                "embedding_constraints": text("table_wise", "fused_uvm_caching"),
                "ranks": "planner",
                "shards": [shard(None, 2, 0, 7, 0, 8)],
            },
            {
                "name": "copied_emb",
                "embedding_name": "copied_emb",
                "feature_name": "copied",
                "num_embeddings": 5,
                "zch_size": None,
                "embedding_dim": 4,
                "sharding_type": "data_parallel",
                "compute_kernel": "dense",
                "embedding_constraints": text("data_parallel", "dense"),
                "ranks": "fixed",
                "shards": [shard(rank, rank, 0, 5, 0, 4) for rank in range(4)],
                **shared,
            },
            {
                "name": "wide_emb_wide",
                "embedding_name": "wide_emb",
                "feature_name": "wide",
                "num_embeddings": 7,
                "zch_size": None,
                "embedding_dim": 4,
                "sharding_type": "table_wise",
                "compute_kernel": "fused",
                "embedding_constraints": text("table_wise", "fused"),
                "ranks": "planner",
                "shards": [shard(None, 1, 0, 7, 0, 4)],
                **shared,
            },
        ],
        "placed_by_planner": ["whole", "wide_emb_wide"],
        "updated_by_dense_optimizer": ["copied_emb"],
    }


def test_protobuf_reads_the_constraints_as_they_are_meant() -> None:
    for one in export_plan(document(*ALL))["tables"]:
        feature = text_format.Parse(one["embedding_constraints"], MESSAGES["IdFeature"]())
        assert list(feature.embedding_constraints.sharding_types) == [one["sharding_type"]]
        assert list(feature.embedding_constraints.compute_kernels) == [one["compute_kernel"]]
        assert [field.name for field, _ in feature.ListFields()] == ["embedding_constraints"]


def test_every_rectangle_of_a_plan_is_in_the_export() -> None:
    plan = document(*ALL)
    for planned, exported in zip(plan["tables"], export_plan(plan)["tables"], strict=True):
        fields = ("row_offset", "num_rows", "column_offset", "num_columns")
        want = sorted((one["rank"], *(one[key] for key in fields)) for one in planned["shards"])
        assert sorted((one["planned_rank"], *(one[key] for key in fields)) for one in exported["shards"]) == want
        certain = {one["rank"] == one["planned_rank"] for one in exported["shards"]}
        assert certain == {planned["sharding_type"] in ("data_parallel", "row_wise")}


@pytest.mark.parametrize("kind", ["table_row_wise", "grid_shard"])
def test_on_one_host_its_row_blocks_have_one_place(kind: str) -> None:
    blocks = [(0, 0, 5, 0, 128), (1, 5, 4, 0, 128)]
    blocks += [(0, 0, 5, 128, 128), (1, 5, 4, 128, 128)] if kind == "grid_shard" else []
    (one,) = export_plan(document(table("t", kind, blocks), world_size=2))["tables"]
    assert one["ranks"] == "fixed"
    assert [shard["rank"] for shard in one["shards"]] == [0, 1] * (len(blocks) // 2)


@pytest.mark.parametrize(
    ("name", "embedding_name", "feature_name"),
    [
        ("user_emb", "user_emb", "user"),
        ("user", "user", None),
        ("_emb", "_emb", None),
        ("user_emb_wide", "user_emb", "user"),
        ("user_wide", "user_wide", None),
        ("whole_wide", "whole", None),
    ],
)
def test_names_of_tables_lead_to_features(name: str, embedding_name: str, feature_name: str | None) -> None:
    alike = table("whole", "table_wise", [(0, 0, 9, 0, 8)])
    one = export_plan(document(alike, table(name, "table_wise", [(0, 0, 9, 0, 4)])))["tables"][1]
    assert (one["embedding_name"], one["feature_name"]) == (embedding_name, feature_name)


def test_one_rank_is_certain() -> None:
    plan = document(table("t", "table_wise", [(0, 0, 9, 0, 8)]), world_size=1, ranks_per_host=1)
    assert export_plan(plan)["placed_by_planner"] == []


def config_of(export: Mapping[str, Any]) -> Any:
    """Return a config whose features make the tables of an export, without constraints, and a feature of none."""
    config = MESSAGES["EasyRecConfig"]()
    config.feature_configs.add().raw_feature.feature_name = "price"
    for one in export["tables"]:
        if one["name"] != one["embedding_name"]:
            continue  # a wide table of a feature that is there
        feature_name = one["feature_name"] or f"of_{one['name']}"
        if one["pooling"] != "none":
            feature = config.feature_configs.add().id_feature
        elif "__" in feature_name:
            sequence = config.feature_configs.add().sequence_feature
            sequence.sequence_name, feature_name = feature_name.split("__")
            feature = sequence.features.add().id_feature
        else:
            feature = config.feature_configs.add().sequence_id_feature
        feature.feature_name = feature_name
        if one["feature_name"] is None:
            feature.embedding_name = one["name"]
        feature.embedding_dim = one["embedding_dim"]
        if one["zch_size"] is None:
            feature.num_buckets = one["num_embeddings"]
        else:
            feature.zch.zch_size, feature.zch.eviction_interval = one["zch_size"], 3
            feature.zch.distance_lfu.SetInParent()
        feature.data_type = one["data_type"]
        feature.pooling = one["pooling"] if one["pooling"] != "none" else "sum"
    return config


class Scripted:
    """The script of docs/runtimes.md, run next to a TorchEasyRec that reads and writes configs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        blocks = re.findall(r"^```python\n(.*?)^```$", documentation(), re.MULTILINE | re.DOTALL)
        (self._script,) = [block for block in blocks if "tzrec" in block]
        self._folder = folder
        read = types.ModuleType("tzrec.utils.config_util")
        read.load_pipeline_config = self._load  # type: ignore[attr-defined]
        read.save_message = self._save  # type: ignore[attr-defined]
        for name, module in (("tzrec", types.ModuleType("tzrec")), ("tzrec.utils", types.ModuleType("tzrec.utils"))):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, "tzrec.utils.config_util", read)
        monkeypatch.chdir(folder)

    def run(self, export: Mapping[str, Any], config: Any) -> Any:
        (self._folder / "torcheasyrec.json").write_text(json.dumps(export))
        (self._folder / "pipeline.config").write_text(text_format.MessageToString(config))
        exec(self._script, {})
        return self._load("planned.config")

    def _load(self, path: str) -> Any:
        return text_format.Parse((self._folder / path).read_text(), MESSAGES["EasyRecConfig"]())

    def _save(self, message: Any, path: str) -> None:
        (self._folder / path).write_text(text_format.MessageToString(message, as_utf8=True))


def documentation() -> str:
    return (ROOT / "docs" / "runtimes.md").read_text()


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return Scripted(tmp_path, monkeypatch)


def test_the_script_constrains_every_feature_of_a_table(scripted: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    export = export_plan(document(*ALL))
    config = config_of(export)
    second = config.feature_configs.add().id_feature
    second.feature_name, second.embedding_name = "second", "whole"
    second.embedding_constraints.sharding_types.append("row_wise")  # of an older plan
    constrained = {one.name: one for one in features_of(scripted.run(export, config))}
    assert len(constrained) == len(ALL) + 1
    by_table = {one["name"]: one for one in export["tables"]}
    for one in constrained.values():
        asked, want = one.config.embedding_constraints, by_table[one.embedding_name]
        assert (list(asked.sharding_types), list(asked.compute_kernels)) == (
            [want["sharding_type"]],
            [want["compute_kernel"]],
        )
    assert capsys.readouterr().out == "price: not in the plan\n"


def test_the_script_stops_where_it_cannot_do_it(scripted: Scripted) -> None:
    export = export_plan(document(COPIED, ROWS))
    config = config_of(export)
    del config.feature_configs[-1]
    with pytest.raises(SystemExit, match=r"no feature is looked up in \['rows_emb'\]"):
        scripted.run(export, config)
    for kind, field in (("zch", "zch_size"), ("dynamicemb", "max_capacity")):
        config = config_of(export)
        setattr(getattr(config.feature_configs[-1].id_feature, kind), field, 8)
        with pytest.raises(SystemExit, match="rows: it and the plan's table differ in their hash table"):
            scripted.run(export, config)
    slots = table("s_emb", "row_wise", [(r, 3 * r, 3, 0, 8) for r in range(4)], hash_table_mode="zch")
    export = export_plan(document(slots))
    config = config_of(export)
    config.feature_configs[-1].id_feature.zch.zch_size = 13
    with pytest.raises(SystemExit, match="s: the plan has 12 slots"):
        scripted.run(export, config)
    config.feature_configs[-1].id_feature.ClearField("zch")
    with pytest.raises(SystemExit, match="s: it and the plan's table differ in their hash table"):
        scripted.run(export, config)


def assert_lands(export: Mapping[str, Any], landed: Mapping[str, Landed]) -> None:
    """Everything that an export claims is what TorchRec's planner made: types, kernels, cuts, and certain ranks."""
    assert landed.keys() == {one["name"] for one in export["tables"]}
    saved = {name: one for tables in checkpoint_plan(landed).values() for name, one in tables.items()}
    for one in export["tables"]:
        found = landed[one["name"]]
        assert (found.sharding_type, found.compute_kernel) == (one["sharding_type"], one["compute_kernel"])
        cut = [
            (each["row_offset"], each["num_rows"], each["column_offset"], each["num_columns"]) for each in one["shards"]
        ]
        assert [each[1:] for each in found.shards] == cut
        if one["ranks"] == "fixed":
            assert saved[one["name"]]["ranks"] == [each["rank"] for each in one["shards"]]
        else:
            assert {each["rank"] for each in one["shards"]} == {None}


def assert_lookups_are_right(export: Mapping[str, Any], landed: Mapping[str, Landed], seed: int) -> None:
    draw = np.random.default_rng(seed)
    for one in export["tables"]:
        weights = draw.normal(size=(one["num_embeddings"], one["embedding_dim"]))
        bags = [draw.integers(len(weights), size=draw.integers(6)).tolist() for _ in range(8)] + [range(len(weights))]
        found = lookup(landed[one["name"]], weights, one["pooling"], bags)
        np.testing.assert_allclose(found, unsharded(weights, one["pooling"], bags), rtol=1e-12, atol=1e-12)


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_torchrecs_planner_lands_on_what_is_exported(scripted: Scripted) -> None:
    export = export_plan(document(*ALL))
    landed = train(scripted.run(export, config_of(export)), nnodes=2, nproc_per_node=2)
    assert_lands(export, landed)
    assert_lookups_are_right(export, landed, 0)


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_without_the_constraints_it_lands_elsewhere() -> None:
    """The simulator tells plans apart: TorchRec's own choice is another one."""
    export = export_plan(document(*ALL))
    free = train(config_of(export), nnodes=2, nproc_per_node=2)
    differing = [
        one["name"]
        for one in export["tables"]
        if (free[one["name"]].sharding_type, free[one["name"]].compute_kernel)
        != (one["sharding_type"], one["compute_kernel"])
    ]
    assert len(differing) > len(ALL) // 2


def slots_of(name: str, **changes: Any) -> dict[str, Any]:
    """A table with 1,000 slots of zch on 4 ranks."""
    blocks = [(rank, 250 * rank, 250, 0, 8) for rank in range(4)]
    return table(name, "row_wise", blocks, **{"hash_table_mode": "zch"} | changes)


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_tables_with_zch_land_with_others(scripted: Scripted) -> None:
    """Their own constraints are dropped: those of all tables say the kernel."""
    tables = (slots_of("new_emb"), slots_of("long_emb", pooling="none"), WHOLE, COPIED)
    export = export_plan(document(*tables))
    planned = scripted.run(export, config_of(export))
    assert list(planned.train_config.global_embedding_constraints.compute_kernels) == ["fused"]
    landed = train(planned, nnodes=2, nproc_per_node=2)
    assert_lands(export, landed)
    assert_lookups_are_right(export, landed, 1)
    assert {name: one.module_path for name, one in landed.items()} == {
        "new_emb": "mc_ebc",
        "long_emb": "mc_ec_dict.8",
        "whole": "ebc",
        "copied_emb": "ebc",
    }
    planned.train_config.global_embedding_constraints.compute_kernels[:] = ["fused_uvm"]
    assert train(planned, nnodes=2, nproc_per_node=2)["new_emb"].compute_kernel == "fused_uvm"


def test_tables_with_zch_have_one_kernel() -> None:
    export = export_plan(document(slots_of("a"), WHOLE))
    assert [one["zch_size"] for one in export["tables"]] == [1000, None]
    assert export["global_embedding_constraints"] == "global_" + text("row_wise", "fused")
    assert "global_embedding_constraints" not in export_plan(document(WHOLE))
    for changes, reason in (
        ({"compute_kernel": "fused_uvm"}, "row_wise with fused, not row_wise with fused_uvm"),
        ({"hash_table_mode": "mpzch"}, "it is a hash table of mpzch; features have zch alone"),
    ):
        with pytest.raises(UnexportablePlan, match=reason):
            export_plan(document(slots_of("a", **changes)))


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_planned_ranks_are_not_promised(scripted: Scripted) -> None:
    """All tables on rank 3 is a plan; TorchRec's planner spreads them, which the export leaves open."""
    tables = [table(f"t{number}_emb", "table_wise", [(3, 0, 1000, 0, 64)]) for number in range(4)]
    export = export_plan(document(*tables))
    landed = train(scripted.run(export, config_of(export)), nnodes=2, nproc_per_node=2)
    assert_lands(export, landed)
    assert {rank for one in landed.values() for rank in one.ranks} == {0, 1, 2, 3}
    assert export["placed_by_planner"] == [one["name"] for one in tables]


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_a_wide_table_has_the_constraints_of_its_feature(scripted: Scripted) -> None:
    narrow = table("both_emb_wide", "row_wise", [(r, 3 * r, 3 if r < 3 else 1, 0, 4) for r in range(4)])
    deep = table("both_emb", "row_wise", [(r, 3 * r, 3 if r < 3 else 1, 0, 16) for r in range(4)])
    export = export_plan(document(narrow, deep))
    landed = train(scripted.run(export, config_of(export)), nnodes=2, nproc_per_node=2, wide=["both"])
    assert_lands(export, landed)


@thorough
@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_random_models(seed: int, scripted: Scripted) -> None:
    """What TorchRec's planner makes of random constraints is a plan; exported and planned again it is the same."""
    draw = np.random.default_rng(seed)
    nnodes, nproc_per_node = [int(draw.choice(sizes)) for sizes in ([1, 2, 3], [2, 4])]
    config = MESSAGES["EasyRecConfig"]()
    for number in range(6):
        scheme = str(draw.choice(Scheme.labels()))
        is_sequence = scheme in ("data_parallel", "table_wise", "column_wise", "row_wise") and draw.random() < 0.3
        one = config.feature_configs.add()
        feature = one.sequence_id_feature if is_sequence else one.id_feature
        feature.feature_name = f"f{number}"
        widths = [256, 264, 384, 1024] if scheme in ("column_wise", "table_column_wise", "grid_shard") else [4, 64, 300]
        feature.embedding_dim, feature.num_buckets = int(draw.choice(widths)), int(draw.integers(150, 5000))
        feature.data_type = str(draw.choice(["FP32", "FP16"]))
        kernels = ["dense"] if scheme == "data_parallel" else ["fused", "fused_uvm", "fused_uvm_caching"]
        feature.embedding_constraints.sharding_types.append(scheme)
        feature.embedding_constraints.compute_kernels.append(str(draw.choice(kernels)))
    first = train(config, nnodes=nnodes, nproc_per_node=nproc_per_node)
    poolings = {one.embedding_name: "none" if one.is_sequence else "sum" for one in features_of(config)}
    types = {one.embedding_name: one.config.data_type.lower() for one in features_of(config)}
    planned = [
        table(
            name,
            one.sharding_type,
            one.shards,
            compute_kernel=one.compute_kernel,
            pooling=poolings[name],
            data_type=types[name],
        )
        for name, one in first.items()
    ]
    export = export_plan(document(*planned, world_size=nnodes * nproc_per_node, ranks_per_host=nproc_per_node))
    landed = train(scripted.run(export, config_of(export)), nnodes=export["nnodes"], nproc_per_node=nproc_per_node)
    assert_lands(export, landed)
    assert_lookups_are_right(export, landed, seed)


HALVES = [(0, 0, 9, 0, 128), (1, 0, 9, 128, 128)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (table("t", "column_wise", [(0, 0, 9, 0, 64), (1, 0, 9, 64, 192)]), "64 and 192 columns.* pieces of 128"),
        (table("t", "column_wise", [(0, 0, 9, 0, 64), (1, 0, 9, 64, 64)]), "pieces have 64 columns.* pieces of 128"),
        (table("t", "column_wise", [(0, 0, 9, 0, 192), (1, 0, 9, 192, 192)]), "192 columns.* pieces of 128"),
        (table("t", "column_wise", [(0, 0, 9, 0, 128), (1, 0, 9, 256, 128)]), "shards are others than"),
        (table("t", "table_wise", HALVES), "pieces have 128 columns.* pieces of 256"),
        (table("t", "table_wise", [(0, 0, 5, 0, 8), (1, 5, 5, 0, 8)]), "shards are others than 1 x 1 blocks"),
        (table("t", "table_wise", [(0, 0, 9, 0, 6)]), "it has 6 columns, and kernels need a multiple of 4"),
        (table("t", "row_wise", [(0, 0, 4, 0, 8), (1, 4, 4, 0, 8), (2, 8, 2, 0, 8)]), "others than 1 x 4 blocks"),
        (table("t", "row_wise", [(0, 0, 3, 0, 8), (1, 3, 2, 0, 8), (2, 5, 3, 0, 8), (3, 8, 2, 0, 8)]), "others than"),
        (table("t", "row_wise", [(r, 3 * (3 - r), 3, 0, 8) for r in range(4)]), "row_wise is on all ranks, in their"),
        (table("t", "row_wise", [(r, 2 * r, 2, 0, 8) for r in range(3)]), "6 rows over 4 ranks leave one without any"),
        (table("t", "data_parallel", [(r, 0, 5, 0, 8) for r in range(3)]), "others than .* in as many copies as 4"),
        (table("t", "data_parallel", [(r, 0, 5, 0, 8) for r in (0, 1, 2, 2)]), "data_parallel is on all ranks"),
        (table("t", "table_row_wise", [(1, 0, 5, 0, 8), (2, 5, 5, 0, 8)]), "row blocks on all ranks of a host"),
        (table("t", "table_row_wise", [(1, 0, 5, 0, 8), (0, 5, 5, 0, 8)]), "row blocks on all ranks of a host"),
        (table("t", "table_column_wise", [(1, 0, 9, 0, 128), (2, 0, 9, 128, 128)]), "table_column_wise is on one host"),
        (
            table("t", "grid_shard", [(r, 5 * r, 5, c, 128) for c in (0, 128) for r in (0, 1)]),
            "go round the hosts, each on the next one",
        ),
        (
            table(
                "t", "grid_shard", [(h + r, 5 * r, 5, c, 128) for c, h in ((0, 0), (128, 2), (256, 2)) for r in (0, 1)]
            ),
            "go round the hosts, each on the next one",
        ),
        (
            table("t", "column_wise", HALVES, compute_kernel="fused_uvm_caching", cache_load_factor=0.1),
            "0.1 of the rows",
        ),
        (table("t", "table_wise", [(0, 0, 9, 0, 8)], compute_kernel="key_value"), r"kept on SSD \(key_value\)"),
        (table("t", "table_wise", [(0, 0, 9, 0, 8)], compute_kernel="dense"), "table_wise runs with .* not with dense"),
        (table("t", "data_parallel", [(r, 0, 5, 0, 8) for r in range(4)], compute_kernel="fused"), "runs with dense"),
        (table("t", "table_wise", [(0, 0, 9, 0, 8)], data_type="bf16"), "weights are bf16; they must be fp32 or fp16"),
        (
            table("t", "table_row_wise", [(0, 0, 5, 0, 8), (1, 5, 5, 0, 8)], pooling="none"),
            "not offered for tables of seq",
        ),
        (
            table("t", "grid_shard", [(r, 3 * (r % 2), 3, 128 * (r // 2), 128) for r in range(4)], pooling="mean"),
            "grid_shard of a mean",
        ),
        (table("t", "row_wise", [(r, 3 * r, 3, 0, 8) for r in range(4)], pooling="mean"), 'rows next to "whole"'),
        (table("whole_wide", "row_wise", [(r, 3 * r, 3, 0, 4) for r in range(4)]), 'has the features of "whole"'),
        (table("whole_wide", "table_wise", [(0, 0, 9, 0, 4)]), 'features of "whole".* another sharding type or kernel'),
        (table("t.u", "table_wise", [(0, 0, 9, 0, 8)]), "its name has a dot"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_by_table(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=f'Table "{wrong["name"]}": .*{reason}') as caught:
        export_plan(document(WHOLE, wrong))
    assert 'Table "whole": ' not in str(caught.value)


def test_rows_in_two_tiers_or_in_another_than_the_kernels_are_refused() -> None:
    for kernel, tiers, reported in (
        ("fused_uvm", ("hbm", "ddr"), "its rows lie in ddr and hbm; fused_uvm keeps all of them in ddr"),
        ("fused_uvm", ("scm", "scm"), "its rows lie in scm; fused_uvm keeps"),
        ("fused", ("ddr", "ddr"), "its rows lie in ddr; fused keeps all of them in hbm"),
    ):
        split = table("t", "column_wise", HALVES, compute_kernel=kernel)
        for one, tier in zip(split["shards"], tiers, strict=True):
            one["tier"] = tier
        with pytest.raises(UnexportablePlan, match=reported):
            export_plan(document(split))


def test_means_cut_by_rows_are_exported_among_themselves_and_next_to_sequences() -> None:
    means = [table(f"m{n}", "row_wise", [(r, 3 * r, 3, 0, 8) for r in range(4)], pooling="mean") for n in range(2)]
    sequence = table("s", "table_wise", [(0, 0, 9, 0, 8)], pooling="none")
    elsewhere = table("e", "table_wise", [(0, 0, 9, 0, 8)], module_path="other.ebc")
    assert len(export_plan(document(*means, sequence, elsewhere))["tables"]) == 4


def test_every_table_that_is_refused_is_named_up_to_a_number() -> None:
    wrong = [table(f"t{number}", "table_wise", [(0, 0, 9, 0, 6)]) for number in range(23)]
    with pytest.raises(UnexportablePlan) as caught:
        export_plan(document(WHOLE, *wrong))
    reported = str(caught.value)
    assert all(f'Table "t{number}": ' in reported for number in range(20))
    assert '"t20"' not in reported
    assert "And 3 more." in reported
    assert reported.endswith('set runtime to "torcheasyrec" in the spec.')


def test_changed_plans_and_other_devices_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match="was changed after it was published"):
        export_plan(document(WHOLE) | {"world_size": 8})
    with pytest.raises(UnexportablePlan, match="device must be cuda, not cpu"):
        export_plan(document(WHOLE), device="cpu")
