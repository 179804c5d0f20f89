"""What studies found, in words."""

import json
from pathlib import Path

from api.cli.study.answers import answer_lines
from tests.support.cli.run import Run
from tests.support.service.specs import tiny


def machine(**fields: object) -> dict[str, object]:
    return {
        "machine": "own",
        "fewest_hosts": 15,
        "at_least_hosts": 15,
        "is_proven": True,
        "price_per_hour": None,
        "at_least_price_per_hour": None,
        "undecided_hosts": [],
        **fields,
    }


def fleet_lines(*machines: dict[str, object], cheapest: object = None) -> list[str]:
    return answer_lines("smallest_fleet", {"machines": list(machines), "cheapest": cheapest}, currency="EUR")


def test_a_fleet_says_what_is_proven() -> None:
    assert fleet_lines(machine()) == ["15 hosts reach the target; fewer do not, proven."]
    open_ones = machine(at_least_hosts=13, is_proven=False, undecided_hosts=[13, 14])
    assert fleet_lines(open_ones) == [
        "at least 13 hosts, proven; 15 have a plan that reaches the target. Not decided: 13, 14."
    ]
    none = machine(fewest_hosts=None, at_least_hosts=None)
    assert fleet_lines(none) == ["no number of hosts reaches the target, proven."]
    unknown = machine(fewest_hosts=None, at_least_hosts=3, is_proven=False)
    assert fleet_lines(unknown) == ["no plan reaches the target; the bounds leave room from 3 hosts on."]


def test_machines_are_compared_by_price() -> None:
    a = machine(machine="a", price_per_hour=100.0)
    b = machine(machine="b", price_per_hour=200.0)
    lines = fleet_lines(a, b, cheapest={"machine": "a", "price_per_hour": 100.0, "is_proven": True})
    assert lines[0] == "a: 15 hosts reach the target, 100.00 EUR an hour; fewer do not, proven."
    assert lines[-1] == "The cheapest: a, 100.00 EUR an hour (no other machine is cheaper, proven)."


def test_a_sweep_says_nothing_beyond_its_table() -> None:
    assert answer_lines("sweep", {"front": {}}, currency="USD") == []


def test_the_fewest_hosts_have_a_plan(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "fleet.json", tmp_path / "out"
    study = {"kind": "smallest_fleet", "target": {"step_seconds": 1.0}, "hosts": [1, 2]}
    path.write_text(json.dumps({**study, "spec": tiny()}))
    answer = run("study", path, "-o", out, "--processes", "1")
    assert answer.code == 0, answer.err
    (found,) = json.loads((out / "answer.json").read_bytes())["machines"]
    assert (found["fewest_hosts"], found["is_proven"]) == (1, True)
    assert "1 host reaches the target" in " ".join(answer.err.split())
    path.write_text(json.dumps({**study, "target": {"step_seconds": 1e-9}, "spec": tiny()}))
    answer = run("study", path, "-o", out, "--processes", "1")
    (found,) = json.loads((out / "answer.json").read_bytes())["machines"]
    assert (found["fewest_hosts"], found["is_proven"]) == (None, True)
    points = json.loads((out / "points.json").read_bytes())["points"]
    assert {point["limit"] for point in points} == {"cutoff"}


def test_hosts_are_allocated_to_jobs(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "jobs.json", tmp_path / "out"
    half = {"label": "half", "set": {"hardware.ranks_per_host": 2}}
    jobs = [{"label": label, "spec": tiny(), "shapes": [half], "samples_per_second": 1.0} for label in ("a", "b", "c")]
    path.write_text(json.dumps({"kind": "jobs", "num_hosts": 1, "ranks_per_host": 4, "jobs": jobs}))
    answer = run("study", path, "-o", out, "--processes", "1")
    assert answer.code == 0, answer.err
    found = json.loads((out / "answer.json").read_bytes())
    assert (found["num_targets_met"], found["most_targets_met"], found["free_ranks"]) == (2, 2, 0)
    text = " ".join(answer.err.split())
    assert "a: host 0 (ranks 0-1);" in text
    assert "c: no hosts. Misses its target of 1." in text
    assert "2 targets met (no allocation meets more, proven); 0 ranks free." in text
