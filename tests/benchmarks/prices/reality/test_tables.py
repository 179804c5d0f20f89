"""Tables are read as far as they can be, whatever is wrong with a file."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.prices.reality.tables import documents, read_table, tables
from benchmarks.reality import BROKEN, predict

ROWS = b"system,op\n" + b"".join(b"h%d,all_reduce\n" % number for number in range(20_000))


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfname, note\r\n\r\na,"two\r\nlines"\r\n\r\n b\xe9 ,1\r\nc\r\nd,1,2\r\n')
    table = read_table(path)
    assert table.columns == {"name", "note"}
    assert [(line.number, dict(line.fields)) for line in table.lines] == [
        (4, {"name": "a", "note": "two\r\nlines"}),
        (6, {"name": "b\ufffd", "note": "1"}),
    ]
    assert table.lines[0].fields["missing"] == ""
    assert [(row.line, row.reason) for row in table.left_out] == [
        (7, "1 cells under 2 columns"),
        (8, "3 cells under 2 columns"),
    ]
    assert table.broken == ""


@pytest.mark.parametrize("content", [b"", b"\n\n", b"system,op\n"])
def test_tables_without_rows_are_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert [table.lines for table in tables(tmp_path)] == [[]]
    assert predict(tmp_path) == ([], {})


def test_packed_files_that_end_early_have_their_whole_lines(tmp_path: Path) -> None:
    packed = gzip.compress(ROWS)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(packed[: len(packed) // 2])
    table = read_table(path)
    assert 5_000 < len(table.lines) < 15_000
    assert table.lines[-1].fields == {"system": f"h{len(table.lines) - 1}", "op": "all_reduce"}
    reason = f"{BROKEN}: Compressed file ended before the end-of-stream marker was reached"
    assert predict(tmp_path)[1][path.name, reason] == 0


@pytest.mark.parametrize("content", [ROWS, gzip.compress(ROWS, mtime=0)[:12] + b"\xff" * 9, b"\x1f\x8b"])
def test_files_that_are_not_packed_are_listed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv.gz").write_bytes(content)
    ((file, reason),) = predict(tmp_path)[1]
    assert file == "a.csv.gz"
    assert reason.startswith(BROKEN)


def test_a_quote_that_is_not_closed_ends_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'name,note\na,1\nb,"2\nc,3\n')
    (table,) = tables(tmp_path)
    assert [line.fields["name"] for line in table.lines] == ["a"]
    assert table.broken == "unexpected end of data"


def test_folders_called_like_tables_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    assert list(tables(tmp_path)) == []


def test_documents_that_are_none_are_passed_over(tmp_path: Path) -> None:
    for name, content in (("a", b"{"), ("b", b"[]"), ("c", b"\xff"), ("d", b"[" * 100_000)):
        (tmp_path / f"{name}.json").write_bytes(content)
    (tmp_path / "e.json").write_text(json.dumps({"plans": []}))
    assert list(documents(tmp_path)) == [{"plans": []}]
