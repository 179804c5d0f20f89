"""``shardplan batch``: every spec on every shape, once, whatever is wrong with some."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from api.cli.batch.items import items_of, parse_shape
from api.cli.batch.log import BatchLog, Outcome
from api.cli.batch.summary import summary_csv, summary_text
from api.cli.errors import BadInput
from api.client import DigestMismatch, PlannerClient, Unreachable
from api.specs.references.resolve import names_hint
from cost_models.errors import UnsupportedWork
from cost_models.hardware.profiles_loader import profile_ids
from planner import pipeline
from planner.domain.problem.problem import Problem
from planner.errors import SolverDefect
from planner.pipeline import plan
from tests.support.cli.run import Run
from tests.support.planning.id_streams import zipf
from tests.support.service.live import Live
from tests.support.service.specs import tiny

SHAPE = "dgx-h100-80g:1x2"


def write(folder: Path, **specs: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in specs.items():
        (folder / f"{name}.json").write_text(json.dumps(spec))
    return folder


def summary(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_spec_is_planned_on_every_shape(run: Run, tmp_path: Path) -> None:
    specs, out = write(tmp_path / "specs", one=tiny(name="one"), two=tiny(name="two")), tmp_path / "out"
    answer = run("batch", str(specs), "-o", str(out), "--shape", SHAPE, "--shape", "dgx-h100-80g:1x4")
    assert answer.code == 0, answer.err
    rows = summary(out)
    assert [(row["model"], row["shape"], row["state"]) for row in rows] == [
        (model, shape, "planned") for model in ("one", "two") for shape in (SHAPE, "dgx-h100-80g:1x4")
    ]
    assert [row["world_size"] for row in rows] == ["2", "4"] * 2
    for row in rows:
        plan = json.loads((out / f"{row['name']}.plan.json").read_bytes())
        assert (plan["plan_digest"], plan["world_size"]) == (row["plan_digest"], int(row["world_size"]))
        assert float(row["seconds"]) == plan["objective"]["seconds"]
        assert float(row["samples_per_second"]) == pytest.approx(16 * plan["world_size"] / float(row["seconds"]))
        assert row["is_whole_step"] == "False"
        assert row["verdict"] == plan["verdict"]["text"]
        assert float(row["torchrec_ratio"]) == plan["baselines"][0]["ratio"]
        again = run("evaluate", str(out / f"{row['name']}.spec.json"), str(out / f"{row['name']}.plan.json"))
        assert again.code == 0, again.err  # of the shape, and not of the spec's own cluster
    assert "4 planned" in answer.err
    assert answer.out == ""


def test_samples_per_second_count_the_dense_part_if_it_is_timed(run: Run, tmp_path: Path) -> None:
    dense = {"forward_seconds": 0.01, "backward_seconds": 0.02}
    specs, out = write(tmp_path / "specs", one=tiny(model__dense=dense)), tmp_path / "out"
    assert run("batch", str(specs), "-o", str(out)).code == 0
    (row,) = summary(out)
    plan = json.loads((out / "one.plan.json").read_bytes())
    assert row["is_whole_step"] == "True"
    assert float(row["samples_per_second"]) == pytest.approx(plan["whole_step"]["samples_per_second"])


def test_a_spec_next_to_its_plan_is_no_spec_of_the_next_batch(run: Run, tmp_path: Path) -> None:
    specs = write(tmp_path / "specs", one=tiny())
    assert run("batch", str(specs), "-o", str(specs)).code == 0
    (specs / "one.spec.json").unlink()  # as earlier versions left it
    for _ in range(2):
        assert run("batch", str(specs), "-o", str(specs)).code == 0
        assert [row["name"] for row in summary(specs)] == ["one"]
        assert (specs / "one.spec.json").exists()


def test_a_batch_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    specs, out = write(tmp_path / "specs", one=tiny(name="one"), two=tiny(name="two")), tmp_path / "out"
    run("batch", str(specs), "-o", str(out))
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.plan.json")}
    (out / "two.plan.json").unlink()  # lost
    write(specs, three=tiny(name="three"))
    with (out / "batch.jsonl").open("a") as file:
        file.write('{"name": "cut o')
    answer = run("batch", str(specs), "-o", str(out))
    assert answer.code == 0
    assert "one: planned, done before" in answer.err
    assert answer.err.count("done before") == 1
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.plan.json")}
    assert set(after) == {"one.plan.json", "two.plan.json", "three.plan.json"}
    assert run("batch", str(specs), "-o", str(out)).err.count("done before") == 3  # nor is what came after the cut lost
    assert after["one.plan.json"] == before["one.plan.json"]
    write(specs, one=tiny(name="one", model__batch_size_per_rank=32))
    assert "done before" not in run("batch", str(specs / "one.json"), "-o", str(out)).err


def test_what_is_wrong_with_one_spec_stops_no_other(run: Run, tmp_path: Path) -> None:
    large = tiny(name="large", hardware__overrides={"hbm_bytes": 40_000, "ddr_bytes": 0})
    specs = write(tmp_path / "specs", good=tiny(), large=large, wrong=tiny(model__batch_size_per_rank=-1))
    (specs / "broken.json").write_text("{")
    answer = run("batch", str(specs), "-o", str(tmp_path / "out"))
    assert answer.code == 1
    assert {row["model"]: row["state"] for row in summary(tmp_path / "out")} == {
        "broken": "invalid",
        "good": "planned",
        "large": "infeasible",
        "wrong": "invalid",
    }
    assert "wrong: /model/batch_size_per_rank" in answer.err
    assert "use at least 1" in answer.err  # the way out, too
    assert "broken: the document is not JSON (line" in " ".join(answer.err.split())
    assert all(len(line) <= 80 for line in answer.err.splitlines() if str(tmp_path) not in line)
    only = run("batch", str(specs / "large.json"), "-o", str(tmp_path / "other"))
    assert only.code == 3


def test_what_is_wrong_on_every_shape_is_reported_once(run: Run, tmp_path: Path) -> None:
    table = {**tiny()["model"]["tables"][0], "num_embeddings": 10**9, "embedding_dim": 128}
    specs = write(tmp_path / "specs", wrong=tiny(model__batch_size_per_rank=-1), large=tiny(model__tables=[table]))
    (specs / "broken.json").write_text("{")
    shapes = ["dgx-h100-80g:1x1", "dgx-h100-80g:1x8", "dgx-h100-80g:8x8", "dgx-h100-80g:16x8"]
    options = [text for shape in shapes for text in ("--shape", shape)]
    answer = run("batch", specs, "-o", tmp_path / "out", "--time-limit", "0.2", *options)
    reported = [line for line in answer.err.splitlines() if line.startswith("  ") and not line.startswith("    ")]
    assert [line.split(":")[0].strip() for line in reported if "broken" in line or "wrong" in line] == [
        "broken",
        "wrong",
    ]
    assert any(line.startswith("  large@dgx-h100-80g-1x1: ") for line in reported)  # of this shape alone
    # Four shapes are more than a narrow terminal holds.
    assert all(shape in answer.err for shape in shapes)
    assert all(len(line) <= 80 for line in answer.err.splitlines() if str(tmp_path) not in line)


def test_what_a_server_finds_wrong_comes_with_the_way_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"pointer": "/solver", "code": "x", "message": "it is wrong", "hint": "make it right"}

    def send(_: httpx.Client, __: httpx.Request) -> httpx.Response:
        return httpx.Response(422, json={"title": "Wrong", "errors": [found, found]})

    monkeypatch.setattr(httpx.Client, "send", send)
    answer = run("batch", write(tmp_path / "specs", a=tiny()), "-o", tmp_path / "out", "--server", "http://unused")
    assert answer.code == 1
    assert "a: /solver: it is wrong; make it right (and 1 more)" in answer.err


@pytest.mark.parametrize("error", [SolverDefect("a defect"), UnsupportedWork("roofline", "this")])
def test_what_the_planner_cannot_do_stops_no_other(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def plan_or_not(problem: Problem, **options: object) -> object:
        if problem.batch_size_per_rank == 33:
            raise error
        return plan(problem, **options)

    monkeypatch.setattr(pipeline, "plan", plan_or_not)
    specs = write(tmp_path / "specs", bad=tiny(model__batch_size_per_rank=33), good=tiny())
    answer = run("batch", str(specs), "-o", str(tmp_path / "out"))
    assert {row["model"]: row["state"] for row in summary(tmp_path / "out")} == {"bad": "failed", "good": "planned"}
    assert str(error) in answer.err


def test_a_server_that_is_not_reached_is_not_asked_for_ever(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = iter([DigestMismatch("a", "b", "it"), *[Unreachable("http://unused", 3, "refused")] * 3])

    def solve(_: object, __: object, **___: object) -> object:
        raise next(errors)  # asked a fifth time, it would end the batch

    monkeypatch.setattr(PlannerClient, "solve", solve)
    specs = write(tmp_path / "specs", **{f"s{number}": tiny() for number in range(6)})
    answer = run("batch", str(specs), "-o", str(tmp_path / "out"), "--server", "http://unused")
    assert answer.code == 4
    assert [row["state"] for row in summary(tmp_path / "out")] == ["failed"] * 6
    assert answer.err.count("not asked for: http://unused") == 2


def test_a_server_that_asks_for_a_key_ends_the_batch_with_the_way_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []

    def send(_: httpx.Client, request: httpx.Request) -> httpx.Response:
        shown.append(request.headers.get("Authorization"))
        return httpx.Response(401, json={"title": "A key is needed"})

    monkeypatch.setattr(httpx.Client, "send", send)
    specs = write(tmp_path / "specs", one=tiny(), two=tiny())
    (tmp_path / "token").write_text("shardplan_key\n")
    answer = run(
        "batch",
        str(specs),
        "-o",
        str(tmp_path / "out"),
        "--server",
        "http://unused",
        "--token-file",
        str(tmp_path / "token"),
    )
    assert answer.code == 1
    assert shown == ["Bearer shardplan_key"]
    assert "SHARDPLAN_TOKEN" in answer.err


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Live]:
    with Live.of(tmp_path / "data") as live:
        yield live


def test_a_server_plans_a_batch_under_its_tag(
    run: Run, tmp_path: Path, service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve(_: object, spec: object, *, wait_seconds: float, tags: list[str]) -> object:
        return service.solve(spec, query=f"?tag={tags[0]}")

    def plan_of(_: object, solve: dict[str, dict[str, str]]) -> object:
        content = service.get(solve["result"]["plan_url"]).content
        return type("Plan", (), {"document": json.loads(content), "received": content})

    monkeypatch.setattr(PlannerClient, "solve", solve)
    monkeypatch.setattr(PlannerClient, "plan_of", plan_of)
    specs = write(tmp_path / "specs", one=tiny(name="one"))
    answer = run("batch", str(specs), "-o", str(tmp_path / "Week 47"), "--server", "http://unused")
    assert answer.code == 0, answer.err
    (row,) = summary(tmp_path / "Week 47")
    (listed,) = service.get("/v1/solves?tag=batch=week-47").json()["solves"]
    assert listed["result"]["plan_digest"] == row["plan_digest"]


def test_plans_in_a_folder_are_no_specs_and_names_report_files_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", same=tiny(), plan={"plan_digest": "x", "tables": []})
    write(tmp_path / "b", same=tiny())
    items = items_of([str(tmp_path), str(tmp_path / "a" / "same.json")], [], [], [])
    assert [item.name for item in items] == ["a__same", "b__same"]
    assert capsys.readouterr().err == f"shardplan: passed over in {tmp_path}, for they are no specs:\n  a/plan.json\n"


def test_no_two_files_have_one_name_and_none_leaves_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x", b=tiny(), b_2=tiny())
    write(tmp_path / "y", b=tiny())
    write(tmp_path, **{"x__b": tiny(), "x__b-2": tiny()})
    (tmp_path / "x" / "b.txt").write_bytes((tmp_path / "x" / "b.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    files = ["x", "y", "x/b.txt", "x__b.json", "x__b-2.json", str(tmp_path / "y" / "b.json")]
    names = [item.name for item in items_of(files, [], [], [])]
    assert len(names) == len(set(names)) == 6
    assert not any("/" in name or name.startswith(".") for name in names)


def test_names_of_thousands_of_files_take_no_time(tmp_path: Path) -> None:
    folders = [tmp_path / f"{number}" for number in range(600)]
    for folder in folders:
        folder.mkdir()
        (folder / "spec.json").write_text('{"model": 1}')
    names = [item.name for item in items_of([str(tmp_path)], [], [], [])]
    assert len(set(names)) == 600
    assert set(names) == {f"{folder.name}__spec" for folder in folders}


@pytest.mark.parametrize("text", ["dgx", "dgx:8", "dgx:0x8", "dgx:1x8x2", "DGX:1x8", "../x:1x8"])
def test_shapes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="PROFILE:HOSTSxRANKS"):
        parse_shape(text)


def test_a_profile_that_is_none_is_reported_once_with_those_that_may_be_meant(run: Run, tmp_path: Path) -> None:
    specs = write(tmp_path / "specs", one=tiny(), two=tiny())
    answer = run("batch", str(specs), "-o", str(tmp_path / "out"), "--shape", "dgx-h100-80:1x8")
    assert answer.code == 1
    reported = " ".join(answer.err.split())
    assert reported.count("did you mean dgx-h100-80g or ") == 1
    assert names_hint("dgx-h100-80", profile_ids()) in reported  # as of a spec that names it
    assert all(len(line) <= 80 for line in answer.err.splitlines())
    assert not (tmp_path / "out").exists()


def test_statistics_that_specs_name_are_given_next_to_them(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "trace.npz", a=zipf(1.0, 500, 3_000, 1))
    assert run("stats", tmp_path / "trace.npz", "-q", "-o", tmp_path / "stats.json").code == 0
    digest = json.loads((tmp_path / "stats.json").read_text())["statistics_digest"]
    specs = write(tmp_path / "specs", one=tiny(model__tables__0__access={"statistics": digest}))
    out = str(tmp_path / "out")
    assert run("batch", str(specs), "-o", out).code == 1
    given = run("batch", str(specs), "-o", out, "--statistics", tmp_path / "stats.json")
    assert given.code == 0, given.err
    asked = run("batch", str(specs), "-o", out, "--statistics", tmp_path / "stats.json", "--server", "http://h")
    assert "/v1/statistics" in asked.err


def test_a_place_without_specs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no spec there"):
        items_of([str(tmp_path)], [], [], [])


@pytest.mark.parametrize(
    ("gap", "ratio", "cell"),
    [
        (0.045, 1.154, "3 ms (4.5%, 1.15x)"),
        (None, 1.154, "3 ms (1.15x)"),
        (0.045, None, "3 ms (4.5%)"),
        (None, None, "3 ms "),
    ],
)
def test_the_table_has_gap_and_speed_against_torchrec(gap: float | None, ratio: float | None, cell: str) -> None:
    outcome = Outcome(
        name="a",
        model="a",
        shape="",
        request_digest="",
        state="planned",
        seconds=0.003,
        relative_gap=gap,
        torchrec_ratio=ratio,
    )
    assert cell in summary_text([outcome], width=80)


def test_texts_that_a_spreadsheet_would_run_are_defused() -> None:
    outcome = Outcome(name="=cmd", model="@x", shape="", request_digest="", state="invalid", detail="[red]no markup")
    (row,) = csv.DictReader(summary_csv([outcome]).decode().splitlines())
    assert (row["name"], row["model"]) == ("'=cmd", "'@x")
    assert "@x" in summary_text([outcome], width=80)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot use"):
        BatchLog(tmp_path / "file")
