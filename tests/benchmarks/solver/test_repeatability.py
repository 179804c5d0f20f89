"""Equal plans are told from different ones, to the last bit, and the load that they are made under does change."""

import copy
import json
import math
import time
from pathlib import Path

import pytest

from benchmarks.inputs.instances import meta_family
from benchmarks.machine.busy import BusyProcesses, changing_load
from benchmarks.solver import repeatability
from benchmarks.solver.repeatability import Run, compared_bytes, first_difference, verdict
from tests.support.thorough import thorough
from tests.support.waiting import wait_until

PLAN = {
    "plan_digest": "sha256:0",
    "objective": {"seconds": 0.25},
    "termination": {"reason": "FEASIBLE", "limit": "deterministic_time"},
    "tables": [{"name": "t0", "shards": [{"rank": 0}, {"rank": 1}]}],
    "provenance": {"solver_seconds": 1.0, "seed": 0},
}


def changed(path: tuple[str | int, ...], value: object) -> dict[str, object]:
    plan = copy.deepcopy(PLAN)
    at = plan
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return plan


def run_of(plan: dict[str, object]) -> Run:
    return Run(by="command", levels=(0,), seconds=1.0, plan=plan)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(meta_family(num_tables=12, num_ranks=8, fill=0.5, seed=0, time_limit_seconds=60.0)))
    return path


@thorough
def test_three_runs_by_both_ways_are_equal(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A short search, far from its limit: on a busy machine the clock might cut another one.
    given = ["--runs", "3", "--spec", str(spec), "--partitioner", "greedy", "--price-runs", "0"]
    assert repeatability.main(given) == 0
    reported = capsys.readouterr().out.splitlines()
    assert max(map(len, reported)) <= 80
    rows = [text.split() for text in reported[1:4]]
    assert [row[1] for row in rows] == ["command", "service", "command"]
    assert len({row[-1] for row in rows}) == 1
    assert reported[-1].startswith("EQUAL: 3 plans of ")


@thorough
def test_the_price_is_reported(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--runs", "1", "--spec", str(spec), "--by", "command", "--partitioner", "greedy", "--price-runs", "1"]
    assert repeatability.main(given) == 0
    reported = capsys.readouterr().out
    for mode in ("reproducible", "by the clock"):
        assert f"\n  {mode}" in reported


def test_a_plan_that_differs_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plans = iter([PLAN, PLAN, changed(("tables", 0, "shards", 1, "rank"), 2)])
    monkeypatch.setitem(repeatability.WAYS, "command", lambda _: next(plans))
    assert repeatability.main(["--runs", "3", "--by", "command", "--price-runs", "0"]) == 1
    assert "DIFFERENT: 1 of 3 plans; run 3 first at /tables/0/shards/1/rank" in capsys.readouterr().out


@thorough
def test_without_a_plan_there_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text("{}")
    assert repeatability.main(["--runs", "1", "--by", "command", "--spec", str(spec)]) == 2
    assert "no plan to compare" in capsys.readouterr().err


def test_only_the_seconds_of_the_solve_are_left_out() -> None:
    for of_the_clock in ("solver_seconds", "found_seconds", "late_gain_seconds"):
        assert compared_bytes(changed(("provenance", of_the_clock), 2.0)) == compared_bytes(PLAN)
    last_bit = math.nextafter(0.25, 1.0)
    for path, value in ((("objective", "seconds"), last_bit), (("provenance", "seed"), 1), (("plan_digest",), "")):
        assert compared_bytes(changed(path, value)) != compared_bytes(PLAN), path


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        (("objective", "seconds"), math.nextafter(0.25, 1.0), "/objective/seconds"),
        (("tables", 0, "shards"), [{"rank": 0}], "/tables/0/shards"),
        (("provenance", "seed"), 0.0, "/provenance/seed"),
        (("new",), None, "/new"),
    ],
)
def test_the_first_difference_is_named(path: tuple[str | int, ...], value: object, pointer: str) -> None:
    assert first_difference(PLAN, changed(path, value)) == pointer
    assert first_difference(PLAN, PLAN) is None


def test_a_plan_that_the_clock_cut_is_counted() -> None:
    cut = run_of(changed(("termination", "limit"), "time"))
    equal, reported = verdict([run_of(PLAN), cut])
    assert not equal
    assert reported[0] == "1 of 2 plans were cut by the clock"
    assert reported[1] == "placements: all the same (plan_digest)"
    assert reported[-1].startswith("every one of these says that the clock cut it")
    _, reported = verdict([run_of(PLAN), cut, run_of(changed(("plan_digest",), "sha256:1"))])
    assert reported[1] == "placements: 2 different ones (plan_digest)"
    assert reported[-1] == "DIFFERENT: 2 of 3 plans; run 2 first at /termination/limit"


def test_the_load_goes_round_and_ends() -> None:
    with BusyProcesses(2) as busy:
        pids = [process.pid for process in busy._processes]  # noqa: SLF001
        with changing_load(busy, (1, 2, 0), seed=0, least_seconds=0.02, most_seconds=0.05) as passed:
            while len(passed) < 5:
                time.sleep(0.01)
        assert passed[:5] == [1, 2, 0, 1, 2]
        wait_for(pids, "TT")
        busy.run(1)
        wait_for(pids, "RT")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def wait_for(pids: list[int], states: str) -> None:
    """Wait until processes run (R) or stand still (T)."""
    wait_until(
        lambda: [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids] == list(states)
    )
