"""The form of learned collectives: monotone, vectorised, linearised, and read from documents that may be hostile."""

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cost_models.arrays import Floats
from cost_models.errors import InvalidModelFile
from cost_models.learned.document.exchange import exchange_document, parse_exchange
from cost_models.learned.exchange.curve import SCALARS, CollectiveKind, ExchangeCurve
from cost_models.learned.exchange.exchange import LearnedExchange

MIB = 2.0**20
FORWARD = CollectiveKind("all_to_all", "forward")


def curve(**changes: object) -> ExchangeCurve:
    """0.1 ms, 1 ns for the largest byte, 2 ns for each own byte above 8 MiB, and a mixed ramp."""
    weights = np.zeros((3, len(SCALARS)))
    weights[0, SCALARS.index("largest")] = weights[1, SCALARS.index("own")] = 1
    weights[2, SCALARS.index("mean")] = weights[2, SCALARS.index("second")] = 0.5
    values: dict[str, object] = {
        "start_seconds": 1e-4,
        "peer_seconds": 1e-6,
        "weights": weights,
        "low_bytes": np.array([0.0, 8 * MIB, 1 * MIB]),
        "high_bytes": np.array([np.inf, np.inf, 2 * MIB]),
        "log_ranks": np.array([0.0, 0.0, 1.0]),
        "seconds_per_byte": np.array([1e-9, 2e-9, 5e-9]),
        "skew": np.array([1.0, 0.1, 0.5]),
        "rank_counts": np.array([4, 8]),
        "least_bytes": 1 * MIB,
        "most_bytes": 512 * MIB,
        "bin_seconds": np.array([1e-3]),
        "lower": np.array([[0.5, 0.8], [0.6, 0.9]]),
        "upper": np.array([[1.5, 1.2], [1.4, 1.1]]),
        "num_rows": 100,
    }
    return ExchangeCurve(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def model() -> LearnedExchange:
    return LearnedExchange(curves={FORWARD: curve()}, coverage=0.9)


def seconds(model: LearnedExchange, held: Floats, starts: Floats | None = None) -> Floats:
    return model.rank_seconds(FORWARD, held, held, starts)[0]


def test_the_formula_by_hand(model) -> None:
    held = np.array([16.0, 4, 4, 0]) * MIB
    # second 4 MiB, mean 6 MiB: beyond 2 MiB, so the mixed ramp is full: 1 MiB x log2(4) x 5 ns
    shared = 1e-4 + 3e-6 + 16 * MIB * 1e-9 + 1 * MIB * 2 * 5e-9
    own = 8 * MIB * 2e-9
    assert seconds(model, held) == pytest.approx(shared + np.array([own, 0, 0, 0]))


def test_late_ranks_wait_less_and_early_ones_work_ahead(model) -> None:
    held = np.full(4, 4 * MIB)
    late = np.array([0.0, 0.0, 0.0, 0.004])
    added = seconds(model, held, late + 5) - seconds(model, held)
    assert added == pytest.approx(0.004 - late + 0.1 * 0.004 - 0.5 * 0.003)


def test_nothing_is_run_among_one_rank_or_without_bytes(model) -> None:
    assert np.all(seconds(model, np.array([MIB])) == 0)
    assert np.all(seconds(model, np.zeros(4)) == 0)


ranks = st.integers(2, 16)


@settings(deadline=None, max_examples=60)
@given(st.data(), ranks, st.integers(0, 15), st.floats(0, 64))
def test_time_never_falls_with_anybodys_bytes(data, num_ranks, grown, more) -> None:
    held = np.array(data.draw(st.lists(st.floats(0, 128), min_size=num_ranks, max_size=num_ranks))) * MIB
    larger = held.copy()
    larger[grown % num_ranks] += more * MIB
    before, after = (curve().rank_seconds(bytes_) for bytes_ in (held, larger))
    assert np.all(after >= before - 1e-12)
    assert np.all(np.isfinite(after) & (after >= 0))


def test_many_assignments_at_once_are_each_as_alone(model) -> None:
    held = np.random.default_rng(0).uniform(0, 32, (3, 5, 8)) * MIB
    found = model.rank_seconds(FORWARD, held, held)
    for i in range(3):
        for j in range(5):
            alone = model.rank_seconds(FORWARD, held[i, j], held[i, j])
            for many, one in zip(found, alone, strict=True):
                assert many[i, j] == pytest.approx(one)


def test_intervals_lie_around_and_widen_beyond_the_measured_rank_counts(model) -> None:
    width = {}
    for num_ranks in (4, 6, 8, 16):
        found, lower, upper = model.rank_seconds(FORWARD, np.full(num_ranks, 16 * MIB), np.full(num_ranks, 16 * MIB))
        assert np.all((lower <= found) & (found <= upper))
        width[num_ranks] = float((upper / lower)[0])
    assert width[4] == pytest.approx(1.5)
    assert width[8] == pytest.approx(1.1 / 0.9)
    assert width[8] < width[6] < width[4]
    assert width[16] == pytest.approx((1.1 / 0.9) ** 2)


def test_time_grows_smoothly_with_ranks(model) -> None:
    found = [float(seconds(model, np.full(n, 16 * MIB))[0]) for n in range(2, 17)]
    steps = np.diff(found)
    assert np.all(steps > 0)
    assert np.all(np.diff(steps) < 0)  # each further rank adds less than the last


def test_what_was_not_measured_is_reported_and_refused(model) -> None:
    def why(num_ranks=8, **kind) -> str:
        return model.unmeasured(FORWARD._replace(**kind), num_ranks)

    assert why() == why(num_ranks=16) == why(num_ranks=2) == ""
    assert "not with 17" in why(num_ranks=17)
    assert "over several hosts was not measured" in why(spans_hosts=True)
    assert "all_reduce inside one host was not measured" in why(operation="all_reduce", direction="")
    assert "all_to_all backward inside one host was not measured" in why(direction="backward")
    with pytest.raises(KeyError, match="all_reduce"):
        model.rank_seconds(CollectiveKind("all_reduce"), np.ones(4), np.ones(4))


def test_a_curve_without_direction_serves_both_by_the_busier_side() -> None:
    model = LearnedExchange(curves={CollectiveKind("all_to_all"): curve()}, coverage=0.9)
    held, even = np.array([16.0, 4, 2, 2]) * MIB, np.full(4, 6 * MIB)
    forward = model.rank_seconds(FORWARD, held, even)[0]
    backward = model.rank_seconds(CollectiveKind("all_to_all", "backward"), even, held)[0]
    assert forward == pytest.approx(backward)
    assert forward == pytest.approx(curve().rank_seconds(np.maximum(held, even)))


def test_shards_of_an_even_load_pay_the_time_less_its_start(model) -> None:
    held = np.full(8, 16 * MIB)
    prices = model.shard_seconds(FORWARD, np.array([12.0, 4, 0]) * MIB, num_ranks=8, total_bytes=float(held.sum()))
    assert prices.sum() == pytest.approx(float(seconds(model, held)[0]) - 1e-4 - 7e-6)
    assert prices[0] == pytest.approx(3 * prices[1])
    assert prices[2] == 0


def test_the_price_of_a_byte_is_the_slope_at_an_assignment(model) -> None:
    held = np.array([32.0, 16, 16, 16]) * MIB
    assert model.seconds_per_byte(FORWARD, held) == pytest.approx(3e-9, rel=1e-3)


def test_no_byte_is_free_where_the_curve_is_flat() -> None:
    flat = curve(seconds_per_byte=np.array([1e-12, 0.0, 5e-9]))
    model = LearnedExchange(curves={FORWARD: flat}, coverage=0.9)
    assert model.seconds_per_byte(FORWARD, np.full(4, 64 * MIB)) > 1e-12


def test_documents_survive_json(model) -> None:
    read = parse_exchange(json.loads(json.dumps(exchange_document(model), allow_nan=False)))
    assert exchange_document(read) == exchange_document(model)
    held = np.array([1.0, 2, 30, 4]) * MIB
    assert np.array_equal(seconds(read, held), seconds(model, held))


def broken(path: str, value: object) -> object:
    """The document with one value changed; DELETE removes it."""
    document = exchange_document(LearnedExchange(curves={FORWARD: curve()}, coverage=0.9))
    document = copy.deepcopy(document)
    at: object = document
    *parents, last = path.split(".")
    for step in parents:
        at = at[int(step)] if isinstance(at, list) else at[step]  # type: ignore[index]
    if value == "DELETE":
        del at[last]  # type: ignore[attr-defined]
    else:
        at[int(last) if isinstance(at, list) else last] = value  # type: ignore[index]
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("version", True),
        ("coverage", 1.0),
        ("coverage", "0.9"),
        ("curves", {}),
        ("curves", [1]),
        ("curves", "DELETE"),
        ("more", 1),
        ("curves.0.operation", "broadcast"),
        ("curves.0.operation", ["all_to_all"]),
        ("curves.0.direction", None),
        ("curves.0.spans_hosts", 0),
        ("curves.0.start_seconds", -1.0),
        ("curves.0.start_seconds", math.nan),
        ("curves.0.start_seconds", math.inf),
        ("curves.0.start_seconds", 10**400),
        ("curves.0.peer_seconds", True),
        ("curves.0.num_rows", 1.5),
        ("curves.0.num_rows", "DELETE"),
        ("curves.0.extra", 0),
        ("curves.0.ramps.weights", [[1.0] * 6]),
        ("curves.0.ramps.weights.0", [0.5] * 6),
        ("curves.0.ramps.weights.0", [1.0, 0.0]),
        ("curves.0.ramps.weights.0", [2.0, -1.0, 0.0, 0.0, 0.0, 0.0]),
        ("curves.0.ramps.low_bytes", [0.0]),
        ("curves.0.ramps.low_bytes", [0.0] * 5000),
        ("curves.0.ramps.low_bytes.0", None),
        ("curves.0.ramps.low_bytes.2", 3 * MIB),
        ("curves.0.ramps.seconds_per_byte.0", -1e-9),
        ("curves.0.ramps.log_ranks.0", 2.0),
        ("curves.0.skew", [1.0]),
        ("curves.0.skew", [0.0, 0.0, -1.0]),
        ("curves.0.range.rank_counts", []),
        ("curves.0.range.rank_counts", [8, 4]),
        ("curves.0.range.rank_counts", [1, 4]),
        ("curves.0.range.rank_counts", [4.5, 8]),
        ("curves.0.interval.lower", [[0.5, 0.8]]),
        ("curves.0.interval.lower.0", [0.5, 1.8]),
        ("curves.0.interval.upper.0", [0.5, 1.8]),
        ("curves.0.interval.bin_seconds", [2.0, 1.0]),
    ],
)
def test_hostile_documents_are_refused(path, value) -> None:
    with pytest.raises(InvalidModelFile, match=r"^learned cost model: exchange"):
        parse_exchange(broken(path, value))


def test_two_curves_of_the_same_collective_are_refused(model) -> None:
    document = exchange_document(model)
    document["curves"] = document["curves"] * 2  # type: ignore[operator]
    with pytest.raises(InvalidModelFile, match="second curve"):
        parse_exchange(document)
