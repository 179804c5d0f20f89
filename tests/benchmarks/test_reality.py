"""Reality on a small made-up folder: figures of every group, and every row that is not predicted."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reality import UNREAD, main
from tests.benchmarks.prices.reality.folder import make_folder


def test_every_row_is_predicted_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    main(["--data", str(make_folder(folder)), "--json", str(tmp_path / "out.json"), "--results", str(tmp_path / "r")])
    found = json.loads((tmp_path / "out.json").read_text())
    errors = [
        abs(row["predicted_seconds"] / row["measured_seconds"] - 1)
        for row in found["rows"]
        if "whole step" in row["groups"]
    ]
    (group,) = [one for one in found["groups"] if one["group"] == "whole step"]
    assert group["rows"] == len(errors) == 3
    assert group["mean_relative_error"] == pytest.approx(np.mean(errors))
    assert group["p90_relative_error"] == pytest.approx(np.quantile(errors, 0.9))
    assert {"file": "others.csv.gz", "reason": UNREAD, "rows": 2} in found["left_out"]
    assert sum(one["rows"] for one in found["left_out"]) == 4 + 2
    committed = json.loads((tmp_path / "r").read_text())
    assert committed == {name: part for name, part in found.items() if name != "rows"}
    text = capsys.readouterr().out
    assert "H100 1x8: " in text
    assert "left out: 1 of held_out_steps.csv: no profile of L40S" in text


def test_a_folder_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data", str(tmp_path / "none")])
    assert "is no folder" in capsys.readouterr().err


def test_an_empty_folder_has_no_groups(tmp_path: Path) -> None:
    main(["--data", str(tmp_path), "--json", str(tmp_path / "out.json")])
    assert json.loads((tmp_path / "out.json").read_text())["groups"] == []
