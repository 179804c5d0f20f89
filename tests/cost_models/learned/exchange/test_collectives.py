"""A learned model with collectives: phases of what was measured are learned, the others stay the roofline's."""

import dataclasses

import numpy as np
import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.learned.exchange.curve import SCALARS, CollectiveKind, ExchangeCurve
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.learned.model import LearnedModel
from cost_models.vocabulary import Evidence, Phase, Scheme
from tests.support.cost_models.launches import quick_model
from tests.support.cost_models.shard_work import shard_work, tiered_hardware

MACHINE = tiered_hardware()


def model() -> LearnedModel:
    """1 ms a collective, and 1 ns for every byte of the rank that holds most."""
    weights = np.zeros((1, len(SCALARS)))
    weights[0, SCALARS.index("largest")] = 1.0
    curve = ExchangeCurve(
        start_seconds=1e-3,
        peer_seconds=0.0,
        weights=weights,
        low_bytes=np.zeros(1),
        high_bytes=np.full(1, np.inf),
        log_ranks=np.zeros(1),
        seconds_per_byte=np.full(1, 1e-9),
        skew=np.zeros(3),
        rank_counts=np.array([4]),
        least_bytes=0.0,
        most_bytes=1e12,
        bin_seconds=np.zeros(0),
        lower=np.full((1, 1), 0.5),
        upper=np.full((1, 1), 2.0),
        num_rows=100,
    )
    exchange = LearnedExchange(curves={CollectiveKind("all_to_all", "forward"): curve}, coverage=0.8)
    return dataclasses.replace(quick_model(40), exchange=exchange)


def test_ranks_of_a_measured_collective() -> None:
    work = shard_work(num_ranks=4, ranks_per_host=4, shard_columns=32, batch_outputs=2048.0, lookups=np.full(3, 1e5))
    found = model().predict_ranks(work, np.array([0, 0, 1]), MACHINE)
    # Rank 0 holds two shards of 4 x 2048 bags x 32 columns x 4 bytes
    expected = 1e-3 + 2 * 4 * 2048 * 32 * 4 * 1e-9
    np.testing.assert_allclose(found.seconds[:, Phase.FORWARD_COMM], expected)
    np.testing.assert_allclose(found.upper_seconds[:, Phase.FORWARD_COMM], 2 * expected)
    np.testing.assert_array_equal(found.learned_seconds[:, Phase.BACKWARD_COMM], 0.0)
    assert model().coverage == 0.8


def test_prices_of_a_measured_collective_leave_out_its_start() -> None:
    work = shard_work(num_ranks=4, ranks_per_host=4, shard_columns=32, batch_outputs=2048.0, lookups=np.full(2, 1e5))
    priced = model().predict(work, MACHINE)
    np.testing.assert_allclose(priced.seconds[:, Phase.FORWARD_COMM], 4 * 2048 * 32 * 4 * 1e-9)
    assert np.all(priced.evidence[:, Phase.FORWARD_COMM] == Evidence.MEASURED)
    analytic = RooflineModel().predict(work, MACHINE).seconds
    np.testing.assert_array_equal(priced.seconds[:, Phase.BACKWARD_COMM], analytic[:, Phase.BACKWARD_COMM])


def test_prices_around_follow_the_busiest_rank() -> None:
    work = shard_work(num_ranks=4, ranks_per_host=4, shard_columns=32, batch_outputs=2048.0, lookups=np.full(2, 1e5))
    near = model().around(work, np.array([0, 1]), MACHINE).predict(work, MACHINE)
    np.testing.assert_allclose(near.seconds[:, Phase.FORWARD_COMM], 4 * 2048 * 32 * 4 * 1e-9, rtol=1e-6)


@pytest.mark.parametrize("columns", [{"scheme": Scheme.ROW_WISE}, {"num_ranks": 32, "ranks_per_host": 8}])
def test_collectives_that_were_not_measured_are_the_rooflines(columns: dict[str, object]) -> None:
    work = shard_work(**({"num_ranks": 4, "ranks_per_host": 4} | columns))  # type: ignore[arg-type]
    analytic = RooflineModel().predict(work, MACHINE).seconds[0, Phase.FORWARD_COMM]
    assert model().predict(work, MACHINE).seconds[0, Phase.FORWARD_COMM] == analytic


def test_all_ranks_of_a_ring_have_what_the_fullest_has() -> None:
    """As rows of measured rings have it, whoever holds the shards."""
    with_ring = model()
    assert with_ring.exchange is not None
    curve = with_ring.exchange.curves[CollectiveKind("all_to_all", "forward")]
    exchange = LearnedExchange(curves={CollectiveKind("reduce_scatter"): curve}, coverage=0.8)
    work = shard_work(
        num_ranks=4,
        ranks_per_host=4,
        shard_columns=32,
        batch_outputs=2048.0,
        lookups=np.full(2, 1e5),
        scheme=Scheme.ROW_WISE,
    )
    found = dataclasses.replace(with_ring, exchange=exchange).predict_ranks(work, np.array([0, 1]), MACHINE)
    np.testing.assert_allclose(found.seconds[:, Phase.FORWARD_COMM], 1e-3 + 4 * 2048 * 32 * 4 * 1e-9)


def test_collectives_that_were_not_measured_are_reported_by_phase_with_the_reason() -> None:
    learned = model()  # all-to-alls of the forward pass of 4 ranks alone
    one_host = shard_work(num_ranks=4, ranks_per_host=4, scheme=np.array([Scheme.TABLE_WISE, Scheme.TABLE_WISE]))
    missing = "all_to_all backward inside one host was not measured"
    assert learned.unmeasured_collectives(one_host) == ((Phase.INPUT_COMM, missing), (Phase.BACKWARD_COMM, missing))
    assert learned.unmeasured_collectives(shard_work(num_ranks=1, ranks_per_host=1)) == ()


def test_schemes_run_collectives_that_no_one_learns() -> None:
    work = shard_work(num_ranks=8, ranks_per_host=4, scheme=np.array([Scheme.TABLE_ROW_WISE, Scheme.DATA_PARALLEL]))
    as_run = "as table_row_wise and grid_shard run it, is not learned"
    assert model().unmeasured_collectives(work) == (
        (Phase.INPUT_COMM, "all_to_all backward over several hosts was not measured"),
        (Phase.FORWARD_COMM, f"reduce_scatter inside hosts, {as_run}"),
        (Phase.FORWARD_COMM, f"all_to_all across hosts, {as_run}"),
        (Phase.BACKWARD_COMM, f"all_to_all across hosts, {as_run}"),
        (Phase.BACKWARD_COMM, f"all_gather inside hosts, {as_run}"),
        (Phase.BACKWARD_COMM, "all_reduce of replicated tables, during the backward pass, is not learned"),
    )


def test_a_model_without_collectives_says_so_once_for_each_phase() -> None:
    work = shard_work(
        num_ranks=4, ranks_per_host=4, scheme=np.array([Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.DATA_PARALLEL])
    )
    phases = (Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM)
    expected = tuple((phase, "collectives were not measured") for phase in phases)
    assert quick_model(40).unmeasured_collectives(work) == expected


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"scheme": Scheme.ROW_WISE},
        {"num_ranks": 8, "ranks_per_host": 4},
        {"scheme": Scheme.DATA_PARALLEL},
        {"forward_message_bytes": 1e13},
    ],
)
def test_a_phase_is_reported_where_its_seconds_are_the_rooflines_and_nowhere_else(columns: dict[str, object]) -> None:
    learned = model()
    assert learned.exchange is not None
    curve = learned.exchange.curves[CollectiveKind("all_to_all", "forward")]
    curves = {CollectiveKind("all_to_all", "forward"): curve, CollectiveKind("all_to_all", "backward"): curve}
    learned = dataclasses.replace(learned, exchange=LearnedExchange(curves=curves, coverage=0.8))
    work = shard_work(**({"num_ranks": 4, "ranks_per_host": 4} | columns))  # type: ignore[arg-type]
    ranks = learned.predict_ranks(work, np.array([0]), MACHINE)
    phases = [Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM]
    analytic = [phase for phase in phases if np.any(ranks.seconds[:, phase] > ranks.learned_seconds[:, phase])]
    assert [phase for phase, _ in learned.unmeasured_collectives(work)] == analytic


def test_no_size_is_cheaper_than_a_smaller_one() -> None:
    """Beyond the measured bytes the curve goes on, as an estimate with wider limits."""
    exchange = model().exchange
    assert exchange is not None
    ((key, curve),) = exchange.curves.items()
    short = dataclasses.replace(
        model(), exchange=LearnedExchange(curves={key: dataclasses.replace(curve, most_bytes=1e6)}, coverage=0.8)
    )
    found = []
    for batch in (1.0, 64.0, 4096.0, 262_144.0):
        work = shard_work(num_ranks=4, ranks_per_host=4, shard_columns=32, batch_outputs=batch, lookups=np.full(2, 1e5))
        ranks = short.predict_ranks(work, np.array([0, 1]), MACHINE)
        seconds = ranks.seconds[0, Phase.FORWARD_COMM]
        found.append((seconds, ranks.upper_seconds[0, Phase.FORWARD_COMM] / seconds))
        is_beyond = 2 * 4 * batch * 32 * 4 > 1e6
        assert ranks.evidence[0, Phase.FORWARD_COMM] == (Evidence.ESTIMATED if is_beyond else Evidence.MEASURED)
        assert short.unmeasured_collectives(work)[0][0] != Phase.FORWARD_COMM
    seconds, widths = zip(*found, strict=True)
    assert sorted(seconds) == list(seconds)
    assert widths[0] == widths[1] == pytest.approx(2.0)
    assert widths[1] < widths[2] < widths[3]


def test_collectives_inside_the_only_host_are_those_of_all_ranks() -> None:
    """Or a scheme would be cheaper for the name of its collective alone."""
    measured = model().exchange
    assert measured is not None
    (curve,) = measured.curves.values()
    rings = LearnedExchange(curves={CollectiveKind("reduce_scatter"): curve}, coverage=0.8)
    learned = dataclasses.replace(model(), exchange=rings)
    by_scheme = []
    for scheme in (Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE):
        work = shard_work(
            num_ranks=4, ranks_per_host=4, scheme=scheme, row_shards=4, batch_outputs=2048.0, lookups=np.full(4, 1e5)
        )
        by_scheme.append(learned.predict_ranks(work, np.arange(4), MACHINE).seconds[:, Phase.FORWARD_COMM])
    np.testing.assert_allclose(by_scheme[0], by_scheme[1])
    assert by_scheme[0].min() > 1e-3
