"""``shardplan stats``: traces in, statistics out; and plans that use them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.cli import main
from tests.support.paths import SHARED
from tests.support.planning.id_streams import zipf


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    paths = []
    for number in range(4):
        path = tmp_path / f"{number}.npz"
        np.savez(path, user=zipf(1.0, 500, 3_000, number), friend=zipf(1.0, 500, 3_000, number + 9))
        paths.append(path)
    return paths


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes())


def test_workers_merge_into_one(capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]) -> None:
    batch = ("--batch-size", "500")
    code, out, err = run(capsys, "stats", *traces, *batch, "-o", tmp_path / "all.json")
    assert (code, out) == (0, "")
    assert "access.statistics: sha256:" in err
    assert "hottest rows" in err
    assert run(capsys, "stats", *traces[:1], *batch, "-q", "-o", tmp_path / "a.json") == (0, "", "")
    assert run(capsys, "stats", *traces[1:], *batch, "-q", "-o", tmp_path / "b.json")[0] == 0
    code, out, _ = run(capsys, "stats", "--merge", tmp_path / "b.json", tmp_path / "a.json", "-q")
    assert code == 0
    assert out.strip().encode() == (tmp_path / "all.json").read_bytes().strip()
    tables = read(tmp_path / "all.json")["tables"]
    assert [(table["name"], table["samples"], table["batches"]) for table in tables] == [
        ("friend", 12_000, 24),
        ("user", 12_000, 24),
    ]


def test_two_columns_of_one_table(capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]) -> None:
    output = tmp_path / "s.json"
    columns = ("--table", "user=person", "--table", "friend=person")
    assert run(capsys, "stats", traces[0], *columns, "-q", "-o", output)[0] == 0
    (table,) = read(output)["tables"]
    assert (table["name"], table["samples"], table["lookups"]) == ("person", 3_000, 6_000)


def test_the_hottest_rows_are_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", user=np.repeat([7, 8, 9], [600, 300, 100]), item=np.arange(1_000) + 2**39)
    _, _, err = run(capsys, "stats", tmp_path / "t.npz", "-o", tmp_path / "s.json")
    lines = err.splitlines()
    lines = lines[: lines.index("")]  # the summary follows
    assert "hottest rows" in lines[0]
    (line,) = (line for line in lines if line.startswith("user"))
    assert line.split() == ["user", "7", "(60.0%)", "8", "(30.0%)", "9", "(10.0%)"]
    assert all(len(line) <= 80 for line in lines)


def test_names_are_refused_before_traces_are_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "broken_later.csv").write_text("user\n1\n2\nx\n")
    (tmp_path / "odd.csv").write_text("=user\n1\n")
    code, _, err = run(capsys, "stats", tmp_path / "broken_later.csv", tmp_path / "odd.csv", "--batch-size", "1")
    assert code == 1
    assert "'=user' is no name of a table" in err
    code, _, err = run(capsys, "stats", tmp_path / "broken_later.csv", "--table", "user=a" + 500 * "b")
    assert code == 1
    assert "is no name of a table" in " ".join(err.split())


def test_what_was_given_twice_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]
) -> None:
    run(capsys, "stats", traces[0], "-q", "-o", tmp_path / "a.json")
    (tmp_path / "copy.json").write_bytes((tmp_path / "a.json").read_bytes())
    for arguments in (
        [traces[0], traces[1], tmp_path / "x" / ".." / traces[0].name],
        ["--merge", tmp_path / "a.json", tmp_path / "a.json"],
        ["--merge", tmp_path / "a.json", tmp_path / "copy.json"],
    ):
        code, out, err = run(capsys, "stats", *arguments)
        assert (code, out) == (1, "")
        assert "would count twice" in " ".join(err.split())


def test_compare_reports_what_changed(capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]) -> None:
    np.savez(tmp_path / "flat.npz", user=zipf(0.0, 500, 3_000), friend=zipf(1.0, 500, 3_000, 77))
    run(capsys, "stats", traces[0], "--batch-size", "500", "-q", "-o", tmp_path / "old.json")
    run(capsys, "stats", tmp_path / "flat.npz", "--batch-size", "500", "-q", "-o", tmp_path / "new.json")
    code, out, err = run(capsys, "stats", "--compare", tmp_path / "old.json", tmp_path / "new.json")
    assert code == 0
    drift = json.loads(out)
    assert [table["table"] for table in drift["tables"] if table["drifted"]] == ["user"]
    assert "1 of 2 tables changed by more than chance" in err


def test_a_plan_with_statistics(capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]) -> None:
    run(capsys, "stats", *traces, "-q", "-o", tmp_path / "s.json")
    digest = read(tmp_path / "s.json")["statistics_digest"]
    table = {"name": "user", "num_embeddings": 500, "embedding_dim": 64, "pooling_factor": 1}
    spec = {
        "model": {"batch_size_per_rank": 256, "tables": [{**table, "access": {"statistics": digest}}]},
        "hardware": {"profile": "dgx-h100-80g", "ranks_per_host": 2},
        "solver": {"partitioner": "greedy"},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    statistics = ("--statistics", tmp_path / "s.json")
    code, _, err = run(capsys, "plan", tmp_path / "spec.json", *statistics, "-o", tmp_path / "plan.json")
    assert code == 0
    assert "access of 1 table from statistics sha256:" in err
    evidence = read(tmp_path / "plan.json")["provenance"]["evidence"]
    assert evidence["model.tables.user.access"]["value"] == f"{digest}#user"
    assert run(capsys, "validate", tmp_path / "spec.json", *statistics)[0] == 0
    assert run(capsys, "evaluate", tmp_path / "spec.json", tmp_path / "plan.json", *statistics)[0] == 0
    assert run(capsys, "explain", tmp_path / "spec.json", tmp_path / "plan.json", *statistics)[0] == 0
    code, _, err = run(capsys, "plan", tmp_path / "spec.json")
    assert code == 1
    assert "no statistics of this digest" in " ".join(err.split())


def test_a_column_alone_is_a_table_of_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]
) -> None:
    assert run(capsys, "stats", traces[0], "--table", "user", "-q", "-o", tmp_path / "s.json")[0] == 0
    assert [(table["name"], table["lookups"]) for table in read(tmp_path / "s.json")["tables"]] == [("user", 3_000)]


@pytest.mark.parametrize(
    ("padding", "lookups"),
    [
        ([], {"history": 8, "item": 4}),
        (["0"], {"history": 4, "item": 3}),
        (["history=0"], {"history": 4, "item": 4}),
        (["0", "item=-1"], {"history": 4, "item": 4}),
        (["history=7", "item=0"], {"history": 7, "item": 3}),
    ],
)
def test_ids_that_fill_up_samples_are_no_lookups(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, padding: list[str], lookups: dict[str, int]
) -> None:
    np.savez(tmp_path / "t.npz", history=np.array([[5, 7], [9, 0], [0, 0], [3, 0]]), item=np.array([0, 1, 2, 3]))
    options = [word for text in padding for word in ("--padding-id", text)]
    code, _, err = run(capsys, "stats", tmp_path / "t.npz", *options, "-o", tmp_path / "s.json")
    assert code == 0
    tables = read(tmp_path / "s.json")["tables"]
    assert {table["name"]: table["lookups"] for table in tables} == lookups
    assert {table["samples"] for table in tables} == {4}
    assert (f"{12 - sum(lookups.values())} ids only fill up samples" in err) is bool(padding)


def test_a_negative_padding_id_is_left_out_before_ids_are_checked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("user\n1\n-1\n")
    assert "id -1 at place 1" in run(capsys, "stats", tmp_path / "t.csv")[2]
    assert run(capsys, "stats", tmp_path / "t.csv", "--padding-id=-1", "-o", tmp_path / "s.json")[0] == 0


def test_cells_may_have_another_separator(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('history,tags,item\n1^2^3,1^1,4\n,"7^^8",5\n9,,6\n')
    code, _, err = run(capsys, "stats", tmp_path / "t.csv")
    assert code == 1
    assert "line 2, column history: '1^2^3' is not a whole number; choose" in err
    assert "--separator" in err
    assert run(capsys, "stats", tmp_path / "t.csv", "--separator", "^", "-q", "-o", tmp_path / "s.json")[0] == 0
    tables = {table["name"]: (table["lookups"], table["samples"]) for table in read(tmp_path / "s.json")["tables"]}
    assert tables == {"history": (4, 3), "item": (3, 3), "tags": (4, 3)}
    assert run(capsys, "stats", tmp_path / "t.csv", "--separator", "||")[0] == 1


#: Of each public file: options, and lookups and samples by table; or what is wrong with it without options.
FILES: dict[str, tuple[list[str], dict[str, tuple[int, int]], str]] = {
    "fuxi_data_tiny_seq_train.npz": (
        ["--table", "click_sequence", "--table", "userid=user", "--padding-id", "click_sequence=0"],
        {"click_sequence": (39, 100), "user": (100, 100)},
        "clk is float64 of shape (100,)",
    ),
    "fuxi_data_tiny_csv_train_sample.csv": (
        ["--table", "click_sequence", "--table", "userid", "--separator", "^"],
        {"click_sequence": (40, 100), "userid": (100, 100)},
        "line 2, column time_stamp: '2017-05-06' is not a whole number",
    ),
    "fuxi_data_tiny_parquet_train.parquet": (
        ["--table", "userid", "--table", "brand"], {"brand": (100, 100), "userid": (100, 100)}, "column clk is double",
    ),
    "fuxi_data_tiny_emb_train.parquet": ([], {}, "column feat1 is float"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_public_traces_are_read_or_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    path, (options, expected, reason) = SHARED / "cases/files/traces" / name, FILES[name]
    if not path.exists():
        pytest.skip(f"{path} is absent: public traces are not part of the repository")
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    code, _, err = run(capsys, "stats", path)
    assert code == 1
    assert reason in err
    assert "--table COLUMN" in err
    if options:
        assert run(capsys, "stats", path, *options, "-q", "-o", tmp_path / "s.json")[0] == 0
        tables = read(tmp_path / "s.json")["tables"]
        assert {table["name"]: (table["lookups"], table["samples"]) for table in tables} == expected


def test_bad_input_is_refused_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]
) -> None:
    (tmp_path / "t.csv").write_text("user\n1\n-5\n")
    (tmp_path / "odd.csv").write_text("=user\n1\n")
    (tmp_path / "empty.csv").write_text("user\n")
    run(capsys, "stats", traces[0], "-q", "--hash-seed", "1", "-o", tmp_path / "one.json")
    run(capsys, "stats", traces[0], "-q", "--hash-seed", "2", "-o", tmp_path / "two.json")
    for arguments, reason in (
        ([tmp_path / "t.csv"], "table user: id -5 at place 1"),
        ([tmp_path / "odd.csv"], "no name of a table"),
        ([tmp_path / "empty.csv"], "no samples"),
        ([tmp_path / "none.csv"], "cannot read"),
        ([traces[0], "--table", "user="], "COLUMN=TABLE"),
        ([traces[0], "--table", "=user"], "COLUMN=TABLE"),
        ([traces[0], "--table", "goods"], "no column goods"),
        ([traces[0], "--padding-id", "none"], "--padding-id takes ID or COLUMN=ID"),
        ([traces[0], "--padding-id", "goods=0"], "no column 'goods' is read; these are: friend, user"),
        ([traces[0], "--table", "user", "--padding-id", "friend=0"], "no column 'friend' is read; these are: user"),
        ([traces[0], "--padding-id", "0", "--padding-id", "1"], "all columns can have one only"),
        ([traces[0], "--separator", "^"], "--separator is for .csv"),
        ([tmp_path / "t.csv", "--separator", "-"], "--separator takes what stands between ids"),
        ([tmp_path / "t.csv", "--separator", " "], "--separator takes what stands between ids"),
        (["--merge", tmp_path / "one.json", "--padding-id", "0"], "--padding-id is for traces"),
        (["--merge", tmp_path / "one.json", "--separator", "^"], "--separator is for traces"),
        ([traces[0], "--table", "goods=goods"], "no column goods"),
        (["--merge", tmp_path / "one.json", tmp_path / "two.json"], "two.json was made with --hash-seed 2, and"),
        (["--merge", tmp_path / "t.csv"], "t.csv cannot be read: the document is not JSON"),
        (["--compare", tmp_path / "one.json"], "two files"),
        (["--compare", "--merge", tmp_path / "one.json"], "either"),
        (["--merge", tmp_path / "one.json", "--table", "a=b"], "--table is for traces"),
        (["--merge", tmp_path / "one.json", "--batch-size", "65536"], "--batch-size is for traces"),
        (["--merge", tmp_path / "one.json", "--hash-seed", "0"], "--hash-seed is for traces"),
        (["--merge", tmp_path / "one.json", "-o", tmp_path / "one.json"], "is the input file"),
    ):
        code, _, err = run(capsys, "stats", *arguments)
        assert code == 1, arguments
        assert reason in " ".join(err.split()), arguments


def test_a_file_that_is_no_sketch_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: list[Path]
) -> None:
    good = tmp_path / "good.json"
    assert run(capsys, "stats", traces[0], "-q", "-o", good)[0] == 0
    document = read(good)
    (tmp_path / "cut.json").write_bytes(good.read_bytes()[:1000])
    (tmp_path / "plan.json").write_text('{"schema_version": 1, "plan_digest": "sha256:0"}')
    (tmp_path / "next.json").write_text(json.dumps(document | {"schema_version": 2}))
    (tmp_path / "edited.json").write_text(json.dumps(document | {"hash_seed": 5}))
    for name, what in (
        ("cut", "cannot be read: the document is not JSON"),
        ("plan", "is no access statistics: it has no statistics_digest"),
        (
            "next",
            "is of another version: 2 is not one of the values that are taken; this version reads schema_version 1",
        ),
        ("edited", "is no access statistics as they were written: at /"),
    ):
        for arguments in (["--merge", good, tmp_path / f"{name}.json"], ["--compare", good, tmp_path / f"{name}.json"]):
            code, out, err = run(capsys, "stats", *arguments)
            assert (code, out) == (1, "")
            assert f"{name}.json {what}" in err
            assert "collect it again with shardplan stats" in err
