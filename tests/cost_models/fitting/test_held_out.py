"""Figures of held-out rows: nothing leaks into them, and they say of what they are."""

import numpy as np

from cost_models.arrays import Floats
from cost_models.fitting.exchange import fit_exchange
from cost_models.fitting.exchange_split import held_out_exchanges
from cost_models.fitting.held_out import bytes_labels, exchange_figures, held_out_document
from cost_models.fitting.model import fit_model
from cost_models.learned.document.file import model_bytes, parse_model
from cost_models.learned.document.reported_figures import MOST_POINTS, checked_figures
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.measurements.schema import Measurements
from tests.support.cost_models.exchange_rows import all_to_alls, together
from tests.support.cost_models.launches import document, made_up_rows
from tests.support.thorough import thorough


def of_the_busiest(held: Floats, _late: Floats) -> Floats:
    """0.1 ms and the largest message at 10 GB/s."""
    return np.full(len(held), 1e-4 + held.max() / 1e10)


def groups(found: object, by: str) -> dict[str, int]:
    assert isinstance(found, dict)
    return {group["group"]: group["num_rows"] for group in found["groups"] if group["by"] == by}


def renamed(rows: Measurements, tasks: np.ndarray) -> Measurements:
    return Measurements({**rows.columns, "task": tasks.astype(np.str_)})


def test_a_tenth_of_the_tasks_of_every_number_of_ranks_is_held_out_whole() -> None:
    rows = together(*(all_to_alls(of_the_busiest, num_ranks=n, count=40, seed=n, first_launch=100 * n) for n in (2, 4)))
    rows = renamed(rows, rows.counts("launch") // 2)  # two launches in each task
    held = held_out_exchanges(rows, 0)
    tasks, num_ranks = rows.text("task"), rows.counts("num_ranks")
    assert not set(tasks[held]) & set(tasks[~held])
    assert {n: len(set(tasks[held & (num_ranks == n)])) for n in (2, 4)} == {2: 2, 4: 2}
    np.testing.assert_array_equal(held, held_out_exchanges(rows, 0))
    assert not np.array_equal(held, held_out_exchanges(rows, 1))


def test_tasks_of_several_numbers_of_ranks_stay_whole_too() -> None:
    rows = together(*(all_to_alls(of_the_busiest, num_ranks=n, count=30, seed=n, first_launch=100 * n) for n in (2, 4)))
    rows = renamed(rows, rows.counts("launch") % 100)
    held = held_out_exchanges(rows, 0)
    assert len(set(rows.text("task")[held])) == 3
    assert not set(rows.text("task")[held]) & set(rows.text("task")[~held])


def test_nothing_is_held_out_of_a_few_tasks() -> None:
    rows = all_to_alls(of_the_busiest, num_ranks=4, count=9)
    assert not held_out_exchanges(rows, 0).any()
    found = fit_model(Measurements({**rows.columns, "device": np.full(rows.num_rows, "CPU")}), name="few")
    assert found["figures"] == {}


def test_a_curve_does_not_run_away_beyond_the_bytes_that_it_was_fitted_to() -> None:
    # The largest message lies just above a power of two, where a piece that goes on for ever could begin: its slope
    # would be the noise of one row over a few bytes.
    rows = all_to_alls(of_the_busiest, num_ranks=4, count=40)
    sent = rows.numbers("sent_bytes")
    sent *= 2**25 * 1.001 / sent.max()
    busiest = sent.reshape(-1, 4).max(axis=1)
    noise = np.where(busiest == busiest.max(), 1.05, 1.0)
    seconds = np.repeat((1e-4 + busiest / 1e10) * noise, 4)
    model = fit_exchange(Measurements({**rows.columns, "sent_bytes": sent, "seconds": seconds}), seed=0)
    held = np.array([[1.5, 1.2, 1.3, 1.4]]) * 2**25
    found, _, _ = model.rank_seconds(CollectiveKind("all_to_all", "forward"), held, held)
    assert np.abs(found / (1e-4 + 1.5 * 2**25 / 1e10) - 1).max() < 0.2


def test_a_handful_of_exchanges_makes_a_curve_that_can_be_read_back() -> None:
    # As 40 s of measuring gave them: without the second, the others say that what it does takes no time at all.
    sizes = np.repeat([10955040.0, 85584.0, 968296.0, 7568.0, 3256952.0], 2)
    seconds = np.array([36.1, 33.3, 1.95, 1.68, 2.35, 3.18, 2.86, 2.81, 6.41, 6.92]) / 1e3
    starts = np.array([0, 0, 0, 0, 1.209, 0, 1.327, 0, 0, 0]) / 1e3
    rows = all_to_alls(of_the_busiest, num_ranks=2, count=5, even=True)
    columns = {"sent_bytes": sizes, "received_bytes": sizes, "seconds": seconds, "start_seconds": starts}
    rows = Measurements({**rows.columns, **columns, "device": np.full(10, "CPU")})
    model = parse_model(model_bytes(fit_model(rows, name="handful")))
    assert model.exchange is not None
    (curve,) = model.exchange.curves.values()
    assert curve.upper.max() <= 10 * 36.1 / 1.68


def test_collectives_are_reported_by_operation_bytes_and_ranks() -> None:
    rows = together(*(all_to_alls(of_the_busiest, num_ranks=n, count=60, seed=n, first_launch=100 * n) for n in (2, 8)))
    held = held_out_exchanges(rows, 0)
    model = fit_exchange(rows.take(~held), seed=0)
    found = exchange_figures(model, rows.take(held), 0)
    num_rows = groups(found, "all")["all"]
    assert groups(found, "collective") == {"all_to_all forward": num_rows}
    assert list(groups(found, "ranks")) == ["2 ranks", "8 ranks"]
    assert sum(groups(found, "bytes").values()) == num_rows
    assert checked_figures(held_out_document(None, found))["points_seconds"].keys() == {"collective"}  # type: ignore[attr-defined]


@thorough
def test_lookups_are_reported_by_shards_bytes_ranks_and_phase() -> None:
    reported = document(400, apart=True)["figures"]
    checked_figures(reported)
    num_rows = groups(reported, "all")["all"]
    assert set(groups(reported, "phase")) == {"forward", "backward"}
    assert set(groups(reported, "ranks")) == {"4 ranks per host", "8 ranks per host"}
    for by in ("shards", "bytes", "ranks"):
        assert sum(groups(reported, by).values()) == num_rows
    assert next(iter(groups(reported, "shards"))) == "1 shard"
    assert len(reported["points_seconds"]["lookup"]) == min(num_rows, MOST_POINTS)  # type: ignore[index]
    assert "phase" not in {group["by"] for group in document(40)["figures"]["groups"]}  # type: ignore[index]


def test_sizes_have_names() -> None:
    sizes = np.array([0.0, 2**16, 2**16 + 1, 2**20, 2**24, 2**28, 2**28 + 1])
    assert bytes_labels(sizes) == [
        "to 64 KiB",
        "to 64 KiB",
        "64 KiB to 1 MiB",
        "64 KiB to 1 MiB",
        "1 to 16 MiB",
        "16 to 256 MiB",
        "over 256 MiB",
    ]


def test_held_out_launches_are_not_among_those_that_were_learned_from() -> None:
    rows = made_up_rows(40)
    reported = fit_model(rows, name="m")["figures"]
    assert 1 <= groups(reported, "all")["all"] <= 8
