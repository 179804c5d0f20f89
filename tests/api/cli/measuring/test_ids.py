"""Ids: in their table, as skewed as they should be, and counted as they are."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")

from api.cli.measuring.ids import Batch, draw_batches, reuse_columns  # noqa: E402
from api.cli.measuring.lookup_design import TableDesign  # noqa: E402
from cost_models.measurements.schema import REUSE_COLUMNS  # noqa: E402

TABLE = TableDesign(name="t", rows=1_000, columns=8, pooling=4.0, alpha=1.0, seed=7)


def test_ids_are_rows_of_the_table_and_the_same_again() -> None:
    for alpha in (0.0, 0.5, 1.0, 1.4):
        (batch,) = draw_batches(replace(TABLE, alpha=alpha), 500, 1, "cpu")
        (again,) = draw_batches(replace(TABLE, alpha=alpha), 500, 1, "cpu")
        assert torch.equal(batch.ids, again.ids)
        assert len(batch.ids) == int(batch.lengths.sum())
        assert abs(len(batch.ids) - 2_000) < 200
        assert 0 <= int(batch.ids.min()) <= int(batch.ids.max()) < 1_000


def test_skew_repeats_rows() -> None:
    distinct = [
        reuse_columns(draw_batches(replace(TABLE, alpha=alpha), 500, 3, "cpu"))["distinct_rows"]
        for alpha in (0, 0.7, 1.4)
    ]
    assert distinct[0] > distinct[1] > distinct[2]
    assert distinct[0] == pytest.approx(1_000 * (1 - (1 - 1 / 1_000) ** 2_000), rel=0.03)


def test_a_batch_has_at_least_one_id() -> None:
    (batch,) = draw_batches(replace(TABLE, pooling=1e-9), 10, 1, "cpu")
    assert len(batch.ids) == 1


def test_reuse_is_counted_by_hand() -> None:
    """Row 3 once; row 4 twice; row 5 three times and row 6 four times share the third bin."""
    ids = torch.tensor([3, 4, 4, 5, 5, 5, 6, 6, 6, 6])
    found = reuse_columns([Batch(torch.tensor([10]), ids)])
    assert (found["lookups"], found["distinct_rows"]) == (10, 4)
    assert [found[name] for name in REUSE_COLUMNS] == [0.25, 0.25, 0.5, *[0.0] * 14]
    many = torch.zeros(2**15 + 1, dtype=torch.long)
    assert reuse_columns([Batch(torch.tensor([len(many)]), many)])[REUSE_COLUMNS[-1]] == 1
