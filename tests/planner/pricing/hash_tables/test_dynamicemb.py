"""Bytes of dynamicemb's hash tables: by hand, and as a simulator of its source builds them of an export."""

import random

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.runtimes.dynamicemb.export import SCORE_STRATEGIES, options_of
from planner.pricing.hash_tables.dynamicemb import keyed_bytes
from planner.pricing.memory.ledger import EXACT, LINES, shard_ledger
from planner.pricing.memory.tier_traffic import shard_traffic
from planner.pricing.shard_work import build_work
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.planning.dynamicemb_tables import make_hash_table
from tests.support.runtimes import dynamicemb_simulator as simulator

HASH_KERNELS = (Kernel.HASH, Kernel.HASH_HOST, Kernel.HASH_HYBRID, Kernel.HASH_CACHING)
LAYOUTS = {
    Kernel.HASH: "HBM_ONLY",
    Kernel.HASH_HOST: "HOST_ONLY",
    Kernel.HASH_HYBRID: "HYBRID",
    Kernel.HASH_CACHING: "CACHING",
}
RANKS = 4


def problem_of(*tables: Table) -> Problem:
    return make_problem(*tables, cluster=make_cluster(1, RANKS), runtime="dynamicemb")


def lines_of(problem: Problem, kernel: Kernel, share: float | None = None) -> dict[str, list[float]]:
    """Lines of a rank of every table, cut by rows."""
    count = len(problem.tables)
    work = build_work(
        problem,
        table_columns(problem),
        table=np.arange(count),
        scheme=np.full(count, Scheme.ROW_WISE, dtype=np.int8),
        kernel=np.full(count, kernel, dtype=np.int8),
        shard_columns=np.array([table.embedding_dim for table in problem.tables]),
        cache_load_factor=np.full(count, np.nan if share is None else share),
    )
    found = keyed_bytes(problem, work, np.arange(count))
    ledger = shard_ledger(problem, work, table=np.arange(count), stored_rows=work.shard_rows, ledger=EXACT)
    for line, held in found.items():
        assert ledger.bytes[:, LINES.index(line)].tolist() == held.tolist()
        in_host = line in ("weights", "optimizer_state") and kernel is not Kernel.HASH
        assert set(ledger.tier[:, LINES.index(line)].tolist()) == {Tier.DDR if in_host else Tier.HBM}
    return {line: held.tolist() for line, held in found.items()}


def test_a_table_by_hand() -> None:
    """1,000,000 slots on 4 ranks: 250,000 each, in 1,954 buckets of 128 are 250,112. Values of 192 fp32: 768 bytes.

    Values are 192,086,016 bytes, in 92 pages of 2 MiB 192,937,984. The index has 21 bytes a slot and 4 a bucket. In a
    step 256 samples x 4 ids come to the table, a quarter to the rank: 256 rows of 256 bytes of gradient and two keys,
    and 256 positions.
    """
    problem = problem_of(make_hash_table(optimizer="adam"))
    found = lines_of(problem, Kernel.HASH)
    state = 250_112 * 128 * 4
    assert found == {
        "weights": [192_937_984 - state],
        "optimizer_state": [state],
        "row_optimizer_state": [0],
        "row_keys": [250_112 * 21 + 1_954 * 4],
        "cache": [0],
        "cache_index": [0],
        "growth": [0],
        "distinct_rows": [256 * (256 + 16) + 256 * 8],
    }


def test_host_tables_by_hand() -> None:
    """The same with all values in host memory, in pages of 4 KiB: 46,896 of them are 192,086,016 bytes."""
    found = lines_of(problem_of(make_hash_table(optimizer="adam")), Kernel.HASH_HOST)
    assert found["weights"][0] + found["optimizer_state"][0] == 250_112 * 768 == 192_086_016
    assert 192_086_016 % 4096 == 0
    assert found["row_keys"] == [250_112 * 21 + 1_954 * 4]
    assert found["distinct_rows"] == [256 * (256 + 16 + 2 * 768) + 256 * 8]  # values on their way, twice


def test_a_cache_by_hand() -> None:
    """A tenth is 25,011 slots, in buckets of 1,024 these are 25,600, and 3,072 more: 28,672 values of 768 bytes."""
    found = lines_of(problem_of(make_hash_table(optimizer="adam")), Kernel.HASH_CACHING, 0.1)
    assert found["cache"] == [11 * 2**21]  # 22,020,096 bytes are 10.5 pages
    assert found["cache_index"] == [28_672 * 21 + 25 * 4 + 4]
    assert found["weights"][0] + found["optimizer_state"][0] == 250_112 * 768
    assert found["row_keys"] == [250_112 * 21 + 1_954 * 4]


def test_a_hybrid_table_by_hand() -> None:
    """Of 250,112 slots 25,011 in the device, 25,600 with whole buckets; 225,100 in the host, 225,152 with whole."""
    found = lines_of(problem_of(make_hash_table(optimizer="adam")), Kernel.HASH_HYBRID, 0.1)
    assert found["cache"] == [10 * 2**21]  # 19,660,800 bytes are 9.375 pages
    assert found["cache_index"] == [25_600 * 21 + 25 * 4]
    assert found["weights"][0] + found["optimizer_state"][0] == 225_152 * 768
    assert found["row_keys"] == [225_152 * 21 + 1_759 * 4]


def test_growth_by_hand() -> None:
    """From 40,064 slots: 80,128, 160,256, then 250,112. At the last step the index and the values of 160,256 are there.

    Values of the host, too: they pass through the device.
    """
    problem = problem_of(make_hash_table(optimizer="adam", initial=40_000))
    before = 160_256
    for kernel in (Kernel.HASH, Kernel.HASH_HOST):
        found = lines_of(problem, kernel)
        assert found["growth"] == [before * 21 + before // 128 * 4 + before * 768]
        assert found["row_keys"] == [250_112 * 21 + 1_954 * 4]
    whole = lines_of(problem_of(make_hash_table(optimizer="adam", initial=250_000)), Kernel.HASH)
    assert whole["growth"] == [0]


@pytest.mark.parametrize(
    ("eviction", "slot_bytes", "factor"), [("timestamp", 21, 1), ("timestamp_lfu", 29, 1), ("none", 21, 2)]
)
def test_scores_of_evictions(eviction: str, slot_bytes: int, factor: int) -> None:
    """Two scores of 8 bytes; or, where nothing is evicted, an index of twice the slots."""
    found = lines_of(problem_of(make_hash_table(eviction=eviction, bucket_size=256)), Kernel.HASH)
    slots = 977 * 256
    assert found["row_keys"] == [factor * slots * slot_bytes + factor * 977 * 4]


def random_tables(rng: random.Random, initial: bool) -> list[Table]:
    """Tables of one operator."""
    same = {
        "optimizer": rng.choice(["sgd", "adam", "adagrad", "rowwise_adagrad"]),
        "data_type": rng.choice(["fp32", "fp16"]),
        "eviction": rng.choice(sorted(SCORE_STRATEGIES)),
        "bucket_size": rng.choice([None, 16, 128, 512]),
    }
    return [
        make_hash_table(
            f"t{index}",
            rng.randint(4_000, 3_000_000),
            rng.choice([4, 16, 64, 128]),
            initial=rng.randint(1, 900) if initial else None,
            **same,
        )
        for index in range(1 if initial else rng.randint(1, 3))
    ]


def exported(problem: Problem, kernel: Kernel, share: float | None) -> list[dict[str, object]]:
    return [
        {
            "num_embeddings": table.num_embeddings,
            "embedding_dim": table.embedding_dim,
            "data_type": table.data_type.name,
            "constraints": {"dynamicemb_options": options_of(table, kernel, share, table.data_type.name, RANKS)},
        }
        for table in problem.tables
    ]


@pytest.mark.parametrize("kernel", HASH_KERNELS)
@pytest.mark.parametrize("seed", range(30))
def test_bytes_of_operators_are_those_that_the_simulator_builds(kernel: Kernel, seed: int) -> None:
    rng = random.Random(seed)
    problem = problem_of(*random_tables(rng, initial=False))
    share = rng.choice([0.05, 0.1, 0.25, 0.5, 0.7, rng.uniform(0.01, 0.99)]) if kernel.facts.is_cached else None
    lines = {line: sum(held) for line, held in lines_of(problem, kernel, share).items()}
    options = [simulator.options_of(table, RANKS) for table in exported(problem, kernel, share)]
    assert len({one.grouped_key for one in options}) == 1
    storage = simulator.create_storage(options, problem.tables[0].optimizer.name)
    assert storage.layout == LAYOUTS[kernel]
    values = lines["weights"] + lines["optimizer_state"]
    device = lines["row_keys"] + lines["cache"] + lines["cache_index"] + (values if kernel is Kernel.HASH else 0)
    assert storage.device_bytes() == device
    assert storage.host_bytes() == (0 if kernel is Kernel.HASH else values)


@pytest.mark.parametrize("seed", range(40))
def test_tables_that_start_smaller_grow_as_the_simulator_does(seed: int) -> None:
    rng = random.Random(seed)
    (table,) = random_tables(rng, initial=True)
    problem = problem_of(table)
    kernel = rng.choice([Kernel.HASH, Kernel.HASH_HOST])
    lines = {line: held[0] for line, held in lines_of(problem, kernel).items()}
    options = [simulator.options_of(one, RANKS) for one in exported(problem, kernel, None)]
    (state,) = simulator.create_storage(options, table.optimizer.name).states
    before, after = simulator.grown(state, options, options[0].max_capacity)
    assert after.index_bytes() == lines["row_keys"]
    assert after.buffer_bytes() == lines["weights"] + lines["optimizer_state"]
    if before.index_slots == after.index_slots:
        assert lines["growth"] == 0
        return
    copied = 0 if table.hash_table.eviction == "none" else before.value_slots[0] * before.value_bytes[0]
    assert lines["growth"] == before.index_bytes() + copied


def test_tables_of_a_fixed_size_have_the_lines_of_before() -> None:
    """Next to a hash table, too."""
    problem = problem_of(make_hash_table("h"), make_table("t", optimizer="rowwise_adagrad"))
    work = build_work(
        problem,
        table_columns(problem),
        table=np.array([0, 1]),
        scheme=np.full(2, Scheme.ROW_WISE, dtype=np.int8),
        kernel=np.array([Kernel.HASH, Kernel.FUSED], dtype=np.int8),
        shard_columns=np.array([64, 64]),
    )
    found = shard_ledger(problem, work, table=np.array([0, 1]), stored_rows=work.shard_rows, ledger=EXACT).bytes[1]
    lines = {line: held for line, held in zip(LINES, found.tolist(), strict=True) if held}
    assert lines == {"weights": 64_000, "row_optimizer_state": 1_000, "input_buffers": 2_048, "output_buffers": 65_536}


def test_traffic_of_host_memory() -> None:
    """Values of 768 bytes: all 256 rows of a step, a tenth less, or those that a cache misses; read and written."""
    problem = problem_of(make_hash_table(optimizer="adam"))
    work = build_work(
        problem,
        table_columns(problem),
        table=np.zeros(4, dtype=np.int64),
        scheme=np.full(4, Scheme.ROW_WISE, dtype=np.int8),
        kernel=np.array(HASH_KERNELS, dtype=np.int8),
        shard_columns=np.full(4, 64),
        cache_load_factor=np.array([np.nan, np.nan, 0.1, 0.1]),
    )
    traffic = shard_traffic(work, problem.cluster.hardware)
    assert traffic.read_bytes[:, Tier.DDR] == pytest.approx([0, 256 * 768, 0.9 * 256 * 768, 0.9 * 256 * 768])
    assert traffic.written_bytes[:, Tier.DDR].tolist() == traffic.read_bytes[:, Tier.DDR].tolist()
    assert traffic.busy_seconds[:, Tier.DDR] == pytest.approx(2 * traffic.read_bytes[:, Tier.DDR] / 5e10)
