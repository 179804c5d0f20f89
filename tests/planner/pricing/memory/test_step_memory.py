"""What a device holds over a step: lines by hand, the peak, and the phase of the peak."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.plan.step_memory import MemoryPhase, StepMemory
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Reservation
from planner.domain.problem.stash import Stash
from planner.pricing.memory.ledger import capacity_bytes, reserved_bytes
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.serving_problems import SERVING, serving_problem

ROWS, COLUMNS, BATCH, RANKS = 1000, 64, 64, 2
POOLED = BATCH * COLUMNS * 4.0  # bytes of one table's rows of a local batch


def whole(name: str, rank: int) -> TablePlacement:
    shards = Shards.of_columns(
        rank=[rank], row_offset=0, num_rows=ROWS, column_offset=0, num_columns=COLUMNS, tier=Tier.HBM
    )
    return TablePlacement(name=name, sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, shards=shards)


def of_two_tables(**changes: object) -> tuple[StepMemory, StepMemory]:
    """Both tables on rank 0; rank 1 has none."""
    tables = (make_table("a", ROWS, COLUMNS), make_table("b", ROWS, COLUMNS))
    problem = make_problem(*tables, cluster=make_cluster(1, RANKS), batch_size_per_rank=BATCH, **changes)
    placement = Placement(world_size=RANKS, ranks_per_host=RANKS, tables=(whole("a", 0), whole("b", 0)))
    first, second = (load.step_memory for load in score(problem, placement, ROOFLINE).ranks)
    assert first is not None
    assert second is not None
    return first, second


def test_lines_by_hand() -> None:
    # 2 tables x 2 ranks' batches are 4 outputs on rank 0; every rank receives the rows of 2 tables
    first, second = of_two_tables()
    held = first.buffer_bytes
    assert held[MemoryPhase.FORWARD_COMPUTE] == {"lookup_outputs": 4 * POOLED}
    assert held[MemoryPhase.FORWARD_COMM] == {
        "lookup_outputs": 4 * POOLED,
        "sent_rows": 4 * POOLED,
        "received_rows": 2 * POOLED,
    }
    assert held[MemoryPhase.BACKWARD_COMM] == {
        "gradients_of_pooled_rows": 2 * POOLED,
        "gradient_copies": 0.0,
        "sent_gradients": 2 * POOLED,
        "gradients_of_outputs": 4 * POOLED,
    }
    assert second.buffer_bytes[MemoryPhase.FORWARD_COMPUTE] == {"lookup_outputs": 0.0}
    assert second.buffer_bytes[MemoryPhase.DENSE_FORWARD] == {"pooled_rows": 2 * POOLED, "activations": 0.0}
    assert first.persistent_bytes["tables"] == 2 * ROWS * COLUMNS * 4


def test_the_first_of_equal_peaks_is_named() -> None:
    # 10 pooled tables in forward_comm; 2 + 2 + 2 and 2 + 2 + 4 in the two phases of gradients
    first, second = of_two_tables()
    assert first.peak_phase is MemoryPhase.FORWARD_COMM
    assert first.peak_bytes == sum(first.persistent_bytes.values()) + 10 * POOLED
    assert first.phase_bytes[MemoryPhase.FORWARD_COMM] == first.peak_bytes
    assert second.peak_phase is MemoryPhase.GRADIENT_SPLIT


def test_messages_have_the_types_of_the_wire() -> None:
    first, _ = of_two_tables(forward_comm_dtype="fp16", backward_comm_dtype="bf16")
    forward, backward = first.buffer_bytes[MemoryPhase.FORWARD_COMM], first.buffer_bytes[MemoryPhase.BACKWARD_COMM]
    assert (forward["sent_rows"], forward["received_rows"]) == (2 * POOLED, POOLED)
    assert (backward["sent_gradients"], backward["gradients_of_outputs"]) == (POOLED, 2 * POOLED)
    assert backward["gradients_of_pooled_rows"] == 2 * POOLED


def test_activations_make_the_dense_part_the_peak() -> None:
    first, _ = of_two_tables(dense=Dense(activation_bytes=1e9))
    assert first.peak_phase is MemoryPhase.DENSE_BACKWARD
    assert first.buffer_bytes[MemoryPhase.DENSE_BACKWARD]["activations"] == 1e9
    assert first.peak_bytes - first.phase_bytes[MemoryPhase.DENSE_FORWARD] == 2 * POOLED  # the gradients


def test_activations_are_taken_off_what_tables_may_use() -> None:
    dense = Dense(activation_bytes=1e9)
    without, with_them = make_problem(), make_problem(dense=dense)
    assert "activations" not in reserved_bytes(without, 80e9)
    assert reserved_bytes(with_them, 80e9)["activations"] == 1e9
    assert capacity_bytes(without)[0, Tier.HBM] - capacity_bytes(with_them)[0, Tier.HBM] == 1e9


def test_reservations_but_the_margin_are_held() -> None:
    reservation = Reservation(hbm_fraction=0.5, dense_multiplier=6.0, input_copies=20, collective_bytes=7e6)
    first, _ = of_two_tables(reservation=reservation, dense=Dense(parameter_bytes=1e6))
    assert first.persistent_bytes["dense_parameters"] == 6e6
    assert first.persistent_bytes["collective_buffers"] == 7e6
    assert first.persistent_bytes["input_batches"] == 20 * 2 * 4 * BATCH * 8
    assert first.device_bytes == 80e9


@pytest.mark.parametrize("pipeline", ["none", "train_sparse_dist", "train_prefetch_sparse_dist"])
def test_pipelines_differ_in_the_batches_of_ids_that_they_hold(pipeline: str) -> None:
    first, _ = of_two_tables(pipeline=pipeline)
    batches = {"none": 1, "train_sparse_dist": 2, "train_prefetch_sparse_dist": 3}[pipeline]
    assert first.persistent_bytes["input_buffers"] == batches * RANKS * 2 * 4 * BATCH * 8


def test_requests_have_no_step() -> None:
    problem = serving_problem(make_table())
    placement = Placement(
        world_size=problem.world_size,
        ranks_per_host=problem.world_size,
        tables=tuple(
            TablePlacement(
                name=table.name,
                sharding_type=Scheme.TABLE_WISE,
                compute_kernel=Kernel.FUSED,
                shards=Shards.of_columns(
                    rank=[0],
                    row_offset=0,
                    num_rows=table.num_embeddings,
                    column_offset=0,
                    num_columns=table.embedding_dim,
                    tier=Tier.HBM,
                ),
            )
            for table in problem.tables
        ),
    )
    assert all(load.step_memory is None for load in score(problem, placement, SERVING).ranks)


def test_stashed_weights_are_away_while_the_dense_part_runs() -> None:
    # 256 kB of one table at 30 GB/s are 8.5 us: of 0.1 s in which 1 GB of activations grow that is 85 kB
    dense = Dense(forward_seconds=0.1, backward_seconds=0.2, activation_bytes=1e9)
    tables = (make_table("a", ROWS, COLUMNS), make_table("b", ROWS, COLUMNS))
    problem = make_problem(
        *tables, cluster=make_cluster(1, RANKS), batch_size_per_rank=BATCH, dense=dense, stash=Stash()
    )
    placed = (replace(whole("a", 0), stash_weights=True), whole("b", 0))
    placement = Placement(world_size=RANKS, ranks_per_host=RANKS, tables=placed)
    evaluation = score(problem, placement, ROOFLINE)
    memory, stash = evaluation.ranks[0].step_memory, evaluation.stash
    assert memory is not None
    assert stash is not None
    size = ROWS * COLUMNS * 4.0
    assert (stash.stashed_bytes, stash.num_tables, stash.busiest_rank) == (size, 1, 0)
    assert memory.persistent_bytes["tables"] == size
    away = {phase for phase, lines in memory.buffer_bytes.items() if "stashed_weights" not in lines}
    assert away == {MemoryPhase.DENSE_FORWARD, MemoryPhase.DENSE_BACKWARD}
    assert list(memory.phase_bytes) == list(MemoryPhase)
    grown = memory.buffer_bytes[MemoryPhase.STASH]["activations"]
    assert grown == pytest.approx(size / 30e9 / 0.1 * 1e9)
    assert memory.buffer_bytes[MemoryPhase.RESTORE]["activations"] == pytest.approx(grown / 2)
    assert memory.phase_bytes[MemoryPhase.DENSE_FORWARD] == pytest.approx(2 * POOLED + 1e9 + size + stays(memory))


def stays(memory: StepMemory) -> float:
    """What is no table and stays."""
    return sum(memory.persistent_bytes.values()) - memory.persistent_bytes["tables"]
