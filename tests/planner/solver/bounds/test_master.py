"""The program behind the bound: what it does where its solver gives up, and how soon it is done."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

from planner.solver.bounds import master
from planner.solver.bounds.boxes import branch
from planner.solver.bounds.chain import lower_bound, quick_bound
from planner.solver.bounds.dual import average_prices
from planner.solver.bounds.master import Master, solve_relaxation
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.problem import Objective
from tests.support.planning.builders import brute_force, random_priced

CLOSE = 1e-4  # relative: how far apart two bounds of the same problem may be, since a program ends within 1e-5


@pytest.mark.parametrize("gives_up_after", [0, 1, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_a_solver_that_gives_up_proves_nothing(seed: int, gives_up_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that could not be solved is not an empty one."""
    priced = random_priced(seed, num_tables=2)
    best = brute_force(priced)
    solve, calls = Master.solve, iter(range(10_000))

    def failing(master: Master) -> float | None:
        return solve(master) if next(calls) < gives_up_after else None

    monkeypatch.setattr(Master, "solve", failing)
    assert best is not None
    found = lower_bound(priced, max_boxes=20)
    assert quick_bound(priced) <= found.seconds <= best * (1 + 1e-12)
    assert gives_up_after > 0 or found.hint is None


def abnormal(monkeypatch: pytest.MonkeyPatch, after: int, *, with_presolve_alone: bool) -> list[bool]:
    """Let GLOP end abnormally after so many programs; return a list that notes of each program whether it did."""
    solve, ends = pywraplp.Solver.Solve, list[bool]()

    def give_up(self: pywraplp.Solver, *parameters: Any) -> int:
        status: int = solve(self, *parameters)
        ends.append(len(ends) >= after and not (parameters and with_presolve_alone))
        return int(pywraplp.Solver.ABNORMAL) if ends[-1] else status

    monkeypatch.setattr(pywraplp.Solver, "Solve", give_up)
    return ends


@pytest.mark.parametrize("objective", list(Objective))
def test_a_program_that_ends_abnormally_is_solved_without_presolve(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(relaxations(random_priced(3, num_tables=3, fill=0.7, objective=objective))[0], of_pieces=None)
    want = branch(model, max_boxes=50)
    ends = abnormal(monkeypatch, 0, with_presolve_alone=True)
    found = branch(model, max_boxes=50)
    assert any(ends)
    assert found.bound_seconds == pytest.approx(want.bound_seconds, rel=CLOSE)


@pytest.mark.parametrize(("allowed", "is_solved"), [((1, None), True), ((None, None), True), ((1, 1), False)])
def test_a_program_that_goes_round_in_circles_is_stopped(
    allowed: tuple[int | None, int | None], is_solved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try has so many iterations; where both are cut off, the bound still holds and nothing guides."""
    (model,) = relaxations(random_priced(5, num_tables=6, fill=0.8, objective=Objective.STEP_TIME))
    whole = branch(model, max_boxes=1)
    run, asked = Master.solve_within, list[int]()

    def cut_off(self: Master, most_iterations: int, parameters: Any) -> int:
        asked.append(most_iterations)
        return run(self, allowed[parameters is not None] or most_iterations, parameters)

    monkeypatch.setattr(Master, "solve_within", cut_off)
    found = branch(model, max_boxes=1)
    assert found.box is not None
    assert found.box.relaxed.is_solved == is_solved
    assert 0 < found.bound_seconds <= whole.bound_seconds * (1 + CLOSE)
    assert not is_solved or found.bound_seconds == pytest.approx(whole.bound_seconds, rel=CLOSE)
    size = 20 * len(model.choice_table) + 100  # more rows and columns than it may have
    assert max(asked) < 10 * (1000 + size)


def test_where_the_solver_gives_up_on_a_box_the_last_solved_one_still_guides(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the bound, which needs no solver, still holds."""
    priced = random_priced(5, num_tables=6, fill=0.8, objective=Objective.STEP_TIME)
    whole = lower_bound(priced, max_boxes=50)
    with monkeypatch.context() as patched:
        of_root = abnormal(patched, 1000, with_presolve_alone=False)
        lower_bound(priced, max_boxes=1)
    for after in itertools.count():
        with monkeypatch.context() as patched:
            ends = abnormal(patched, after, with_presolve_alone=False)
            found = lower_bound(priced, max_boxes=50)
        if not any(ends):
            assert after > len(of_root) + 1
            return
        assert found.seconds <= whole.seconds * (1 + CLOSE)
        assert (found.hint is None) == (after < len(of_root))


def growing_pieces(seconds: NDArray[np.float64], *, num_ranks: int) -> Relaxation:
    """Return tables that take so many seconds whole, or half as much again in twenty pieces."""
    num_tables = len(seconds)
    return Relaxation(
        choice_table=np.repeat(np.arange(num_tables), 2),
        num_tables=num_tables,
        total=np.outer(seconds, [1.0, 1.5]).reshape(-1, 1) / num_ranks,
        big=np.outer(seconds, [1.0, 0.05]).reshape(-1, 1),
        world=np.zeros((2 * num_tables, 1)),
        total_bytes=np.zeros((2 * num_tables, 1)),
        cluster_bytes=np.ones(1),
        weight=np.ones(1),
        window=np.zeros(1),
        family=np.arange(2 * num_tables),
        pieces=np.tile([1, 20], num_tables),
    )


def test_pieces_that_are_too_large_are_all_replaced_at_once() -> None:
    """100 tables, each with a larger piece than the one before: table by table the rounds would not suffice."""
    seconds, num_ranks = 1.0 + np.arange(100) / 100, 1000

    def average(slowest_seconds: float) -> float:
        """Each table takes so much of its whole piece as brings it to the slowest rank."""
        shares = np.clip((slowest_seconds / seconds - 0.05) / 0.95, 0.0, 1.0)
        return float(np.sum(seconds * (1.5 - 0.5 * shares))) / num_ranks

    low, high = 0.05 * seconds[-1], 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if average(middle) > middle else (low, middle)
    model = growing_pieces(seconds, num_ranks=num_ranks)
    relaxed = solve_relaxation(model, average_prices(model))
    assert relaxed is not None
    assert relaxed.value_seconds == pytest.approx(high, rel=CLOSE)


def test_after_so_much_work_no_round_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program proposed until then still bounds, and its last solution guides."""
    model = growing_pieces(1.0 + np.arange(10) / 10, num_ranks=100)
    whole = solve_relaxation(model, average_prices(model))
    solve, solved = Master.solve, list[Master]()

    def counted(self: Master) -> float | None:
        solved.append(self)
        return solve(self)

    monkeypatch.setattr(Master, "solve", counted)
    monkeypatch.setattr(master, "_MOST_WORK", -1.0)
    found = solve_relaxation(model, average_prices(model))
    assert whole is not None
    assert found is not None
    assert len(solved) == 1
    assert found.is_solved
    assert 0 < found.value_seconds < whole.value_seconds


def tiered(seed: int, *, room: float) -> Relaxation:
    """Return twenty tables that take as many bytes in whichever of three tiers they are, each of which holds a part."""
    rng, num_tables, num_tiers = np.random.default_rng(seed), 20, 3
    table, tier = np.repeat(np.arange(num_tables), num_tiers), np.tile(np.arange(num_tiers), num_tables)
    sizes = rng.integers(10, 1000, num_tables).astype(np.float64)
    slower = np.array([1.0, 8.0, 60.0])[tier] * rng.uniform(0.5, 1.5, len(tier))
    total_bytes = np.zeros((len(table), num_tiers))
    total_bytes[np.arange(len(table)), tier] = sizes[table]
    return Relaxation(
        choice_table=table,
        num_tables=num_tables,
        total=(rng.uniform(1, 5, num_tables)[table] * slower)[:, None],
        big=np.zeros((len(table), 1)),
        world=np.zeros((len(table), 1)),
        total_bytes=total_bytes,
        cluster_bytes=np.full(num_tiers, room * np.sum(sizes)),
        weight=np.ones(1),
        window=np.zeros(1),
        family=np.arange(len(table)),
        pieces=np.ones(len(table), dtype=np.int64),
    )


def whole_program(model: Relaxation) -> float | None:
    """Return the optimum of the program with all choices at once; ``None`` where there is none."""
    solver = pywraplp.Solver.CreateSolver("GLOP")
    x = [solver.NumVar(0.0, solver.infinity(), "") for _ in model.choice_table]
    for table in range(model.num_tables):
        solver.Add(sum(x[c] for c in np.flatnonzero(model.choice_table == table).tolist()) == 1.0)
    for tier, most in enumerate(model.cluster_bytes.tolist()):
        solver.Add(sum(float(size) * x[c] for c, size in enumerate(model.total_bytes[:, tier])) <= most)
    solver.Minimize(sum(float(seconds) * x[c] for c, seconds in enumerate(model.total[:, 0])))
    return float(solver.Objective().Value()) if solver.Solve() == pywraplp.Solver.OPTIMAL else None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("room", [0.34, 0.4, 0.7])
def test_first_choices_that_exceed_a_tier_lead_to_others(seed: int, room: float) -> None:
    """By their bytes in all tiers together all choices tie, and the first ones do not fit."""
    model = tiered(seed, room=room)
    found, want = solve_relaxation(model, average_prices(model)), whole_program(model)
    assert want is not None
    assert found is not None
    assert found.is_solved
    assert found.value_seconds == pytest.approx(want, rel=CLOSE)
    taken = found.share @ model.total_bytes
    assert np.all(taken <= model.cluster_bytes * (1 + CLOSE))


def test_tiers_that_hold_no_mix_of_choices_have_no_solution() -> None:
    """Each tier alone could hold the least that tables take in it, which is nothing."""
    model = tiered(0, room=0.3)
    assert whole_program(model) is None
    found = solve_relaxation(model, average_prices(model))
    assert found is not None
    assert not found.is_solved
    assert found.value_seconds > 10 * np.max(model.total)
