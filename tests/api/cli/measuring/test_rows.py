"""Rows are in the file as they come; a later run goes on, and never counts a torn launch."""

from pathlib import Path

import pytest

from api.cli.errors import BadInput
from api.cli.measuring.rows import RowFile
from cost_models.measurements.files import read_measurements
from cost_models.measurements.schema import Kind
from tests.support.cost_models.measured_rows import Row, collective, lookup


def launch(*rows: Row) -> list[Row]:
    """Rows as a measurement hands them over."""
    return [{name: value for name, value in row.items() if name not in ("launch", "device")} for row in rows]


def sizes(kind: Kind, index: int) -> int:
    return {"lookup": 2, "collective": 2, "copy": 1}[kind]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = RowFile(tmp_path / "rows.csv", "Test CPU")
    file.add(launch(lookup(), lookup(0, "t1")))
    file.add(launch(collective(0, 0), collective(0, 1)))
    file.add(launch(lookup(0, "t2"), lookup(0, "t3")))
    return tmp_path / "rows.csv"


def test_every_launch_is_there_at_once(path: Path) -> None:
    rows = read_measurements(path)
    assert rows.counts("launch").tolist() == [0, 0, 1, 1, 2, 2]
    assert set(rows.text("device")) == {"Test CPU"}


def test_a_later_run_goes_on(path: Path) -> None:
    before = path.read_text()
    file = RowFile(path, "Test CPU")
    file.go_on(0, sizes)
    assert (file.done("lookup"), file.done("collective"), file.done("copy")) == (2, 1, 0)
    assert file.num_rows == 6
    file.add(launch(collective(0, 0), collective(0, 1)))
    assert path.read_text().startswith(before)
    assert read_measurements(path).counts("launch").tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("cut", [1, 50])
def test_a_torn_line_takes_its_launch_along(path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    file = RowFile(path, "Test CPU")
    file.go_on(0, sizes)
    assert (file.done("lookup"), file.num_rows) == (1, 4)
    file.add(launch(lookup(0, "t2"), lookup(0, "t3")))
    assert read_measurements(path).counts("launch").tolist() == [0, 0, 1, 1, 2, 2]


def test_a_launch_that_lacks_a_row_is_dropped(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    file = RowFile(path, "Test CPU")
    file.go_on(0, sizes)
    assert file.done("lookup") == 1


def test_nothing_but_a_head_line_is_a_beginning(path: Path) -> None:
    path.write_text(path.read_text()[:300])
    file = RowFile(path, "Test CPU")
    file.go_on(0, sizes)
    file.add(launch(lookup()))
    assert read_measurements(path).num_rows == 1


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    file = RowFile(tmp_path / "rows.csv", "Test CPU")
    file.go_on(0, sizes)
    assert file.done("lookup") == 0


def test_rows_of_another_machine_or_seed_are_not_mixed(path: Path) -> None:
    with pytest.raises(BadInput, match='measured on "Test CPU", and this is "Other CPU"'):
        RowFile(path, "Other CPU").go_on(0, sizes)
    with pytest.raises(BadInput, match="the seed is 1"):
        RowFile(path, "Test CPU").go_on(1, sizes)


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    file = RowFile(None, "Test CPU")
    file.add(launch(lookup()))
    file.add(launch(lookup(0, "t1")))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("kind,launch,task,")
