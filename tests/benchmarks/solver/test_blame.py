"""Who is to blame for a gap, on problems that are proven."""

import pytest

from benchmarks.solver.blame import Blame, blame, made_up, main
from planner.domain.plan.plan import PlanResult


def test_parts_of_a_gap() -> None:
    found = Blame(bound_seconds=1.0, plan_seconds=1.32, best_seconds=1.2, is_proven=True)
    assert found.of_bound == pytest.approx(0.2)
    assert found.of_plan == pytest.approx(0.1)


def test_a_proven_problem() -> None:
    """Three tables on two ranks: the optimum lies between bound and plan, unless a cut that is not listed is better."""
    request = made_up(num_tables=3, num_ranks=2, fill=0.3, seed=0, objective="step_time")
    found = blame(request, work_seconds=0.3, prove_seconds=60.0)
    assert found is not None
    assert found.is_proven
    assert found.of_bound >= -1e-9
    assert abs(found.of_plan) < 0.05
    assert found.of_bound < 0.1, "a bound of loads alone, without what the plan starts, is far lower"


def test_what_cannot_be_proven_or_planned_is_stated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = ["--tables", "3", "--ranks", "2", "--fill", "0.3", "--work", "0.2"]
    assert main([*tiny, "--prove", "0.001"]) == 0
    assert "not proven" in capsys.readouterr().out
    none = PlanResult(plan=None, reason="NO_SOLUTION_FOUND", limit="time", detail="", lower_bound_seconds=0.0)
    monkeypatch.setattr("benchmarks.solver.blame.plan", lambda *_, **__: none)
    assert main([*tiny, "--prove", "1"]) == 0
    assert "no plan" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--tables", "3", "4", "--ranks", "2"])
