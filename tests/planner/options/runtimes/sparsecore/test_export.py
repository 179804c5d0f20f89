"""The export for SparseCores: what it says, that lookups through it equal the unsharded tables, what it refuses."""

import hashlib
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.access import MissRatioCurve, ZipfAccess
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Feature
from planner.options.runtimes.export import ExportFacts, UnexportablePlan
from planner.options.runtimes.sparsecore.id_limits import Lookups, limits_of
from planner.options.runtimes.sparsecore.row_rates import RowRateBins
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.runtimes.sparsecore.stacks import StackedTable, stacks_of
from tests.support.paths import ROOT
from tests.support.planning import export_documents as made
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.planning.export_documents import table
from tests.support.planning.exports import exporter
from tests.support.runtimes.sparsecore_simulator import Job, SetupFailed, unsharded

export_plan = exporter("sparsecore")


def row_wise(name: str, rows: int, columns: int, *, chips: int = 4, **changes: object) -> dict[str, Any]:
    share = -(-rows // chips)
    shards = [(chip, chip * share, min(share, rows - chip * share), 0, columns) for chip in range(chips)]
    return table(name, "row_wise", shards, **changes)


def document(*tables: dict[str, Any], chips: int = 4, profile: str = "tpu-v6e") -> dict[str, Any]:
    plan = made.document(*tables, world_size=chips, ranks_per_host=min(chips, 4))
    return {**plan, "provenance": {"hardware_profile": profile}}


A, B, C = (
    row_wise("a", 41, 8),
    row_wise("b", 100, 8),
    row_wise("c", 37, 20, pooling="mean"),
)


def problem(*, batch: int = 64, **changes: Any) -> Problem:
    """What the tables above were planned for; ``changes`` are tables in their place."""
    zipf = ZipfAccess(alpha=1.0)
    tables = {
        "a": make_table("a", rows=41, dim=8, access=zipf),
        "b": make_table("b", rows=100, dim=8, access=zipf),
        "c": make_table("c", rows=37, dim=20, pooling="mean", access=zipf),
    }
    return make_problem(*(tables | changes).values(), cluster=make_cluster(1, 4), batch_size_per_rank=batch)


def export_of(*tables: dict[str, Any], facts: Problem | None = None, **changes: Any) -> dict[str, Any]:
    return export_plan(document(*tables, **changes), facts=ExportFacts(problem=facts))


def weights_of(export: dict[str, Any], seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {t["name"]: draw.normal(size=(t["vocabulary_size"], t["embedding_dim"])) for t in export["tables"]}


def assert_lookups_are_right(export: dict[str, Any], *, seed: int = 0) -> None:
    """Bags of 0 to 5 ids, with repetitions, and every id of every table at least once."""
    weights, draw = weights_of(export, seed), np.random.default_rng(seed + 1)
    job = Job(export, weights)
    for one in export["tables"]:
        bags = [draw.integers(one["vocabulary_size"], size=draw.integers(6)).tolist() for _ in range(8)]
        bags.append(list(range(one["vocabulary_size"])))
        want = unsharded(weights[one["name"]], one["combiner"], bags)
        np.testing.assert_allclose(job.lookup(one["name"], bags), want, rtol=1e-12, atol=1e-12)


def test_the_whole_export() -> None:
    plan = document(A, C, B)
    export = export_plan(plan, facts=ExportFacts(problem=problem(c=make_table("c", 37, 20, pooling="mean"))))
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    limits = content["stacks"][0]["max_ids_per_partition"], content["stacks"][0]["max_unique_ids_per_partition"]
    assert content == {
        "format": "sparsecore",
        "format_version": 1,
        "plan_digest": plan["plan_digest"],
        "num_chips": 4,
        "global_device_count": 4,
        "num_sc_per_device": 2,
        "num_sparsecores": 8,
        "sparsecores_source": "jax-tpu-embedding 0.1.0, utils.NUM_SC_PER_DEVICE_MAP",
        "samples_per_sparsecore": 32,
        "rows": "modulo",
        "limits": {
            "drop_probability_per_step": 1e-6,
            "placement_probability": 1e-3,
            "assumes": [
                "lookups are independent, with the frequencies that the spec states",
                "ids of a table are hashed, or sorted by heat",
                "the number of ids of a sample is constant or Poisson",
                "samples of every feature are split evenly over SparseCores",
            ],
        },
        "stacks": [
            {
                "name": "stack_of_2_from_a",
                "tables": ["a", "b"],
                "rotation": 4,
                "vocabulary_size": 192,
                "embedding_dim": 8,
                "max_ids_per_partition": limits[0],
                "max_unique_ids_per_partition": limits[1],
                "no_limits_because": None,
            },
            {
                "name": "c",
                "tables": ["c"],
                "rotation": 2,
                "vocabulary_size": 64,
                "embedding_dim": 24,
                "max_ids_per_partition": None,
                "max_unique_ids_per_partition": None,
                "no_limits_because": "the spec says nothing of how its rows are looked up (access)",
            },
        ],
        "tables": [
            written("a", 41, 8, 64, 8, "sum", "stack_of_2_from_a", 0, 0, 512),
            written("c", 37, 20, 64, 24, "mean", "c", 0, 0, 1536),
            written("b", 100, 8, 128, 8, "sum", "stack_of_2_from_a", 8, 4, 1024),
        ],
    }
    assert 60 < limits[0] < 200  # of 256 lookups of a SparseCore, a fifth of them of the hottest row of each table
    assert limits[1] == 6 + 13  # all rows that a SparseCore has


def written(
    name: str, rows: int, dim: int, padded: int, wide: int, combiner: str, stack: str, offset: int, turn: int, size: int
) -> dict[str, Any]:
    return {
        "name": name,
        "vocabulary_size": rows,
        "embedding_dim": dim,
        "padded_vocabulary_size": padded,
        "padded_embedding_dim": wide,
        "combiner": combiner,
        "optimizer": "sgd",
        "stack": stack,
        "row_offset_in_shard": offset,
        "shard_rotation": turn,
        "weight_bytes_per_chip": size,
    }


def test_without_a_spec_nothing_is_stacked_and_no_limit_is_guessed() -> None:
    export = export_of(A, B, C)
    assert [stack["tables"] for stack in export["stacks"]] == [["a"], ["b"], ["c"]]
    for stack in export["stacks"]:
        assert stack["max_ids_per_partition"] is None
        assert stack["max_unique_ids_per_partition"] is None
        assert "the spec of the plan is not at hand" in stack["no_limits_because"]
    assert {one["optimizer"] for one in export["tables"]} == {None}
    assert export["samples_per_sparsecore"] is None
    assert_lookups_are_right(export)


def test_accesses_that_do_not_report_rows_apart_leave_limits_out() -> None:
    curve = MissRatioCurve(points=((0.5, 0.5), (1.0, 0.0)))
    export = export_of(A, B, C, facts=problem(a=make_table("a", 41, 8, access=curve)))
    assert [stack["tables"] for stack in export["stacks"]] == [["a"], ["b"], ["c"]]  # b keeps its limits
    reasons = {stack["name"]: stack["no_limits_because"] for stack in export["stacks"]}
    assert "does not say how likely single rows are" in reasons["a"]
    assert (reasons["b"], reasons["c"]) == (None, None)


def test_only_tables_that_are_alike_are_stacked() -> None:
    adam = make_table("b", 100, 8, access=ZipfAccess(alpha=1.0), optimizer="adam")
    apart = export_of(A, B, C, facts=problem(b=adam))
    assert [stack["tables"] for stack in apart["stacks"]] == [["a"], ["b"], ["c"]]
    weights = weights_of(apart, 0)
    together = [{**apart["stacks"][0], "tables": ["a", "b"]}, apart["stacks"][2]]
    with pytest.raises(SetupFailed, match="different optimizers"):
        Job(apart | {"stacks": together}, weights)
    with pytest.raises(SetupFailed, match="Excess padding"):
        Job(
            apart
            | {
                "stacks": [{**apart["stacks"][0], "tables": ["a", "b", "c"]}],
                "tables": [one | {"optimizer": "sgd", "combiner": "sum"} for one in apart["tables"]],
            },
            weights,
        )


def test_stacks_end_where_the_pools_of_a_sparsecore_are_two_mebibytes() -> None:
    """2^20 bytes of pools are 32768 samples of 8 columns: two such tables fill a stack, a third begins the next."""
    names = ("a", "b", "d")
    tables = [make_table(name, rows=100, dim=8, access=ZipfAccess(alpha=1.0)) for name in names]
    known = make_problem(*tables, batch_size_per_rank=2 * 32768)
    export = export_of(*(row_wise(name, 100, 8) for name in names), facts=known)
    assert [stack["tables"] for stack in export["stacks"]] == [["a", "b"], ["d"]]


def test_probabilities_are_shared_between_stacks() -> None:
    known = problem(b=make_table("b", 100, 8, access=ZipfAccess(alpha=1.0), optimizer="adam"))
    stack = export_of(A, B, C, facts=known)["stacks"][1]
    rows = RowRateBins.of(ZipfAccess(alpha=1.0), 100)
    assert rows is not None
    lookups = Lookups(rows=rows, expected=32 * 4.0)
    limits = limits_of([lookups], 8, drop_probability=1e-6 / 3, placement_probability=1e-3 / 3)
    assert (stack["max_ids_per_partition"], stack["max_unique_ids_per_partition"]) == (
        limits.max_ids,
        limits.max_unique_ids,
    )
    alone = limits_of([lookups], 8, drop_probability=1e-6, placement_probability=1e-3)
    assert alone.max_ids < limits.max_ids


def test_stacks_end_where_numbers_of_rows_do() -> None:
    large = StackedTable(
        name="a",
        padded_rows=2**30,
        padded_columns=8,
        optimizer="sgd",
        combiner="sum",
        outputs_per_core=1.0,
        lookups=None,
    )
    small = replace(large, name="b", padded_rows=2**30 - 1)
    assert [len(stack) for stack in stacks_of([large, small])] == [2]
    assert [len(stack) for stack in stacks_of([large, large])] == [1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_lookups_equal_the_unsharded_tables(seed: int) -> None:
    export = export_of(A, B, C, facts=problem())
    assert_lookups_are_right(export, seed=seed)


def test_the_simulator_reports_wrong_exports_from_right_ones() -> None:
    export = export_of(A, B, C, facts=problem())
    weights = weights_of(export, 0)
    stacks = export["stacks"]
    for changes, message in (
        ({"num_sc_per_device": 3}, "Invalid num_sc_per_device"),
        ({"global_device_count": 6}, "power of two"),
        ({"stacks": stacks[1:]}, "in no stack"),
        ({"stacks": [*stacks, {**stacks[1], "name": "again"}]}, "already stacked"),
        ({"stacks": [stacks[0], {**stacks[1], "name": stacks[0]["name"]}]}, "already used"),
    ):
        with pytest.raises(SetupFailed, match=message):
            Job(export | changes, weights)


def test_places_in_stacks_are_those_of_the_library() -> None:
    assert_places_are_right(export_of(A, B, C, facts=problem()))


def assert_places_are_right(export: dict[str, Any]) -> None:
    job = Job(export, weights_of(export, 0))
    for one in export["tables"]:
        setting = job.settings[one["name"]]
        assert (one["stack"], one["row_offset_in_shard"], one["shard_rotation"]) == (
            setting.stack,
            setting.row_offset,
            setting.rotation,
        )
    for stack in export["stacks"]:
        cores, rows, columns = job.memory[stack["name"]].shape
        assert (cores * rows, columns) == (stack["vocabulary_size"], stack["embedding_dim"])


def test_a_round_trip_has_the_same_placement() -> None:
    """Chips have as many rows as the plan put there, or a few less or more; each row is on one; bytes are padded."""
    plan = document(A, B, C)
    export = export_plan(plan, facts=ExportFacts(problem=problem()))
    job = Job(export, weights_of(export, 0))
    for planned, exported in zip(plan["tables"], export["tables"], strict=True):
        held = [job.held_rows(chip, planned["name"], 4) for chip in range(4)]
        assert sum(map(len, held)) == len(set().union(*held)) == exported["vocabulary_size"]
        per_chip = exported["weight_bytes_per_chip"] // (4 * exported["padded_embedding_dim"])
        for shard in planned["shards"]:
            assert abs(len(held[shard["rank"]]) - shard["num_rows"]) < 4
            assert shard["num_rows"] <= per_chip < shard["num_rows"] + 8 * 2 + 4
        assert per_chip * 4 == exported["padded_vocabulary_size"]


@pytest.mark.parametrize("seed", range(20))
def test_random_plans(seed: int) -> None:
    """Lookups are right, and no batch that is drawn as the spec says loses an id."""
    draw = np.random.default_rng(seed)
    chips, batch = int(draw.choice([2, 4, 8])), 8 * int(draw.integers(1, 9))
    profile, cores = [("tpu-v5p", 4), ("tpu-v6e", 2), ("tpu7x-ironwood", 4)][draw.integers(3)]
    planned, tables = [], []
    for number in range(4):
        rows, columns = chips * int(draw.integers(1, 60)), int(draw.integers(1, 20))
        pooling = str(draw.choice(["sum", "mean"]))
        planned.append(row_wise(f"t{number}", rows, columns, chips=chips, pooling=pooling))
        access = ZipfAccess(alpha=float(draw.uniform(0, 1.5)))
        one = make_table(f"t{number}", rows, columns, pooling=pooling, access=access)
        features = tuple(Feature(name=f"f{k}", pooling_factor=float(draw.integers(1, 4))) for k in range(2))
        tables.append(replace(one, features=features))
    known = make_problem(*tables, cluster=make_cluster(1, chips), batch_size_per_rank=batch)
    export = export_of(*planned, facts=known, chips=chips, profile=profile)
    assert export["num_sparsecores"] == chips * cores
    assert_lookups_are_right(export, seed=seed)
    assert_places_are_right(export)
    job = Job(export, weights_of(export, seed))
    features = []
    for one in tables:
        assert isinstance(one.access, ZipfAccess)
        rates = np.arange(1, one.num_embeddings + 1.0) ** -one.access.alpha
        ids = draw.permutation(one.num_embeddings)
        for feature in one.features:
            size = (chips * batch, int(feature.pooling_factor))
            features.append((one.name, ids[draw.choice(one.num_embeddings, size, p=rates / rates.sum())].tolist()))
    for stack, counted in job.preprocess(features).items():
        assert counted.dropped == 0
        max_ids, max_unique_ids = job.limits[stack]
        assert counted.max_ids <= max_ids
        assert counted.max_unique_ids <= max_unique_ids


def test_limits_that_are_too_small_drop_ids() -> None:
    export = export_of(A, B, C, facts=problem())
    stack = export["stacks"][1]
    weights = weights_of(export, 0)
    batch = [("c", [[sample % 37, (sample + 8) % 37] for sample in range(256)])]
    for changes, drops in (
        ({}, False),
        ({"max_ids_per_partition": 5}, True),
        ({"max_unique_ids_per_partition": 2}, True),
    ):
        job = Job(export | {"stacks": [export["stacks"][0], stack | changes]}, weights)
        assert (job.preprocess(batch)["c"].dropped > 0) == drops


CUT = [(chip, 0, 9, 8 * chip, 8) for chip in range(4)]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (table("t", "table_wise", [(1, 0, 9, 0, 8)]), "it is table_wise; every SparseCore holds rows"),
        (table("t", "column_wise", CUT), "it is column_wise; every SparseCore holds rows"),
        (table("t", "data_parallel", [(c, 0, 9, 0, 8) for c in range(4)]), "it is data_parallel"),
        (table("t", "row_wise", CUT), "cut by columns"),
        (table("t", "row_wise", [(c // 2, 3 * c, 3, 0, 8) for c in range(4)]), "two shards are on chip 0"),
        (table("t", "row_wise", [(c, 3 * c, 3, 0, 8) for c in range(3)]), "it is on 3 of 4 chips"),
        (table("t", "row_wise", [(c, 3 * c, 2, 0, 8) for c in range(4)]), "row blocks leave gaps or overlap"),
        (
            table("t", "row_wise", [(0, 0, 3, 0, 8), (1, 4, 2, 0, 8), (2, 5, 2, 0, 8), (3, 7, 2, 0, 8)]),
            "row blocks leave gaps or overlap",
        ),
        (
            table("t", "row_wise", [(0, 0, 6, 0, 8), *((c, 5 + c, 1, 0, 8) for c in (1, 2, 3))]),
            "6 rows; .* at most 3 to each chip",
        ),
        (row_wise("t", 2**31, 8), "2147483648 rows with padding, and at most 2147483647 fit"),
        (row_wise("t", 9, 8, pooling="none"), "looked up without pooling"),
        (row_wise("t", 9, 8, data_type="bf16"), "weights are bf16; they must be fp32"),
        (row_wise("t", 9, 8, compute_kernel="fused_uvm"), r"lie in ddr \(fused_uvm\); fused ones lie in hbm"),
    ],
)
def test_what_sparsecores_do_not_hold_is_refused_by_table(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=f'Table "t": .*{reason}') as caught:
        export_of(A, wrong)
    assert '"a"' not in str(caught.value)


def test_rows_outside_the_chip_are_refused() -> None:
    far = row_wise("t", 9, 8)
    far["shards"][1]["tier"] = "ddr"
    with pytest.raises(UnexportablePlan, match="its rows lie in ddr and hbm"):
        export_of(far)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (
            problem(a=make_table("a", 41, 8, optimizer="rowwise_adagrad")),
            "it is trained with rowwise_adagrad; there are sgd",
        ),
        (problem(a=make_table("a", 42, 8)), "it has 41 rows of 8 columns, and in the spec 42 of 8"),
        (problem(a=make_table("x", 41, 8)), "the spec has no such table"),
    ],
)
def test_what_contradicts_the_spec_is_refused_by_table(known: Problem, reason: str) -> None:
    with pytest.raises(UnexportablePlan, match=f'Table "a": {reason}') as caught:
        export_of(A, B, C, facts=known)
    assert '"b"' not in str(caught.value)


def test_samples_must_be_shared_evenly() -> None:
    with pytest.raises(UnexportablePlan, match=r"2 SparseCores of a chip share its 63 samples .* a multiple of 2"):
        export_of(A, B, C, facts=problem(batch=63))


@pytest.mark.parametrize(
    ("profile", "chips", "given", "reason"),
    [
        ("tpu-v4", 4, None, "of tpu-v4 has is not known: give sparsecores_per_chip"),
        ("custom", 4, 3, "sparsecores_per_chip is 3; the library takes 2 or 4"),
        ("tpu-v5p", 4, 2, "A chip of tpu-v5p has 4 SparseCores, not 2"),
        ("tpu-v5p", 6, None, "6 chips have 24 SparseCores in all; rows are dealt out to a power of two"),
    ],
)
def test_sparsecores_that_no_one_knows_are_refused(profile: str, chips: int, given: int | None, reason: str) -> None:
    plan = document(row_wise("t", 60, 8, chips=chips), chips=chips, profile=profile)
    with pytest.raises(UnexportablePlan, match=reason):
        export_plan(plan, facts=ExportFacts(sparsecores_per_chip=given))


def test_sparsecores_of_other_hardware_are_given() -> None:
    plan = document(A, profile="custom")
    export = export_plan(plan, facts=ExportFacts(sparsecores_per_chip=4))
    assert (export["num_sparsecores"], export["sparsecores_source"]) == (16, "sparsecores_per_chip")
    two_devices = export_of(A, profile="tpu7x-ironwood")
    assert [two_devices[key] for key in ("global_device_count", "num_sc_per_device", "num_sparsecores")] == [8, 2, 16]


def test_every_table_that_is_refused_is_named_up_to_a_number() -> None:
    wrong = [row_wise(f"t{number}", 9, 8, pooling="none") for number in range(23)]
    with pytest.raises(UnexportablePlan) as caught:
        export_of(A, *wrong)
    reported = str(caught.value)
    assert all(f'Table "t{number}": ' in reported for number in range(20))
    assert '"t20"' not in reported
    assert "And 3 more." in reported


def test_names_of_stacks_are_no_names_of_tables() -> None:
    tables = ("a", "b", "stack_of_2_from_a")
    known = [make_table(name, 41, 8 if name != tables[2] else 16, access=ZipfAccess(alpha=1.0)) for name in tables]
    planned = [row_wise(one.name, one.num_embeddings, one.embedding_dim) for one in known]
    export = export_of(*planned, facts=make_problem(*known))
    assert [stack["name"] for stack in export["stacks"]] == ["stack_of_2_from_a_", "stack_of_2_from_a"]


def test_changed_plans_are_refused() -> None:
    with pytest.raises(UnexportablePlan, match="was changed after it was published"):
        export_plan(document(A) | {"world_size": 8})


def test_the_script_of_the_page_has_all_optimizers() -> None:
    page = (ROOT / "docs" / "runtimes.md").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)": embedding_spec\.\w+OptimizerSpec\(\),$', page, re.MULTILINE)
    assert tuple(names) == SparseCore.optimizers
