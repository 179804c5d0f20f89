"""Readers of traces: the same pieces from every format, and refusals with file and place."""

import csv
from pathlib import Path

import numpy as np
import pytest

from api.cli.errors import BadInput
from api.cli.statistics.traces.base import TraceOptions
from api.cli.statistics.traces.registry import read_trace

USER = [5, 0, 7, 7, 1]
ITEM = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]


def as_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "t.npz", user=np.array(USER, dtype=np.int32), item=np.array(ITEM, dtype=np.uint64))
    return folder / "t.npz"


def as_csv(folder: Path) -> Path:
    with (folder / "t.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["user", "item"])
        lines.writerows([user, " ".join(map(str, items))] for user, items in zip(USER, ITEM, strict=True))
    return folder / "t.csv"


def as_parquet(folder: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"user": pyarrow.array(USER, pyarrow.int32()), "item": pyarrow.array(ITEM)})
    parquet.write_table(table, folder / "t.parquet", row_group_size=3)
    return folder / "t.parquet"


@pytest.mark.parametrize("write", [as_npz, as_csv, as_parquet])
def test_every_format_has_the_same_pieces(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pieces = list(read_trace(write(tmp_path), 2))
    assert [piece.num_samples for piece in pieces] == [2, 2, 1]
    assert [piece.ids["user"].tolist() for piece in pieces] == [[5, 0], [7, 7], [1]]
    assert [piece.ids["item"].tolist() for piece in pieces] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert all(piece.ids["item"].dtype == np.int64 for piece in pieces)
    assert pieces[-1].read_fraction == 1.0


@pytest.mark.parametrize("write", [as_npz, as_csv, as_parquet])
def test_columns_may_be_chosen(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path)
    assert [list(piece.ids) for piece in read_trace(path, 10, TraceOptions(columns=("item",)))] == [["item"]]
    with pytest.raises(BadInput, match=r"no column goods; it has user, item"):
        list(read_trace(path, 10, TraceOptions(columns=("goods",))))


def test_samples_without_ids(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,\n2,3\n,\n")
    (piece,) = read_trace(tmp_path / "t.csv", 10)
    assert (piece.num_samples, piece.ids["a"].tolist(), piece.ids["b"].tolist()) == (3, [1, 2], [3])


def test_lists_that_are_null_have_no_ids_and_ids_must_not_be_null(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": pyarrow.array([[1], None, [2, 3]])}), tmp_path / "t.parquet")
    (piece,) = read_trace(tmp_path / "t.parquet", 10)
    assert (piece.num_samples, piece.ids["a"].tolist()) == (3, [1, 2, 3])
    parquet.write_table(pyarrow.table({"a": [1, None]}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="column a has an id that is null at or after row 0"):
        list(read_trace(tmp_path / "t.parquet", 10))
    parquet.write_table(pyarrow.table({"a": [0.5]}), tmp_path / "t.parquet")
    with pytest.raises(BadInput, match="column a is double"):
        list(read_trace(tmp_path / "t.parquet", 10))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected a first line"),
        ("a,a\n1,2\n", "once each"),
        ("a\n1\nx\n", "line 3, column a: 'x' is not a whole number"),
        ("a\n1\n430548_1007\n", "line 3, column a: '430548_1007' is not a whole number"),
        ("a\n1\n1 \uff12\n", r"line 3, column a: '\\uff12' is not a whole number"),
        ("a\n1\n--2\n", "line 3, column a: '--2' is not a whole number"),
        ("a\n1\n9223372036854775808\n", "line 3, column a: '9223372036854775808' is not a whole number"),
        ("a\n1\n1.5\n", "line 3, column a"),
        ("a\n99999999999999999999\n", "line 2, column a"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells, and 2 columns"),
    ],
)
def test_broken_csv(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(BadInput, match=reason):
        list(read_trace(tmp_path / "t.csv", 10))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"a": np.array([0.5])}, "a is float64"),
        ({"a": np.zeros((2, 2, 2), dtype=np.int64)}, "shape"),
        ({"a": np.asfortranarray(np.zeros((2, 3), dtype=np.int64))}, "C order"),
        (
            {"a": np.zeros(3, dtype=np.int64), "b": np.zeros(2, dtype=np.int64)},
            "different numbers of samples: a 3, b 2",
        ),
        ({"a": np.array([{}], dtype=object)}, "a is object"),
    ],
)
def test_broken_npz(tmp_path: Path, arrays: dict[str, np.ndarray], reason: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(BadInput, match=reason):
        list(read_trace(tmp_path / "t.npz", 10))


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    (piece,) = read_trace(tmp_path / "t.csv", 10)
    assert list(piece.ids) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_an_unsigned_id_is_reported_as_it_stands(tmp_path: Path, suffix: str) -> None:
    path, ids = tmp_path / f"t.{suffix}", np.array([1, 2, 3, 2**64 - 2], dtype=np.uint64)
    if suffix == "npz":
        np.savez(path, a=ids)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"a": ids}), path)
    with pytest.raises(BadInput, match=r"a at or after (sample|row) 2: id 18446744073709551614 is no row"):
        list(read_trace(path, 2))


@pytest.mark.parametrize("name", ["t.npz", "t.parquet"])
def test_files_of_something_else(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(BadInput, match="can be read"):
        list(read_trace(tmp_path / name, 10))


def test_a_cut_off_archive(tmp_path: Path) -> None:
    path = as_npz(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BadInput, match="no NPZ archive"):
        list(read_trace(path, 10))


def test_other_names_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"traces end in \.parquet, \.npz, \.csv"):
        list(read_trace(tmp_path / "t.txt", 10))
    with pytest.raises(BadInput, match="cannot read"):
        list(read_trace(tmp_path / "t.csv", 10))
