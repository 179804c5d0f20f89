"""Bytes: the 12-trillion-parameter ledger, TorchRec's own storage, reservations."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.registry import COST_MODELS, make_cost_model
from cost_models.roofline import RooflineModel
from cost_models.vocabulary import Kernel, Phase, Scheme, Tier
from planner.domain.problem import Dense, Problem, Reservation
from planner.memory import EXACT, LINES, TORCHREC, capacity_bytes, ledger_rules, reserved_bytes, shard_ledger
from planner.work import build_work, table_columns
from tests.golden.torchrec_golden import (
    KEPT_TABLES,
    SHARED,
    GoldenInstance,
    GoldenShard,
    full_instance,
    full_shards,
    golden_instance,
    golden_shards,
)
from tests.planner.builders import make_cluster, make_problem, make_table

TERA = 1e12


def ledger(problem: Problem, scheme: Scheme, kernel: Kernel = Kernel.FUSED, rules: object = EXACT) -> dict[str, float]:
    """Lines of one shard of the first table."""
    table = problem.tables[0]
    work = build_work(
        problem,
        table_columns(problem),
        table=np.array([0]),
        scheme=np.array([scheme], dtype=np.int8),
        kernel=np.array([kernel], dtype=np.int8),
        shard_columns=np.array([table.embedding_dim]),
    )
    lines = shard_ledger(problem, work, table=np.array([0]), stored_rows=work.shard_rows, rules=rules)  # type: ignore[arg-type]
    return dict(zip(LINES, lines[0].tolist(), strict=True))


@pytest.mark.parametrize(
    ("data_type", "optimizer", "terabytes", "fits"),
    [
        ("fp32", "adagrad", 96.0, False),
        ("fp32", "rowwise_adagrad", 48.19, False),
        ("fp16", "rowwise_adagrad", 24.19, True),
    ],
)
def test_twelve_trillion_parameters(data_type: str, optimizer: str, terabytes: float, fits: bool) -> None:
    """Neo's model F: 12e12 parameters, 256 columns, on 16 hosts with 5.1 TB HBM + 24 TB DDR.

    fp32 weights 48 TB; AdaGrad adds 4 B per weight (48 TB), row-wise AdaGrad 4 B per row
    (12e12 / 256 x 4 = 0.1875 TB). Only fp16 fits, at 24.19 / 29.1 = 83%.
    """
    rows = 12 * 10**12 // 256 // 12
    tables = [make_table(f"t{i}", rows, 256, data_type=data_type, optimizer=optimizer) for i in range(12)]
    total = sum(t.weight_bytes + t.optimizer.state_bytes(t.num_embeddings, t.embedding_dim) for t in tables)
    assert total / TERA == pytest.approx(terabytes, rel=1e-3)
    capacity = 16 * (8 * 40e9 + 1.5e12)
    assert (total <= capacity) is fits
    if fits:
        assert total / capacity == pytest.approx(0.83, abs=0.005)


def test_lines_of_one_shard() -> None:
    """1,000 x 64 fp32 rows with row-wise AdaGrad on 4 ranks of 64 samples, 4 ids each.

    Weights 256,000; state 4,000; ids of all ranks 4 x 64 x 4 x 8 = 8,192; output rows of
    all ranks 4 x 64 x 64 columns x 4 B = 65,536.
    """
    problem = make_problem(make_table(optimizer="rowwise_adagrad"))
    assert ledger(problem, Scheme.TABLE_WISE) == {
        "weights": 256_000,
        "optimizer_state": 4_000,
        "gradients": 0,
        "input_buffers": 8_192,
        "output_buffers": 65_536,
    }
    by_rows = ledger(problem, Scheme.ROW_WISE)  # a quarter of rows, state and ids; full partial pools
    assert by_rows["weights"] == 64_000
    assert by_rows["optimizer_state"] == 1_000
    assert by_rows["input_buffers"] == 2_048
    assert by_rows["output_buffers"] == 65_536
    copy = ledger(problem, Scheme.DATA_PARALLEL, Kernel.DENSE)  # own batch only, and a dense gradient
    assert copy["gradients"] == 256_000
    assert copy["input_buffers"] == 2_048
    assert copy["output_buffers"] == 16_384


def test_every_column_piece_keeps_its_own_row_state() -> None:
    table = make_table(optimizer="rowwise_adagrad", dim=128)
    whole, half = (table.optimizer.state_bytes(1000, width) for width in (128, 64))
    assert half == whole == 4_000


@pytest.mark.parametrize(
    ("pipeline", "copies"), [("none", 1), ("train_sparse_dist", 2), ("train_prefetch_sparse_dist", 3)]
)
def test_pipelines_hold_more_inputs(pipeline: str, copies: int) -> None:
    problem = make_problem(make_table(), pipeline=pipeline)
    assert ledger(problem, Scheme.TABLE_WISE)["input_buffers"] == copies * 8_192
    assert ledger(problem, Scheme.TABLE_WISE)["output_buffers"] == 65_536
    torchrec = ledger(problem, Scheme.TABLE_WISE, rules=TORCHREC)
    assert torchrec["output_buffers"] == (65_536 if pipeline == "none" else 0)


def test_torchrec_s_ledger_leaves_out_what_torchrec_leaves_out() -> None:
    problem = make_problem(make_table(data_type="fp16", optimizer="adam", pooling_factor=0.5))
    exact, peer = (ledger(problem, Scheme.TABLE_WISE, rules=rules) for rules in (EXACT, TORCHREC))
    assert exact["optimizer_state"] == 1000 * 64 * 8  # fp32 momenta
    assert peer["optimizer_state"] == 2 * peer["weights"]  # twice the fp16 weights
    assert peer["output_buffers"] * 4 == exact["output_buffers"]  # half the bags, two bytes
    assert ledger(problem, Scheme.DATA_PARALLEL, Kernel.DENSE, TORCHREC)["gradients"] == 0


def test_weights_of_ids_are_received_with_the_ids() -> None:
    """1,024 ids of 8 B with a 4 B weight each: 12,288 B. TorchRec's ledger forgets the weights."""
    problem = make_problem(replace(make_table(), is_weighted=True))
    assert ledger(problem, Scheme.TABLE_WISE)["input_buffers"] == 12_288
    assert ledger(problem, Scheme.ROW_WISE)["input_buffers"] == 3_072
    assert ledger(problem, Scheme.TABLE_WISE, rules=TORCHREC)["input_buffers"] == 8_192


def test_the_ledger_and_the_price_agree_on_dense_gradients() -> None:
    """fp16: 1,000 x 64 x 2 B = 128,000 B are held, and all-reduced as 2 x 3/4 of them over 4 ranks at 3e11 B/s."""
    problem = make_problem(make_table(data_type="fp16"))
    held = ledger(problem, Scheme.DATA_PARALLEL, Kernel.DENSE)["gradients"]
    assert held == 128_000
    work = build_work(
        problem,
        table_columns(problem),
        table=np.array([0]),
        scheme=np.array([Scheme.DATA_PARALLEL], dtype=np.int8),
        kernel=np.array([Kernel.DENSE], dtype=np.int8),
        shard_columns=np.array([64]),
    )
    seconds = RooflineModel().predict(work, problem.cluster.hardware).seconds[0, Phase.BACKWARD_COMM]
    assert seconds == pytest.approx(held * 2 * 3 / 4 / 3e11)


def test_ledger_of_each_cost_model() -> None:
    rules = {name: ledger_rules(make_cost_model(name).ledger) for name in COST_MODELS}
    assert rules == {"torchrec": TORCHREC, "roofline": EXACT}


def test_reservation_lines() -> None:
    """15% of 80e9; 6 x 1e6 dense; 64 samples x 4 ids x 8 B x 20 copies = 40,960."""
    problem = make_problem(make_table(), reservation=Reservation(), dense=Dense(parameter_bytes=1e6))
    lines = reserved_bytes(problem, 80e9)
    assert lines == {"margin": pytest.approx(12e9), "dense_parameters": 6e6, "input_batches": 40_960}
    assert capacity_bytes(problem)[0, Tier.HBM] == pytest.approx(68e9 - 6e6 - 40_960)


def test_capacity_is_never_negative_and_knows_unequal_ranks() -> None:
    cluster = make_cluster()
    unequal = replace(cluster, hbm_bytes_by_rank=(80e9, 40e9, 40e9, 1e6))
    problem = make_problem(make_table(), cluster=unequal, dense=Dense(parameter_bytes=1e6), reservation=Reservation())
    left = capacity_bytes(problem)[:, Tier.HBM]
    assert left[0] > left[1] == left[2] > left[3] == 0


@pytest.mark.parametrize("name", KEPT_TABLES)
def test_storage_equals_torchrec_s(name: str) -> None:
    """The shards that are kept beside the tests, byte for byte."""
    assert compare(golden_instance(name), golden_shards(name)) > 30


@pytest.mark.skipif(not SHARED.is_dir(), reason="no TorchRec dumps beside the repository (shared/torchrec_golden)")
@pytest.mark.parametrize("name", KEPT_TABLES)
def test_all_storage_equals_torchrec_s(name: str) -> None:
    """Every fused or dense shard of every option that TorchRec enumerates."""
    assert compare(full_instance(SHARED, name), full_shards(SHARED, name)) > 100


def compare(instance: GoldenInstance, shards: list[GoldenShard]) -> int:
    """Expect TorchRec's bytes of every shard, and what it leaves on every rank; return how many shards."""
    problem = make_problem(
        *(
            make_table(
                t.name,
                t.num_embeddings,
                t.embedding_dim,
                pooling_factor=t.pooling_factor,
                data_type=t.data_type,
            )
            for t in instance.tables
        ),
        cluster=make_cluster(instance.num_hosts, instance.ranks_per_host, hbm_bytes=instance.hbm_bytes),
        batch_size_per_rank=instance.batch_size_per_rank,
        reservation=Reservation(),
    )
    assert set(capacity_bytes(problem)[:, Tier.HBM].tolist()) == {instance.hbm_left_bytes}
    filled = [shard for shard in shards if shard.num_rows]  # TorchRec lists empty row blocks; we never make one
    index = {table.name: i for i, table in enumerate(problem.tables)}
    table = np.array([index[shard.table] for shard in filled])
    work = build_work(
        problem,
        table_columns(problem),
        table=table,
        scheme=np.array([shard.scheme for shard in filled], dtype=np.int8),
        kernel=np.array([shard.kernel for shard in filled], dtype=np.int8),
        shard_columns=np.array([shard.num_columns for shard in filled]),
    )
    rows = np.array([shard.num_rows for shard in filled])
    found = shard_ledger(problem, work, table=table, stored_rows=rows, rules=TORCHREC).sum(axis=1)
    np.testing.assert_array_equal(found, [shard.hbm_bytes for shard in filled])
    return len(filled)
