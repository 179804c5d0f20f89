"""``certify`` and ``check``: from a spec and a plan to a certificate that stands alone."""

import gzip
import json
from pathlib import Path

import pytest

from planner.domain.formats.canonical_json import canonical_bytes
from planner.output.certificate import check as check_certificate
from tests.api.cli.test_cli import spec
from tests.support.cli.run import Run


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    return path


@pytest.fixture
def plan_file(run: Run, spec_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    assert run("plan", spec_file, "-o", path, "--quiet").code == 0
    return path


def test_a_plan_is_certified_and_checked(run: Run, spec_file: Path, plan_file: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    made = run("certify", spec_file, plan_file, "-o", certificate)
    assert made.code == 0
    assert made.out == ""
    assert "proven bound" in made.err
    assert "the plan's own" in made.err
    document = json.loads(certificate.read_bytes())
    assert certificate.read_bytes() == canonical_bytes(document)
    plan = json.loads(plan_file.read_text())
    assert document["plan_digest"] == plan["plan_digest"]
    assert document["claim"]["plan_objective"]["seconds"] == plan["objective"]["seconds"]
    for arguments in ((certificate,), (certificate, plan_file)):
        answer = run("check", *arguments)
        assert answer.code == 0
        assert answer.err.startswith("ACCEPTED: the plan is legal and takes ")
    assert check_certificate.main([str(certificate), str(plan_file)]) == 0


def test_a_certificate_is_compressed_where_its_name_says_so(
    run: Run, spec_file: Path, plan_file: Path, tmp_path: Path
) -> None:
    certificate = tmp_path / "certificate.json.gz"
    assert run("certify", spec_file, plan_file, "-o", certificate).code == 0
    plain = run("certify", spec_file, plan_file)
    assert json.loads(gzip.decompress(certificate.read_bytes())) == plain.document
    assert run("check", certificate, plan_file).code == 0


def test_what_proves_nothing_is_rejected(run: Run, spec_file: Path, plan_file: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    run("certify", spec_file, plan_file, "-o", certificate)
    document = json.loads(certificate.read_text())
    document["claim"]["bound_seconds"] *= 1.01
    certificate.write_text(json.dumps(document))
    answer = run("check", certificate)
    assert answer.code == 1
    assert answer.err == "REJECTED: its content was changed: it has another digest\n"
    swapped = run("check", plan_file, certificate)
    assert swapped.code == 1
    assert swapped.err.startswith("REJECTED: this is no such document: ")
    (tmp_path / "text").write_text("no JSON")
    assert run("check", tmp_path / "text").err.startswith("REJECTED: ")
    missing = run("check", tmp_path / "nothing")
    assert missing.code == 1
    assert "cannot read" in missing.err


def test_what_cannot_be_certified_is_reported(run: Run, spec_file: Path, plan_file: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.json"
    plan = json.loads(plan_file.read_text())
    plan["tables"][0]["compute_kernel"] = "dense" if plan["tables"][0]["compute_kernel"] == "fused" else "fused"
    changed.write_text(json.dumps(plan))
    answer = run("certify", spec_file, changed)
    assert answer.code == 1
    assert "/plan_digest" in answer.err
    over = run("certify", spec_file, plan_file, "-o", plan_file)
    assert over.code == 1
    assert "is the input file" in over.err
