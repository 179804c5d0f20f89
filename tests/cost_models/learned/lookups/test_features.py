"""What shards cost by: terms of physics that know the type of the weights."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.fitting.model import fit_model
from cost_models.learned.document.file import model_bytes, parse_model
from cost_models.learned.lookups.columns import columns_of_rows
from cost_models.learned.lookups.features import FEATURES, TERMS, term_matrix, term_seconds
from cost_models.measurements.schema import Measurements, joined
from tests.cost_models.learned.test_model import compute_seconds, work_of
from tests.support.cost_models.launches import made_up_rows


def with_narrow_weights(factor: float) -> Measurements:
    """Launches of fp32 tables, and others of fp16 tables that take ``factor`` times as long for the same counts."""
    wide, narrow = made_up_rows(100), made_up_rows(100, seed=1)
    changed = {
        "element_bytes": np.full(narrow.num_rows, 2.0),
        "seconds": factor * narrow.numbers("seconds"),
        "task": np.char.add(narrow.text("task"), " narrow"),
    }
    return joined([wide, Measurements({**narrow.columns, **changed})])


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_narrow_weights_may_be_cheaper_or_costlier(factor: float) -> None:
    model = parse_model(model_bytes(fit_model(with_narrow_weights(factor), name="m")))
    wide = compute_seconds(model, work_of(element_bytes=4.0), [0])[0]
    narrow = compute_seconds(model, work_of(element_bytes=2.0), [0])[0]
    assert narrow / wide == pytest.approx(factor, rel=0.15)


def test_every_term_is_of_one_type() -> None:
    launches = with_narrow_weights(2.0)
    columns = columns_of_rows(launches)
    terms = term_matrix(columns, TERMS)
    narrow = columns.row_bytes < 4 * columns.shard_columns
    of_narrow = np.array([name.endswith("_narrow") for name in TERMS])
    assert not terms[narrow][:, ~of_narrow].any()
    assert not terms[~narrow][:, of_narrow].any()
    assert (terms[narrow][:, of_narrow] > 0).any(axis=0).all()
    np.testing.assert_array_equal(FEATURES["narrow_weights"](columns), narrow)
    alike = replace(columns, row_bytes=4 * columns.shard_columns)
    np.testing.assert_array_equal(
        term_matrix(alike, ("lookups",))[narrow], terms[narrow][:, TERMS.index("lookups_narrow"), None]
    )


@pytest.mark.parametrize("types", ["both", "wide", "narrow"])
@pytest.mark.parametrize("num_targets", [1, 2])
def test_seconds_of_terms_are_those_of_their_matrix(types: str, num_targets: int) -> None:
    columns = columns_of_rows(with_narrow_weights(2.0))
    narrow = columns.row_bytes < 4 * columns.shard_columns
    columns = columns.take({"both": narrow | True, "wide": ~narrow, "narrow": narrow}[types])
    draw = np.random.default_rng(0)
    for names in (TERMS, ("output_bytes", "lookups_narrow", "shards"), ("state_bytes_narrow",)):
        seconds = draw.uniform(0, 1e-9, (len(names), num_targets)) * draw.integers(0, 2, (len(names), 1))
        found = term_seconds(columns, names, seconds)
        np.testing.assert_allclose(found, term_matrix(columns, names) @ seconds, rtol=1e-12)
        assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "grown", ["lookups", "distinct_rows", "outputs", "row_bytes", "output_row_bytes", "shard_rows"]
)
def test_no_term_falls_as_a_count_grows(grown: str) -> None:
    columns = columns_of_rows(with_narrow_weights(2.0))
    wide = columns.row_bytes >= 4 * columns.shard_columns
    columns = columns.take(wide)
    before = term_matrix(columns, TERMS)
    for factor in (1.001, 1.5, 30.0):
        after = term_matrix(replace(columns, **{grown: factor * getattr(columns, grown)}), TERMS)
        assert np.all(after >= before * (1 - 1e-12)), [TERMS[i] for i in np.flatnonzero(np.any(after < before, axis=0))]


def test_a_cache_misses_what_it_has_no_room_for() -> None:
    columns = columns_of_rows(made_up_rows(50))
    names = ("lookups", "distinct_rows", "lookups_of_rows_beyond_2m", "lookups_of_table_beyond_16m")
    lookups, distinct, of_rows, of_table = term_matrix(columns, names).T
    lines = 64 * np.ceil(columns.row_bytes / 64)
    np.testing.assert_allclose(of_rows, lookups * distinct * lines / (distinct * lines + 2**21))
    size = columns.shard_rows * columns.row_bytes
    np.testing.assert_allclose(of_table, lookups * size / (size + 2**24))


def test_an_output_is_filled_where_a_lookup_falls_on_it() -> None:
    columns = columns_of_rows(made_up_rows(50))
    some = replace(columns, outputs=np.full(columns.num_shards, 1e4), lookups=np.full(columns.num_shards, 1e4))
    np.testing.assert_allclose(term_matrix(some, ("filled_outputs",)), 1e4 * (1 - np.exp(-1)))
    none = replace(some, outputs=np.zeros(columns.num_shards))
    assert not term_matrix(none, ("filled_outputs",)).any()
