"""``shardplan model``: reports of models that exist."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from api.services.cost_models.report.facts import held_out_errors
from api.services.cost_models.report.html import report_page
from api.services.cost_models.report.text import list_text, model_text
from cost_models.learned.shipped import shipped_models
from tests.support.service.measured import model_bytes, model_document

SHIPPED = shipped_models()["cpu-epyc"]
DOCUMENT: dict[str, Any] = json.loads(SHIPPED)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["model", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_bytes(model_bytes() + b"\n")
    return path


def test_the_report_of_a_file_goes_to_stdout(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    code, out, err = run(capsys, model)
    assert (code, out, err) == (0, model_text(model_document()) + "\n", "")
    assert max(map(len, out.splitlines())) <= 80


def test_the_report_of_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(model.read_bytes())))
    assert run(capsys, "-") == run(capsys, model)


@pytest.mark.parametrize("called", ["cpu-epyc", f"learned:{DOCUMENT['digest']}"])
def test_a_model_that_comes_with_shardplan_is_meant_by_name_and_by_digest(
    capsys: pytest.CaptureFixture[str], called: str
) -> None:
    assert run(capsys, called) == (0, model_text(DOCUMENT) + "\n", "")


def test_a_file_that_is_called_like_a_shipped_model_is_meant_by_its_path(
    capsys: pytest.CaptureFixture[str], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.rename(model.with_name("cpu-epyc"))
    monkeypatch.chdir(model.parent)
    assert "Test GPU" in run(capsys, "./cpu-epyc")[1]
    assert "EPYC" in run(capsys, "cpu-epyc")[1]


def test_the_page_is_written_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run(capsys, "cpu-epyc", "--report", page) == run(capsys, "cpu-epyc")
    assert page.read_text().removesuffix("\n") == report_page(DOCUMENT).removesuffix("\n")


def test_without_a_model_those_of_the_package_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for content in shipped_models().values():
        document = json.loads(content)
        assert f"{document['name']}: {document['device']}" in out
        assert f"\nlearned:{document['digest']}\n" in out
    assert re.search(r"held-out rows: lookups \d+\.\d%, collectives \d+\.\d%\n", out)


def test_a_list_says_so_where_no_error_is_known() -> None:
    document = model_document()
    assert held_out_errors(document | {"figures": {}}) == "lookups not known"
    assert list_text([document, DOCUMENT]).count("\n\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["nothing.json"], "there is no file nothing.json"),
        (["nothing"], "these do: cpu-epyc"),
        (["."], "cannot read .: Is a directory"),
        (["learned"], "to a server alone"),
        (["learned:prod@3"], "to a server alone"),
        (["learned:sha256:" + "0" * 64], "give its file"),
        (["learned:sha256:12"], "there is no file learned:sha256:12"),
        (["--report", "m.html"], "name it"),
        (["model.json", "--report", "-"], "takes the name of a file"),
        (["model.json", "--report", "model.json"], "is the input file"),
        (["pickle.json"], "is not JSON"),
        (["edited.json"], "damaged or was edited"),
        (["deep.json"], "is not JSON"),
        (["large.json"], "more than"),
    ],
)
def test_what_is_no_model_is_bad_input(
    capsys: pytest.CaptureFixture[str],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    reported: str,
) -> None:
    monkeypatch.chdir(model.parent)
    Path("pickle.json").write_bytes(b"\x80\x04K\x01.")
    Path("edited.json").write_bytes(model_bytes().replace(b'"seed":0', b'"seed":1'))
    Path("deep.json").write_bytes(b"[" * 100_000)
    Path("large.json").write_bytes(b" " * (4 * 2**20 + 1))
    before = sorted(Path().iterdir()), model.read_bytes()
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert reported in " ".join(err.split())
    assert (sorted(Path().iterdir()), model.read_bytes()) == before
