"""The benchmark of learned collectives, on a small made-up folder."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prices import learned_exchange

HEADER = "dim_sums,start_ms,fw_ms,bw_ms"


def write(folder: Path, num_ranks: int, count: int) -> None:
    """Exchanges paced by the largest sum of widths."""
    rng = np.random.default_rng(num_ranks)
    lines = [HEADER]
    for _ in range(count):
        widths = rng.integers(10, 400, num_ranks)
        times = 2 + widths.max() * 0.1 * rng.uniform(0.97, 1.03, num_ranks)
        fields = (widths, np.zeros(num_ranks), times, times)
        lines.append(",".join(" ".join(str(value) for value in field) for field in fields))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"comm_{num_ranks}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def test_one_model_is_set_next_to_linear_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for num_ranks in (2, 4):
        write(tmp_path / "meta_dlrm_2021" / "cost_cpu", num_ranks, 100)
    learned_exchange.main(["--shared", str(tmp_path), "--document", str(tmp_path / "fitted.json")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    learned = [line for line in lines if line[2:3] == ["learned"]]
    assert [line[:2] for line in learned] == [[d, n] for d in ("forward", "backward") for n in ("2", "4")]
    assert all(float(line[3].rstrip("%")) < 5 and float(line[4]) > 0.8 for line in learned)
    assert (tmp_path / "fitted.json").exists()


def test_tasks_are_split_whole_and_in_shares(tmp_path: Path) -> None:
    write(tmp_path / "meta_dlrm_2021" / "cost_cpu", 4, 100)
    rows = learned_exchange.read(tmp_path)
    assert rows is not None
    parts = learned_exchange.split(rows, 0)
    tasks = [set(part.text("task")) for part in parts]
    assert [len(names) for names in tasks] == [80, 10, 10]
    assert not tasks[0] & tasks[1]
    assert not (tasks[0] | tasks[1]) & tasks[2]


def test_an_empty_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert learned_exchange.main(["--shared", str(tmp_path)]) == 1
    assert "no comm_*.csv.gz" in capsys.readouterr().err


def test_rank_correlation_by_hand() -> None:
    assert learned_exchange.kendall_tau(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])) == pytest.approx(1 / 3)
    assert learned_exchange.kendall_tau(np.array([1.0, 1, 3]), np.array([1.0, 2, 3])) == pytest.approx(2 / 6**0.5)
