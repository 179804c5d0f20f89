"""``shardplan fit``, and plans under the model that it wrote."""

import json
from pathlib import Path

import pytest

from api.cli import main
from api.services.cost_models.report.html import report_page
from api.specs.references.learned_model import load_model
from cost_models.measurements.json_rows import rows_from_json
from tests.support.cost_models.row_files import write_measurements
from tests.support.service.measured import DEVICE, benchmark_rows, exchange_rows, model_bytes, model_document
from tests.support.service.specs import tiny


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    write_measurements(rows_from_json(benchmark_rows()), path)
    return path


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(tiny()))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_bytes(model_bytes())
    return path


def test_a_fit_writes_a_model_and_reports_it(capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path) -> None:
    code, out, err = run(capsys, "fit", rows, "-o", tmp_path / "Lab H100.json")
    assert (code, out) == (0, "")
    written = load_model((tmp_path / "Lab H100.json").read_bytes().strip())
    assert (written.name, written.device) == ("lab-h100", DEVICE)
    assert max(map(len, err.splitlines())) <= 80
    for reported in ("60 of lookup", "split by task", "Error of held-out lookups", "shard_columns", "Not measured"):
        assert reported in err
    assert err.endswith(f"\nlearned:{written.digest}\n")
    last = " ".join(err.partition("\nVerdict\n")[2].split())
    assert last.startswith("- Lookups: too little was measured to rely on. 60 rows. 6 launches held out")


def test_equal_rows_and_seeds_make_equal_models(capsys: pytest.CaptureFixture[str], rows: Path) -> None:
    first = run(capsys, "fit", rows, "--name", "m", "--seed", "3", "-q")
    assert first == run(capsys, "fit", rows, "--name", "m", "--seed", "3", "-q")
    assert first[2] == ""
    other = run(capsys, "fit", rows, "--name", "m", "--seed", "4", "-q")
    assert json.loads(first[1])["digest"] != json.loads(other[1])["digest"]


def test_files_are_fitted_together(capsys: pytest.CaptureFixture[str], tmp_path: Path, rows: Path) -> None:
    exchanges = [row for row in exchange_rows() if row["direction"] == "forward"]
    write_measurements(rows_from_json(exchanges), tmp_path / "more.csv.gz")
    code, out, err = run(capsys, "fit", rows, tmp_path / "more.csv.gz")
    assert code == 0
    assert json.loads(out)["trained_on"]["rows"] == {"collective": len(exchanges), "lookup": 60}
    assert "all_to_all forward    one  2, 4, 8" in err


def test_the_report_is_written_as_a_page_too(capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path) -> None:
    model, page = tmp_path / "m.json", tmp_path / "m.html"
    code, out, err = run(capsys, "fit", rows, "-o", model, "--report", page, "-q")
    assert (code, out, err) == (0, "", "")
    assert page.read_text().removesuffix("\n") == report_page(json.loads(model.read_bytes())).removesuffix("\n")


@pytest.mark.parametrize(
    ("report", "reported"),
    [("rows.csv", "is the input file"), ("m.json", "name the same file"), ("-", "takes the name of a file")],
)
def test_a_report_has_a_file_of_its_own(
    capsys: pytest.CaptureFixture[str],
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: str,
    reported: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = rows.read_bytes()
    code, _, err = run(capsys, "fit", rows, "-o", "m.json", "--report", report)
    assert code == 1
    assert reported in err
    assert rows.read_bytes() == before
    assert not (tmp_path / "m.json").exists()


def test_rates_of_copies_are_written_as_overrides_of_a_spec(
    capsys: pytest.CaptureFixture[str], rows: Path, spec: Path, tmp_path: Path
) -> None:
    copied = [2.0**power for power in range(16, 28)]
    copies = [
        {"kind": "copy", "launch": i, "task": f"copy{i}", "device": DEVICE, "library": "torch", "num_ranks": 1}
        | {"implementation": "torch_copy", "ranks_per_host": 1, "operation": operation, "contending": 1}
        | {"copied_bytes": size, "seconds": 1e-5 + size / rate}
        for operation, rate in (("stream", 2e12), ("host_to_device", 2.5e10))
        for i, size in enumerate(copied)
    ]
    for launch, row in enumerate(copies):
        row["launch"] = launch
    write_measurements(rows_from_json(copies), tmp_path / "copies.csv")
    model, rates = tmp_path / "m.json", tmp_path / "rates.json"
    assert run(capsys, "fit", rows, tmp_path / "copies.csv", "-o", model, "--overrides", rates, "-q")[0] == 0
    found = json.loads(rates.read_bytes())
    assert found == pytest.approx(
        {
            "hbm_stream_bytes_per_second": 2e12,
            "host_link_bytes_per_second": 2.5e10,
            "host_link_message_seconds": 1e-5,
        },
        rel=0.01,
    )
    document = json.loads(spec.read_bytes())
    document["hardware"]["overrides"] = found
    spec.write_text(json.dumps(document))
    assert run(capsys, "validate", spec)[0] == 0
    code, _, err = run(capsys, "fit", rows, "-o", model, "--overrides", rates)
    assert code == 1
    assert "no measured copies" in err


def test_what_cannot_be_fitted_is_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path, rows: Path) -> None:
    (tmp_path / "broken.csv").write_text("kind,launch,seconds\nlookup,0,=1+1\n")
    write_measurements(rows_from_json(benchmark_rows(device="other", seed=1)), tmp_path / "other.csv")
    write_measurements(rows_from_json(benchmark_rows()[:1]), tmp_path / "one.csv")
    for arguments, reported in (
        ([rows, rows], "would count twice"),
        ([tmp_path / "nothing.csv"], "cannot read"),
        ([tmp_path / "broken.csv"], "row 1, seconds"),
        ([rows, tmp_path / "other.csv"], "one device"),
        ([tmp_path / "one.csv"], "measure more"),
        ([rows, "--name", "../x"], "--name takes"),
        ([rows, "-o", rows], "is the input file"),
    ):
        code, out, err = run(capsys, "fit", *arguments)
        assert (code, out) == (1, ""), arguments
        assert reported in err


def test_a_missing_extra_is_named_with_the_command(
    capsys: pytest.CaptureFixture[str], rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> dict[str, object]:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("api.specs.references.learned_model.fit_model", missing)
    code, _, err = run(capsys, "fit", rows)
    assert code == 1
    assert "pip install 'shardplan[train]'" in err


def test_the_file_of_a_model_replaces_the_cost_model(
    capsys: pytest.CaptureFixture[str], spec: Path, model: Path, tmp_path: Path
) -> None:
    digest = model_document()["digest"]
    plan = tmp_path / "plan.json"
    assert run(capsys, "plan", spec, "--cost-model-file", model, "-q", "-o", plan)[0] == 0
    document = json.loads(plan.read_bytes())
    assert document["provenance"]["cost_model"] == f"tested@{digest.removeprefix('sha256:')[:12]}"
    assert document["provenance"]["evidence"]["cost_model"]["value"] == f"learned:{digest}"
    code, out, err = run(capsys, "evaluate", spec, plan, "--cost-model-file", model)
    assert code == 0
    prediction = json.loads(out)["score"]["prediction"]
    assert prediction["coverage"] == 0.9
    assert prediction["analytic_phases"] == document["prediction"]["analytic_phases"]
    assert {one["reason"] for one in prediction["analytic_phases"]} == {"collectives were not measured"}
    warning = f"warning at /cost_model: the learned cost model tested was measured on {DEVICE}"
    assert warning in " ".join(err.split())
    code, _, err = run(capsys, "explain", spec, plan, "--cost-model-file", model)
    assert (code, warning in " ".join(err.split())) == (0, True)
    code, out, err = run(capsys, "validate", spec, "--cost-model-file", model)
    assert (code, json.loads(out)["spec_digest"]) == (0, document["spec_digest"])
    assert [one["code"] for one in json.loads(out)["warnings"]] == ["other-device"]
    assert warning in " ".join(err.split())


def test_learned_means_the_file_and_nothing_without_one(
    capsys: pytest.CaptureFixture[str], spec: Path, model: Path
) -> None:
    code, _, err = run(capsys, "plan", spec, "--cost-model", "learned", "--cost-model-file", model, "-q")
    assert (code, err) == (0, "")
    code, _, err = run(capsys, "plan", spec, "--cost-model", "roofline", "--cost-model-file", model)
    assert code == 1
    assert "give either" in err
    code, _, err = run(capsys, "plan", spec, "--cost-model", f"learned:{model_document()['digest']}")
    assert code == 1
    assert "at /cost_model" in err


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"\x80\x04K\x01.", "is not JSON"),
        (b"{}", "lacks format"),
        (b"[" * 100_000, "is not JSON"),
        (model_bytes().replace(b'"seed":0', b'"seed":1'), "damaged or was edited"),
        (b" " * (4 * 2**20 + 1), "more than"),
    ],
)
def test_hostile_files_of_models_are_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], spec: Path, tmp_path: Path, content: bytes, reported: str
) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    code, out, err = run(capsys, "plan", spec, "--cost-model-file", tmp_path / "bad.json")
    assert (code, out) == (1, "")
    assert reported in " ".join(err.split())
