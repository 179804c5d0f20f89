"""A first plan over HTTP is timed in its order, and the target is judged on the median of warm runs."""

import pytest

from benchmarks.inputs.instances import meta_family
from benchmarks.service import first_plan
from benchmarks.service.first_plan import STAGES, Reached, stages_to_first_plan, summary
from benchmarks.service.service import NotServed, answer_of, running_service
from tests.support.thorough import thorough


def reached(visible_seconds: float) -> Reached:
    return Reached(accepted_seconds=0.1, visible_seconds=visible_seconds, fetched_seconds=5.0)


@thorough
def test_a_small_problem(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--runs", "1", "--tables", "16", "--ranks", "8", "--fill", "0.5", "--time-limit", "0.5"]
    status = first_plan.main(given)
    reported = capsys.readouterr().out.splitlines()
    assert max(map(len, reported)) <= 80
    assert status == int("MISSED" in reported[-1])
    for name in ("cold", "warm 1", "median", "worst"):
        (row,) = (text for text in reported if text.startswith(name))
        seconds = [float(value) for value in row[10:].split()]
        assert len(seconds) == 3
        assert 0 < seconds[0] <= seconds[1] <= seconds[2], name


def test_stages_end_with_the_first_plan() -> None:
    spec = meta_family(num_tables=16, num_ranks=8, fill=0.5, seed=0, time_limit_seconds=60.0)
    seconds = stages_to_first_plan(spec)
    assert list(seconds) == [*STAGES, "in all"]
    assert all(value > 0 for value in seconds.values())
    assert sum(seconds[stage] for stage in STAGES) <= seconds["in all"]


def test_the_median_is_rated_and_the_worst_is_reported() -> None:
    *_, verdict = summary([reached(0.5), reached(0.9), reached(3.0)])
    assert verdict.endswith("reached")
    rows = summary([reached(0.5), reached(1.1), reached(3.0)])
    assert rows[0].split()[2] == "1.100"
    assert rows[1].split()[2] == "3.000"
    assert rows[2].endswith("MISSED")


@thorough
def test_what_the_service_refuses_is_reported() -> None:
    spec = meta_family(num_tables=4, num_ranks=8, fill=0.5, seed=0)
    with running_service() as service:
        with pytest.raises(NotServed, match="embedding_dim"):
            first_plan.reach(service, spec | {"model": {**spec["model"], "tables": [{"embedding_dim": -4}]}})
        with pytest.raises(NotServed, match="not-found"):
            answer_of(service.client.get("/v1/solves/none"))
