"""Submissions are predicted under the plan that ran, and what is left out says why."""

import csv
import json
from pathlib import Path

import pytest

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.whole_steps import GROUP, SPARSE_GROUP, rows
from tests.benchmarks.prices.reality.folder import COLUMNS, ROWS, make_folder


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


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("step_ms_train_median", "", "no number in step_ms_train_median"),
        ("step_ms_train_median", "4,5 ms", "no number in step_ms_train_median"),
        ("global_batch", "1e99", "global_batch is not between 0 and 1.09951e+12"),
        ("nodes", "0", "nodes is no whole number from 1 on"),
        ("gpus", "inf", "no number in gpus"),
    ],
)
def test_submissions_with_broken_cells_are_left_out(tmp_path: Path, column: str, cell: str, reason: str) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        broken = dict(zip(COLUMNS, ROWS[0], strict=True)) | {column: cell}
        csv.writer(file).writerows([COLUMNS, broken.values()])
    assert list(rows(tmp_path)) == [LeftOutRow(file="a.csv", line=2, reason=reason)]


@pytest.mark.parametrize("plan", [3, {}, {"shard_matrix": [[99]], "data_parallel": []}, {"shard_matrix": "["}])
def test_a_plan_that_is_none_is_passed_over(tmp_path: Path, plan: object) -> None:
    make_folder(tmp_path)
    plans = [plan | {"row_id": "b"} if isinstance(plan, dict) else plan]
    (tmp_path / "plans.json").write_text(json.dumps({"plans": plans}))
    second = next(row for row in rows(tmp_path) if row.line == 3)
    assert isinstance(second, PredictedRow)
    assert "made again" in second.subject


def test_a_plan_of_another_machine_leaves_its_row_out(tmp_path: Path) -> None:
    make_folder(tmp_path)
    matrix = [[index % 26] for index in range(32)]
    plan = {"row_id": "b", "shard_matrix": matrix, "data_parallel": []}
    (tmp_path / "plans.json").write_text(json.dumps({"plans": [plan]}))
    second = next(row for row in rows(tmp_path) if row.line == 3)
    assert isinstance(second, LeftOutRow)
    assert second.reason.startswith("not readable: ")


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("step_ms", "", "no number in step_ms"),
        ("gpus", "x", "no number in gpus"),
        ("gpus", "12", "12 GPUs on 8 nodes are not as many on each"),
        ("global_batch", "", "no number in global_batch"),
    ],
)
def test_synthetic_models_with_broken_cells_are_left_out(tmp_path: Path, column: str, cell: str, reason: str) -> None:
    sound = {"source": "", "system": "", "gpus": "16", "nodes": "8", "model": "NVIDIA synthetic tiny",
             "global_batch": "65536", "step_ms": "4", "what": ""}  # fmt: skip
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([sound, (sound | {column: cell}).values()])
    assert list(rows(tmp_path)) == [LeftOutRow(file="a.csv", line=2, reason=reason)]
