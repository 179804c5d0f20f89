"""What others took of the processors is a difference, and unknown where the system does not say."""

from pathlib import Path

import pytest

from benchmarks.machine import steal_time


def test_a_share_of_all_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = tmp_path / "stat"
    monkeypatch.setattr(steal_time, "_TICKS", ticks)
    ticks.write_text("cpu  100 0 50 800 0 0 0 50 7 7\ncpu0 1 2 3\n")
    with steal_time.watched() as found:
        ticks.write_text("cpu  150 0 60 830 0 0 0 60 9 9\ncpu0 1 2 3\n")
    assert found.share == pytest.approx(0.1)
    assert str(found) == "10.0% stolen"


def test_where_the_system_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steal_time, "_TICKS", tmp_path / "nothing")
    with steal_time.watched() as found:
        pass
    assert (found.share, str(found)) == (None, "")
