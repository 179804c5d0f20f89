"""The made-up models, their batches and their plans."""

import numpy as np
import pytest

from benchmarks.prices.real_steps.models import TableShape, bare_model, batches, step_models
from benchmarks.prices.real_steps.planners import whole_tables
from benchmarks.prices.real_steps.plans import problem_of
from benchmarks.prices.real_steps.random_plans import random_placements
from cost_models.vocabulary import Scheme
from planner.verification.verify import verify

HARDWARE = {"profile": "cpu-xeon-vm", "num_hosts": 1, "ranks_per_host": 2}


def test_five_models_are_the_same_in_every_run_and_small_enough_for_31_plans_in_memory() -> None:
    models = step_models()
    assert len(models) == 5
    assert models == step_models()
    for model in models.values():
        held_bytes = 31 * sum(4 * table.rows * table.columns for table in model.tables)
        assert held_bytes < 6e9, model.name


@pytest.mark.parametrize("name", [*step_models()])
def test_every_spec_is_accepted(name: str) -> None:
    model = step_models()[name]
    problem = problem_of(model, HARDWARE)
    assert [table.ids_per_sample for table in problem.tables] == [table.pooling_factor for table in model.tables]
    assert problem.pipeline == "none"  # nothing hides the exchange of ids in the training loop either


def test_batches_have_the_ids_that_the_spec_states() -> None:
    tables = [
        TableShape(name="one", rows=97, columns=8, pooling_factor=1.0, zipf_alpha=1.0),
        TableShape(name="many", rows=1_000, columns=8, pooling_factor=5.0, zipf_alpha=1.1),
    ]
    first, second = batches(tables, 400, 0, 2)
    (other,) = batches(tables, 400, 1, 1)
    one, many = first.lengths.reshape(2, 400)
    assert np.all(one == 1)
    assert many.mean() == pytest.approx(5.0, rel=0.1)
    ids = np.split(first.ids, [400])
    assert [part.max() < table.rows and part.min() >= 0 for part, table in zip(ids, tables, strict=True)] == [True] * 2
    shares = np.sort(np.bincount(ids[1], minlength=1_000))[::-1] / len(ids[1])
    hottest = 1 / np.sum(np.arange(1, 1_001) ** -1.1)
    assert shares[0] == pytest.approx(hottest, rel=0.2)
    halves = np.bincount(ids[1] // 500, minlength=2) / len(ids[1])
    assert halves.max() < 0.5 + hottest + 0.1  # hot rows are spread over the table
    assert not np.array_equal(first.ids, second.ids)
    assert not np.array_equal(first.ids[:400], other.ids[:400])


def test_whole_tables_go_to_the_rank_with_the_least_of_the_key() -> None:
    problem = problem_of(step_models()["many"], HARDWARE)
    key = [table.weight_bytes for table in problem.tables]
    placement = whole_tables(problem, key)
    assert not verify(problem, placement)
    load = np.zeros(2)
    for table, size in zip(placement.tables, key, strict=True):
        assert table.sharding_type is Scheme.TABLE_WISE
        load[table.shards[0].rank] += size
    assert load.max() - load.min() <= min(key)


def test_random_plans_are_legal_and_differ_in_kinds_and_balance() -> None:
    problem = problem_of(step_models()["many"], HARDWARE)
    random = random_placements(problem, np.random.default_rng(3))
    kinds = []
    for _ in range(25):
        placement = next(random)
        assert not verify(problem, placement)
        kinds.append(frozenset(table.sharding_type for table in placement.tables))
    assert {scheme for of_plan in kinds for scheme in of_plan} >= {
        Scheme.DATA_PARALLEL,
        Scheme.TABLE_WISE,
        Scheme.COLUMN_WISE,
        Scheme.ROW_WISE,
    }
    assert {len(of_plan) for of_plan in kinds} >= {1, 2, 3}


def test_replicas_are_small_tables() -> None:
    problem = problem_of(step_models()["one_heavy"], HARDWARE)
    random = random_placements(problem, np.random.default_rng(3))
    sizes = {table.name: table.num_embeddings * table.embedding_dim for table in problem.tables}
    replicas = [
        table.name for _ in range(25) for table in next(random).tables if table.sharding_type is Scheme.DATA_PARALLEL
    ]
    assert all(sizes[name] <= 2**16 for name in replicas)


def test_the_bare_model_may_be_cut_in_every_way() -> None:
    """Else the starts of a sharding type could not be measured on it."""
    problem = problem_of(bare_model(), HARDWARE)
    random = random_placements(problem, np.random.default_rng(0))
    used = {table.sharding_type for _ in range(40) for table in next(random).tables}
    assert used == set(Scheme)
