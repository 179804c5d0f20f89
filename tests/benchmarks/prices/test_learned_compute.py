"""The benchmark of the learned compute model: it says what it needs, and finds the measured launches."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices.learned_compute import main, split_by_table
from cost_models.fitting.launches import launches
from cost_models.measurements.schema import Measurements
from tests.support.cost_models.launches import made_up_rows


def test_it_says_that_there_is_nothing_to_learn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shared", str(tmp_path)]) == 1
    assert "no measured launches of 4 and 8 ranks" in capsys.readouterr().err


def test_a_split_by_table_tests_on_tables_that_were_never_seen() -> None:
    rows = made_up_rows(400)
    of_twenty = np.array([f"t{i % 20}" for i in range(rows.num_rows)])
    found = launches(Measurements({**rows.columns, "table": of_twenty}))
    split = split_by_table(found, 0)
    assert min(len(split.training), len(split.validation), len(split.test)) > 0
    tables = [set(found.take(part).table.tolist()) for part in (split.training, split.validation, split.test)]
    assert not tables[2] & (tables[0] | tables[1])
    assert len(tables[2]) == 5
