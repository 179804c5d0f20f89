"""TorchEasyRec as a runtime: what is offered can be exported and lands as planned, and what cannot be is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.torcheasyrec.config import piece_columns
from planner.options.runtimes.torcheasyrec.rules import TorchEasyRec
from planner.options.runtimes.torchrec.rules import SCHEMES
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.verify import verify
from tests.planner.options.runtimes.torcheasyrec.test_export import assert_lands, assert_lookups_are_right, config_of
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exports import exporter
from tests.support.planning.hash_tables import hash_table, zch
from tests.support.planning.long_plans import to_document
from tests.support.runtimes.torcheasyrec_simulator import mc_module, train

export_plan = exporter("torcheasyrec")

OFFERED = {Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE}
ITS_CACHE = TableConstraints(cache_load_factors=(0.2,))


def exported(problem: Problem) -> dict[str, Any]:
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    return export_plan(to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="test"))


def test_what_is_offered() -> None:
    """No column cuts, no SSD, and caches where TorchRec's load factor is the only one allowed."""
    tables = make_table("a"), make_table("b", constraints=ITS_CACHE)
    problem = make_problem(*tables, cluster=make_cluster(2, 2), runtime="torcheasyrec", kernels=frozenset(Kernel))
    families = enumerate_families(problem).families
    for index, caches in ((0, set()), (1, {Kernel.FUSED_UVM_CACHING})):
        listed = {(one.scheme, one.storage.kernel) for one in families if one.table == index}
        wanted = {(Scheme.DATA_PARALLEL, Kernel.DENSE)} | {
            (scheme, kernel)
            for scheme in OFFERED - {Scheme.DATA_PARALLEL}
            for kernel in {Kernel.FUSED, Kernel.FUSED_UVM} | caches
        }
        assert listed == wanted
    assert {one.storage.cache_load_factor for one in families} == {None, 0.2}


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("eviction", ["lfu", "lru", "distance_lfu"])
@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 2)])
def test_tables_with_zch_are_planned_exported_and_land(eviction: str, hosts: int, local: int) -> None:
    """With the slots that the module of a feature has on every rank, byte for byte."""
    slots = hash_table("s_emb", 1003, zch(900, eviction, 7), columns=16)
    fixed = make_table("t_emb", 500, 16, optimizer="rowwise_adagrad", module_path="m.ebc")
    cluster = make_cluster(hosts, local)
    problem = make_problem(slots, fixed, cluster=cluster, runtime="torcheasyrec", kernels=frozenset(Kernel))
    listed = {(one.scheme, one.storage.kernel) for one in enumerate_families(problem).families if one.table == 0}
    assert listed == {(Scheme.ROW_WISE, Kernel.FUSED)}
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    assert verify(problem, result.plan.placement) == ()
    export = export_plan(to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="test"))
    config = config_of(export)
    text_format.Merge(export["global_embedding_constraints"], config.train_config)
    (feature,) = [one.id_feature for one in config.feature_configs if one.id_feature.HasField("zch")]
    feature.zch.ClearField("distance_lfu")
    getattr(feature.zch, eviction).SetInParent()
    landed = train(config, nnodes=hosts, nproc_per_node=local)
    assert_lookups_are_right(export, landed, 2)
    found = landed["s_emb"]
    assert (found.sharding_type, found.compute_kernel) == ("row_wise", "fused")
    module, ends = mc_module(feature.zch), [*(first for _, first, *_ in found.shards), 1003]
    for rank, first, rows, *_ in found.shards:
        block = module.rebuild_with_output_id_range((first, first + rows), ends)
        held = dict(block.named_buffers()) | dict(block.named_parameters())
        of_block = sum(one.numel() * one.element_size() for one in held.values())
        assert result.plan.evaluation.ranks[rank].ledger_bytes[Tier.HBM]["slots"] == of_block


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scheme", sorted(OFFERED))
@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 2), (3, 2)])
def test_every_listed_scheme_is_planned_exported_and_lands(scheme: Scheme, hosts: int, local: int) -> None:
    wanted = replace(ITS_CACHE, sharding_types=frozenset({scheme}))
    far = [None, frozenset({Kernel.FUSED_UVM}), frozenset({Kernel.FUSED_UVM_CACHING})]
    kernels = [None] * 3 if scheme is Scheme.DATA_PARALLEL else far
    tables = [
        make_table(
            f"t{rows}_emb",
            rows=rows,
            dim=dim,
            pooling=pooling,
            data_type=data_type,
            constraints=replace(wanted, compute_kernels=kernels[number % 3]),
        )
        for number, (rows, dim, pooling, data_type) in enumerate(
            ((400, 8, "sum", "fp32"), (410, 4, "mean", "fp16"), (590, 256, "mean", "fp32"), (370, 12, "sum", "fp16"))
        )
    ]
    tables += [make_table("s_emb", rows=99, pooling="none")]
    problem = make_problem(
        *tables, cluster=make_cluster(hosts, local), runtime="torcheasyrec", kernels=HOST_KERNELS | DEVICE_KERNELS
    )
    export = exported(problem)
    config = config_of(export)
    by_name = {one["embedding_name"]: one for one in export["tables"]}
    for one in config.feature_configs:
        feature = getattr(one, one.WhichOneof("feature"))
        if f"{feature.feature_name}_emb" in by_name:
            asked = by_name[f"{feature.feature_name}_emb"]
            feature.embedding_constraints.sharding_types.append(asked["sharding_type"])
            feature.embedding_constraints.compute_kernels.append(asked["compute_kernel"])
    landed = train(config, nnodes=export["nnodes"], nproc_per_node=export["nproc_per_node"])
    assert_lands(export, landed)
    assert_lookups_are_right(export, landed, 0)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (make_table(dim=62), "pad embedding_dim to 64"),
        (make_table(data_type="bf16"), "weights are fp32 or fp16, not bf16"),
        (make_table(constraints=TableConstraints(data_types=("fp32", "int8"))), "not int8"),
        (make_table("a.b"), "its name has a dot"),
    ],
)
def test_tables_that_no_scheme_runs(table: Table, reason: str) -> None:
    assert all(reason in (TorchEasyRec().scheme_issue(table, scheme) or "") for scheme in SCHEMES)


def test_ranks_cannot_be_asked_for_unless_a_scheme_has_them() -> None:
    for wanted in (TableConstraints(ranks=frozenset({0, 1, 2, 3})), TableConstraints(hosts=frozenset({0}))):
        table = make_table(constraints=wanted)
        refused = {scheme for scheme in OFFERED if TorchEasyRec().scheme_issue(table, scheme)}
        assert refused == {Scheme.TABLE_WISE, Scheme.TABLE_ROW_WISE}
        assert "chooses the ranks of table_wise" in (TorchEasyRec().scheme_issue(table, Scheme.TABLE_WISE) or "")


def test_means_are_cut_by_rows_together_as_in_torchrec() -> None:
    runtime, mean = TorchEasyRec(), make_table(pooling="mean")
    assert runtime.needs_row_wise_module(mean, Scheme.ROW_WISE)
    assert not runtime.needs_row_wise_module(mean, Scheme.TABLE_WISE)


def placed(table: Table, scheme: Scheme, kernel: Kernel, rows: list[tuple[int, ...]], **changes: Any) -> TablePlacement:
    rank, row, num_rows, column, columns = (list(one) for one in zip(*rows, strict=True))
    tier = Tier.DDR if kernel in (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING) else Tier.HBM
    shards = Shards.of_columns(
        rank=rank, row_offset=row, num_rows=num_rows, column_offset=column, num_columns=columns, tier=int(tier)
    )
    return TablePlacement(name=table.name, sharding_type=scheme, compute_kernel=kernel, shards=shards, **changes)


TABLE = make_table(rows=9, dim=256)
WHOLE = [(1, 0, 9, 0, 256)]


@pytest.mark.parametrize(
    ("scheme", "kernel", "rows", "changes", "reported"),
    [
        (Scheme.TABLE_WISE, Kernel.FUSED, WHOLE, {}, None),
        (Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, WHOLE, {"cache_load_factor": 0.2}, None),
        (Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, WHOLE, {"cache_load_factor": 0.4}, "its cache has 0.4"),
        (Scheme.TABLE_WISE, Kernel.DENSE, WHOLE, {}, "table_wise runs with fused, fused_uvm_caching, fused_uvm, not"),
        (Scheme.TABLE_WISE, Kernel.KEY_VALUE, WHOLE, {}, "kept on SSD"),
        (Scheme.COLUMN_WISE, Kernel.FUSED, [(0, 0, 9, 0, 128), (1, 0, 9, 128, 128)], {}, None),
        (Scheme.COLUMN_WISE, Kernel.FUSED, [(0, 0, 9, 0, 192), (1, 0, 9, 192, 64)], {}, "TorchRec cuts pieces of 128"),
        (Scheme.TABLE_WISE, Kernel.FUSED, WHOLE, {"data_type": "int8"}, "weights are fp32 or fp16, not int8"),
    ],
)
def test_placements_are_rated_by_what_the_config_can_say(
    scheme: Scheme, kernel: Kernel, rows: list[tuple[int, ...]], changes: dict[str, Any], reported: str | None
) -> None:
    placement = Placement(world_size=4, ranks_per_host=4, tables=(placed(TABLE, scheme, kernel, rows, **changes),))
    issues = TorchEasyRec().check(make_problem(TABLE, runtime="torcheasyrec"), placement)
    found = [one.message for one in issues if one.code == "undictated"]
    assert [reported in one for one in found] == ([] if reported is None else [True])
    assert all(one.pointer == "/tables/0" for one in issues)


def test_torchrecs_own_rules_are_preserved() -> None:
    """A grid of means is TorchRec's fault, and verification says so under this runtime as well."""
    table = replace(TABLE, pooling="mean")
    rows = [(rank, 5 * (rank % 2), 5 - rank % 2, 128 * (rank // 2), 128) for rank in range(4)]
    placement = Placement(
        world_size=4, ranks_per_host=2, tables=(placed(table, Scheme.GRID_SHARD, Kernel.FUSED, rows),)
    )
    problem = make_problem(table, cluster=make_cluster(2, 2), runtime="torcheasyrec")
    assert {"mean-grid", "undictated"} <= {one.code for one in verify(problem, placement)}


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_pieces_are_as_wide_as_torchrecs() -> None:
    from torchrec.distributed.sharding_plan import _get_block_size_for_cw_shard

    widths = np.arange(4, 2500, 4).tolist()
    assert [piece_columns(width) for width in widths] == [_get_block_size_for_cw_shard(width, None) for width in widths]


def test_a_placement_of_a_table_with_a_dot_in_its_name_is_reported() -> None:
    table = make_table("a.b", rows=9, dim=256)
    placement = Placement(
        world_size=4, ranks_per_host=4, tables=(placed(table, Scheme.TABLE_WISE, Kernel.FUSED, WHOLE),)
    )
    (issue,) = TorchEasyRec().check(make_problem(table, runtime="torcheasyrec"), placement)
    assert "its name has a dot" in issue.message
