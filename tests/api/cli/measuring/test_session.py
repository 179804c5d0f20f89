"""How a run tells how far it is."""

import itertools

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")

from api.cli.measuring.lookups import _Timed
from api.cli.measuring.machine import this_machine
from api.cli.measuring.rows import RowFile
from api.cli.measuring.session import Plan, measure
from tests.support.thorough import thorough

VISITS = 64


@thorough
def test_progress_is_reported_visit_by_visit_as_a_share_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four launches take turns, eight visits to each, and the budget is over after two such rounds."""
    visits, visit = itertools.count(1), _Timed.visit
    gone = [0]

    def counted(timed: _Timed) -> None:
        visit(timed)
        gone[0] = next(visits)

    monkeypatch.setattr(_Timed, "visit", counted)
    monkeypatch.setattr(Plan, "gone", lambda _: gone[0] / VISITS)
    monkeypatch.setattr("api.cli.measuring.session._MOST_TOGETHER", 4)
    heard: list[tuple[str, float]] = []
    machine = this_machine(1)
    file = RowFile(None, machine.name)
    plan = Plan(kinds=frozenset({"lookup"}), budget_seconds=100.0, seed=0, began=0.0)
    measure(plan, machine, file, lambda stage, share: heard.append((stage, share)))
    assert {stage.partition(" ")[0] for stage, _ in heard} == {"lookups"}
    shares = dict.fromkeys(share for _, share in heard)
    assert list(shares) == [visits / VISITS for visits in range(VISITS + 1)]
    assert file.num_rows > 0
    assert capsys.readouterr().out


def test_a_library_that_gives_freed_memory_back_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "gone", lambda _: 1.0)
    machine = this_machine(1)
    plan = Plan(kinds=frozenset({"lookup"}), budget_seconds=100.0, seed=0, began=0.0)

    def reported(*, keeps: bool) -> str:
        monkeypatch.setattr("api.cli.measuring.session.keep_freed_memory", lambda: keeps)
        return "\n".join(measure(plan, machine, RowFile(None, machine.name), lambda stage, share: None))

    assert "maps large outputs again" in reported(keeps=False)
    assert "maps large outputs again" not in reported(keeps=True)
