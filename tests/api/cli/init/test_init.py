"""``init``: files, options and questions become a spec that validates, and nothing typed is lost."""

import json
import shlex
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path

import pytest

from tests.support.cli.run import Answer, Run

SHEET = "name,rows,dim,ids_per_sample\nuser,1000000,64,1\nitem,5000,32,20\n"


Typed = Callable[..., Answer]


class Person(StringIO):
    """A terminal at which somebody types some lines and then presses Ctrl-C."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        line = super().readline(-1 if size is None else size)
        if not line:
            raise KeyboardInterrupt
        return line


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables.csv").write_text(SHEET)
    return tmp_path


@pytest.fixture
def typed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run a command while somebody types."""

    def answer(lines: Iterable[str], *arguments: str) -> Answer:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", Person("".join(f"{line}\n" for line in lines)))
            patch.setattr("sys.stdout.isatty", lambda: True)
            patch.setattr("sys.stderr.isatty", lambda: True)
            return run(*arguments)

    return answer


def test_a_sheet_becomes_a_spec_with_defaults_that_are_stated(run: Run, folder: Path) -> None:
    answer = run("init", "tables.csv", "--yes", "-o", "t.spec.json", "--set", "solver.time_limit_seconds=1")
    assert answer.code == 0, answer.err
    spec = json.loads((folder / "t.spec.json").read_text())
    assert spec["hardware"] == {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8}
    assert spec["model"]["batch_size_per_rank"] == 4096
    assert [table["optimizer"] for table in spec["model"]["tables"]] == ["rowwise_adagrad"] * 2
    assert spec["solver"] == {"time_limit_seconds": 1}
    assert "2 tables on 8 ranks" in answer.err
    assert "1,005,000 rows, 256.6 MB of weights" in answer.err
    assert answer.err.splitlines()[-1] == "next: shardplan plan t.spec.json"
    assert run("validate", "t.spec.json").code == 0


def test_a_program_gets_the_spec_on_standard_output(run: Run) -> None:
    answer = run(
        "init", "--table", "user=1.5Mx64@2", "--table", "item=10x8", "--pooling-factor", "item=3", "--name", "m"
    )
    assert answer.code == 0, answer.err
    assert [table["num_embeddings"] for table in answer.document["model"]["tables"]] == [1_500_000, 10]
    assert answer.document["model"]["tables"][1]["features"] == [{"name": "item", "pooling_factor": 3.0}]
    assert "next:" not in answer.err


def test_a_missing_pooling_factor_is_reported(run: Run) -> None:
    answer = run("init", "--table", "user=100x64")
    assert answer.code == 0
    assert "warning: 1 feature counted with 1 id per sample (user)" in answer.err


def test_questions_are_repeated_until_the_answer_will_do(typed: Typed, folder: Path) -> None:
    lines = [
        "",
        "user 10000x64 1",
        "item 100 8",
        "item 100x8",
        "",
        "ads",
        "many",
        "2,048",
        "h100",
        "aws-p5",
        "2",
        "",
        "7.5",
        "",
    ]
    answer = typed(lines, "init")
    assert answer.code == 0, answer.err
    spec = json.loads((folder / "ads.spec.json").read_text())
    assert spec["hardware"] == {"profile": "aws-p5", "num_hosts": 2, "ranks_per_host": 8}
    assert spec["model"]["batch_size_per_rank"] == 2048
    features = [table.get("features", table.get("pooling_factor")) for table in spec["model"]["tables"]]
    assert features == [1.0, [{"name": "item", "pooling_factor": 7.5}]]
    for refused in ("item 100 8", "many", "h100"):
        assert f"not '{refused}'" in " ".join(answer.err.split())
    assert "Samples of one rank in one step [4096]" in answer.err
    assert "shardplan plan ads.spec.json" in answer.err
    assert [line for line in answer.err.replace("> ", "").splitlines() if len(line) > 80] == []


def test_ctrl_c_leaves_a_command_line_with_what_was_answered(typed: Typed, run: Run, folder: Path) -> None:
    answer = typed(["", "user 10000x64 1", "", "ads", "2048", "aws-p5"], "init")
    assert answer.code == 130
    assert not list(folder.glob("*.spec.json"))
    (line,) = [line for line in answer.err.splitlines() if line.startswith("  shardplan init")]
    words = shlex.split(line)[1:]
    options = ["--name", "ads", "--table", "user 10000x64 1", "--batch-size-per-rank", "2048", "--profile", "aws-p5"]
    assert words == ["init", *options]
    again = run(*words)
    assert again.document["name"] == "ads"
    assert again.document["hardware"]["profile"] == "aws-p5"


def test_a_spec_is_never_written_over_another(typed: Typed, folder: Path) -> None:
    for _ in range(2):
        assert typed([], "init", "tables.csv", "--yes").code == 0
    assert typed([], "init", "tables.csv", "--yes", "--num-hosts", "2").code == 0
    assert sorted(path.name for path in folder.glob("*.json")) == ["tables-2.spec.json", "tables.spec.json"]


def test_the_plan_of_a_spec_that_init_made_is_named_like_the_model(typed: Typed, folder: Path) -> None:
    assert typed([], "init", "tables.csv", "--yes").code == 0
    assert typed([], "plan", "tables.spec.json", "--time-limit", "1").code == 0
    assert (folder / "tables.plan.json").exists()


def test_a_plan_of_torchrec_is_improved_next(run: Run, folder: Path) -> None:
    spec = run("init", "tables.csv", "--set", "model.tables.*.module_path=m.ebc", "-o", "t.spec.json")
    assert spec.code == 0, spec.err
    assert run("plan", "t.spec.json", "--time-limit", "1", "-q", "-o", "p.json", "--num-hosts", "2").code == 0
    assert run("export", "p.json", "-o", "theirs.json").code == 0
    answer = run("init", "theirs.json", "-o", "theirs.spec.json", "--pooling-factor", "2")
    if answer.code == 0:
        assert answer.err.splitlines()[-1] == "next: shardplan improve theirs.spec.json theirs.json"
        made = json.loads((folder / "theirs.spec.json").read_text())
        assert made["hardware"]["num_hosts"] * made["hardware"]["ranks_per_host"] == 16
        assert run("evaluate", "theirs.spec.json", "theirs.json").code == 0
    else:
        assert "data_parallel" in answer.err


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--yes"], "there are no tables"),
        (["nowhere.csv"], "cannot read nowhere.csv"),
        (["tables.csv", "--table", "a=1x4"], "give the tables in a file, or with --table"),
        (["--table", "a=1"], "expected a table as NAME=ROWSxCOLUMNS@IDS"),
        (["tables.csv", "--pooling-factor", "many"], "--pooling-factor takes IDS"),
        (["tables.csv", "--pooling-factor", "nobody=3"], 'is named "nobody"'),
        (["tables.csv", "--profile", "h100"], "dgx-h100-80g"),
        (["tables.csv", "--optimizer", "adamw"], "expected one of none, sgd"),
        (["tables.csv", "-o", "tables.csv"], "is the input file"),
    ],
)
def test_what_cannot_become_a_spec_is_refused(run: Run, folder: Path, arguments: list[str], reported: str) -> None:
    answer = run("init", *arguments)
    assert answer.code == 1
    assert reported in answer.err
    assert answer.out == ""
    assert (folder / "tables.csv").read_text() == SHEET


def test_a_spec_is_not_made_twice(run: Run) -> None:
    assert run("init", "tables.csv", "-o", "t.spec.json").code == 0
    answer = run("init", "t.spec.json")
    assert answer.code == 1
    assert "`shardplan plan t.spec.json` plans it" in answer.err
