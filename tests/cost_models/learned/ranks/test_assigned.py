"""An assignment under change: what it says of a change is what the model says of the changed assignment."""

from typing import Any

import numpy as np
import pytest

from cost_models.learned.model import LearnedModel
from cost_models.learned.ranks.assigned import LearnedAssignment
from cost_models.learned.ranks.laws import compute_law, compute_parts
from cost_models.protocol import ShardWork
from cost_models.vocabulary import NUM_PHASES
from tests.cost_models.learned.exchange.test_collectives import model as with_exchange
from tests.support.cost_models.launches import quick_model
from tests.support.cost_models.shard_work import shard_work, tiered_hardware

MACHINE = tiered_hardware()
RANK = np.array([0, 0, 1, 2, 2, 2, 3, 3])
#: moves, exchanges, one that empties a rank, and one that changes nothing
SHARDS = np.array([[0, 1], [1, 3], [2, 5], [6, 0], [3, 4]])
TO = np.array([[3, 0], [2, 0], [0, 2], [3, 0], [0, 1]])


def work() -> ShardWork:
    """Eight shards of four ranks, the last of them with more lookups than were measured."""
    return shard_work(
        num_ranks=4,
        ranks_per_host=4,
        batch_outputs=2048.0,
        lookups=np.array([1e5, 2e5, 3e5, 1e4, 2e4, 5e4, 1e5, 1e12]),
        distinct_rows=2e4,
        shard_columns=np.array([32, 64, 32, 16, 64, 32, 128, 64]),
        shard_rows=1_000_000,
    )


def physics() -> LearnedModel:
    """Lookups timed as a whole, collectives left to the roofline."""
    return quick_model(40)


def networks() -> LearnedModel:
    """With networks."""
    pytest.importorskip("torch")
    return quick_model()


def exchanges() -> LearnedModel:
    """With a learned all-to-all."""
    return with_exchange()


@pytest.mark.parametrize("model", [physics, networks, exchanges])
def test_changes_cost_what_the_changed_assignment_costs(model: Any) -> None:
    model = model()
    now = model.assigned(work(), RANK, MACHINE)
    np.testing.assert_allclose(now.seconds, model.predict_ranks(work(), RANK, MACHINE).seconds, rtol=1e-6)
    after = now.after(SHARDS, TO)
    for shards, ranks, seconds in zip(SHARDS, TO, after, strict=True):
        rank = RANK.copy()
        rank[shards] = ranks
        again = model.predict_ranks(work(), rank, MACHINE).seconds
        np.testing.assert_allclose(seconds, again, rtol=1e-6, atol=1e-15)
        np.testing.assert_allclose(now.moved(shards, ranks).seconds, again, rtol=1e-6, atol=1e-15)


def test_a_rank_without_shards_takes_nothing() -> None:
    """A launch has a start, which a rank that rounding left next to nothing on does not pay."""
    many = shard_work(
        num_ranks=4,
        ranks_per_host=4,
        batch_outputs=2048.0,
        lookups=1e5 * (1 + np.arange(9) / 7),
        distinct_rows=2e4 / (1 + np.arange(9)),
        shard_columns=32,
        shard_rows=1_000_000,
    )
    now = networks().assigned(many, np.array([0] * 8 + [1]), MACHINE)
    orders = np.array([np.random.default_rng(seed).permutation(8) for seed in range(20)])
    emptied = now.after(orders, np.full(orders.shape, 2))
    assert emptied[:, 0].max() < 1e-12  # a launch takes some 1e-3 s
    assert emptied[:, 2].max() > 1e-3


def test_what_rounding_leaves_of_a_rank_s_shards_starts_no_launch() -> None:
    """Parts are float32, of which float64 adds up some without error; but not 1e3 and 1e-9, which networks may give."""
    fitted = physics().fitted
    assert fitted is not None
    num_shards, start = 8, fitted.compute.physics.of_launch(0.0).sum()
    assert start > 1e-6
    magnitudes = np.random.default_rng(0).uniform(np.log(1e-9), np.log(1e3), (num_shards, 1))
    learned = np.exp(magnitudes).astype(np.float32)
    nothing = np.zeros((num_shards, NUM_PHASES))
    now = LearnedAssignment.of(
        parts=compute_parts(learned, nothing, nothing[:, :2], np.ones((num_shards, 1), dtype=np.bool_)),
        law=compute_law(fitted.compute, 0.0),
        collectives=(),
        collective_law=lambda _, held: held,
        rank=np.zeros(num_shards, dtype=np.int64),
        num_ranks=2,
    )
    orders = np.array([np.random.default_rng(seed).permutation(num_shards) for seed in range(20)])
    emptied = now.after(orders, np.ones_like(orders))
    assert np.all(emptied[:, 0] == 0)
    assert np.all(emptied[:, 1].sum(axis=1) > learned.sum())
