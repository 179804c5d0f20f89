"""Launches that are timed on a GPU: which there are, and what happens without one."""

from pathlib import Path

import pytest

from benchmarks.prices.gpu_launches import launches, main

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")


def test_launches_differ_and_fit_on_a_card() -> None:
    found = list(launches())
    assert len(found) == len(set(found))
    assert {one.location for one in found} == {"DEVICE", "UVM", "UVM_CACHING"}
    assert max(one.tables * one.rows * one.columns * 4 for one in found) < 10e9


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_it_says_that_a_device_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "launches.csv")])
    assert "there is no CUDA device here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
