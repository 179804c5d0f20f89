"""Messages that all tables share: one size per direction, and shares that add up to it."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.analytic.sizes import element_bytes, id_bytes
from cost_models.hardware.profiles_loader import load_profile
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel, Phase, Scheme
from planner.access.table_columns import table_columns
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem
from planner.pricing.shard_work import build_work
from tests.support.planning.builders import make_problem, make_table

#: 64 samples, 4 ids each, on 4 ranks: 64 x 4 = 256 ids and 64 bags per table and batch.
TABLES = (
    make_table("wide", dim=128, pooling_factor=4.0),
    make_table("narrow", dim=32, pooling_factor=4.0),
    replace(make_table("weighted", dim=64, pooling_factor=4.0), is_weighted=True),
)


def shards(problem: Problem, scheme: Scheme) -> ShardWork:
    """One shard of every table."""
    return build_work(
        problem,
        table_columns(problem),
        table=np.arange(len(problem.tables)),
        scheme=np.full(len(problem.tables), scheme, dtype=np.int8),
        kernel=np.full(len(problem.tables), Kernel.FUSED, dtype=np.int8),
        shard_columns=np.array([table.embedding_dim for table in problem.tables]),
    )


def test_a_message_has_the_type_of_its_direction() -> None:
    # 64 bags x (128 + 32 + 64) columns = 14,336 elements
    work = shards(make_problem(*TABLES, forward_comm_dtype="fp16", backward_comm_dtype="int8"), Scheme.TABLE_WISE)
    assert (work.forward_message_bytes, work.backward_message_bytes) == (28_672, 14_336)
    unstated = shards(make_problem(*TABLES), Scheme.TABLE_WISE)
    assert unstated.forward_message_bytes == unstated.backward_message_bytes == 57_344  # fp32


def test_an_id_message_carries_the_weights_of_weighted_features() -> None:
    # 2 x 256 ids of 8 B and 256 of 8 + 4 B
    assert shards(make_problem(*TABLES), Scheme.TABLE_WISE).id_message_bytes == 2 * 2_048 + 3_072


@pytest.mark.parametrize("forward", [None, "fp16"])
@pytest.mark.parametrize("backward", [None, "bf16", "int8"])
@pytest.mark.parametrize("scheme", [Scheme.TABLE_WISE, Scheme.ROW_WISE])
def test_what_shards_send_adds_up_to_the_message_of_every_rank(
    scheme: Scheme, forward: str | None, backward: str | None
) -> None:
    problem = make_problem(*TABLES, forward_comm_dtype=forward, backward_comm_dtype=backward)
    work = shards(problem, scheme)
    outputs = work.batch_outputs * work.shard_columns
    assert np.sum(outputs * element_bytes(work.forward_comm_element_bytes)) == work.forward_message_bytes
    assert np.sum(outputs * element_bytes(work.backward_comm_element_bytes)) == work.backward_message_bytes
    # A message is one rank's batch; the shards look up the ids of all ranks' batches.
    looked_up = work.lookups * work.row_shards * id_bytes(work.is_weighted)
    assert np.sum(looked_up) == work.num_ranks * work.id_message_bytes


@pytest.mark.parametrize("scheme", [Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE])
def test_a_smaller_forward_type_leaves_the_backward_pass_alone(scheme: Scheme) -> None:
    # On the curves of an H100 host, where half of a message of 7 MiB has another bandwidth than the whole.
    cluster = Cluster(hardware=load_profile("dgx-h100-80g"), num_hosts=1, ranks_per_host=8)
    full, half = (
        RooflineModel()
        .predict(
            shards(make_problem(*TABLES, cluster=cluster, batch_size_per_rank=8_192, forward_comm_dtype=kind), scheme),
            cluster.hardware,
        )
        .seconds
        for kind in ("fp32", "fp16")
    )
    assert np.all(half[:, Phase.FORWARD_COMM] < full[:, Phase.FORWARD_COMM])
    np.testing.assert_array_equal(half[:, Phase.BACKWARD_COMM], full[:, Phase.BACKWARD_COMM])
