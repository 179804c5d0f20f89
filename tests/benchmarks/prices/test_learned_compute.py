"""The benchmark of the learned compute model: it says what it needs, and finds the measured launches."""

from pathlib import Path

import pytest

from benchmarks.prices.learned_compute import main


def test_it_says_that_there_is_nothing_to_learn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shared", str(tmp_path)]) == 1
    assert "no measured launches of 4 and 8 ranks" in capsys.readouterr().err
