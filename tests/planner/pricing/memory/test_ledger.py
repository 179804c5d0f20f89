"""Bytes: the 12-trillion-parameter ledger, TorchRec's own storage, reservations."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.vocabulary import Kernel, Phase, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem, Reservation
from planner.pricing.memory.ledger import (
    EXACT,
    LINES,
    TORCHREC,
    Ledger,
    ShardLedger,
    capacity_bytes,
    reserved_by_tier,
    reserved_bytes,
    shard_ledger,
)
from planner.pricing.shard_work import build_work
from tests.support.golden.torchrec_golden import (
    PRESERVED_TABLES,
    SHARED,
    GoldenInstance,
    GoldenShard,
    full_instance,
    full_shards,
    golden_instance,
    golden_shards,
)
from tests.support.planning.builders import make_cluster, make_problem, make_table

TERA = 1e12


def shard(
    problem: Problem, scheme: Scheme, kernel: Kernel = Kernel.FUSED, name: Ledger = EXACT, share: float = np.nan
) -> ShardLedger:
    """The ledger of one shard of the first table."""
    table = problem.tables[0]
    work = build_work(
        problem,
        table_columns(problem),
        table=np.array([0]),
        scheme=np.array([scheme], dtype=np.int8),
        kernel=np.array([kernel], dtype=np.int8),
        shard_columns=np.array([table.embedding_dim]),
        cache_load_factor=np.array([share]),
    )
    return shard_ledger(problem, work, table=np.array([0]), stored_rows=work.shard_rows, ledger=name)


def ledger(
    problem: Problem,
    scheme: Scheme,
    kernel: Kernel = Kernel.FUSED,
    name: Ledger = EXACT,
    cache_load_factor: float = np.nan,
) -> dict[str, float]:
    """Lines of one shard of the first table, those of 0 bytes left out."""
    found = shard(problem, scheme, kernel, name, cache_load_factor).bytes[0].tolist()
    return {line: held for line, held in zip(LINES, found, strict=True) if held}


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


def test_lines_of_shard() -> None:
    """1,000 x 64 fp32 rows with row-wise AdaGrad on 4 ranks of 64 samples, 4 ids each.

    Weights 256,000; state 4,000; ids of all ranks 4 x 64 x 4 x 8 = 8,192; output rows of
    all ranks 4 x 64 x 64 columns x 4 B = 65,536.
    """
    problem = make_problem(make_table(optimizer="rowwise_adagrad"))
    assert {line: held for line, held in ledger(problem, Scheme.TABLE_WISE).items() if held} == {
        "weights": 256_000,
        "row_optimizer_state": 4_000,
        "input_buffers": 8_192,
        "output_buffers": 65_536,
    }
    by_rows = ledger(problem, Scheme.ROW_WISE)  # a quarter of rows, state and ids; full partial pools
    assert by_rows["weights"] == 64_000
    assert by_rows["row_optimizer_state"] == 1_000
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
    torchrec = ledger(problem, Scheme.TABLE_WISE, name=TORCHREC)
    assert torchrec.get("output_buffers", 0) == (65_536 if pipeline == "none" else 0)


def test_torchrec_s_ledger_leaves_out_what_torchrec_leaves_out() -> None:
    problem = make_problem(make_table(data_type="fp16", optimizer="adam", pooling_factor=0.5))
    exact, peer = (ledger(problem, Scheme.TABLE_WISE, name=name) for name in (EXACT, TORCHREC))
    assert exact["optimizer_state"] == 1000 * 64 * 8  # fp32 momenta
    assert peer["optimizer_state"] == 2 * peer["weights"]  # twice the fp16 weights
    assert peer["output_buffers"] * 4 == exact["output_buffers"]  # half the bags, two bytes
    assert "gradients" not in ledger(problem, Scheme.DATA_PARALLEL, Kernel.DENSE, TORCHREC)


@pytest.mark.parametrize(("pipeline", "inputs"), [("none", 1), ("train_prefetch_sparse_dist", 10)])
def test_torchrec_s_cache_has_its_share_of_the_tensor_and_of_the_state_again(pipeline: str, inputs: int) -> None:
    """1,000 x 64 fp32 rows, 256,000 B, of which 0.2 cached: 51,200 B, and Adam's twice that next to them.

    Index 1,000 x (4 + 16 x 0.2) = 7,200 B; ids 8,192 B, held ten times while fetching ahead.
    """
    problem = make_problem(make_table(optimizer="adam"), pipeline=pipeline)
    lines = ledger(problem, Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, TORCHREC, 0.2)
    assert lines == {
        "weights": 256_000,
        "optimizer_state": 512_000,
        "cache": 51_200 * 3,
        "cache_index": 7_200,
        "input_buffers": inputs * 8_192,
    } | ({"output_buffers": 65_536} if pipeline == "none" else {})
    by_rows = ledger(problem, Scheme.ROW_WISE, Kernel.FUSED_UVM_CACHING, TORCHREC, 0.2)
    assert (by_rows["cache"], by_rows["cache_index"]) == (12_800 * 3, 1_800)
    tiers = shard(problem, Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, TORCHREC, 0.2).by_tier()[0]
    assert tiers[Tier.DDR] == 256_000 + 512_000
    assert tiers[Tier.HBM] == sum(lines.values()) - tiers[Tier.DDR]


def test_torchrec_s_row_state_of_a_cache_is_counted_twice() -> None:
    """Row-wise AdaGrad as 1/64 of the tensor: 4,000 B in host memory, 800 B again next to the cached fifth."""
    problem = make_problem(make_table(optimizer="rowwise_adagrad"))
    lines = ledger(problem, Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, TORCHREC, 0.2)
    assert (lines["optimizer_state"], lines["cache"]) == (4_000, 51_200 + 800)


def test_torchrec_s_tables_in_host_memory_take_buffers_alone_of_the_device() -> None:
    problem = make_problem(make_table(optimizer="adam"), pipeline="train_prefetch_sparse_dist")
    tiers = shard(problem, Scheme.TABLE_WISE, Kernel.FUSED_UVM, TORCHREC, np.nan).by_tier()[0]
    assert tiers.tolist() == [3 * 8_192, 256_000 + 512_000, 0, 0]


def test_torchrec_s_key_value_tables_have_an_index_without_a_cache() -> None:
    """The index of a fifth, 7,200 B, lies in block storage with the rows; no cache is counted anywhere."""
    problem = make_problem(make_table(optimizer="adam"))
    tiers = shard(problem, Scheme.TABLE_WISE, Kernel.KEY_VALUE, TORCHREC, 0.2).by_tier()[0]
    assert tiers.tolist() == [8_192 + 65_536, 0, 0, 256_000 + 512_000 + 7_200]


def test_weights_of_ids_are_received_with_the_ids() -> None:
    """1,024 ids of 8 B with a 4 B weight each: 12,288 B. TorchRec's ledger forgets the weights."""
    problem = make_problem(replace(make_table(), is_weighted=True))
    assert ledger(problem, Scheme.TABLE_WISE)["input_buffers"] == 12_288
    assert ledger(problem, Scheme.ROW_WISE)["input_buffers"] == 3_072
    assert ledger(problem, Scheme.TABLE_WISE, name=TORCHREC)["input_buffers"] == 8_192


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


DEVICE_LINES = {"row_optimizer_state", "cache", "cache_index", "input_buffers", "output_buffers"}


@pytest.mark.parametrize(
    ("optimizer", "per_weight", "per_row"),
    [("rowwise_adagrad", 0, 4_000), ("adagrad", 256_000, 0), ("partial_rowwise_adam", 256_000, 4_000)],
)
@pytest.mark.parametrize(
    ("kernel", "share", "tier", "cache"),
    [
        (Kernel.FUSED, np.nan, Tier.HBM, (0, 0)),
        (Kernel.FUSED_UVM, np.nan, Tier.DDR, (0, 0)),
        (Kernel.FUSED_UVM_CACHING, 0.1, Tier.DDR, (128 * 256, 4_000 + 128 * 16)),
        (Kernel.KEY_VALUE, 0.1, Tier.SSD, (96 * 256, 96 * 16)),
    ],
)
def test_weights_and_their_state_lie_next_to_each_other_and_all_else_in_the_device(
    kernel: Kernel, share: float, tier: Tier, cache: tuple[int, int], optimizer: str, per_weight: int, per_row: int
) -> None:
    """1,000 rows of 64 fp32 weights: state of 4 B per weight is as large as the weights, state per row 4,000 B.

    A tenth of the rows is 100 slots of 256 B: 4 sets of 32 of them, or 3 with ``key_value``, and 16 B of tags each.
    """
    found = shard(make_problem(make_table(optimizer=optimizer)), Scheme.TABLE_WISE, kernel, share=share)
    held = dict(zip(LINES, found.bytes[0].tolist(), strict=True))
    where = dict(zip(LINES, found.tier[0].tolist(), strict=True))
    assert (held["weights"], held["optimizer_state"], held["row_optimizer_state"]) == (256_000, per_weight, per_row)
    assert where["weights"] == where["optimizer_state"] == tier
    assert {where[line] for line in DEVICE_LINES} == {Tier.HBM}
    assert (held["cache"], held["cache_index"]) == cache
    by_tier = found.by_tier()[0]
    assert by_tier.sum() == found.bytes.sum()
    if tier is not Tier.HBM:
        assert by_tier[tier] == 256_000 + per_weight
    lines = found.by_tier_and_line()[0].reshape(len(Tier), len(LINES))
    assert lines.sum(axis=1).tolist() == by_tier.tolist()
    assert lines[tier, LINES.index("weights")] == 256_000


def test_a_cache_of_all_rows_takes_what_fused_takes_and_its_index() -> None:
    """1,000 rows are 32 sets of 32 slots: 24 slots of 256 B more than rows, 4 B per row and 16 B per slot."""
    problem = make_problem(make_table(optimizer="rowwise_adagrad"))
    whole = shard(problem, Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, share=1.0).by_tier()[0]
    fused = shard(problem, Scheme.TABLE_WISE).by_tier()[0]
    assert whole[Tier.HBM] == fused[Tier.HBM] + 24 * 256 + 4_000 + 1_024 * 16
    assert whole[Tier.DDR] == 256_000


def test_a_cache_holds_whole_rows_and_those_of_its_own_block() -> None:
    """1,001 rows on 4 ranks: blocks of 251; a tenth are 25.1 rows, one set of 32 slots of 256 B."""
    found = shard(make_problem(make_table(rows=1001)), Scheme.ROW_WISE, Kernel.FUSED_UVM_CACHING, share=0.1)
    held = dict(zip(LINES, found.bytes[0].tolist(), strict=True))
    assert (held["cache"], held["cache_index"]) == (32 * 256, 251 * 4 + 32 * 16)


@pytest.mark.parametrize(("kernel", "copies"), [(Kernel.FUSED, 3), (Kernel.FUSED_UVM, 3), (Kernel.KEY_VALUE, 10)])
def test_only_caches_fetch_ahead(kernel: Kernel, copies: int) -> None:
    """The prefetching pipeline holds three batches of 8,192 B of ids, and seven more where they fill a cache."""
    problem = make_problem(make_table(), pipeline="train_prefetch_sparse_dist")
    found = shard(problem, Scheme.TABLE_WISE, kernel, share=0.1 if kernel is Kernel.KEY_VALUE else np.nan)
    assert found.bytes[0, LINES.index("input_buffers")] == copies * 8_192
    plain = shard(make_problem(make_table()), Scheme.TABLE_WISE, Kernel.FUSED_UVM_CACHING, share=0.1)
    assert plain.bytes[0, LINES.index("input_buffers")] == 8_192


def test_host_memory_is_left_whole() -> None:
    left = capacity_bytes(make_problem(reservation=Reservation(), dense=Dense(parameter_bytes=1e6)))
    assert left[:, Tier.DDR].tolist() == [250e9] * 4
    assert np.all(left[:, Tier.HBM] < 80e9)
    assert not left[:, Tier.SSD].any()


def test_reservation_lines() -> None:
    """15% of 80e9; 6 x 1e6 dense; 64 samples x 4 ids x 8 B x 20 copies = 40,960."""
    problem = make_problem(make_table(), reservation=Reservation(), dense=Dense(parameter_bytes=1e6))
    lines = reserved_bytes(problem, 80e9)
    assert lines == {
        "margin": pytest.approx(12e9),
        "dense_parameters": 6e6,
        "input_batches": 40_960,
        "collective_buffers": 0.0,
    }
    buffers = replace(problem, reservation=replace(problem.reservation, collective_bytes=4e8))
    assert reserved_bytes(buffers, 80e9) == lines | {"collective_buffers": 4e8}
    assert np.all(capacity_bytes(problem)[:, Tier.HBM] - capacity_bytes(buffers)[:, Tier.HBM] == 4e8)
    assert capacity_bytes(problem)[0, Tier.HBM] == pytest.approx(68e9 - 6e6 - 40_960)


def test_capacity_is_never_negative_and_knows_unequal_ranks() -> None:
    cluster = make_cluster()
    unequal = replace(cluster, hbm_bytes_by_rank=(80e9, 40e9, 40e9, 1e6))
    problem = make_problem(make_table(), cluster=unequal, dense=Dense(parameter_bytes=1e6), reservation=Reservation())
    left = capacity_bytes(problem)[:, Tier.HBM]
    assert left[0] > left[1] == left[2] > left[3] == 0


@pytest.mark.parametrize("name", PRESERVED_TABLES)
def test_storage_equals_torchrec_s(name: str) -> None:
    """The shards that are kept next to the tests, byte for byte."""
    assert compare(golden_instance(name), golden_shards(name)) > 30


@pytest.mark.skipif(not SHARED.is_dir(), reason="no TorchRec dumps next to the repository (shared/torchrec_golden)")
@pytest.mark.parametrize("name", PRESERVED_TABLES)
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
    found = shard_ledger(problem, work, table=table, stored_rows=rows, ledger=TORCHREC).by_tier()[:, Tier.HBM]
    np.testing.assert_array_equal(found, [shard.hbm_bytes for shard in filled])
    return len(filled)


def test_a_part_of_host_memory_stays_free_where_ranks_have_accelerators() -> None:
    """5% of 250 GB; on hosts alone the reservation of the device's memory holds, and nothing is taken twice."""
    reserved = Reservation(hbm_fraction=0.1, dense_multiplier=0.0, input_copies=0, ddr_fraction=0.05)
    problem = make_problem(make_table(), reservation=reserved)
    assert capacity_bytes(problem)[0, [Tier.HBM, Tier.DDR]].tolist() == [72e9, 237.5e9]
    lines = reserved_by_tier(problem, 0)
    assert lines[Tier.DDR] == {"margin": 12.5e9}
    assert lines[Tier.HBM]["margin"] == 8e9
    host = make_problem(make_table(), cluster=make_cluster(hbm_bytes=0), reservation=reserved)
    assert capacity_bytes(host)[0, [Tier.HBM, Tier.DDR]].tolist() == [0.0, 225e9]
    assert list(reserved_by_tier(host, 0)) == [Tier.DDR]
    with pytest.raises(ValueError, match="reserved_ddr_fraction"):
        Reservation(ddr_fraction=1.0)


def test_an_empty_row_block_holds_nothing() -> None:
    """The last row blocks of a table with fewer rows than ranks."""
    problem = make_problem(make_table())
    work = build_work(
        problem,
        table_columns(problem),
        table=np.array([0]),
        scheme=np.array([Scheme.ROW_WISE], dtype=np.int8),
        kernel=np.array([Kernel.FUSED], dtype=np.int8),
        shard_columns=np.array([problem.tables[0].embedding_dim]),
        cache_load_factor=np.array([np.nan]),
    )
    found = shard_ledger(problem, work, table=np.array([0]), stored_rows=np.array([0]), ledger=EXACT)
    assert np.all(np.isfinite(found.bytes))
    assert found.bytes[0, LINES.index("weights")] == 0
