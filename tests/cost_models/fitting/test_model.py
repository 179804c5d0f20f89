"""Fitting: what it finds of a machine whose costs are known, and that it finds the same again."""

import json

import numpy as np
import pytest

from cost_models.fitting.compute import LEAST_PART, fit_compute
from cost_models.fitting.launches import launches
from cost_models.fitting.model import fit_model, held_out_result, rows_digest
from cost_models.fitting.predicting import contentions, launch_sums
from cost_models.fitting.split import split_by_task
from cost_models.learned.document.file import model_bytes
from cost_models.learned.lookups.features import TERMS, term_matrix
from cost_models.measurements.schema import Measurements
from tests.support.cost_models.launches import QUICK, document, made_up_rows, quick_model
from tests.support.thorough import thorough


def test_forty_launches_make_a_model_of_physics_alone() -> None:
    model = quick_model(40)
    assert model.fitted is not None
    assert model.fitted.compute.networks == ()
    rows = launches(made_up_rows(300, seed=1))
    result = held_out_result(model.fitted, rows)
    error = np.abs(result.predicted_seconds / result.measured_seconds - 1)
    assert error.mean() < 0.15


@thorough
def test_networks_learn_what_physics_leaves() -> None:
    torch = pytest.importorskip("torch")
    assert torch
    rows = launches(made_up_rows(900, seed=2))
    split = split_by_task(rows, 0)
    learned = fit_compute(rows, split, seed=0, effort=QUICK)
    assert len(learned.compute.networks) == QUICK.members
    physics = fit_compute(rows.take(np.arange(300)), split_by_task(rows.take(np.arange(300)), 0), seed=0)
    test = rows.take(split.test)
    errors = [
        float(np.abs(one.predicted_seconds / one.measured_seconds - 1).mean())
        for one in (held_out_result(learned, test), held_out_result(physics, test))
    ]
    assert errors[0] < errors[1]


@thorough
def test_same_rows_and_seed_make_the_same_document() -> None:
    pytest.importorskip("torch")
    again = fit_model(made_up_rows(600), name="made up", seed=0, effort=QUICK)
    assert model_bytes(again) == model_bytes(document())


@thorough
def test_the_number_of_cores_is_not_in_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    threads = set()

    class Watched(torch.optim.Adam):
        def step(self, closure: None = None) -> None:
            threads.add(torch.get_num_threads())
            super().step(closure)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        again = fit_model(made_up_rows(600), name="made up", seed=0, effort=QUICK)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert threads == {1}  # how sums are divided among threads would show in larger matrices
    assert model_bytes(again) == model_bytes(document())


def test_another_seed_makes_another_document() -> None:
    assert model_bytes(document(40, seed=1)) != model_bytes(document(40))


def test_forward_and_backward_are_learned_apart_where_they_were_timed_apart() -> None:
    model = quick_model(40, apart=True)
    assert model.fitted is not None
    assert model.fitted.compute.targets == ("forward", "backward")
    assert len(model.fitted.intervals) == 2
    groups = [group["group"] for group in document(40, apart=True)["figures"]["groups"]]  # type: ignore[index]
    assert {"all", "forward", "backward"} <= set(groups)


def test_intervals_cover_about_nine_in_ten() -> None:
    rows = launches(made_up_rows(1500, seed=3))
    split = split_by_task(rows, 0)
    # Physics alone will do: the promise does not depend on how good predictions are.
    few = rows.take(split.training[:300])
    training = split_by_task(few, 0)
    fitted = fit_compute(few, training, seed=0)
    result = held_out_result(fitted, rows.take(np.concatenate([split.validation, split.test, split.training[300:]])))
    inside = (result.lower_seconds <= result.measured_seconds) & (result.measured_seconds <= result.upper_seconds)
    assert 0.8 <= inside.mean() <= 0.98


def test_the_document_says_what_it_was_trained_on() -> None:
    found = document(40)
    assert found["trained_on"]["rows_digest"] == rows_digest(made_up_rows(40))  # type: ignore[index]
    assert found["trained_on"]["launches"] == 40  # type: ignore[index]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("column", ["device", "implementation"])
def test_rows_of_several_machines_are_refused(column: str) -> None:
    rows = made_up_rows(40)
    changed = {**rows.columns, column: np.where(rows.counts("launch") == 0, "other", rows.text(column))}
    with pytest.raises(ValueError, match=f"one {column}, not of"):
        fit_model(type(rows)(changed), name="x")


def test_no_rows_are_refused() -> None:
    rows = made_up_rows(40)
    with pytest.raises(ValueError, match="there are none"):
        fit_model(rows.take(np.array([], dtype=np.int64)), name="x")


def test_physics_finds_at_which_size_a_cache_ends() -> None:
    """Rows of a machine whose lookups take ten times as long where the rows that they go to fit no cache of 2 MiB."""
    rows = made_up_rows(250, noise=0.0)
    held = rows.numbers("distinct_rows") * 64 * np.ceil(4 * rows.numbers("shard_columns") / 64)
    each = rows.numbers("lookups") * (2e-9 + 2e-8 * held / (held + 2**21))
    seconds = 1e-4 + np.bincount(rows.counts("launch"), each)[rows.counts("launch")]
    measured = launches(Measurements({**rows.columns, "seconds": seconds}))
    split = split_by_task(measured, 0)
    fitted = fit_compute(measured, split, seed=0)
    assert not fitted.compute.networks
    result = held_out_result(fitted, measured.take(split.test))
    assert np.abs(result.predicted_seconds / result.measured_seconds - 1).mean() < 0.02


@thorough
def test_slopes_are_the_derivatives_of_seconds_forward_and_backward() -> None:
    pytest.importorskip("torch")
    fitted = quick_model(apart=True).fitted
    assert fitted is not None
    compute, rows = fitted.compute, launches(made_up_rows(30, seed=3, apart=True))
    sums = launch_sums(compute, fitted.contention, rows)
    slopes = compute.rank_slopes(sums, 0.5)
    for part in range(sums.shape[1]):
        step = np.zeros_like(sums)
        step[:, part] = 1e-5 * np.maximum(sums[:, part], 1e-9)
        rise = compute.rank_seconds(sums + step, 0.5) - compute.rank_seconds(sums - step, 0.5)
        near = rise / (2 * step[:, part])[:, None]
        scale = np.abs(near).max(initial=1e-30)
        np.testing.assert_allclose(slopes[:, part], near, rtol=1e-3, atol=1e-4 * scale, err_msg=str(part))


def test_terms_that_cost_next_to_nothing_are_left_out() -> None:
    rows = launches(made_up_rows(250))
    fitted = fit_compute(rows, split_by_task(rows, 0), seed=0)
    physics, (seconds,) = fitted.compute.physics, rows.seconds.T
    terms = term_matrix(rows.columns, physics.terms)
    sums = np.stack([np.bincount(rows.launch, term, rows.num_launches) for term in terms.T], axis=1)
    crowd = contentions(fitted.contention, rows)
    each = sums * (physics.seconds[:, 0] + crowd[:, None] * physics.contention_seconds[:, 0]) / seconds[:, None]
    assert len(physics.terms) < len(TERMS) / 4
    assert np.all(each.mean(axis=0) > LEAST_PART / 5), dict(zip(physics.terms, each.mean(axis=0), strict=True))
