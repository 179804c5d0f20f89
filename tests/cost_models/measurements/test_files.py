"""Files of measured rows: what is written reads back; hostile files are refused before they fill the memory."""

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cost_models.errors import InvalidMeasurements
from cost_models.measurements import csv_rows, files
from cost_models.measurements.csv_rows import csv_text
from cost_models.measurements.files import read_measurements
from cost_models.measurements.schema import COLUMN_NAMES, COLUMNS, Measurements
from tests.support.cost_models.measured_rows import some_measurements
from tests.support.cost_models.row_files import write_measurements


def assert_equal(left: Measurements, right: Measurements) -> None:
    for name in COLUMN_NAMES:
        np.testing.assert_array_equal(left.columns[name], right.columns[name], err_msg=name)


def refusal(path: Path, content: bytes | str) -> InvalidMeasurements:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InvalidMeasurements) as caught:
        read_measurements(path)
    return caught.value


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_what_is_written_reads_back(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'shardplan[traces]'")
    rows = some_measurements()
    write_measurements(rows, tmp_path / name)
    assert_equal(read_measurements(tmp_path / name), rows)


def test_some_columns_in_any_order_are_enough(tmp_path: Path) -> None:
    there = [column.name for column in COLUMNS if "copy" in column.required_by or column.name == "row_bytes"]
    cells = {"kind": "copy", "operation": "gather", "row_bytes": "64", "copied_bytes": "1e6", "seconds": ".0003"}
    numbers = {"launch": "0", "num_ranks": "1", "ranks_per_host": "1"}
    line = [cells.get(name, numbers.get(name, "x86")) for name in reversed(there)]
    path = tmp_path / "rows.csv"
    path.write_text("\ufeff" + ",".join(reversed(there)) + "\r\n" + ",".join(line) + "\r\n")
    rows = read_measurements(path)
    assert rows.numbers("seconds").tolist() == [0.0003]
    assert rows.text("task").tolist() == ["x86"]


def test_a_name_that_says_no_format(tmp_path: Path) -> None:
    assert ".csv, .csv.gz, .parquet" in str(refusal(tmp_path / "rows.xlsx", b""))


@pytest.mark.parametrize(
    ("old", "new", "row", "column", "reason"),
    [
        ("0.002", "nan", 0, "seconds", "expected a number"),
        ("0.002", "1e999", 0, "seconds", "too large"),
        ("0.002", "0x1", 0, "seconds", "expected a number"),
        ("0.002", "0_1", 0, "seconds", "expected a number"),
        ("0.002", " 0.1", 0, "seconds", "expected a number"),
        ("0.002", "9" * 5_000, 0, "seconds", "expected a number"),
        ("lookup,0", "lookup,0.0", 0, "launch", "whole number"),
        ("lookup,0", "lookup,١", 0, "launch", "whole number"),
        ("t1", "=1+1", 1, "table", "expected a text"),
        ("t1", "\"=cmd|'/C calc'!A0\"", 1, "table", "expected a text"),
        ("t1", "a\x00b", 1, "table", "expected a text"),
        ("t1", "a\x1b[2J", 1, "table", "expected a text"),
        ("t1", '"a\nb"', 1, "table", "expected a text"),
        ("t1", "t1,t1", 1, "", f"{len(COLUMN_NAMES) + 1} cells, and {len(COLUMN_NAMES)} columns"),
        ("collective,2", "\ncollective,2", 3, "", "0 cells"),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, old: str, new: str, row: int, column: str, reason: str) -> None:
    text = csv_text(some_measurements())
    issue = refusal(tmp_path / "rows.csv", text.replace(old, new, 1)).issues[0]
    assert (issue.row, issue.column) == (row, column)
    assert reason in issue.reason
    assert issue.value.isprintable()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the column is missing"),
        (b"\x00\x01\x02", "unknown column"),
        (b"kind,launch,seconds,kind\n", "the column stands twice"),
        (b"kind,launch,seconds,colour\n", "unknown column"),
        (b"kind,launch,seconds\n", "there are no rows"),
        (b"kind,launch,seconds\ncopy,\xff,1\n", "not UTF-8"),
        (b'kind,launch,seconds\ncopy,"1"2,1\n', "no CSV"),
        (b"kind,launch,seconds\n" + b"x" * 10_000_000, "longer than"),
        (b'kind,launch,seconds\n"' + b"x\n" * 200_000, "no CSV"),
    ],
)
def test_a_file_that_is_no_csv_of_ours(tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in refusal(tmp_path / "rows.csv", content).issues[0].reason


def test_a_bomb_is_not_unfolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_INFLATED_BYTES", 1_000_000)
    head, line = ",".join(COLUMN_NAMES) + "\n", "," * (len(COLUMN_NAMES) - 1) + "\n"
    bomb = gzip.compress((head + line * 100_000).encode())
    assert len(bomb) < 50_000
    assert "more than 1,000,000 bytes" in refusal(tmp_path / "rows.csv.gz", bomb).issues[0].reason


def test_one_line_without_end_is_not_unfolded(tmp_path: Path) -> None:
    bomb = gzip.compress(b"a" * 50_000_000)
    tracemalloc.start()
    try:
        assert "longer than" in refusal(tmp_path / "rows.csv.gz", bomb).issues[0].reason
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_ROWS", 5)
    assert "more than 5 rows" in refusal(tmp_path / "rows.csv", csv_text(some_measurements())).issues[0].reason


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    assert "larger than 100" in refusal(tmp_path / "rows.csv", "x" * 101).issues[0].reason


@pytest.mark.parametrize("cut", [5, 40, -9])
def test_a_torn_gzip(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress(csv_text(some_measurements()).encode())
    assert "no gzip file" in refusal(tmp_path / "rows.csv.gz", whole[:cut]).issues[0].reason


def test_a_zip_is_no_gzip(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("rows.csv", csv_text(some_measurements()))
    assert "no gzip file" in refusal(tmp_path / "rows.csv.gz", content.getvalue()).issues[0].reason


class TestParquet:
    """Files that another program wrote."""

    @pytest.fixture(autouse=True)
    def _pyarrow(self) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'shardplan[traces]'")

    def changed(self, tmp_path: Path, name: str, values: object) -> InvalidMeasurements:
        import pyarrow
        from pyarrow import parquet

        write_measurements(some_measurements(), tmp_path / "rows.parquet")
        table = parquet.read_table(tmp_path / "rows.parquet")
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, values if isinstance(values, pyarrow.Array) else pyarrow.array(values))
        parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
        return refusal(tmp_path / "rows.parquet", (tmp_path / "rows.parquet").read_bytes())

    def test_a_number_that_is_none(self, tmp_path: Path) -> None:
        error = self.changed(tmp_path, "seconds", [0.1, float("inf"), 1.0, 1.0, 1.0, 1.0])
        assert (error.issues[0].row, error.issues[0].column) == (1, "seconds")

    def test_a_long_text(self, tmp_path: Path) -> None:
        error = self.changed(tmp_path, "device", ["a" * 10_000_000] * 6)
        assert "10,000,000 bytes" in error.issues[0].reason

    def test_a_formula(self, tmp_path: Path) -> None:
        assert self.changed(tmp_path, "device", ["=1+1"] * 6).num_issues == 6

    def test_a_type_that_no_column_has(self, tmp_path: Path) -> None:
        assert "expected a number" in self.changed(tmp_path, "seconds", [[1.0]] * 6).issues[0].reason

    def test_a_count_beyond_all_bounds(self, tmp_path: Path) -> None:
        import pyarrow

        values = pyarrow.array([2**64 - 1] * 6, type=pyarrow.uint64())
        assert "2^63" in self.changed(tmp_path, "launch", values).issues[0].reason

    def test_bytes_that_are_no_parquet(self, tmp_path: Path) -> None:
        assert "no Parquet" in refusal(tmp_path / "rows.parquet", b"PAR1" + b"\x00" * 100 + b"PAR1").issues[0].reason
