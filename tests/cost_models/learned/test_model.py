"""The served model: its promises as a cost model, its orderings, its ranges and its answers for whole ranks."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cost_models.analytic.additive import Additive
from cost_models.analytic.roofline import RooflineModel
from cost_models.arrays import Floats
from cost_models.learned.model import COMPUTE_PHASES, LearnedModel
from cost_models.learned.reach.ranges import TOLERANCE
from cost_models.protocol import AssignmentModel, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Kernel, Phase, Scheme
from tests.support.contracts.cost_model import CostModelContract
from tests.support.cost_models.launches import quick_model
from tests.support.cost_models.shard_work import hardware, shard_work, tiered_hardware

MACHINE = tiered_hardware()
RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def physics_model() -> LearnedModel:
    """Fitted to 40 launches."""
    return quick_model(40)


def network_model() -> LearnedModel:
    """Fitted to 600 launches, with networks."""
    pytest.importorskip("torch")
    return quick_model()


class TestContract(CostModelContract):
    model = staticmethod(physics_model)  # type: ignore[assignment]

    def test_tables_of_a_machine_without_accelerator_live_in_host_memory(self) -> None:
        """Lookups cost what they were measured to cost, whatever rates the profile has."""
        host = hardware(hbm_bytes=0, ddr_bytes_per_second=1e11, intra_host_bytes_per_second=1e10)
        seconds = [
            physics_model().predict(work_of(), machine).seconds[0, COMPUTE_PHASES].sum() for machine in (host, MACHINE)
        ]
        assert seconds[0] == pytest.approx(seconds[1])

    def test_entries_of_zero_seconds_need_no_evidence(self) -> None:
        work = self.work()
        priced = physics_model().predict(work, self.machine(Evidence.ESTIMATED))
        assert np.all(priced.evidence[priced.seconds == 0] == Evidence.MEASURED)
        unknown = np.array([text != "" for text in physics_model().unknown(work, MACHINE)])
        others = priced.seconds[unknown] > 0
        assert np.all(priced.evidence[unknown][others] == Evidence.ESTIMATED)


class TestContractOfItsAdditivePrices(TestContract):
    model = staticmethod(lambda: Additive(model=physics_model()))  # type: ignore[assignment]


def work_of(**columns: Any) -> ShardWork:
    """Shards inside of what was measured: 4 ranks of one host, 8192 samples, SGD with 4 bytes of state a row."""
    known: dict[str, Any] = {
        "num_ranks": 4,
        "ranks_per_host": 4,
        "batch_outputs": 2048.0,
        "lookups": 1e5,
        "distinct_rows": 2e4,
        "shard_columns": 32,
        "shard_rows": 1_000_000,
    }
    return shard_work(**(known | columns))


def compute_seconds(model: LearnedModel, work: ShardWork, rank: list[int]) -> Floats:
    """Forward and backward seconds together of every rank."""
    seconds = model.predict_ranks(work, np.array(rank), MACHINE).seconds
    total: Floats = seconds[:, COMPUTE_PHASES].sum(axis=1)
    return total


def test_it_is_an_assignment_model() -> None:
    assert isinstance(physics_model(), AssignmentModel)
    assert physics_model().coverage == 0.9


def test_physics_finds_the_seconds_of_the_machine() -> None:
    # 1 ms + 1e5 x (20 ns + 32 x 0.1 ns) + 2e4 x (0.2 us + 4 x 32 x 2 ns) = 12.44 ms
    seconds = compute_seconds(physics_model(), work_of(), [0])
    assert seconds[0] == pytest.approx(12.44e-3, rel=0.15)
    assert seconds[1:].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("model", [physics_model, network_model])
def test_limits_hold_the_prediction_between_them(model: Any) -> None:
    ranks = model().predict_ranks(work_of(lookups=np.array([1e5, 2e5, 3e5])), np.array([0, 0, 1]), MACHINE)
    busy = ranks.seconds[:2, COMPUTE_PHASES]
    assert np.all(ranks.lower_seconds[:2, COMPUTE_PHASES] < busy)
    assert np.all(ranks.upper_seconds[:2, COMPUTE_PHASES] > busy)
    np.testing.assert_array_equal(ranks.learned_seconds[:, COMPUTE_PHASES], ranks.seconds[:, COMPUTE_PHASES])
    assert np.all(ranks.evidence[:, COMPUTE_PHASES] == Evidence.MEASURED)


def test_phases_that_were_not_measured_are_the_rooflines() -> None:
    work = work_of(lookups=np.array([1e5, 2e5]))
    learned = physics_model().predict(work, MACHINE).seconds
    analytic = RooflineModel().predict(work, MACHINE).seconds
    others = [phase for phase in range(NUM_PHASES) if phase not in COMPUTE_PHASES]
    np.testing.assert_array_equal(learned[:, others], analytic[:, others])


def test_seconds_timed_together_are_divided_as_the_roofline_divides_them() -> None:
    work = work_of()
    learned = physics_model().predict(work, MACHINE).seconds[0]
    analytic = RooflineModel().predict(work, MACHINE).seconds[0]
    assert learned[Phase.BACKWARD_COMPUTE] / learned[Phase.FORWARD_COMPUTE] == pytest.approx(
        analytic[Phase.BACKWARD_COMPUTE] / analytic[Phase.FORWARD_COMPUTE]
    )


def test_seconds_timed_apart_are_not_divided() -> None:
    # The made-up machine: 0.5 ms + 1e5 x 23.2 ns forward, 0.5 ms + 2e4 x 0.456 us backward
    seconds = quick_model(40, apart=True).predict_ranks(work_of(), np.array([0]), MACHINE).seconds[0]
    assert seconds[Phase.FORWARD_COMPUTE] == pytest.approx(2.82e-3, rel=0.15)
    assert seconds[Phase.BACKWARD_COMPUTE] == pytest.approx(9.62e-3, rel=0.15)


@RELAXED
@given(
    lookups=st.lists(st.floats(1e4, 5e5), min_size=2, max_size=6),
    share=st.floats(0.05, 1.0),
    columns=st.sampled_from([8, 16, 32, 64]),
    factor=st.floats(1.0, 8.0),
)
@pytest.mark.parametrize("model", [physics_model, network_model])
def test_more_work_never_costs_less(
    model: Any, lookups: list[float], share: float, columns: int, factor: float
) -> None:
    """Inside the measured range more rows looked up, wider rows, one shard more never cost a rank less."""
    counts = np.minimum(np.array(lookups), 5e5 / factor)
    rank = [0] * len(lookups)
    before = work_of(lookups=counts, distinct_rows=counts * share, shard_columns=columns)
    seconds = compute_seconds(model(), before, rank)[0]
    grown = counts.copy()
    grown[0] *= factor
    more_rows = work_of(lookups=grown, distinct_rows=grown * share, shard_columns=columns)
    more_lookups = work_of(lookups=grown, distinct_rows=counts * share, shard_columns=columns)
    wider = work_of(lookups=counts, distinct_rows=counts * share, shard_columns=columns * 2)
    fewer = work_of(lookups=counts[1:], distinct_rows=counts[1:] * share, shard_columns=columns)
    least = seconds * (1 - 1e-6)  # parts are float32
    assert compute_seconds(model(), more_rows, rank)[0] >= least
    assert compute_seconds(model(), more_lookups, rank)[0] >= least
    assert compute_seconds(model(), wider, rank)[0] >= least
    assert compute_seconds(model(), fewer, rank[1:])[0] <= seconds * (1 + 1e-6)
    priced = model().predict(more_rows, MACHINE).seconds[:, COMPUTE_PHASES].sum(axis=1)
    assert np.all(priced >= model().predict(before, MACHINE).seconds[:, COMPUTE_PHASES].sum(axis=1) * (1 - 1e-5))


def test_shards_in_any_order_make_the_same_rank() -> None:
    counts = np.array([1e4, 2e5, 5e5, 3e4])
    forward = compute_seconds(network_model(), work_of(lookups=counts), [0] * 4)
    backward = compute_seconds(network_model(), work_of(lookups=counts[::-1].copy()), [0] * 4)
    np.testing.assert_allclose(forward, backward, rtol=1e-6)


@pytest.mark.parametrize("model", [physics_model, network_model])
def test_prices_around_an_assignment_add_up_to_its_seconds(model: Any) -> None:
    work = work_of(lookups=np.array([1e5, 2e5, 5e5, 1e5, 2e5, 5e5, 1e5, 2e5, 5e5, 1e5, 2e5, 5e5]))
    rank = np.repeat(np.arange(4), 3)
    exact = model().predict_ranks(work, rank, MACHINE).seconds[:, COMPUTE_PHASES].sum(axis=1)
    priced = model().around(work, rank, MACHINE).predict(work, MACHINE).seconds[:, COMPUTE_PHASES].sum(axis=1)
    np.testing.assert_allclose(np.bincount(rank, priced), exact, rtol=1e-4)


def test_prices_around_an_assignment_follow_small_moves() -> None:
    counts = np.array([1e5, 2e5, 5e5, 4e5])
    rank = np.array([0, 0, 1, 1])
    model = network_model()
    linear = model.around(work_of(num_ranks=2, ranks_per_host=2, lookups=counts), rank, MACHINE)
    near = work_of(num_ranks=2, ranks_per_host=2, lookups=counts * 1.02, distinct_rows=2e4 * 1.02)
    exact = model.predict_ranks(near, rank, MACHINE).seconds[:, COMPUTE_PHASES].sum()
    assert linear.predict(near, MACHINE).seconds[:, COMPUTE_PHASES].sum() == pytest.approx(exact, rel=0.02)


def test_a_rank_without_shards_takes_no_time() -> None:
    ranks = network_model().predict_ranks(work_of(), np.array([2]), MACHINE)
    assert ranks.seconds[[0, 1, 3]].sum() == 0.0
    assert ranks.upper_seconds[[0, 1, 3]].sum() == 0.0


def test_no_shards_at_all() -> None:
    work = work_of()
    arrays = {
        field.name: getattr(work, field.name)[:0].copy()
        for field in dataclasses.fields(work)
        if isinstance(getattr(work, field.name), np.ndarray)
    }
    empty = dataclasses.replace(work, **arrays)
    assert physics_model().predict(empty, MACHINE).seconds.shape == (0, NUM_PHASES)
    none = np.array([], dtype=np.int64)
    assert physics_model().predict_ranks(empty, none, MACHINE).seconds.sum() == 0.0
    assert physics_model().around(empty, none, MACHINE).predict(work, MACHINE).seconds.sum() > 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"lookups": 1e9, "distinct_rows": 1e5}, "lookups 1 billion outside the measured"),
        ({"shard_columns": 1024}, "shard_columns 1,024 outside the measured 4 to 128"),
        ({"batch_outputs": 100.0}, "outputs 400 outside the measured 8,192"),
        ({"element_bytes": 2.0}, "bytes_per_weight 2 outside the measured 4"),
        ({"optimizer_element_bytes": 4.0}, "optimizer_bytes_per_row 132 outside the measured 4"),
        ({"kernel": Kernel.FUSED_UVM}, "kernel fused_uvm was not measured"),
        ({"is_weighted": True}, "weighted lookups were not measured"),
        ({"is_pooled": False}, "sequences were not measured"),
        ({"is_trained": False}, "lookups without training were not measured"),
        ({"num_ranks": 32, "ranks_per_host": 32}, "32 ranks per host; measured 4 to 8"),
    ],
)
def test_what_was_not_measured_is_named_and_left_to_the_roofline(columns: dict[str, Any], message: str) -> None:
    model = physics_model()
    work = work_of(**columns)
    reason = model.unknown(work, MACHINE)[0]
    assert pytest.importorskip("re").search(message, reason), reason
    ranks = model.predict_ranks(work, np.array([0]), MACHINE)
    assert ranks.learned_seconds.sum() == 0.0
    assert ranks.seconds[0, Phase.FORWARD_COMPUTE] > 0
    # The machine that was measured is far slower than the profile: the answer stays near what was measured.
    assert model.predict(work, MACHINE).seconds[0].sum() > 10 * RooflineModel().predict(work, MACHINE).seconds[0].sum()


@pytest.mark.parametrize("column", ["lookups", "shard_columns", "batch_outputs"])
def test_seconds_have_no_step_where_measurements_end(column: str) -> None:
    model = physics_model()
    assert model.fitted is not None
    ends = {"lookups": "lookups", "shard_columns": "shard_columns", "batch_outputs": "outputs"}
    end = model.fitted.ranges[ends[column]].high * (1 + TOLERANCE)
    edge = end / 4 if column == "batch_outputs" else end
    steps = {"lookups": (1.0, 1e-3 * edge), "shard_columns": (1, 1), "batch_outputs": (1.0, 1.0)}[column]
    inside, outside = np.floor(edge) - steps[0] * (edge == np.floor(edge)), np.floor(edge) + steps[1]
    work = work_of(distinct_rows=2e4, **{column: np.array([inside, outside])})
    assert [text != "" for text in model.unknown(work, MACHINE)] == [False, True]
    seconds = model.predict(work, MACHINE).seconds[:, COMPUTE_PHASES].sum(axis=1)
    # The range ends a tolerance of 10 % before the learned answers do.
    assert seconds[1] == pytest.approx(seconds[0], rel=TOLERANCE)


def test_inside_the_range_nothing_is_unknown() -> None:
    assert physics_model().unknown(work_of(lookups=np.array([1e5, 2e5])), MACHINE) == ("", "")


def test_unknown_shards_lie_next_to_learned_ones() -> None:
    model = physics_model()
    work = work_of(shard_columns=np.array([32, 1024]))
    ranks = model.predict_ranks(work, np.array([0, 0]), MACHINE)
    learned = ranks.learned_seconds[0, COMPUTE_PHASES].sum()
    assert 0 < learned < ranks.seconds[0, COMPUTE_PHASES].sum()
    assert learned == pytest.approx(compute_seconds(model, work_of(), [0])[0])


def test_ranks_beyond_those_measured_are_answered_with_wider_limits() -> None:
    model = physics_model()
    ratios = []
    for ranks_per_host in (8, 16):
        work = work_of(num_ranks=ranks_per_host, ranks_per_host=ranks_per_host, batch_outputs=8192 / ranks_per_host)
        assert model.unknown(work, MACHINE) == ("",)
        found = model.predict_ranks(work, np.array([0]), MACHINE)
        ratios.append(found.upper_seconds[0, Phase.BACKWARD_COMPUTE] / found.seconds[0, Phase.BACKWARD_COMPUTE])
        weakest = Evidence.MEASURED if ranks_per_host == 8 else Evidence.ESTIMATED
        assert found.evidence[0, Phase.BACKWARD_COMPUTE] == weakest
    assert ratios[1] > ratios[0] * 1.2


def test_ranks_that_hold_more_than_any_measured_are_estimates() -> None:
    model = physics_model()
    many = np.full(40, 1e5)
    found = model.predict_ranks(work_of(lookups=many), np.zeros(40, dtype=np.int64), MACHINE)
    assert found.evidence[0, Phase.FORWARD_COMPUTE] == Evidence.ESTIMATED


def test_unknown_distinct_rows_are_taken_as_the_most_there_can_be() -> None:
    unknown = compute_seconds(physics_model(), work_of(distinct_rows=np.nan), [0])
    most = compute_seconds(physics_model(), work_of(distinct_rows=1e5), [0])
    np.testing.assert_allclose(unknown, most)


def test_replicas_keep_the_rooflines_seconds_scaled() -> None:
    work = work_of(scheme=Scheme.DATA_PARALLEL, kernel=Kernel.DENSE)
    assert "kernel dense" in physics_model().unknown(work, MACHINE)[0]
