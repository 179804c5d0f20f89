"""The checker is one short file that needs numpy and the standard library alone, and runs wherever it is put."""

import ast
import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.domain.formats.compaction import compact_document
from planner.output.certificate import check as check_certificate
from tests.support.planning.certificates import ruled

SOURCE = Path(check_certificate.__file__)
MAX_LINES = 515


def imported() -> set[str]:
    """Every package that the file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(SOURCE.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add("." if node.level else str(node.module).partition(".")[0])
    return found


def test_it_can_be_read_in_one_go() -> None:
    assert len(SOURCE.read_text().splitlines()) <= MAX_LINES


def test_it_imports_numpy_and_the_standard_library() -> None:
    assert imported() - sys.stdlib_module_names == {"numpy"}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the file with nothing of this repository on the path."""
    copy = folder / "check_certificate.py"
    shutil.copy(SOURCE, copy)
    command = [sys.executable, "-I", str(copy), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_copy_of_it_accepts_and_rejects(tmp_path: Path) -> None:
    certificate, plan = ruled()
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    (tmp_path / "certificate.json.gz").write_bytes(gzip.compress(json.dumps(certificate).encode()))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for arguments in (["certificate.json"], ["certificate.json.gz", "plan.json"]):
        answer = run(tmp_path, *arguments)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert answer.stdout.startswith("ACCEPTED: the plan is legal and takes ")
    plan["tables"][1]["shards"][0]["rank"] += 1
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    answer = run(tmp_path, "certificate.json", "plan.json")
    assert answer.returncode == 1
    assert answer.stdout == "REJECTED: the plan is not the certified one\n"


def test_both_forms_of_a_plan_are_the_certified_one() -> None:
    certificate, plan = ruled()
    assert check_certificate.check(certificate, compact_document(plan)) == check_certificate.check(certificate, plan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": "1_0"}, "no list like"),
        ({"ranks": " 0"}, "no list like"),
        ({"ranks": "0-"}, "no list like"),
        ({"ranks": "0-1-2"}, "no list like"),
        ({"ranks": "1-0"}, "that its plan has not"),
        ({"ranks": "0-9999999"}, "that its plan has not"),
        ({"row_offset": 0.5}, "expected a whole number"),
        ({"cut": "rows", "num_rows": 0.5}, "expected a whole number"),
    ],
)
def test_groups_are_read_strictly(change: dict[str, object], message: str) -> None:
    certificate, plan = ruled()
    compact = compact_document(plan)
    compact["tables"][0]["shards"][0].update(change)
    with pytest.raises(ValueError, match=message):
        check_certificate.check(certificate, compact)


@pytest.mark.parametrize("arguments", [(), ("no-such-file",), ("a", "b", "c")])
def test_what_cannot_be_read_is_rejected(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    answer = run(tmp_path, *arguments)
    assert answer.returncode == 1
    assert answer.stdout.startswith("REJECTED: ")
    assert answer.stderr == ""


@pytest.mark.parametrize("content", ["[]", "{}", "null"])
def test_another_document_is_called_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    answer = run(tmp_path, "other.json")
    assert answer.returncode == 1
    assert answer.stdout.startswith("REJECTED: this is no such document: ")
