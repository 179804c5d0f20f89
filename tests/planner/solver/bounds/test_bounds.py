"""Every bound stays below the best plan that brute force finds, over all cuts."""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.pricing.price_options import restrict
from planner.solver.bounds import boxes as branching
from planner.solver.bounds.boxes import affordable_boxes, branch
from planner.solver.bounds.chain import _least, largest_piece, lower_bound, priced_memory, quick_bound
from planner.solver.bounds.dual import Prices, average_prices, dual_value
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.evaluate import objective_of, rank_loads
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import best_assignment, brute_force, random_priced
from tests.support.planning.exhaustive import cuts
from tests.support.thorough import THOROUGH

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"num_tables": 3},
    "windows": {"windows": True},
    "unequal speeds": {"slowdown": True, "windows": True},
    "unequal memory": {"equal_capacity": False, "fill": 0.7},
    "tight memory": {"fill": 0.85},
    "same host": {"same_host": True, "slowdown": True},
    "many pieces": {"num_tables": 1, "num_hosts": 1, "columns": 40, "max_pieces": 10, "fill": 0.3},
}
CLOSE = 1e-4  # relative: how far apart two bounds of the same problem may be, since a program ends within 1e-5


def instance(kind: str, seed: int, objective: Objective) -> SolverProblem:
    """A random instance of two tables unless its kind says otherwise."""
    return random_priced(seed, objective=objective, **({"num_tables": 2} | KINDS[kind]))


def chain(priced: SolverProblem) -> Iterator[tuple[str, float]]:
    """Every member of the chain by name."""
    yield "quick", quick_bound(priced)
    for model in relaxations(priced):
        yield "average rank", dual_value(model, average_prices(model))
        yield "priced memory", dual_value(model, priced_memory(model))
        yield "largest piece", largest_piece(model)
    for boxes in (1, 20):
        yield f"{boxes} boxes", lower_bound(priced, max_boxes=boxes).seconds


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("kind", KINDS)
def test_every_member_of_the_chain_is_admissible(kind: str, objective: Objective) -> None:
    """Several instances each; what is known of a plan does not raise a bound above it."""
    for seed in range(10 if THOROUGH else 4):
        priced = instance(kind, seed, objective)
        best = brute_force(priced)
        if best is None:
            continue
        bounds = dict(chain(priced))
        for known in (best, best * 1.01):
            bounds[f"known {known / best}"] = lower_bound(priced, max_boxes=20, known_seconds=known).seconds
        assert {name: value for name, value in bounds.items() if value > best * (1 + 1e-12)} == {}
        assert bounds["1 boxes"] >= max(bounds["quick"], bounds["priced memory"], 0.5 * best) * (1 - 1e-8)
        assert bounds["20 boxes"] >= bounds["1 boxes"] * (1 - CLOSE)


def test_boxes_raise_the_bound() -> None:
    """Few tables per rank: half of a whole table is no plan."""
    raised = [
        lower_bound(priced, max_boxes=20).seconds > 1.02 * lower_bound(priced).seconds
        for priced in (random_priced(seed, num_tables=3) for seed in range(6))
    ]
    assert sum(raised) >= 3


@pytest.mark.parametrize("objective", list(Objective))
def test_a_known_plan_that_is_optimal_can_be_proven_so(objective: Objective) -> None:
    """One table that is only whole or everywhere: all boxes that could hold a better plan are dropped."""
    priced = random_priced(0, num_tables=1, objective=objective)
    some = restrict(priced, np.isin(priced.family_scope, (Scope.RANK, Scope.WORLD)) & (priced.family_max_pieces == 1))
    best = brute_force(some)
    assert best is not None
    assert lower_bound(some, max_boxes=50, known_seconds=best).seconds == pytest.approx(best, rel=1e-8)


def test_the_largest_piece() -> None:
    """One table that only fits whole: no plan beats its cost, though the average is a quarter of it."""
    priced = random_priced(0, num_tables=1, num_phases=1)
    whole = restrict(priced, np.arange(priced.num_families) == 0)
    seconds = float(whole.shape_seconds[0, 0])
    assert lower_bound(whole).seconds == pytest.approx(seconds, rel=1e-6)
    assert quick_bound(whole) == pytest.approx(seconds, rel=1e-6)
    window = replace(whole, phase_window_seconds=np.array([1.0]))
    assert lower_bound(window).seconds == pytest.approx(seconds - 1, rel=1e-6)
    slow = replace(whole, rank_slowdown=np.array([[3.0], [2.0], [2.5], [9.0]]))
    assert lower_bound(slow).seconds == pytest.approx(2 * seconds, rel=1e-6)


@pytest.mark.parametrize(("columns", "max_pieces"), [(24, 5), (40, 10), (100, 10)])
@pytest.mark.parametrize(("power", "spread"), [(1.0, 0.0), (1.0, 0.1), (0.6, 0.1), (1.6, 0.1), (1.0, 2.0)])
def test_choices_cover_every_cut(columns: int, max_pieces: int, power: float, spread: float) -> None:
    """A choice is nowhere above any cut that it stands for: costs affine in columns, nearly so, bent, or anyhow."""
    priced = random_priced(0, num_tables=1, columns=columns, max_pieces=max_pieces)
    rng = np.random.default_rng(0)
    affine = np.array([1.0, 3.0]) + priced.shape_columns[:, None] ** power * np.array([0.5, 0.1])
    noisy = replace(priced, shape_seconds=affine * np.exp(rng.uniform(-spread, spread, affine.shape)))
    (model,) = relaxations(noisy)
    ranks = np.array([1, 2, 4])[noisy.family_scope]
    for family in range(noisy.num_families):
        choices = np.flatnonzero(model.family == family)
        world = noisy.family_scope[family] == Scope.WORLD
        for cut in cuts(noisy, family):
            (choice,) = choices[model.pieces[choices] <= len(cut)][-1:]
            seconds = noisy.shape_seconds[list(cut)]
            assert np.all(model.total[choice] * 4 <= ranks[family] * seconds.sum(axis=0) * (1 + 1e-12))
            largest = model.world[choice] if world else model.big[choice]
            assert np.all(largest <= seconds.max(axis=0) * (1 + 1e-12))
            assert np.all(model.total_bytes[choice] <= noisy.shape_total_bytes[list(cut)].sum(axis=0) * (1 + 1e-12))
            if spread == 0 and model.pieces[choice] == len(cut):
                assert model.total[choice] * 4 == pytest.approx(ranks[family] * seconds.sum(axis=0), rel=1e-9)


@functools.cache
def solved(seed: int) -> tuple[SolverProblem, float, NDArray[np.float64]]:
    """An instance, its optimum, and the slowest rank's seconds there: per phase, or the one of max_rank_time."""
    kinds: tuple[dict[str, Any], ...] = (
        {"windows": True},
        {"slowdown": True, "windows": True},
        {"objective": Objective.MAX_RANK_TIME},
    )
    priced = random_priced(seed, num_tables=2, **kinds[seed % 3])
    plan = best_assignment(priced)
    assert plan is not None
    best = objective_of(priced, plan)
    if priced.objective is Objective.MAX_RANK_TIME:
        return priced, best, np.array([best])
    return priced, best, np.max(rank_loads(priced, plan).seconds, axis=0)


@given(st.integers(0, 10_000), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_any_prices_give_a_bound(seed: int, prices_seed: int) -> None:
    """The dual value rests on no solver: random prices, even negative ones, stay below the optimum.

    So it is with seconds that the slowest rank is known to need, here a part of those in the best plan.
    """
    priced, best, slowest = solved(seed % 9)
    rng = np.random.default_rng(prices_seed)
    for model in relaxations(priced):
        prices = random_prices(model, rng)
        assert dual_value(model, prices) <= best * (1 + 1e-12)
        assert dual_value(model, prices, slowest * rng.uniform(0, 1, slowest.shape)) <= best * (1 + 1e-12)
        assert dual_value(model, prices, slowest) <= best * (1 + 1e-12)


def random_prices(model: Relaxation, rng: np.random.Generator) -> Prices:
    """Any numbers, most of them above nothing."""
    return Prices(
        average=rng.uniform(-0.5, 2, model.weight.shape),
        memory=rng.uniform(-0.01, 0.05, model.cluster_bytes.shape),
        largest=rng.uniform(-0.1, 0.6, (model.num_tables, model.weight.shape[0])),
        floor=rng.uniform(-0.1, 0.4, model.weight.shape),
    )


@pytest.mark.parametrize("max_boxes", [1, 20])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_tables_and_ranks_changes_nothing(seed: int, max_boxes: int) -> None:
    priced = random_priced(seed, num_tables=3, slowdown=True, equal_capacity=False)
    ranks = np.array([1, 0, 3, 2])
    hosts = np.array([2, 3, 0, 1])
    want = lower_bound(priced, max_boxes=max_boxes).seconds
    for order in (ranks, hosts):
        moved = replace(priced, capacity_bytes=priced.capacity_bytes[order], rank_slowdown=priced.rank_slowdown[order])
        assert lower_bound(moved, max_boxes=max_boxes).seconds == pytest.approx(want, rel=CLOSE)
    turned = with_tables_turned(priced)
    assert brute_force(turned) == pytest.approx(brute_force(priced), rel=1e-12)
    assert lower_bound(turned, max_boxes=max_boxes).seconds == pytest.approx(want, rel=CLOSE)


def with_tables_turned(priced: SolverProblem) -> SolverProblem:
    """The first table last; all tables have families and shapes of the same kinds."""

    def turned(values: NDArray[Any]) -> NDArray[Any]:
        return np.roll(values, -len(values) // priced.num_tables, axis=0)

    return replace(
        priced,
        shape_seconds=turned(priced.shape_seconds),
        shape_bytes=turned(priced.shape_bytes),
        shape_total_bytes=turned(priced.shape_total_bytes),
    )


@pytest.mark.parametrize("seed", range(6))
def test_more_memory_never_raises_the_bound(seed: int) -> None:
    priced = random_priced(seed, objective=list(Objective)[seed % 2], fill=1.2)
    values = [
        lower_bound(replace(priced, capacity_bytes=priced.capacity_bytes * times)).seconds
        for times in (1.0, 1.1, 1.3, 1.7, 2.5, 100.0)
    ]
    assert all(more <= less * (1 + CLOSE) for less, more in itertools.pairwise(values))


def test_memory_raises_the_bound() -> None:
    """Replication is fastest and largest; where it does not fit everywhere, the bound must say so."""
    priced = random_priced(3, num_tables=3, num_phases=1)
    cheap, sizes = priced.shape_seconds.copy(), priced.shape_bytes.copy()
    cheap[priced.shape_scope == Scope.WORLD] *= 0.01  # world-wide copies are nearly free ...
    sizes[priced.shape_scope == Scope.WORLD] = 100.0  # ... and take 100 bytes on each of 4 ranks
    totals = sizes * priced.shape_ranks[:, None]
    roomy = replace(
        priced,
        shape_seconds=cheap,
        shape_bytes=sizes,
        shape_total_bytes=totals,
        capacity_bytes=np.full((4, 1), 300.0),
    )
    tight = replace(roomy, capacity_bytes=np.full((4, 1), 150.0))
    assert lower_bound(tight).seconds > 2 * lower_bound(roomy).seconds


@pytest.mark.parametrize("seed", range(8))
def test_two_tiers(seed: int) -> None:
    """Bytes of each family in one of two tiers; what is short in one is not made up for by the other."""
    priced = random_priced(seed, num_tables=2)
    rng = np.random.default_rng(seed)
    in_second = rng.integers(0, 2, priced.num_families)[priced.shape_family][:, None]
    where = np.concatenate([1 - in_second, in_second], axis=1)
    tiers = replace(
        priced,
        shape_bytes=priced.shape_bytes * where,
        shape_total_bytes=priced.shape_total_bytes * where,
        capacity_bytes=priced.capacity_bytes * np.array([0.9, rng.choice([0.0, 0.3, 2.0])]),
    )
    best = brute_force(tiers)
    for boxes in (1, 20):
        bound = lower_bound(tiers, max_boxes=boxes).seconds
        assert 0 < bound < np.inf
        assert best is None or bound <= best * (1 + 1e-12)


def test_tables_that_exceed_the_cluster_still_have_a_finite_bound() -> None:
    priced = random_priced(0, fill=9.0)
    assert brute_force(priced) is None
    for boxes in (1, 20):
        found = lower_bound(priced, max_boxes=boxes)
        assert 0 < found.seconds < np.inf


@pytest.mark.parametrize("objective", list(Objective))
def test_a_guide_names_listed_options_and_seconds_of_every_phase(objective: Objective) -> None:
    priced = random_priced(4, objective=objective, fill=0.9)
    hint = lower_bound(priced).hint
    assert hint is not None
    assert priced.option_table[hint.option].tolist() == [0, 1, 2]
    assert hint.slowest_seconds.shape == ((2,) if objective is Objective.STEP_TIME else (1,))
    assert np.all(hint.slowest_seconds > 0)
    assert np.all(hint.memory_price >= 0)


def test_boxes_are_counted() -> None:
    (model,) = relaxations(random_priced(1))
    assert len(branch(model, max_boxes=1).nodes) == 1
    assert 1 < len(branch(model, max_boxes=9).nodes) <= 10


def test_boxes_end_with_the_time() -> None:
    """The bound stands on the boxes that there are by then, and the clock is asked only where work is left."""
    priced = random_priced(1)
    (model,) = relaxations(priced)
    every = branch(model, max_boxes=9)
    for most in (0, 1, 2):
        asked: list[int] = []

        def is_over(asked: list[int] = asked, most: int = most) -> bool:
            asked.append(1)
            return len(asked) > most

        found = branch(model, max_boxes=9, is_over=is_over)
        assert len(found.nodes) == 1 + 2 * most
        assert found.bound_seconds <= every.bound_seconds
        assert lower_bound(priced, max_boxes=9, is_over=lambda: True).seconds <= lower_bound(priced).seconds
    asked = []
    branch(model, max_boxes=1, is_over=lambda: bool(asked.append(1)))
    assert not asked


def whole_choices(model: Relaxation) -> float:
    """Try all whole choices: the average rank, or the largest piece on top of what all carry; infinite if none fits."""
    of_table = [np.flatnonzero(model.choice_table == table) for table in range(model.num_tables)]
    best = np.inf
    for combination in itertools.product(*of_table):
        taken = list(combination)
        if np.any(model.total_bytes[taken].sum(axis=0) > model.cluster_bytes):
            continue
        on_top = model.world[taken].sum(axis=0) + model.big[taken].max(axis=0)
        slowest = np.maximum(model.total[taken].sum(axis=0), on_top)
        best = min(best, float(model.weight @ np.maximum(slowest - model.window, 0.0)))
    return best


@pytest.mark.parametrize("objective", list(Objective))
def test_to_the_end_branching_takes_whole_choices(objective: Objective) -> None:
    """Then the bound is that of the program with whole choices, and so is the box it stands on; nothing is packed."""
    for seed in range(12):
        priced = random_priced(seed, num_tables=3, fill=0.7, objective=objective)
        model = replace(relaxations(priced)[0], of_pieces=None)
        want = whole_choices(model)
        found = branch(model, max_boxes=100_000)
        assert len(found.nodes) < 10_000
        assert found.bound_seconds == pytest.approx(want, rel=CLOSE)
        assert found.bound_seconds <= want * (1 + 1e-9)
        assert found.box is not None
        assert np.all(np.abs(found.box.relaxed.share - np.round(found.box.relaxed.share)) < 1e-4)


@pytest.mark.parametrize(("piece", "want", "choices"), [(2.9, 3.9, [0, 1, 2, 3]), (3.2, 4.0, [0, 2, 3])])
def test_half_of_a_piece_on_top_of_what_all_ranks_carry_does_not_exist(
    piece: float, want: float, choices: list[int]
) -> None:
    """Table 0 lies on all ranks or in one piece; the others add one on average and one everywhere.

    Mixed, average and top meet below 3.6; whole, it ends at 4 on all ranks, or at 1 and its piece. The latter is the
    bound of all plans in which some rank has the piece, on top of the second that is on every rank.
    """
    world = np.array([[2.0], [0.0], [0.0], [1.0]])
    model = Relaxation(
        choice_table=np.array([0, 0, 1, 2]),
        num_tables=3,
        total=np.array([[2.0], [0.8], [1.0], [1.0]]),
        big=np.array([[0.0], [piece], [0.9], [0.0]]),
        world=world,
        total_bytes=np.zeros((4, 1)),
        cluster_bytes=np.ones(1),
        weight=np.ones(1),
        window=np.zeros(1),
        family=np.arange(4),
        pieces=np.ones(4, dtype=np.int64),
    )
    on_top = piece - 2.0
    mixed = (4 * on_top + 3 * 1.2) / (on_top + 1.2)  # where 4 - 1.2 x, the average, meets 3 + (piece - 2) x
    assert branch(model, max_boxes=1).bound_seconds == pytest.approx(mixed)
    assert whole_choices(model) == pytest.approx(want)
    found = branch(model, max_boxes=10)
    assert found.bound_seconds == pytest.approx(want)
    assert len(found.nodes) == 3
    assert found.box is not None
    assert np.flatnonzero(found.box.choices).tolist() == choices


def test_choices_that_are_mixed_for_the_average_become_whole() -> None:
    """Nothing is large: one table takes 1 and 0 or 0 and 1.2 seconds of two phases, another 0.9 of the first."""
    seconds = np.array([[1.0, 0.0], [0.0, 1.2], [0.9, 0.9]])
    model = Relaxation(
        choice_table=np.array([0, 0, 1]),
        num_tables=2,
        total=seconds,
        big=seconds / 10,
        world=np.zeros((3, 2)),
        total_bytes=np.array([[0.6], [0.2], [0.5]]),
        cluster_bytes=np.ones(1),
        weight=np.ones(2),
        window=np.zeros(2),
        family=np.arange(3),
        pieces=np.ones(3, dtype=np.int64),
    )
    assert branch(model, max_boxes=1).bound_seconds < 2.9
    found = branch(model, max_boxes=10)
    assert found.bound_seconds == pytest.approx(whole_choices(model))
    assert found.bound_seconds == pytest.approx(3.0)


def test_splits_of_a_large_model_end_if_twice_as_many_hardly_raise_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look comes after as many as the model is small, so that proofs of small ones go on."""
    (model,) = relaxations(random_priced(2, num_tables=3))
    whole = branch(model, max_boxes=200)
    choices = len(model.choice_table)
    monkeypatch.setattr(branching, "_LEAST_DOUBLING_GAIN", np.inf)  # no gain is enough
    assert len(branch(model, max_boxes=200).nodes) == len(whole.nodes)
    monkeypatch.setattr(branching, "_LEAST_LOOKS", 2 * choices)
    ended = branch(model, max_boxes=200)
    assert len(ended.nodes) == 1 + 2 * 4  # looks after two and after four splits, of two boxes each
    assert not ended.is_final
    assert ended.root_seconds <= ended.bound_seconds < whole.bound_seconds
    monkeypatch.setattr(branching, "_LEAST_DOUBLING_GAIN", -np.inf)  # any is
    assert len(branch(model, max_boxes=200).nodes) == len(whole.nodes)


def test_fewer_boxes_are_affordable_where_each_costs_more() -> None:
    """By options and by ranks; one is always, and never are more than 600."""
    assert affordable_boxes(1.0, 1000, 64) > affordable_boxes(1.0, 1000, 256) > affordable_boxes(1.0, 8000, 256) >= 1
    assert affordable_boxes(2.0, 8000, 256) > affordable_boxes(1.0, 8000, 256)
    assert (affordable_boxes(1e-9, 8000, 256), affordable_boxes(1e9, 8000, 256)) == (1, 600)


def test_a_bound_is_final_where_more_boxes_prove_no_more() -> None:
    finals = 0
    for seed in range(8):
        priced = random_priced(seed, num_tables=4)
        end = lower_bound(priced, max_boxes=100_000)
        assert end.is_final
        few = lower_bound(priced, max_boxes=3)
        assert few.seconds <= end.seconds * (1 + CLOSE)
        if few.is_final:
            assert few.seconds == pytest.approx(end.seconds, rel=CLOSE)
        finals += few.is_final
    assert finals < 8


def test_one_of_two_guides_has_no_piece_without_room() -> None:
    """Where the program mixes half of a long piece with other choices; the one that promises more comes first."""
    differ = 0
    for seed in range(30):
        priced = random_priced(seed, num_tables=5, fill=0.4)
        (model,) = relaxations(priced)
        box, hint = branch(model, max_boxes=1, start=priced_memory(model)).box, lower_bound(priced).hint
        assert box is not None
        assert hint is not None
        room = box.relaxed.room * 1.001
        for table in np.flatnonzero(hint.option != hint.second_option).tolist():
            taken = (model.choice_table == table) & (box.share() > 1e-6)
            of_families = [
                taken & (model.family == priced.option_family[option[table]])
                for option in (hint.option, hint.second_option)
            ]
            with_room = [bool(np.any(np.all(model.big[some] <= room, axis=1))) for some in of_families]
            assert any(with_room)
            differ += not all(with_room)
    assert differ > 0


def test_the_guide_that_promises_more_comes_first() -> None:
    """A table is mixed of a piece of 10 s that costs 1 s on average and of one of 3 s that costs 2; z is in between."""
    priced = random_priced(0, num_tables=1)
    (model,) = relaxations(priced)
    long, short = 0, 1
    model = replace(
        model,
        total=np.where(np.arange(len(model.family))[:, None] == long, 1.0, 2.0) * np.ones_like(model.total),
        big=np.where(np.arange(len(model.family))[:, None] == long, 10.0, 3.0) * np.ones_like(model.big),
        world=np.zeros_like(model.world),
        window=np.zeros_like(model.window),
    )
    assert _least(model, np.array([short])) < _least(model, np.array([long]))
    assert _least(model, np.array([long])) == pytest.approx(float(np.sum(model.weight)) * 10.0)
