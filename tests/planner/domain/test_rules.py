"""Every rule of the domain has its own message; each bad value is refused by its own rule."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from cost_models.vocabulary import NUM_PHASES, STEP_PHASES, Kernel, Phase, Scheme
from planner.domain.problem.access import NUM_REUSE_BINS, AccessCdf, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.dense import Dense
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Reservation
from planner.domain.problem.table import Feature, PinnedPiece, PinnedTable, TableConstraints
from planner.solver.partitioners.base import SolveLimits
from tests.support.planning.builders import make_cluster, make_hardware, make_problem, make_table


def pinned(*columns: tuple[int, int]) -> PinnedTable:
    """A table pinned to rank 0 in pieces of these offsets and widths."""
    return PinnedTable(
        sharding_type=Scheme.COLUMN_WISE,
        compute_kernel=Kernel.FUSED,
        pieces=tuple(PinnedPiece(column_offset=offset, num_columns=width, site=0) for offset, width in columns),
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make_table(""), "Expected a name."),
        (lambda: make_table(rows=0), "num_embeddings"),
        (lambda: make_table(dim=0), "embedding_dim"),
        (lambda: replace(make_table(), features=()), "at least one feature"),
        (lambda: make_table(pooling="max"), "pooling"),
        (lambda: make_table(data_type="int4", optimizer="adam"), 'optimizer "none" for int4'),
        (lambda: Feature(name="f", pooling_factor=-1), "pooling_factor"),
        (lambda: Feature(name="f", pooling_factor=math.nan), "pooling_factor"),
        (lambda: Feature(name="f", pooling_factor=1, num_poolings=0), "num_poolings"),
        (lambda: TableConstraints(sharding_types=frozenset()), "sharding_types"),
        (lambda: TableConstraints(ranks=frozenset()), "ranks"),
        (lambda: TableConstraints(min_partition=2), "min_partition"),
        (lambda: PinnedPiece(column_offset=-4, num_columns=4, site=0), "column_offset"),
        (lambda: PinnedPiece(column_offset=0, num_columns=0, site=0), "num_columns"),
        (lambda: PinnedPiece(column_offset=0, num_columns=4, site=-1), "site"),
        (lambda: pinned(), "at least one piece"),
        (lambda: pinned((0, 32), (40, 24)), "without gaps"),
        (lambda: pinned((32, 32), (0, 32)), "left to right"),
        (lambda: make_table(constraints=TableConstraints(pinned=pinned((0, 32)))), "pieces of 64 columns in all"),
        (lambda: make_cluster(0), "num_hosts"),
        (lambda: make_cluster(1, 0), "ranks_per_host"),
        (lambda: make_cluster(1024, 8), "at most 4096 ranks"),
        (
            lambda: Cluster(hardware=make_hardware(), num_hosts=1, ranks_per_host=2, hbm_bytes_by_rank=(1.0,)),
            "hbm_bytes_by_rank",
        ),
        (lambda: replace(make_cluster(1, 2), relative_speed_by_rank=(1.0,)), "relative_speed_by_rank to list 2 ranks"),
        (lambda: replace(make_cluster(1, 2), relative_speed_by_rank=(1.0, 0.0)), r"speed_by_rank in \[0.001, 10\]"),
        (lambda: replace(make_cluster(1, 1), relative_speed_by_rank=(10.5,)), r"speed_by_rank in \[0.001, 10\]"),
        (lambda: replace(make_cluster(1, 1), relative_speed_by_rank=(math.nan,)), "relative_speed_by_rank"),
        (lambda: replace(make_problem(), tables=()), "at least one table"),
        (lambda: make_problem(make_table("a"), make_table("a")), "unique"),
        (lambda: make_problem(batch_size_per_rank=0), "batch_size_per_rank"),
        (lambda: make_problem(objective="fast"), "objective"),
        (lambda: make_problem(pipeline="double"), "pipeline"),
        (lambda: Dense(forward_seconds=-1), "forward_seconds"),
        (lambda: Dense(parameter_bytes=math.inf), "parameter_bytes"),
        (lambda: Reservation(hbm_fraction=1.0), "reserved_hbm_fraction"),
        (lambda: ZipfAccess(alpha=-0.1), "zipf_alpha"),
        (lambda: ReuseHistogram(distinct_rows=(1.0,) * 3), "17 bins"),
        (lambda: ReuseHistogram(distinct_rows=(0.0,) * NUM_REUSE_BINS), "at least one bin"),
        (lambda: ReuseHistogram(distinct_rows=(-1.0,) + (1.0,) * 16), "bins >= 0"),
        (lambda: AccessCdf(points=((0.5, 0.6), (0.4, 1.0))), "increase"),
        (lambda: AccessCdf(points=((0.5, 0.2), (1.0, 1.0))), "hottest rows first"),
        (lambda: AccessCdf(points=((0.5, 0.9),)), r"last point \(1, 1\)"),
        (lambda: MissRatioCurve(points=()), "at least one point"),
        (lambda: MissRatioCurve(points=((0.1, 0.5), (0.2, 0.6))), "never increase"),
        (lambda: SolveLimits(time_limit_seconds=0), "time_limit_seconds"),
        (lambda: SolveLimits(relative_gap=-0.1), "relative_gap"),
        (lambda: SolveLimits(seed=-1), "seed"),
    ],
)
def test_each_rule(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("name", "element_bytes", "row_bytes"),
    [
        ("none", 0, 0),
        ("sgd", 0, 0),
        ("rowwise_adagrad", 0, 4),
        ("adagrad", 4, 0),
        ("lars_sgd", 4, 0),
        ("adam", 8, 0),
        ("lamb", 8, 0),
        ("partial_rowwise_adam", 4, 4),
        ("partial_rowwise_lamb", 4, 4),
    ],
)
def test_optimizer_state(name: str, element_bytes: int, row_bytes: int) -> None:
    optimizer = OPTIMIZERS[name]
    assert (optimizer.element_bytes, optimizer.row_bytes) == (element_bytes, row_bytes)
    assert optimizer.state_bytes(10, 8) == 80 * element_bytes + 10 * row_bytes


@pytest.mark.parametrize(
    ("data_type", "row_bytes"), [("fp32", 512), ("fp16", 256), ("bf16", 256), ("int8", 132), ("int4", 68), ("int2", 36)]
)
def test_row_bytes_of_128_columns(data_type: str, row_bytes: int) -> None:
    """Quantised rows carry 4 bytes of scale and bias."""
    assert make_table(dim=128, data_type=data_type, optimizer="none").data_type.row_bytes(128) == row_bytes


def test_values_are_frozen() -> None:
    table = make_table()
    with pytest.raises(FrozenInstanceError):
        table.name = "other"  # type: ignore[misc]


def test_what_a_table_does_per_sample() -> None:
    """Two features: 3 ids in 2 poolings, and half an id in one."""
    features = (
        Feature(name="a", pooling_factor=3, num_poolings=2),
        Feature(name="b", pooling_factor=0.5),
    )
    pooled = replace(make_table(), features=features)
    assert pooled.ids_per_sample == 6.5
    assert pooled.outputs_per_sample == 3
    assert pooled.expected_outputs_per_sample == 2.5  # TorchRec counts half of a bag that is half empty
    sequence = replace(pooled, pooling="none")
    assert sequence.outputs_per_sample == sequence.expected_outputs_per_sample == 6.5


def test_a_feature_never_seen_is_legal() -> None:
    assert make_table(pooling_factor=0.0).ids_per_sample == 0


def test_slow_ranks_take_longer_to_compute_and_not_to_communicate() -> None:
    """Speeds of 1, 1/2, 2 and 1/10 take 1, 2, 1/2 and 10 times as long."""
    cluster = replace(make_cluster(2, 2), relative_speed_by_rank=(1.0, 0.5, 2.0, 0.1))
    slowdown = cluster.phase_slowdown()
    assert slowdown.shape == (4, NUM_PHASES)
    for phase in STEP_PHASES:
        computes = phase in (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)
        np.testing.assert_allclose(slowdown[:, phase], [1, 2, 0.5, 10] if computes else 1)
    assert np.all(make_cluster(2, 2).phase_slowdown() == np.ones((4, NUM_PHASES)))


def test_the_least_bytes_of_weights_are_of_whole_rows() -> None:
    """Quantised rows carry their scale: a single column of fp16 is less than one of int8."""
    table = make_table(rows=10, dim=1, data_type="fp32", optimizer="none")
    assert table.least_weight_bytes == 40
    either = replace(table, constraints=TableConstraints(data_types=("int8", "fp16")))
    assert (either.least_weight_bytes, replace(either, embedding_dim=64).least_weight_bytes) == (20, 680)
