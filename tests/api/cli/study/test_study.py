"""The command ``study``: points, plans, a table, going on after an interrupt, what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from api.client.study_calls import StudyCalls
from tests.support.cli.run import Run
from tests.support.service.live import Live
from tests.support.service.specs import tiny

AXES = [
    {"field": "hardware.num_hosts", "values": [1, 2]},
    {"field": "model.batch_size_per_rank", "values": [16, 32]},
]


def written(folder: Path, **fields: object) -> Path:
    path = folder / "study.json"
    path.write_text(json.dumps({"kind": "sweep", "spec": tiny(), "axes": AXES, **fields}))
    return path


def points_in(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "points.json").read_bytes())["points"]


def test_every_point_has_a_plan_and_a_standing(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prices = {"dgx-h100-80g": {"price_per_host_hour": 100.0}}
    answer = run("study", written(tmp_path, prices=prices), "-o", out, "--processes", "1")
    assert answer.code == 0, answer.err
    points = points_in(out)
    assert [point["key"] for point in points] == ["1/16", "1/32", "2/16", "2/32"]  # in the order of the axes
    for point in points:
        (path,) = (out / "plans").glob(f"*{point['plan_digest'].removeprefix('sha256:')}*")
        plan = json.loads(path.read_bytes())
        assert plan["objective"]["seconds"] == point["objective_seconds"]
        assert point["figures"]["price_per_hour"] == 100.0 * point["figures"]["num_hosts"]
    front = json.loads((out / "answer.json").read_bytes())["front"]
    with (out / "points.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["key"]: row["standing"] for row in rows} == {one["key"]: one["standing"] for one in front["points"]}
    assert "4 of 4 points have plans" in answer.err
    assert "num_hosts" in answer.err
    assert all(len(line) <= 80 for line in answer.err.splitlines())
    assert answer.out == ""


def test_a_study_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    out, path = tmp_path / "out", written(tmp_path)
    run("study", path, "-o", out, "--processes", "1")
    first = points_in(out)
    lost = out / "plans" / f"{first[1]['plan_digest'].replace(':', '-')}.json"
    lost.unlink()
    with (out / "study.jsonl").open("a") as file:
        file.write('{"key": "cut o')
    answer = run("study", path, "-o", out, "--processes", "1")
    assert answer.err.count("done before") == 3
    assert points_in(out) == first
    assert lost.exists()
    written(tmp_path, spec=tiny(model__tables__0__num_embeddings=2000))
    assert "done before" not in run("study", path, "-o", out, "--processes", "1").err


def test_a_spec_and_prices_may_be_files_of_their_own(run: Run, tmp_path: Path) -> None:
    spec, prices = tmp_path / "spec.json", tmp_path / "prices.json"
    spec.write_text(json.dumps(tiny()))
    prices.write_text(json.dumps({"dgx-h100-80g": {"price_per_host_hour": 1.0}}))
    path = tmp_path / "study.json"
    path.write_text(json.dumps({"kind": "sweep", "axes": AXES[:1]}))
    out = tmp_path / "out"
    answer = run("study", path, "--spec", spec, "--prices", prices, "-o", out, "--processes", "1", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert [point["figures"]["price_per_hour"] for point in points_in(out)] == [1.0, 2.0]


def test_a_study_that_goes_on_has_the_prices_of_now(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for price in (100.0, 40.0):
        path = written(tmp_path, axes=AXES[:1], prices={"dgx-h100-80g": {"price_per_host_hour": price}})
        answer = run("study", path, "-o", out, "--processes", "1")
        assert [point["figures"]["price_per_hour"] for point in points_in(out)] == [price, 2 * price]
    assert answer.err.count("done before") == 2


def test_what_is_wrong_is_reported_with_its_place(run: Run, tmp_path: Path) -> None:
    answer = run("study", written(tmp_path, axes=[{"field": "a"}], front=["speed"]), "-o", tmp_path / "out")
    assert answer.code == 1
    assert "/axes/0" in answer.err
    assert "/front/0" in answer.err
    answer = run("study", written(tmp_path, axes=[{"field": "hardware.num_hsts", "values": [1]}]), "-o", tmp_path / "o")
    assert answer.code == 1
    assert "/spec/hardware/num_hsts" in answer.err


def test_points_without_a_plan_say_why(run: Run, tmp_path: Path) -> None:
    tight = [{"field": "hardware.overrides.hbm_bytes", "values": [40_000, 80_000_000_000]}]
    spec = tiny(hardware__overrides={"ddr_bytes": 0})
    out = tmp_path / "out"
    answer = run("study", written(tmp_path, axes=tight, spec=spec), "-o", out, "--processes", "1")
    assert answer.code == 0, answer.err
    assert [point["state"] for point in points_in(out)] == ["infeasible", "planned"]
    assert "infeasible" in answer.err
    assert "1 of 2 points have plans" in answer.err
    assert points_in(out)[0]["issues"][0]["message"] in " ".join(answer.err.split())


def test_a_portfolio_shows_its_members_and_what_moves(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    restart = {
        "host_failures_per_day": 0.01,
        "repair_hours": 24,
        "startup_seconds": 100,
        "checkpoint_bytes_per_second": 1e9,
    }
    request = {"kind": "portfolio", "spec": tiny(), "hosts": [3, 2, 1], "remaining_steps": [10], "restart": restart}
    path = tmp_path / "study.json"
    path.write_text(json.dumps(request))
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"dgx-h100-80g": {"price_per_host_hour": 100.0}}))
    answer = run("study", path, "--prices", prices, "-o", out, "--processes", "1")
    assert answer.code == 0, answer.err
    found = json.loads((out / "answer.json").read_bytes())
    assert found["plan_digests"].keys() == {"6", "4", "2"}
    for digest in found["plan_digests"].values():
        assert list((out / "plans").glob(f"*{digest.removeprefix('sha256:')}*"))
    for text in ("3 -> 2", "2 -> 1", "independent plans", "one host fewer until repair", "USD with its price"):
        assert text in answer.err
    assert all(len(line) <= 80 for line in answer.err.splitlines())
    again = run("study", path, "--prices", prices, "-o", out, "--processes", "1")
    assert "done before" in again.err
    assert ": planned\n" not in again.err
    assert json.loads((out / "answer.json").read_bytes()) == found


def test_a_service_runs_the_study_and_its_plans_are_brought(run: Run, tmp_path: Path, service: Live) -> None:
    out = tmp_path / "out"
    answer = run("study", written(tmp_path), "-o", out, "--server", "http://test")
    assert answer.code == 0, answer.err
    for point in points_in(out):
        plan = json.loads((out / "plans" / f"{point['plan_digest'].replace(':', '-')}.json").read_bytes())
        assert plan["objective"]["seconds"] == point["objective_seconds"]
    assert "4 of 4 points have plans" in answer.err
    assert service.num_solves() == 4


def test_a_study_of_a_service_that_ends_otherwise_is_no_success(
    run: Run, tmp_path: Path, service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = {"code": "study-defect", "message": "the study failed; the log of the server has the details"}
    ended = {"state": "failed", "error": error, "progress": {"num_points": 0, "num_ended": 0}}
    monkeypatch.setattr(StudyCalls, "get", lambda _, study_id, **__: {"id": study_id, **ended})
    answer = run("study", written(tmp_path), "-o", tmp_path / "out", "--server", "http://test")
    assert answer.code == 4
    assert "its state is failed; the study failed; the log" in " ".join(answer.err.split())
    assert not (tmp_path / "out" / "answer.json").exists()
    del service


def test_an_interrupt_leaves_the_study_of_a_service_running(
    run: Run, tmp_path: Path, service: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(StudyCalls, "get", interrupted)
    answer = run("study", written(tmp_path), "-o", tmp_path / "out", "--server", "http://test")
    assert answer.code == 130
    study = service.get("/v1/studies").json()["studies"][0]
    assert f"shardplan studies show {study['id']}" in " ".join(answer.err.split())
    assert study["state"] in ("queued", "running", "succeeded")
