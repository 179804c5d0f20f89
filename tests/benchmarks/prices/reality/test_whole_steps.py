"""Submissions are predicted under the plan that ran, and what is left out says why."""

from pathlib import Path

import pytest

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.whole_steps import GROUP, SPARSE_GROUP, rows
from tests.benchmarks.prices.reality.folder import make_folder


def test_every_submission_is_predicted_or_left_out(tmp_path: Path) -> None:
    found = list(rows(make_folder(tmp_path)))
    predicted = [row for row in found if isinstance(row, PredictedRow) and GROUP in row.groups]
    left_out = {row.line: row.reason for row in found if isinstance(row, LeftOutRow)}
    assert [(row.line, row.platform) for row in predicted] == [(2, "H100 1x8"), (3, "H100 1x8"), (4, "A100 2x8")]
    assert {row.file for row in found} == {"held_out_steps.csv"}
    assert left_out == {
        5: "the same runs as another row",
        6: "no profile of L40S",
        7: "no profile of H100 on PCIe",
        8: "16 GPUs on 1 nodes are not the hosts of a profile, of 8 GPUs at most",
    }
    assert "made again" in predicted[0].subject
    assert "the printed plan" in predicted[1].subject
    assert predicted[0].measured_seconds == pytest.approx(0.004)
    assert all(0.0005 < row.predicted_seconds < 0.05 for row in predicted)


def test_the_sparse_step_is_a_part_of_the_whole(tmp_path: Path) -> None:
    whole: dict[int, float] = {}
    sparse: dict[int, float] = {}
    for row in rows(make_folder(tmp_path)):
        if isinstance(row, PredictedRow):
            (sparse if SPARSE_GROUP in row.groups else whole)[row.line] = row.predicted_seconds
    assert whole.keys() == sparse.keys()
    assert all(0 < sparse[line] < whole[line] for line in whole)
