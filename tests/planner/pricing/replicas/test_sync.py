"""What averages over sharding groups take, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import Kernel, Phase, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.domain.problem.table import Table
from planner.pricing.replicas.sync import sync_start_seconds
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.pricing.step.whole_step import dense_all_reduce
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import make_cluster, make_problem, make_table

ROOFLINE = RooflineModel()
INTRA, INTER = 3e11, 4e10  # of make_cluster, bytes per second


def grouped(
    *tables: Table, contiguous: bool = False, size: int = 4, hardware: Hardware | None = None, **settings: object
) -> Problem:
    """Two hosts of four ranks in groups; by default a group has two ranks on each host."""
    dense = settings.pop("dense", Dense())
    job = make_cluster(num_hosts=2, ranks_per_host=4)
    job = job if hardware is None else replace(job, hardware=hardware)
    groups = ReplicaGroups(job=job, sizes=(size,), use_inter_host_allreduce=contiguous, **settings)
    return make_problem(*tables, cluster=groups.cluster_of(size), replica_groups=groups, dense=dense)


def placed(table: Table, scheme: Scheme, ranks: list[int], kernel: Kernel = Kernel.FUSED) -> TablePlacement:
    """Row blocks, or copies, of a table on some ranks."""
    copies = scheme is Scheme.DATA_PARALLEL
    rows = table.num_embeddings if copies else table.num_embeddings // len(ranks)
    return TablePlacement(
        name=table.name,
        sharding_type=scheme,
        compute_kernel=kernel,
        shards=Shards.of(
            Shard(
                rank=rank,
                row_offset=0 if copies else place * rows,
                num_rows=rows,
                column_offset=0,
                num_columns=table.embedding_dim,
                tier=Tier.HBM,
            )
            for place, rank in enumerate(ranks)
        ),
    )


def sync_of(problem: Problem, *tables: TablePlacement) -> np.ndarray:
    """Seconds of averages per step of every rank."""
    placement = Placement(world_size=problem.world_size, ranks_per_host=problem.cluster.ranks_per_host, tables=tables)
    found = score(problem, placement, ROOFLINE)
    return np.array([rank.seconds.get(Phase.REPLICA_SYNC, 0.0) for rank in found.ranks])


def test_neighbours_average_inside_their_host() -> None:
    """Two replicas on a host: each byte passes a link once, 2 x 1/2. A table of 1,000 x 64 floats on rank 1."""
    table = make_table()
    problem = grouped(table)
    assert sync_of(problem, placed(table, Scheme.TABLE_WISE, [1])) == pytest.approx([0, 256_000 / INTRA, 0, 0])


def test_contiguous_groups_average_over_hosts() -> None:
    table = make_table()
    problem = grouped(table, contiguous=True)
    assert sync_of(problem, placed(table, Scheme.TABLE_WISE, [1])) == pytest.approx([0, 256_000 / INTER, 0, 0])


def test_a_step_pays_its_part_of_an_average() -> None:
    table = make_table()
    often, rarely = grouped(table), grouped(table, sync_interval_steps=100)
    placement = placed(table, Scheme.ROW_WISE, [0, 1, 2, 3])
    assert sync_of(often, placement) == pytest.approx(4 * [64_000 / INTRA])
    assert sync_of(rarely, placement) == pytest.approx(4 * [640 / INTRA])


@pytest.mark.parametrize(("optimizer", "state"), [("sgd", 0), ("rowwise_adagrad", 4_000), ("adagrad", 256_000)])
def test_optimizer_state_is_averaged_unless_it_is_left_out(optimizer: str, state: int) -> None:
    table = make_table(optimizer=optimizer)
    placement = placed(table, Scheme.TABLE_WISE, [0])
    assert sync_of(grouped(table), placement)[0] == pytest.approx((256_000 + state) / INTRA)
    bare = grouped(table, include_optimizer_state=False)
    assert sync_of(bare, placement)[0] == pytest.approx(256_000 / INTRA)


def test_copies_are_not_averaged_and_their_gradients_pass_all_ranks() -> None:
    table = make_table()
    problem = grouped(table)
    copies = placed(table, Scheme.DATA_PARALLEL, [0, 1, 2, 3], Kernel.DENSE)
    assert sync_of(problem, copies).tolist() == [0, 0, 0, 0]
    whole = make_problem(table, cluster=make_cluster(num_hosts=2, ranks_per_host=4))
    of_job = Placement(
        world_size=8, ranks_per_host=4, tables=(placed(table, Scheme.DATA_PARALLEL, list(range(8)), Kernel.DENSE),)
    )
    of_group = Placement(world_size=4, ranks_per_host=2, tables=(copies,))
    gradients = [
        score(one, placement, ROOFLINE).ranks[0].seconds[Phase.BACKWARD_COMM]
        for one, placement in ((problem, of_group), (whole, of_job))
    ]
    assert gradients[0] == gradients[1] > 0


def test_one_group_averages_nothing() -> None:
    table = make_table()
    problem = grouped(table, size=8)
    placement = Placement(world_size=8, ranks_per_host=4, tables=(placed(table, Scheme.TABLE_WISE, [0]),))
    found = score(problem, placement, ROOFLINE)
    assert Phase.REPLICA_SYNC not in found.ranks[0].seconds
    load = found.replica_groups
    assert load is not None
    assert (load.num_groups, load.bytes, load.seconds_per_step) == (1, 0.0, 0.0)
    assert sync_start_seconds(problem, problem.cluster.hardware)[0] == 0


def test_every_message_starts_once_whatever_lies_where() -> None:
    """Weights of two types and state: three messages of 10 us, every 5 steps."""
    tables = (make_table("a", optimizer="rowwise_adagrad"), make_table("b", data_type="fp16"))
    hardware = make_cluster(intra_host_latency_seconds=1e-5).hardware
    problem = grouped(*tables, hardware=hardware, sync_interval_steps=5)
    assert sync_start_seconds(problem, hardware)[0] == pytest.approx(6e-6)
    assert seconds_without_shards(problem, 1.0) == pytest.approx(6e-6)
    both = [placed(table, Scheme.TABLE_WISE, [0]) for table in tables]
    assert sync_of(problem, *both)[3] == pytest.approx(6e-6)


def test_an_evaluation_has_the_groups_and_their_averages() -> None:
    table = make_table(optimizer="rowwise_adagrad")
    problem = grouped(table, sync_interval_steps=10)
    placement = Placement(world_size=4, ranks_per_host=2, tables=(placed(table, Scheme.TABLE_WISE, [2]),))
    found = score(problem, placement, ROOFLINE)
    load = found.replica_groups
    assert load is not None
    assert (load.world_size, load.sharding_group_size, load.num_groups, load.node_group_size) == (8, 4, 2, 2)
    assert load.bytes == 260_000
    assert load.seconds_per_step == pytest.approx(260_000 / INTRA / 10)
    assert load.seconds == pytest.approx(260_000 / INTRA)
    phase = next(phase for phase in found.phases if phase.phase is Phase.REPLICA_SYNC)
    assert (phase.slowest_rank, phase.counted) == (2, True)
    assert phase.lower_seconds is not None
    assert phase.upper_seconds is not None
    assert 0 < phase.lower_seconds < phase.seconds < phase.upper_seconds
    assert found.step_time_seconds == pytest.approx(sum(one.seconds for one in found.phases))


def test_dense_gradients_and_samples_are_those_of_the_job() -> None:
    dense = Dense(forward_seconds=1e-3, backward_seconds=1e-3, parameter_bytes=1e6)
    table = make_table()
    problem = grouped(table, dense=dense)
    whole = make_problem(table, cluster=make_cluster(num_hosts=2, ranks_per_host=4), dense=dense)
    hardware = problem.cluster.hardware
    assert dense_all_reduce(problem, hardware).seconds == dense_all_reduce(whole, hardware).seconds
    placement = Placement(world_size=4, ranks_per_host=2, tables=(placed(table, Scheme.TABLE_WISE, [2]),))
    step = score(problem, placement, ROOFLINE).whole_step
    assert step is not None
    assert step.samples_per_second == pytest.approx(8 * 64 / step.seconds)
