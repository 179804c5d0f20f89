import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners import base
from planner.solver.partitioners.base import Effort, SearchOptions
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search import annealing_run
from planner.solver.partitioners.local_search.annealing_run import AnnealingRun
from planner.solver.partitioners.local_search.chain import Chain, Stage, annealing
from planner.solver.partitioners.local_search.constructions import by_choice_rule
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.problem import Objective, RelaxationHint, Scope
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import brute_force, random_priced
from tests.support.planning.moves import with_move
from tests.support.thorough import thorough


class TestLocalSearch(PartitionerContract):
    partitioner = LocalSearch()
    limits = replace(LIMITS, work_limit_seconds=0.2)


@thorough
def test_it_finds_the_optimum_over_all_cuts() -> None:
    """Nearly always, and comes within a percent of it; also where the best plan needs a cut that is not listed."""
    exact, unlisted = 0, 0
    for seed in range(8):
        priced = random_priced(seed, num_tables=2, num_hosts=1, columns=24, slowdown=True, fill=0.9)
        priced = restrict(priced, priced.family_scope == Scope.RANK)
        best, listed = brute_force(priced), brute_force(priced, listed=True)
        assert best is not None
        assert listed is not None
        unlisted += best < listed * (1 - 1e-9)
        outcome = LocalSearch().solve(priced, LIMITS)
        assert outcome.assignment is not None
        value = objective_of(priced, outcome.assignment)
        assert value <= best * 1.01, seed
        exact += value <= best * (1 + 1e-9)
    assert exact >= 7
    assert unlisted, "some instance should need an unlisted cut"


def test_first_plans_settle_before_any_is_cut_again() -> None:
    """Pieces move in every first plan, so that the best of them is faster than any that is only built."""
    priced = random_priced(0, num_tables=24)
    view, best = search_view(priced), IncumbentTracker(priced, "local_search", None)
    built = [chain.best_seconds for chain in by_choice_rule(view, None, 9, itertools.count(), Effort(LIMITS))]
    search = AnnealingRun(view, itertools.count(), Effort(LIMITS), best, 0.0)
    search.settle(None, None)
    assert best.seconds < 0.99 * min(built)


@dataclass
class Watched:
    """What races of a search were told and did."""

    guides: list[RelaxationHint | None] = field(default_factory=list)
    most_slower: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)  # objective of the best plan before each race
    cut_again: list[bool] = field(default_factory=list)  # of each stage of a chain


def watched(monkeypatch: pytest.MonkeyPatch, *, num_tables: int, objective: Objective) -> Watched:
    """Settle on eight ranks, and note how."""
    priced = random_priced(1, num_tables=num_tables, num_hosts=4, objective=objective)
    hint, seen, run = lower_bound(priced).hint, Watched(), Chain.run
    assert hint is not None
    best = IncumbentTracker(priced, "local_search", None)

    def reported(*arguments: Any) -> Iterator[Chain]:
        seen.guides.append(arguments[1])
        seen.most_slower.append(arguments[5])
        seen.plans.append(best.seconds)
        return by_choice_rule(*arguments)

    def noted(self: Chain, stage: Stage, *arguments: Any) -> None:
        seen.cut_again.append(stage.cuts)
        run(self, stage, *arguments)

    monkeypatch.setattr(annealing_run, "by_choice_rule", reported)
    monkeypatch.setattr(Chain, "run", noted)
    AnnealingRun(search_view(priced), itertools.count(), Effort(LIMITS), best, 0.0).settle(hint, None)
    return seen


def test_with_very_few_tables_races_follow_each_other_and_expect_what_the_best_plan_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The relaxation says of such problems little about what each phase takes; tables are cut again at once, and first
    choices differ in how much slower ranks they expect.
    """
    seen = watched(monkeypatch, num_tables=8, objective=Objective.STEP_TIME)
    first, *later = seen.guides
    assert len(later) == 3
    assert first is not None
    for hint, best_seconds in zip(later, seen.plans[1:], strict=True):
        assert hint is not None
        assert np.all(hint.slowest_seconds >= 0.2 * first.slowest_seconds)
        assert np.sum(hint.slowest_seconds) == pytest.approx(best_seconds, rel=0.2)
        assert np.sum(hint.slowest_seconds) > np.sum(first.slowest_seconds)
        assert np.array_equal(hint.option, first.option)
    assert all(seen.cut_again)
    assert seen.most_slower == [1.4] * 4


@pytest.mark.parametrize(("num_tables", "objective"), [(24, Objective.STEP_TIME), (8, Objective.MAX_RANK_TIME)])
def test_one_race_is_enough_where_the_relaxation_says_what_to_expect(
    monkeypatch: pytest.MonkeyPatch, num_tables: int, objective: Objective
) -> None:
    seen = watched(monkeypatch, num_tables=num_tables, objective=objective)
    assert len(seen.guides) == 1
    assert not any(seen.cut_again)
    assert seen.most_slower == [1.0]


def test_proposals_that_may_cut_tables_again_count_as_more_work() -> None:
    """They take longer on many ranks, and a reproducible search has to end well before its limit."""
    view = search_view(random_priced(0, num_tables=12, num_hosts=32))
    spent = []
    for cuts in (False, True):
        effort = Effort(replace(LIMITS, time_limit_seconds=600.0, work_limit_seconds=600.0))
        (chain,) = itertools.islice(by_choice_rule(view, None, 1, itertools.count(), effort), 1)
        before = effort.fraction
        chain.run(replace(annealing(1e-4), cuts=cuts), effort, before + 1e-9, 0.0)  # one chunk
        spent.append(effort.fraction - before)
    assert spent[1] > 1.1 * spent[0] > 0


def test_it_improves_on_greedy() -> None:
    better = 0
    for seed in range(4):
        priced = random_priced(seed, num_tables=12)
        values = []
        for partitioner in (Greedy(), LocalSearch()):
            outcome = partitioner.solve(priced, replace(LIMITS, work_limit_seconds=0.2))
            assert outcome.assignment is not None
            values.append(objective_of(priced, outcome.assignment))
        assert values[1] <= values[0] * (1 + 1e-12)
        better += values[1] < values[0] * (1 - 1e-6)
    assert better >= 2


def test_memory_that_is_almost_full() -> None:
    """Whole tables that fit the ranks only in pairs of a large and a small one."""
    priced = random_priced(3, num_tables=8, num_hosts=1, ranks_per_host=4)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    sizes = np.array([70.0, 30, 65, 35, 60, 40, 55, 45])[whole.shape_table][:, None]
    tight = replace(whole, shape_bytes=sizes, shape_total_bytes=sizes, capacity_bytes=np.full((4, 1), 100.0))
    outcome = LocalSearch().solve(tight, LIMITS)
    assert outcome.assignment is not None
    assert violations(tight, outcome.assignment) == []


def test_a_plan_within_the_gap_ends_the_search() -> None:
    priced = random_priced(2, num_tables=6)
    first = LocalSearch().solve(priced, LIMITS)
    assert first.assignment is not None
    known = objective_of(priced, first.assignment)
    again = LocalSearch().solve(priced, LIMITS, SearchOptions(start=first.assignment, lower_bound_seconds=known))
    assert again.limit == "gap"
    assert again.assignment is first.assignment


def test_the_first_plan_within_the_gap_stops_both_threads() -> None:
    """And no later one takes its place, however good."""
    priced = random_priced(0, num_tables=12)
    first, better = (solver.solve(priced, LIMITS).assignment for solver in (Greedy(), LocalSearch()))
    assert first is not None
    effort, best = Effort(LIMITS), IncumbentTracker(priced, "local_search", None)
    run = AnnealingRun(search_view(priced), itertools.count(), effort, best, objective_of(priced, first))
    run._consider(first)  # noqa: SLF001
    assert effort.is_stopped
    run._consider(better)  # noqa: SLF001
    assert best.assignment is first


def test_a_known_plan_is_refined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any race: with cuts, and without heat."""
    priced = random_priced(0, num_tables=12)
    start = Greedy().solve(priced, LIMITS).assignment
    assert start is not None
    best = IncumbentTracker(priced, "local_search", None)
    monkeypatch.setattr(AnnealingRun, "_halve_field", lambda *_: [])
    AnnealingRun(search_view(priced), itertools.count(), Effort(LIMITS), best, 0.0).settle(None, start)
    assert best.seconds < 0.99 * objective_of(priced, start)


@pytest.mark.parametrize(("behind", "limit"), [(0.2, "gap"), (-1.0, "time")])
def test_a_search_that_the_clock_took_over_says_so_even_if_it_found_enough(
    monkeypatch: pytest.MonkeyPatch, behind: float, limit: str
) -> None:
    """Its plan may not come out again."""
    monkeypatch.setattr(base, "_BEHIND", behind)
    priced = random_priced(0, num_tables=12)
    start = Greedy().solve(priced, LIMITS).assignment
    assert start is not None
    options = SearchOptions(start=start, lower_bound_seconds=0.95 * objective_of(priced, start))
    found = LocalSearch().solve(priced, replace(LIMITS, relative_gap=0.04, time_limit_seconds=60.0), options)
    assert found.limit == limit


def test_a_search_ends_if_runs_in_a_row_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search says so, spends less, and finds what it finds if none ends early."""
    priced = random_priced(0, num_tables=4)
    rounds: list[float] = []
    limits = replace(LIMITS, time_limit_seconds=1000.0, work_limit_seconds=2.0)
    load = AnnealingRun._loaded  # noqa: SLF001

    def counted(search: AnnealingRun, index: int) -> Chain:
        rounds.append(search._effort.spent_of_whole)  # noqa: SLF001
        return load(search, index)

    monkeypatch.setattr(AnnealingRun, "_loaded", counted)
    ended = LocalSearch().solve(priced, limits)
    num_ended, ended_at = len(rounds), rounds[-1]
    assert ended.limit == "no_improvement"
    assert ended.detail
    monkeypatch.setattr(annealing_run, "IDLE_ROUNDS", 1000)
    rounds.clear()
    whole = LocalSearch().solve(priced, limits)
    assert whole.limit == "deterministic_time"
    assert num_ended < len(rounds)
    assert ended_at < rounds[-1]
    assert ended.assignment is not None
    assert whole.assignment is not None
    assert objective_of(priced, ended.assignment) == objective_of(priced, whole.assignment)
    monkeypatch.setattr(annealing_run, "IDLE_ROUNDS", 8)
    monkeypatch.setattr(base, "_BEHIND", -1.0)  # the clock counts from the first look: another run may end elsewhere
    assert LocalSearch().solve(priced, replace(limits, time_limit_seconds=1.0)).limit == "time"


@pytest.mark.parametrize(("num_tables", "work_seconds", "planned"), [(12, 2.0, 3), (12, 60.0, 6), (400, 2.0, 1)])
def test_few_tables_get_several_runs_that_begin_afresh(
    monkeypatch: pytest.MonkeyPatch, num_tables: int, work_seconds: float, planned: int
) -> None:
    """Each but the first without a known plan, with seeds of its own, and with an equal part of the effort."""
    monkeypatch.setattr(annealing_run, "IDLE_ROUNDS", 1000)
    priced = random_priced(0, num_tables=num_tables)
    start = Greedy().solve(priced, replace(LIMITS, work_limit_seconds=0.1)).assignment
    assert start is not None
    begun: list[tuple[float, bool]] = []
    seeds: list[int] = []

    def settle(run: AnnealingRun, hint: object, known: object, **_: object) -> None:
        begun.append((run._effort.spent_of_whole, known is not None))  # noqa: SLF001
        run._effort.spend(run._effort.total_seconds)  # noqa: SLF001
        seeds.append(next(run._seeds))  # noqa: SLF001

    monkeypatch.setattr(AnnealingRun, "settle", settle)
    limits = replace(LIMITS, time_limit_seconds=1000.0, work_limit_seconds=work_seconds)
    assert LocalSearch().solve(priced, limits, SearchOptions(start=start)).limit == "deterministic_time"
    assert [at for at, _ in begun] == pytest.approx([number / planned for number in range(planned)])
    assert seeds == list(range(planned))
    assert [knows for _, knows in begun] == [True] + [False] * (planned - 1)


def test_a_plan_that_runs_already_begins_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = random_priced(0, num_tables=12)
    start = Greedy().solve(priced, LIMITS).assignment
    assert start is not None
    moving = with_move(priced, start)
    known: list[bool] = []

    def settle(run: AnnealingRun, _: object, start: object, **_options: object) -> None:
        known.append(start is not None)
        run._effort.spend(run._effort.total_seconds)  # noqa: SLF001

    monkeypatch.setattr(AnnealingRun, "settle", settle)
    LocalSearch().solve(moving, replace(LIMITS, work_limit_seconds=2.0), SearchOptions(start=start))
    assert known == [True] * 3
