"""What checkpoints take, by hand, and what balancing them does to a plan."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.errors import MissingHardwareNumber
from cost_models.protocol import CostModel
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Evaluation, Plan
from planner.domain.plan.shards import Shards
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.checkpoint import Checkpoint, CheckpointLoad
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.orchestration.placement.to_placement import to_placement
from planner.output.explain.explanation import explain
from planner.pipeline import plan
from planner.pricing.checkpoint import late_upload
from planner.pricing.price_options import price, prune
from planner.solver.evaluate import rank_loads
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import Scope
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table
from tests.support.thorough import thorough

#: 1 MB/s up and 2 MB/s down for each of two hosts of two ranks; a failure every 20 steps.
ONE_SHOT = Checkpoint(
    interval_steps=1,
    policy="one_shot",
    full_every=3,
    upload_bytes_per_second=1e6,
    download_bytes_per_second=2e6,
    intervals_between_failures=20.0,
)
ROW = 64 * 4 + 4  # bytes of 64 weights and of the state of row-wise AdaGrad
LINK, MEMORY = 3e10, 5e10  # bytes per second of the test's hardware


def table_of(**changes: Any) -> Table:
    """10,000 rows; 4 ranks x 64 samples x 4 ids look up 1,024 rows per step."""
    return make_table("t", **{"rows": 10_000, "optimizer": "rowwise_adagrad", **changes})


def scored(
    checkpoint: Checkpoint | None = ONE_SHOT,
    *,
    table: Table | None = None,
    scheme: Scheme = Scheme.TABLE_WISE,
    kernel: Kernel = Kernel.FUSED,
    cost_model: CostModel = ROOFLINE,
    cache_load_factor: float | None = None,
    **changes: Any,
) -> Evaluation:
    """One table: whole on rank 3, or on all four ranks of two hosts."""
    table = table or table_of()
    problem = make_problem(table, cluster=make_cluster(2, 2), checkpoint=checkpoint, **changes)
    is_whole = scheme is Scheme.TABLE_WISE
    piece = Piece(scope=Scope.RANK if is_whole else Scope.WORLD, column_offset=0, num_columns=table.embedding_dim)
    tier = Tier.DDR if kernel in (Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING) else Tier.HBM
    if scheme is Scheme.DATA_PARALLEL:
        one = expand(table, replace(piece, scope=Scope.RANK), 0, problem.cluster, tier)
        shards = Shards.joined([Shards.of(replace(shard, rank=rank) for shard in one) for rank in range(4)])
    else:
        shards = expand(table, piece, 3 if is_whole else 0, problem.cluster, tier)
    placed = TablePlacement(
        name="t", sharding_type=scheme, compute_kernel=kernel, shards=shards, cache_load_factor=cache_load_factor
    )
    return score(problem, Placement(world_size=4, ranks_per_host=2, tables=(placed,)), cost_model)


def load_of(*arguments: Any, **changes: Any) -> CheckpointLoad:
    found = scored(*arguments, **changes).checkpoint
    assert found is not None
    return found


def test_bytes_and_times_of_one_shard() -> None:
    """Increments of 1,024 and 2,048 rows; a bit for each of 10,000 rows, 1,250 bytes, says which they are."""
    found = load_of()
    full, last = 10_000 * ROW, 2_048 * ROW + 1_250
    assert found.full.bytes_by_rank == (0, 0, 0, full)
    assert found.full.bytes_by_host == (0, full)
    assert found.full.snapshot_seconds == pytest.approx(full / LINK)
    assert (found.full.slowest_rank, found.full.slowest_host) == (3, 1)
    assert found.full.upload_seconds == pytest.approx(full / 1e6)
    assert found.full.mean_upload_seconds == pytest.approx(full / 2 / 1e6)
    assert found.incremental is not None
    assert found.incremental.bytes_by_rank == (0, 0, 0, last)
    assert found.incremental.snapshot_seconds == pytest.approx(2_048 * ROW / LINK)
    assert found.incremental.upload_seconds == pytest.approx(last / 1e6)
    assert found.restore_seconds == pytest.approx((full + last) / 2e6)
    assert found.full_every == 3
    assert found.snapshot_evidence is Evidence.ESTIMATED


def test_seconds_lost_per_step() -> None:
    """Averages over the three checkpoints of a cycle; the host's other rank leaves its rate to this one."""
    full, first, last = 10_000 * ROW, 1_024 * ROW + 1_250, 2_048 * ROW + 1_250
    snapshot = (10_000 + 1_024 + 2_048) * ROW / LINK / 3
    upload = (full + first + last) / 3 / 1e6
    restore = (full + (0 + first + last) / 3) / 2e6
    assert load_of().lost_seconds_per_step == pytest.approx(snapshot + (upload + restore) / 20)
    # All increments so far are read: none, one or two.
    consecutive = replace(ONE_SHOT, policy="consecutive")
    snapshot = (10_000 + 2 * 1_024) * ROW / LINK / 3
    upload = (full + 2 * first) / 3 / 1e6
    restore = (full + (0 + first + 2 * first) / 3) / 2e6
    assert load_of(consecutive).lost_seconds_per_step == pytest.approx(snapshot + (upload + restore) / 20)
    assert load_of(consecutive).restore_seconds == pytest.approx((full + 2 * first) / 2e6)


def test_amounts_of_a_cycle() -> None:
    """Three checkpoints: full, 1,024 rows and 2,048 rows. Consecutive ones need all increments for a restore."""
    full, first, last = 10_000 * ROW, 1_024 * ROW + 1_250, 2_048 * ROW + 1_250
    found = load_of()
    assert found.mean_bytes == pytest.approx((full + first + last) / 3)
    assert found.mean_write_bytes_per_second == pytest.approx(found.mean_bytes / found.interval_seconds)
    assert found.stored_bytes == pytest.approx(full + last)
    assert found.full_fp32_bytes == full
    assert found.write_reduction == pytest.approx(3 * full / (full + first + last))
    assert found.stored_reduction == pytest.approx(full / (full + last))
    consecutive = load_of(replace(ONE_SHOT, policy="consecutive"))
    assert consecutive.mean_bytes == pytest.approx((full + 2 * first) / 3)
    assert consecutive.stored_bytes == pytest.approx(full + 2 * first)


@pytest.mark.parametrize(("bits", "weights"), [(16, 128), (8, 68), (4, 36), (2, 20)])
def test_weights_of_few_bits_against_fp32(bits: int, weights: int) -> None:
    """A row of 64 weights, of 8 bits and fewer with scale and bias, and 4 bytes of state."""
    found = load_of(replace(ONE_SHOT, policy="full", full_every=1, bits=bits))
    assert found.mean_bytes == found.stored_bytes == 10_000 * (weights + 4)
    assert found.full_fp32_bytes == 10_000 * ROW
    assert found.write_reduction == found.stored_reduction == pytest.approx(ROW / (weights + 4))


def test_replicas_are_counted_once_in_all_amounts() -> None:
    found = load_of(scheme=Scheme.DATA_PARALLEL, kernel=Kernel.DENSE)
    assert found.full_fp32_bytes == pytest.approx(10_000 * ROW)
    assert found.mean_bytes == pytest.approx(10_000 * ROW)  # dense kernels store all rows every time
    assert found.stored_bytes == pytest.approx(2 * 10_000 * ROW)


def test_full_checkpoints_alone() -> None:
    found = load_of(replace(ONE_SHOT, policy="full", full_every=1, interval_steps=10))
    assert found.incremental is None
    assert found.restore_seconds == pytest.approx(10_000 * ROW / 2e6)
    lost = 10_000 * ROW * (1 / LINK / 10 + (1 / 1e6 + 1 / 2e6) / 200)
    assert found.lost_seconds_per_step == pytest.approx(lost)


@pytest.mark.parametrize("scheme", [Scheme.TABLE_WISE, Scheme.ROW_WISE], ids=lambda scheme: scheme.label)
def test_the_cost_per_step_follows_from_the_seconds_next_to_it(scheme: Scheme) -> None:
    """Of full checkpoints, by the formula that users read: on one rank of four, and on all of them."""
    found = load_of(replace(ONE_SHOT, policy="full", full_every=1, interval_steps=10), scheme=scheme)
    with_checkpoint = found.full.snapshot_seconds / 10 + (found.full.upload_seconds + found.restore_seconds) / 200
    assert found.lost_seconds_per_step == pytest.approx(with_checkpoint)


@pytest.mark.parametrize(
    ("bits", "data_type", "weights"),
    [
        (None, "fp32", 256),
        (32, "fp32", 256),
        (16, "fp32", 128),
        (8, "fp32", 64 + 4),
        (4, "fp32", 32 + 4),
        (32, "fp16", 128),
        (16, "fp16", 128),
        (8, "fp16", 64 + 4),
    ],
)
def test_weights_are_stored_in_fewer_bits_and_copied_as_they_are(
    bits: int | None, data_type: str, weights: int
) -> None:
    found = load_of(replace(ONE_SHOT, bits=bits), table=table_of(data_type=data_type))
    assert found.full.bytes == 10_000 * (weights + 4)
    as_held = 64 * (4 if data_type == "fp32" else 2) + 4
    assert found.full.snapshot_seconds == pytest.approx(10_000 * as_held / LINK)


@pytest.mark.parametrize(("bits", "full_every"), [(None, 10), (4, 8)])
def test_intermittent_weighs_tables_by_their_bytes_on_the_store(bits: int | None, full_every: int) -> None:
    """1,000 rows of 256 columns that stay, and 10,240 of 8 columns, of which each step changes a tenth.

    The narrow table is p = 327,680 / 1,351,680 of a full checkpoint of fp32, and 81,920 / 213,920 of 4 bits, whose
    scale and bias double its rows. Increments of i p / 10 end the cycle at i (i + 1) >= 20 / p, which is 82.5 and 52.2:
    after 9 and 7 of them.
    """
    problem = make_problem(
        make_table("wide", 1_000, 256, optimizer="none"),
        make_table("narrow", 10_240, 8, optimizer="sgd"),
        cluster=make_cluster(2, 2),
        checkpoint=Checkpoint(interval_steps=1, policy="intermittent", full_every=50, bits=bits),
    )
    modified = table_columns(problem).modified
    assert modified is not None
    assert modified.full_every == full_every


def test_state_that_training_needs_is_stored() -> None:
    assert load_of(table=table_of(optimizer="adam")).full.bytes == 10_000 * 64 * (4 + 8)


def test_what_is_not_trained_has_empty_increments() -> None:
    found = load_of(table=table_of(optimizer="none"))
    assert found.full.bytes == 10_000 * 256
    assert found.incremental is not None
    assert (found.incremental.bytes, found.incremental.snapshot_seconds) == (0, 0)


def test_row_blocks_have_their_share() -> None:
    """10,001 rows: three blocks of 2,501 and one of 2,498; 2,048 modified rows between them."""
    found = load_of(table=table_of(rows=10_001), scheme=Scheme.ROW_WISE)
    assert found.full.bytes_by_rank == (2_501 * ROW, 2_501 * ROW, 2_501 * ROW, 2_498 * ROW)
    assert found.incremental is not None
    assert found.incremental.bytes == pytest.approx(2_048 * ROW + 10_001 / 8)
    assert found.incremental.bytes_by_rank[0] == pytest.approx((2_048 * ROW + 10_001 / 8) * 2_501 / 10_001)


def test_a_replicated_table_is_stored_once_and_in_full() -> None:
    found = load_of(scheme=Scheme.DATA_PARALLEL, kernel=Kernel.DENSE)
    assert found.full.bytes_by_rank == (2_500 * ROW,) * 4
    assert found.incremental is not None
    assert found.incremental.bytes_by_rank == found.full.bytes_by_rank
    assert found.full.snapshot_seconds == pytest.approx(2_500 * ROW / LINK)


@pytest.mark.parametrize(
    ("job", "contiguous", "by_host", "restored"),
    [
        ((2, 2), False, (0, 1), 2),  # every other rank: both ranks of host 1 hold the table, and store half of it each
        ((2, 2), True, (1 / 2,), 1),  # a host is a group: one rank of either host holds the table
        ((1, 4), True, (1,), 2),  # two groups on one host
        ((4, 1), False, (0, 1 / 2), 1),  # ranks of a group are on hosts 0 and 2, or on 1 and 3
    ],
)
def test_replicas_store_a_shard_once_and_read_it_each(
    job: tuple[int, int], contiguous: bool, by_host: tuple[float, ...], restored: int
) -> None:
    """Two groups of two ranks; a table on the second rank of each. Both copy and read it, and each stores a half."""
    groups = ReplicaGroups(job=make_cluster(*job), sizes=(2,), use_inter_host_allreduce=contiguous)
    table = table_of(optimizer="sgd")
    problem = make_problem(table, cluster=groups.cluster_of(2), replica_groups=groups, checkpoint=ONE_SHOT)
    piece = Piece(scope=Scope.RANK, column_offset=0, num_columns=64)
    shards = expand(table, piece, 1, problem.cluster, Tier.HBM)
    placed = TablePlacement(name="t", sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=shards)
    per_host = problem.cluster.ranks_per_host
    found = score(problem, Placement(world_size=2, ranks_per_host=per_host, tables=(placed,)), ROOFLINE).checkpoint
    assert found is not None
    full, last = 10_000 * 256, 2_048 * 256 + 1_250  # rows that either group changes are changed in both
    assert found.full.bytes == full
    assert found.full.bytes_by_rank == (0, full / 2)
    assert found.full.bytes_by_host == tuple(part * full for part in by_host)
    assert found.full.upload_seconds == pytest.approx(max(by_host) * full / 1e6)
    assert found.full.snapshot_seconds == pytest.approx(full / LINK)
    assert found.incremental is not None
    assert found.incremental.bytes == last
    assert found.restore_seconds == pytest.approx(restored * (full + last) / 2e6)


def test_prices_of_replicas_are_an_equal_part_of_the_rate_of_a_host() -> None:
    """Four ranks share 1 MB/s up and 2 MB/s down: a rank stores half of its table and reads all of it."""
    groups = ReplicaGroups(job=make_cluster(1, 4), sizes=(2,))
    table = table_of(optimizer="sgd")
    checkpoint = replace(ONE_SHOT, policy="full", full_every=1, balance=True)
    problem = make_problem(table, cluster=groups.cluster_of(2), replica_groups=groups, checkpoint=checkpoint)
    piece = Piece(scope=Scope.RANK, column_offset=0, num_columns=64)
    shards = expand(table, piece, 1, problem.cluster, Tier.HBM)
    placed = TablePlacement(name="t", sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=shards)
    found = score(problem, Placement(world_size=2, ranks_per_host=2, tables=(placed,)), ROOFLINE)
    full = 10_000 * 256
    lost = full / LINK + 4 * (full / 2 / 1e6 + full / 2e6) / 20
    assert found.ranks[1].seconds[Phase.CHECKPOINT] == pytest.approx(lost)
    assert found.ranks[0].seconds[Phase.CHECKPOINT] == 0


def test_copies_of_a_job_are_stored_once_by_all_of_its_ranks() -> None:
    groups = ReplicaGroups(job=make_cluster(2, 2), sizes=(2,))
    table = table_of()
    problem = make_problem(table, cluster=groups.cluster_of(2), replica_groups=groups, checkpoint=ONE_SHOT)
    piece = Piece(scope=Scope.RANK, column_offset=0, num_columns=64)
    one = expand(table, piece, 0, problem.cluster, Tier.HBM)
    shards = Shards.joined([Shards.of(replace(shard, rank=rank) for shard in one) for rank in range(2)])
    placed = TablePlacement(name="t", sharding_type=Scheme.DATA_PARALLEL, compute_kernel=Kernel.DENSE, shards=shards)
    found = score(problem, Placement(world_size=2, ranks_per_host=1, tables=(placed,)), ROOFLINE).checkpoint
    assert found is not None
    assert found.full.bytes_by_rank == (2_500 * ROW, 2_500 * ROW)
    assert found.full.bytes == 10_000 * ROW
    assert found.full.bytes_by_host == (5_000 * ROW, 5_000 * ROW)


def test_rows_in_host_memory_are_copied_there() -> None:
    """Weights read and written at the rate of host memory; state per row lies in the device's memory."""
    found = load_of(kernel=Kernel.FUSED_UVM)
    assert found.full.snapshot_seconds == pytest.approx(10_000 * (2 * 256 / MEMORY + 4 / LINK))
    cached = load_of(kernel=Kernel.FUSED_UVM_CACHING, cache_load_factor=0.1)  # 1,000 rows are written back first
    extra = cached.full.snapshot_seconds - found.full.snapshot_seconds
    assert extra == pytest.approx(1_000 * 256 / LINK)
    assert found.full.bytes == cached.full.bytes == 10_000 * ROW


def test_rows_of_a_host_without_accelerators_are_copied_in_its_memory() -> None:
    problem = make_problem(table_of(), cluster=make_cluster(1, 1, hbm_bytes=0.0), checkpoint=ONE_SHOT)
    tier = problem.cluster.device_tier
    assert tier is Tier.DDR
    piece = Piece(scope=Scope.RANK, column_offset=0, num_columns=64)
    shards = expand(problem.tables[0], piece, 0, problem.cluster, tier)
    placed = TablePlacement(name="t", sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=shards)
    found = score(problem, Placement(world_size=1, ranks_per_host=1, tables=(placed,)), ROOFLINE).checkpoint
    assert found is not None
    assert found.full.snapshot_seconds == pytest.approx(10_000 * ROW * 2 / MEMORY)


def test_an_interval_lasts_as_long_as_its_steps_with_their_dense_part() -> None:
    dense = Dense(forward_seconds=0.25, backward_seconds=0.5)
    found = scored(replace(ONE_SHOT, interval_steps=4), dense=dense)
    assert found.checkpoint is not None
    assert found.checkpoint.interval_seconds == pytest.approx(4 * (found.step_time_seconds + 0.75))


def test_an_upload_that_takes_longer_than_the_interval_is_reported_with_the_way_out() -> None:
    """2.6 s of upload, and steps of about 1 s: two steps are too few, three are enough."""
    dense = Dense(forward_seconds=1.0)
    late = late_upload(load_of(replace(ONE_SHOT, interval_steps=2), dense=dense))
    assert late is not None
    assert (late.code, late.severity) == ("checkpoint-late", "warning")
    assert "host 1 uploads a full checkpoint for 2.6 s" in late.message
    assert "checkpoint.interval_steps of at least 3," in late.hint
    assert late_upload(load_of(replace(ONE_SHOT, interval_steps=3), dense=dense)) is None


@pytest.mark.parametrize("model", [ROOFLINE, TORCHREC], ids=lambda model: model.name)
def test_the_objective_has_them_only_where_they_are_balanced(model: CostModel) -> None:
    without, reported = scored(None, cost_model=model), scored(cost_model=model)
    balanced = scored(replace(ONE_SHOT, balance=True), cost_model=model)
    assert without.checkpoint is None
    assert replace(reported, checkpoint=None, hardware_numbers=without.hardware_numbers, shard_bytes=None) == replace(
        without, shard_bytes=None
    )
    assert tuple(phase.phase for phase in reported.phases) == STEP_PHASES
    assert balanced.checkpoint is not None
    # The other rank of the host has nothing: half of the rate, which prices leave to it, is this one's in reports.
    lost, snapshot = balanced.ranks[3].seconds[Phase.CHECKPOINT], (10_000 + 1_024 + 2_048) * ROW / LINK / 3
    assert lost == pytest.approx(2 * balanced.checkpoint.lost_seconds_per_step - snapshot)
    for name in ("step_time_seconds", "max_rank_time_seconds", "objective_seconds"):
        assert getattr(balanced, name) == pytest.approx(getattr(without, name) + lost)
    assert balanced.phases[-1].phase is Phase.CHECKPOINT
    assert balanced.phases[-1].counted
    assert balanced.phases[-1].evidence is Evidence.ESTIMATED
    # An interval is made of steps, and no step waits for an upload.
    assert reported.checkpoint is not None
    assert balanced.checkpoint.interval_seconds == reported.checkpoint.interval_seconds


def test_a_rate_that_is_missing_is_named() -> None:
    problem = make_problem(table_of(), checkpoint=ONE_SHOT)
    numbers = {k: v for k, v in problem.cluster.hardware.numbers.items() if k != "host_link_bytes_per_second"}
    cluster = replace(problem.cluster, hardware=replace(problem.cluster.hardware, numbers=numbers))
    problem = replace(problem, cluster=cluster)
    with pytest.raises(MissingHardwareNumber, match="host_link_bytes_per_second"):
        price(problem, enumerate_families(problem), ROOFLINE)


@pytest.mark.parametrize("policy", ["full", "one_shot", "consecutive", "intermittent"])
@pytest.mark.parametrize("seed", range(2))
def test_arrays_and_geometry_agree(policy: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [
        make_table(
            f"t{i}",
            int(rng.integers(100, 10**6)),
            int(rng.choice([32, 64, 128, 256])),
            pooling_factor=float(rng.uniform(0, 20)),
            optimizer=str(rng.choice(["none", "rowwise_adagrad", "adam"])),
        )
        for i in range(12)
    ]
    full_every = 1 if policy == "full" else 9
    checkpoint = Checkpoint(interval_steps=50, policy=policy, full_every=full_every, bits=8, balance=True)
    problem = make_problem(*tables, cluster=make_cluster(2, 4), checkpoint=checkpoint)
    families = enumerate_families(problem)
    priced = prune(price(problem, families, ROOFLINE))
    assignment = Greedy().solve(priced, SolveLimits()).assignment
    assert assignment is not None
    arrays = rank_loads(priced, assignment).seconds
    evaluation = score(problem, to_placement(problem, families, priced, assignment), ROOFLINE)
    geometry = np.array(
        [[load.seconds[phase] for phase in (*STEP_PHASES, Phase.CHECKPOINT)] for load in evaluation.ranks]
    )
    assert np.all(arrays[:, Phase.CHECKPOINT] > 0)
    np.testing.assert_allclose(arrays, geometry, rtol=1e-9, atol=1e-15)


@given(
    steps=st.integers(1, 1000),
    longer=st.integers(1, 10),
    alpha=st.none() | st.floats(0, 2),
    policy=st.sampled_from(("one_shot", "consecutive", "intermittent")),
    full_every=st.integers(2, 12),
    bits=st.sampled_from((None, 32, 16, 8, 4)),
    scheme=st.sampled_from((Scheme.TABLE_WISE, Scheme.ROW_WISE)),
    optimizer=st.sampled_from(("none", "sgd", "rowwise_adagrad", "adam")),
)
@settings(max_examples=50, deadline=None)
def test_increments_grow_with_the_interval_up_to_a_full_checkpoint(
    steps: int,
    longer: int,
    alpha: float | None,
    policy: str,
    full_every: int,
    bits: int | None,
    scheme: Scheme,
    optimizer: str,
) -> None:
    table = replace(table_of(optimizer=optimizer), access=None if alpha is None else ZipfAccess(alpha=alpha))
    short, long = (
        load_of(
            Checkpoint(interval_steps=n, policy=policy, full_every=full_every, bits=bits), table=table, scheme=scheme
        )
        for n in (steps, steps * longer)
    )
    assert short.full.bytes == long.full.bytes
    for found in (short, long):
        assert found.incremental is not None
        assert found.incremental.bytes <= found.full.bytes * (1 + 1e-12)
        assert found.incremental.snapshot_seconds <= found.full.snapshot_seconds * (1 + 1e-12)
    if policy != "intermittent":  # which ends its cycle earlier where increments are larger
        assert short.incremental is not None
        assert long.incremental is not None
        assert short.incremental.bytes <= long.incremental.bytes * (1 + 1e-9)


def test_a_balanced_plan_can_be_explained() -> None:
    """Checkpoints bind like a phase of the step, and faster links do not change what they cost."""
    checkpoint = replace(ONE_SHOT, balance=True)
    problem = make_problem(table_of(), make_table("u", 500), cluster=make_cluster(2, 2), checkpoint=checkpoint)
    found = planned(problem)
    with_checkpoint = explain(problem, found.placement, ROOFLINE)
    assert with_checkpoint.objective_seconds == pytest.approx(found.evaluation.objective_seconds)
    (binding,) = [phase for phase in with_checkpoint.phases if phase.phase is Phase.CHECKPOINT]
    assert binding.seconds == pytest.approx(found.evaluation.phases[-1].seconds)
    assert binding.evidence is Evidence.ESTIMATED
    saved = [price.saved_seconds or 0.0 for price in with_checkpoint.shadow_prices]
    step_seconds = sum(phase.seconds for phase in with_checkpoint.phases if phase.phase in STEP_PHASES)
    assert all(0 <= one < step_seconds for one in saved)


def lopsided() -> Problem:
    """Whole tables whose bytes say nothing of their lookups: equally busy ranks hold unequally many bytes."""
    rng = np.random.default_rng(0)
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = [
        make_table(
            f"t{i}",
            int(np.exp(rng.uniform(np.log(1e5), np.log(2e7)))),
            pooling_factor=float(rng.uniform(1, 20)),
            optimizer="rowwise_adagrad",
            constraints=whole,
        )
        for i in range(40)
    ]
    cluster = make_cluster(2, 2)
    return make_problem(
        *tables, cluster=cluster, batch_size_per_rank=1024, checkpoint=Checkpoint(interval_steps=20_000)
    )


def planned(problem: Problem) -> Plan:
    found = plan(
        problem,
        cost_model=ROOFLINE,
        partitioner=make_partitioner("local_search"),
        limits=SolveLimits(time_limit_seconds=60.0, work_limit_seconds=2.0, relative_gap=0.0),
    ).plan
    assert found is not None
    return found


@thorough
def test_balance_lowers_the_largest_upload_and_costs_next_to_nothing() -> None:
    problem = lopsided()
    assert problem.checkpoint is not None
    balanced_problem = replace(problem, checkpoint=replace(problem.checkpoint, balance=True))
    free, balanced = (planned(one).evaluation for one in (problem, balanced_problem))
    assert free.checkpoint is not None
    assert balanced.checkpoint is not None
    uneven, even = (
        size.upload_seconds / size.mean_upload_seconds - 1 for size in (free.checkpoint.full, balanced.checkpoint.full)
    )
    assert even < min(0.1, 0.2 * uneven)
    assert balanced.checkpoint.full.upload_seconds < free.checkpoint.full.upload_seconds
    step_seconds = sum(phase.seconds for phase in balanced.phases if phase.phase in STEP_PHASES)
    assert step_seconds <= 1.01 * free.step_time_seconds
