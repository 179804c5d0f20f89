"""``shardplan measurements import``: rows out of reports, as the service and ``fit`` take them."""

import gzip
import json
from pathlib import Path

import pytest

from api.schemas.measurements import MeasuredRows
from tests.api.cli.models.test_fit import run
from tests.cost_models.measurements.reports.test_nccl_tests import A2A, LINE, NAMELESS


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "lab.log"
    path.write_text(A2A + LINE + "  8   2   float   none   -1   5.\n")
    return path


def test_an_import_writes_rows_and_lists_what_was_read(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.json"
    code, _, err = run(capsys, "measurements", "import", log, "-o", out)
    assert code == 0
    assert "read: line 14: all_to_all of 4 ranks, 2 per host" in err
    assert "left out: line 15: expected size, count" in err
    assert max(map(len, err.splitlines())) <= 80 or str(log) in err
    document = json.loads(out.read_text())
    MeasuredRows.model_validate(document)
    assert [row["seconds"] for row in document["rows"]] == pytest.approx([5e-5, 6e-5])


def test_what_was_imported_imports_again_and_files_join(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "lab.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    out = tmp_path / "rows.json"
    assert run(capsys, "measurements", "import", packed, "-o", out, "-q")[0] == 0
    code, text, err = run(capsys, "measurements", "import", out, log, "-q")
    assert (code, err) == (0, "")
    assert [row["launch"] for row in json.loads(text)["rows"]] == [0, 1, 2, 3]


def test_a_log_of_several_gzip_members_is_read_whole_and_a_torn_one_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    head, line = A2A.encode(), LINE.encode()
    packed = tmp_path / "lab.log.gz"
    packed.write_bytes(gzip.compress(head) + gzip.compress(line))
    code, text, _ = run(capsys, "measurements", "import", packed, "-q")
    assert (code, len(json.loads(text)["rows"])) == (0, 2)
    packed.write_bytes(gzip.compress(head + line)[:-9])
    code, _, err = run(capsys, "measurements", "import", packed, "-q")
    assert code != 0
    assert "no gzip file" in err


def test_fit_reads_reports_by_the_same_reader(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    code, _, err = run(capsys, "fit", log, "-o", tmp_path / "m.json")
    assert code == 0
    assert "read: line 14: all_to_all of 4 ranks" in err
    assert json.loads((tmp_path / "m.json").read_text())["device"] == "NVIDIA H100"


@pytest.mark.parametrize(
    ("content", "arguments", "reason"),
    [
        (NAMELESS + LINE, (), "fit all_to_all, all_gather: say which"),
        (A2A + LINE, ("--operation", "all_reduce"), "--operation says all_reduce, and the log all_to_all"),
        ("just words\n", (), "there is no measurement"),
        ("", (), "empty; expected rows of shardplan"),
        ("\0\0", (), "no text; expected rows of shardplan"),
    ],
)
def test_a_refusal_names_the_file(
    capsys, tmp_path: Path, content: str, arguments: tuple[str, ...], reason: str
) -> None:
    path = tmp_path / "some.log"
    path.write_text(content)
    code, out, err = run(capsys, "measurements", "import", path, *arguments)
    assert (code, out) == (1, "")
    assert str(path) in err
    assert reason in err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "measurements", "import", tmp_path / "gone.log")
    assert code == 1
    assert "cannot read" in err
