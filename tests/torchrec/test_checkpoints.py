"""Checkpoints that real TorchRec saves under one plan and loads under another, on fewer ranks."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from api.specs.parse import parse_spec
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.formats.reshard_bands import bands_between, reads_on
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shard
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.table import Table
from planner.pipeline import plan
from planner.verification.stored_state import state_loss, stored_state
from tests.support.planning.builders import make_table
from tests.support.planning.layouts import laid_out
from tests.support.planning.resharding import groups
from tests.support.thorough import thorough
from tests.support.torchrec import checkpoints
from tests.support.torchrec.hand_plans import table_document
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.service_plans import grouped_plan

pytestmark = pytest.mark.torchrec

ROWS, COLUMNS = 48, 32
LAYOUTS: dict[str, tuple[Scheme, tuple[int, ...]]] = {
    "copies": (Scheme.DATA_PARALLEL, ()),
    "whole": (Scheme.TABLE_WISE, ()),
    "rows": (Scheme.ROW_WISE, ()),
    "host_rows": (Scheme.TABLE_ROW_WISE, ()),
    "columns": (Scheme.COLUMN_WISE, (16, 16)),
    "uneven_columns": (Scheme.COLUMN_WISE, (8, 24)),
    "four_columns": (Scheme.COLUMN_WISE, (8, 8, 8, 8)),
    "host_columns": (Scheme.TABLE_COLUMN_WISE, (16, 16)),
    "grid": (Scheme.GRID_SHARD, (16, 16)),
}
#: Those that differ in what is stored; the others are in the second test.
_STORED_APART = {
    "rowwise_adagrad": ("copies", "whole", "rows", "columns", "uneven_columns", "four_columns", "grid"),
    "adagrad": ("copies", "whole", "rows", "uneven_columns", "grid"),
    "sgd": ("copies", "rows", "uneven_columns"),
}


def named(before: str, after: str) -> Table:
    return make_table(f"{before}__{after}", rows=ROWS, dim=COLUMNS)


def placed(table: Table, layout: str, num_ranks: int) -> TablePlacement:
    scheme, widths = LAYOUTS[layout]
    kernel = Kernel.DENSE if scheme.is_replicated else Kernel.FUSED
    return laid_out(table, scheme, widths=widths, num_ranks=num_ranks, kernel=kernel, first=1)


def specs(placements: Sequence[TablePlacement]) -> list[TableSpec]:
    return [
        TableSpec(
            name=one.name,
            rows=ROWS,
            columns=COLUMNS,
            features=(f"f{index}",),
            scheme=one.sharding_type.label,
            kernel=one.compute_kernel.label,
        )
        for index, one in enumerate(placements)
    ]


def plan_document(placements: Sequence[TablePlacement], num_ranks: int) -> dict[str, object]:
    tables = [
        table_document(table, [(s.rank, s.row_offset, s.num_rows, s.column_offset, s.num_columns) for s in one.shards])
        for table, one in zip(specs(placements), placements, strict=True)
    ]
    return {
        "schema_version": 1,
        "spec_digest": "sha256:" + 64 * "0",
        "world_size": num_ranks,
        "ranks_per_host": 2,
        "tables": tables,
    }


@pytest.mark.parametrize(
    "optimizer", ["rowwise_adagrad", pytest.param("adagrad", marks=thorough), pytest.param("sgd", marks=thorough)]
)
def test_what_is_read_is_what_the_rules_say(optimizer: str, tmp_path: Path) -> None:
    """Every layout on four ranks, loaded under every layout on two: weights always, state where nothing is lost."""
    pairs = list(itertools.product(_STORED_APART[optimizer], repeat=2))
    old = [placed(named(before, after), before, 4) for before, after in pairs]
    new = [placed(named(before, after), after, 2) for before, after in pairs]
    checkpoints.run(tables=specs(old), plan=plan_document(old, 4), optimizer=optimizer, loads=False, folder=tmp_path)
    outcome = checkpoints.run(
        tables=specs(new), plan=plan_document(new, 2), optimizer=optimizer, loads=True, folder=tmp_path
    )
    assert {outcome[f"{one.name} weight"] for one in new} == {"read"}
    for before, after in zip(old, new, strict=True):
        state = outcome.get(f"{before.name} momentum1")  # none of copies: an optimizer of the launcher has it
        loss = state_loss(OPTIMIZERS[optimizer], stored_state(before), stored_state(after))
        has_fused_state = optimizer != "sgd" and not after.sharding_type.is_replicated
        assert (state is not None) == has_fused_state, after.name
        if state is not None:
            assert (state == "read") == (loss == ""), (after.name, state, loss)
        elif optimizer != "sgd":
            assert (loss == "") == before.sharding_type.is_replicated
    if optimizer == "rowwise_adagrad":
        assert "Size mismatch" in outcome["whole__columns momentum1"]
        assert outcome["columns__uneven_columns momentum1"] == "wrong"  # and nobody says so
        assert "Missing key" in outcome["copies__rows momentum1"]


def test_a_plan_for_fewer_ranks_reads_all_of_the_checkpoint(tmp_path: Path) -> None:
    """The plan comes from a spec with ``checkpoint_plan``; without, another one comes out, which loses state."""
    layouts = ("whole", "rows", "uneven_columns", "columns", "grid", "four_columns", "host_rows", "host_columns")
    old = [placed(make_table(f"t_{name}", rows=ROWS, dim=COLUMNS), name, 4) for name in layouts]
    before = plan_document(old, 4)
    spec = {
        "model": {
            "batch_size_per_rank": 64,
            "tables": [
                {
                    "name": one.name,
                    "num_embeddings": ROWS,
                    "embedding_dim": COLUMNS,
                    "pooling_factor": 2,
                    "module_path": "sparse_arch.plain",
                }
                for one in old
            ],
        },
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
        "solver": {"work_limit_seconds": 0.2, "time_limit_seconds": 60},
    }
    losses = []
    for checkpoint_plan in ({"plan": before}, None):
        request = parse_spec(json.dumps({**spec, "checkpoint_plan": checkpoint_plan}).encode())
        found = plan(
            request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
        ).plan
        assert found is not None
        new = list(found.placement.tables)
        losses.append(
            [
                state_loss(OPTIMIZERS["rowwise_adagrad"], stored_state(a), stored_state(b))
                for a, b in zip(old, new, strict=True)
            ]
        )
        if checkpoint_plan is not None:
            checkpoints.run(tables=specs(old), plan=before, optimizer="rowwise_adagrad", loads=False, folder=tmp_path)
            outcome = checkpoints.run(
                tables=specs(new), plan=plan_document(new, 2), optimizer="rowwise_adagrad", loads=True, folder=tmp_path
            )
            assert set(outcome.values()) == {"read"}
            assert len(outcome) == 2 * len(old)
    assert not any(losses[0])
    assert any(losses[1])


@pytest.mark.parametrize(("before", "after"), list(itertools.product(LAYOUTS, repeat=2)))
def test_reads_are_those_of_the_checkpoint_library(before: str, after: str) -> None:
    """``torch.distributed.checkpoint`` plans its reads from the stored chunks: each is one of the reshard map's."""
    old, new = placed(named(before, after), before, 4), placed(named(before, after), after, 2)
    bands = bands_between(groups(old.shards), groups(new.shards))
    chunks = [_chunk(shard) for shard in (old.shards[:1] if old.sharding_type.is_replicated else old.shards)]
    metadata = TensorStorageMetadata(
        properties=TensorProperties(dtype=torch.float32), size=torch.Size([ROWS, COLUMNS]), chunks=chunks
    )
    for rank in range(2):
        mine = [_chunk(shard) for shard in new.shards if shard.rank == rank]
        theirs = {
            (
                tuple(item.dest_index.offset),
                tuple(item.dest_offsets),
                tuple(item.storage_index.offset),
                tuple(item.storage_offsets),
                tuple(item.lengths),
            )
            for item in create_read_items_for_chunk_list("t", metadata, mine)
        }
        ours = {
            (
                (one.shard_row_offset, one.shard_column_offset),
                (one.row_offset - one.shard_row_offset, one.column_offset - one.shard_column_offset),
                (one.old_row_offset, one.old_column_offset),
                (one.row_offset - one.old_row_offset, one.column_offset - one.old_column_offset),
                (one.num_rows, one.num_columns),
            )
            for one in reads_on(rank, bands)
        }
        assert ours == theirs


def _chunk(shard: Shard) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(
        offsets=torch.Size([shard.row_offset, shard.column_offset]),
        sizes=torch.Size([shard.num_rows, shard.num_columns]),
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sgd", EmbOptimType.EXACT_SGD),
        ("rowwise_adagrad", EmbOptimType.EXACT_ROWWISE_ADAGRAD),
        ("adagrad", EmbOptimType.EXACT_ADAGRAD),
        ("adam", EmbOptimType.ADAM),
        ("lamb", EmbOptimType.LAMB),
        ("partial_rowwise_adam", EmbOptimType.PARTIAL_ROWWISE_ADAM),
        ("partial_rowwise_lamb", EmbOptimType.PARTIAL_ROWWISE_LAMB),
    ],
)
def test_state_per_weight_and_per_row_is_that_of_the_operator(name: str, kind: EmbOptimType) -> None:
    """FBGEMM's operator for GPUs on the meta device: what it gives a checkpoint, which is no count of steps."""
    operator = SplitTableBatchedEmbeddingBagsCodegen(
        [(ROWS, COLUMNS, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)], optimizer=kind, device=torch.device("meta")
    )
    shapes = [tuple(state.shape) for states in operator.get_optimizer_state() for state in states.values()]
    optimizer = OPTIMIZERS[name]
    assert shapes.count((ROWS, COLUMNS)) == optimizer.states_per_element
    assert shapes.count((ROWS,)) == optimizer.states_per_row
    assert len(shapes) == optimizer.states_per_element + optimizer.states_per_row


#: What groups of two ranks on one host may have.
_IN_GROUPS = ("copies", "whole", "rows", "columns")


def in_two_groups() -> tuple[list[TableSpec], dict[str, object]]:
    """Tables of two sharding groups of two ranks each, on one host, and the plan of a group."""
    tables = specs([placed(make_table(f"t_{name}", rows=ROWS, dim=COLUMNS), name, 2) for name in _IN_GROUPS])
    return tables, grouped_plan(tables, 4, 4, {"sharding_group_size": 2})


def test_sharding_groups_store_every_shard_once_and_share_them_out(tmp_path: Path) -> None:
    """Ranks 0 and 1 hold the shards of the group's rank 0, ranks 2 and 3 those of its rank 1."""
    tables, plan = in_two_groups()
    checkpoints.run(tables=tables, plan=plan, optimizer="rowwise_adagrad", loads=False, folder=tmp_path)
    stored = checkpoints.stored_on(tmp_path)
    for table in plan["tables"]:
        mine = {offset: rank for (key, offset), rank in stored.items() if key == f"{table['name']} weight"}
        if table["sharding_type"] == "data_parallel":
            assert len(mine) == 1
            continue
        assert {offset: rank // 2 for offset, rank in mine.items()} == {
            (shard["row_offset"], shard["column_offset"]): shard["rank"] for shard in table["shards"]
        }
    assert set(stored.values()) == {0, 1, 2, 3}


@pytest.mark.parametrize("grouped_first", [True, pytest.param(False, marks=thorough)])
def test_sharding_groups_and_whole_jobs_read_each_other(grouped_first: bool, tmp_path: Path) -> None:
    """Groups of two ranks and two ranks without groups: weights and optimizer state come through either way."""
    tables, grouped = in_two_groups()
    plain = {key: value for key, value in grouped.items() if key != "replica_groups"}
    plans = (grouped, plain) if grouped_first else (plain, grouped)
    checkpoints.run(tables=tables, plan=plans[0], optimizer="rowwise_adagrad", loads=False, folder=tmp_path)
    outcome = checkpoints.run(tables=tables, plan=plans[1], optimizer="rowwise_adagrad", loads=True, folder=tmp_path)
    assert {outcome[f"{one.name} weight"] for one in tables} == {"read"}
    states = {key: found for key, found in outcome.items() if not key.endswith(" weight")}
    assert len(states) == len(_IN_GROUPS) - 1
    assert set(states.values()) == {"read"}
