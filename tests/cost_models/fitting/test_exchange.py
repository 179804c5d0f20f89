"""Fits of collectives recover what made the rows."""

import numpy as np
import pytest

from cost_models.arrays import Floats
from cost_models.fitting import exchange
from cost_models.fitting.exchange import fit_exchange
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.learned.document.exchange import exchange_document
from cost_models.learned.exchange.curve import CollectiveKind, scalars
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.measurements.schema import Measurements, measurements
from tests.support.cost_models.exchange_rows import all_to_alls, together
from tests.support.thorough import thorough

MIB = 2.0**20
FORWARD = CollectiveKind("all_to_all", "forward")


def of_the_busiest(held: Floats, late: Floats) -> Floats:
    """0.1 ms and the largest message at 10 GB/s; a rank that comes late waits less."""
    return 1e-4 + held.max() * (len(held) - 1) / len(held) / 1e10 + late.max() - late


def of_bus_and_own(held: Floats, late: Floats) -> Floats:
    """A bus that all share, and each rank's own copy."""
    return 2e-4 + (held.mean() / 4e9 + held / 2e9) * (len(held) - 1) / len(held)


def learned(rows: Measurements, seed: int = 0) -> LearnedExchange:
    return fit_exchange(rows, seed=seed)


def error(model: LearnedExchange, rows: Measurements, num_ranks: int, direction: str = "forward") -> float:
    """Mean relative error."""
    sent, received, starts, seconds = (
        rows.numbers(name).reshape(-1, num_ranks)
        for name in ("sent_bytes", "received_bytes", "start_seconds", "seconds")
    )
    found, _, _ = model.rank_seconds(CollectiveKind("all_to_all", direction), sent, received, starts)
    return float(np.mean(np.abs(found / seconds - 1)))


@pytest.mark.parametrize(("truth", "direction"), [(of_the_busiest, "forward"), (of_bus_and_own, "backward")])
def test_the_truth_is_recovered_at_measured_and_other_rank_counts(truth, direction) -> None:
    rows = [all_to_alls(truth, num_ranks=n, count=100, seed=n, direction=direction) for n in (4, 8)]
    model = learned(together(rows[0], rows[1]))
    for num_ranks, bar in ((4, 0.02), (8, 0.02), (6, 0.03), (12, 0.05)):
        unseen = all_to_alls(truth, num_ranks=num_ranks, count=50, seed=99, direction=direction)
        assert error(model, unseen, num_ranks, direction) < bar, num_ranks


def test_what_late_ranks_do_not_wait_is_recovered() -> None:
    model = learned(all_to_alls(of_the_busiest, num_ranks=4, count=150, skewed=True))
    assert model.curves[FORWARD].skew == pytest.approx([1, 0, 0], abs=0.05)
    unseen = all_to_alls(of_the_busiest, num_ranks=4, count=50, seed=9, skewed=True)
    assert error(model, unseen, 4) < 0.03


@thorough
def test_a_curve_is_the_mean_of_fits_with_other_ramps(monkeypatch: pytest.MonkeyPatch) -> None:
    members = []

    def noted(*given, fit=exchange._fit_member, **chosen):  # noqa: SLF001
        members.append(fit(*given, **chosen))
        return members[-1]

    monkeypatch.setattr(exchange, "_fit_member", noted)
    model = learned(all_to_alls(of_bus_and_own, num_ranks=4, count=exchange.EXCHANGES_FOR_RAMPS, noise=0.1))
    assert len(members) == exchange.MEMBERS > 1
    assert len({member.ramps.weights.tobytes() for member in members}) == len(members)
    held = np.array([1.0, 2.0, 5.0, 9.0]) * MIB
    ranks = np.full(4, 4.0)
    alone = [m.fixed[0] + m.ramps.columns(scalars(held), ranks) @ m.seconds_per_byte for m in members]
    found = model.curves[FORWARD].rank_seconds(held)
    np.testing.assert_allclose(found, np.mean(alone, axis=0))


@thorough
def test_intervals_cover_what_they_promise() -> None:
    model = learned(all_to_alls(of_the_busiest, num_ranks=4, count=500, noise=0.2))
    unseen = all_to_alls(of_the_busiest, num_ranks=4, count=1000, seed=5, noise=0.2)
    sent, seconds = (unseen.numbers(name).reshape(-1, 4) for name in ("sent_bytes", "seconds"))
    _, lower, upper = model.rank_seconds(FORWARD, sent, sent)
    assert 0.87 < np.mean((lower <= seconds) & (seconds <= upper)) < 0.93


def test_rows_slowed_by_something_else_do_not_pull_the_rest_along() -> None:
    rows = all_to_alls(of_the_busiest, num_ranks=4, count=200)
    seconds = rows.numbers("seconds")
    seconds[: len(seconds) // 5] *= 1.6
    model = learned(Measurements({**rows.columns, "seconds": seconds}))
    assert error(model, all_to_alls(of_the_busiest, num_ranks=4, count=50, seed=3), 4) < 0.05


def test_even_exchanges_are_priced_by_the_busiest_rank() -> None:
    model = learned(all_to_alls(of_the_busiest, num_ranks=4, count=60, even=True))
    even = np.full(4, 16 * MIB)
    skewed = np.array([40.0, 8, 8, 8]) * MIB
    at_even, at_skewed, at_busiest = (
        model.rank_seconds(FORWARD, held, held)[0] for held in (even, skewed, np.full(4, 40 * MIB))
    )
    assert np.all(at_skewed > at_even)
    assert at_skewed == pytest.approx(at_busiest)


def test_rows_that_stand_for_all_ranks_are_enough() -> None:
    sizes = 2.0 ** np.arange(10, 28)
    rows = measurements(
        {
            "kind": np.full(len(sizes), "collective"),
            "launch": np.arange(len(sizes)),
            "task": sizes.astype(str),
            "num_ranks": np.full(len(sizes), 8),
            "ranks_per_host": np.full(len(sizes), 8),
            "operation": np.full(len(sizes), "all_reduce"),
            "sent_bytes": sizes,
            "received_bytes": sizes,
            "seconds": 2e-5 + sizes / 1e11,
        },
        len(sizes),
    )
    model = learned(rows)
    held = np.full(8, 3 * MIB)
    assert model.rank_seconds(CollectiveKind("all_reduce"), held, held)[0] == pytest.approx(
        2e-5 + 3 * MIB / 1e11, rel=0.02
    )


def test_the_same_rows_and_seed_give_the_same_document() -> None:
    rows = all_to_alls(of_bus_and_own, num_ranks=4, count=40)
    assert exchange_document(fit_exchange(rows, seed=3)) == exchange_document(fit_exchange(rows, seed=3))


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("seconds", 0.0, "seconds > 0"),
        ("seconds", np.nan, "seconds > 0"),
        ("sent_bytes", np.nan, "known sent_bytes"),
        ("operation", "broadcast", "a collective of"),
        ("direction", "sideways", "a direction"),
        ("rank", 3, "one row for each of its 4 ranks"),
    ],
)
def test_rows_that_make_no_sense_are_refused_by_launch(column, value, reason) -> None:
    rows = all_to_alls(of_the_busiest, num_ranks=4, count=5)
    changed = rows.columns[column].astype("U16" if isinstance(value, str) else rows.columns[column].dtype)
    changed[8] = value
    with pytest.raises(ValueError, match=f"launch 2: .*{reason}"):
        fit_exchange(Measurements({**rows.columns, column: changed}), seed=0)


def test_relative_deviations_are_least_and_coefficients_never_negative() -> None:
    rng = np.random.default_rng(0)
    columns = rng.uniform(0, 1, (400, 3))
    seconds = columns @ [2.0, 0.0, 1.0] + 0.1
    seconds[:60] *= 3  # outliers
    matrix = np.concatenate([columns, np.ones((400, 1))], axis=1)
    assert fit_non_negative(matrix, seconds) == pytest.approx([2, 0, 1, 0.1], abs=0.01)
