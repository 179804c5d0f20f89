"""What a certificate proves: never more than is true, and as much as the planner's own bound."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cost_models.arrays import Bools, Floats
from planner.options.module_rules import ModuleRule
from planner.orchestration.family_sets.branch_kinds import bound_of_kinds
from planner.output.certificate import check as check_certificate
from planner.pricing.price_options import drop_unusable, prune, restrict
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import best_assignment, brute_force, random_priced, with_kinds
from tests.support.planning.certificates import certified, resealed, some_plan, with_rules
from tests.support.thorough import THOROUGH, thorough

ROUNDING = 1 + 1e-11  # prices are stated with twelve digits
SETTINGS = settings(max_examples=25 if THOROUGH else 10, derandomize=True, deadline=None, database=None)


@st.composite
def instances(draw: st.DrawFn) -> SolverProblem:
    """Few enough plans to try them all."""
    num_hosts, ranks_per_host = draw(st.sampled_from(((1, 2), (1, 3), (2, 2), (3, 1))))
    return random_priced(
        draw(st.integers(0, 2**31)),
        num_tables=draw(st.integers(1, 2)),
        num_hosts=num_hosts,
        ranks_per_host=ranks_per_host,
        num_phases=draw(st.integers(1, 3)),
        fill=draw(st.sampled_from((0.3, 0.6, 0.85))),
        objective=draw(st.sampled_from(Objective)),
        windows=draw(st.booleans()),
        columns=draw(st.sampled_from((12, 16))),
        same_host=draw(st.booleans()),
        slowdown=draw(st.booleans()),
        equal_capacity=draw(st.booleans()),
    )


@SETTINGS
@given(instances(), st.sampled_from((1, 5, 40)))
def test_no_plan_beats_what_is_certified(priced: SolverProblem, max_boxes: int) -> None:
    """Certified bound <= optimum <= objective, whether the plan is the best one or not; and the plan costs as told."""
    best, plan = best_assignment(priced), some_plan(prune(priced))
    assume(best is not None)
    assert best is not None
    certificate = certified(priced, best, max_boxes=max_boxes)
    claim = certificate["claim"]
    optimum = objective_of(priced, best)
    assert claim["objective_seconds"] == pytest.approx(optimum, rel=1e-9)
    assert claim["bound_seconds"] <= optimum * ROUNDING
    assert check_certificate.check(certificate)
    if plan is not None and violations(prune(priced), plan) == []:
        weaker = certified(prune(priced), plan, max_boxes=max_boxes)["claim"]
        assert weaker["bound_seconds"] <= optimum <= weaker["objective_seconds"] * ROUNDING


def test_a_kind_that_is_replaced_only_on_one_side_of_a_rule_pays_its_starts() -> None:
    """Of three families that lie everywhere the first replaces both others, from which a rule divides it.

    On their side the second replaces the third. The certificate cannot say so, and has to split by the third one, too.
    """
    one = random_priced(3, num_tables=1, num_hosts=1)
    whole = restrict(with_kinds(one, 0), one.family_max_pieces == 1)
    sizes = np.ones_like(whole.shape_bytes)
    priced = replace(
        whole,
        family_scope=np.full(3, Scope.WORLD, dtype=np.int8),
        family_kind=np.arange(3),
        shape_seconds=np.array([[1.0, 1.0], [1.1, 1.1], [1.2, 1.2]]),
        shape_bytes=sizes,
        shape_total_bytes=sizes * one.num_ranks,
        kind_start_seconds=np.array([[20.0, 20.0], [30.0, 30.0], [40.0, 40.0]]),
        charged_kinds=np.zeros(3, dtype=np.bool_),
    )
    tied = np.array([False, True, True])
    rule = ModuleRule(is_of_module=np.ones(3, dtype=np.bool_), tied=tied, not_by_rows=~tied)
    best = best_assignment(priced)
    assert best is not None
    certificate = certified(priced, best, (rule,))
    assert certificate["claim"]["bound_seconds"] == pytest.approx(42.0, rel=1e-6)
    assert check_certificate.check(certificate)


@SETTINGS
@given(
    instances(),
    st.integers(0, 2**31),
    st.sampled_from((1, 8, 60)),
    st.sampled_from((0.1, 3.0, 30.0)),
    st.sampled_from((1, 2)),
)
def test_no_plan_with_starts_beats_what_is_certified(
    priced: SolverProblem, seed: int, max_boxes: int, scale: float, num_modules: int
) -> None:
    """The best plan over all sets of kinds, found by trying all plans."""
    priced = with_kinds(priced, seed, scale=scale, num_modules=num_modules)
    best = best_assignment(priced)
    assume(best is not None)
    assert best is not None
    certificate = certified(priced, best, max_boxes=max_boxes)
    claim, optimum = certificate["claim"], objective_of(priced, best)
    assert claim["objective_seconds"] == pytest.approx(optimum, rel=1e-9)
    assert claim["bound_seconds"] <= optimum * ROUNDING
    assert check_certificate.check(certificate)


def test_starts_that_every_plan_pays_are_proven() -> None:
    """Splits by kinds charge them, in proofs of few boxes, too; a bound on loads alone knows nothing of them."""
    gained = 0
    for seed in range(6):
        priced = with_kinds(random_priced(seed, num_tables=3), seed, scale=20.0)
        best = best_assignment(priced)
        assert best is not None
        few, many = (certified(priced, best, max_boxes=boxes)["claim"]["bound_seconds"] for boxes in (1, 60))
        assert few <= many * ROUNDING
        assert many <= objective_of(priced, best) * ROUNDING
        gained += few > 1.5 * lower_bound(priced, max_boxes=60).seconds
    assert gained >= 5


@pytest.mark.parametrize("seed", range(8))
def test_as_much_is_proven_as_a_solve_bounds(seed: int) -> None:
    """With as many boxes: also of sets of kinds that were never looked at, at the prices of others."""
    priced = with_kinds(random_priced(seed, num_tables=3), seed, scale=(3.0, 20.0)[seed % 2])
    best = best_assignment(priced)
    assert best is not None
    known = objective_of(priced, best)
    bound = bound_of_kinds(drop_unusable(priced), max_boxes=60, known_seconds=known)
    proven = certified(priced, best, max_boxes=60)["claim"]["bound_seconds"]
    assert proven >= min(bound, known) * (1 - 1e-6)


def test_kinds_of_many_modules_are_proven_without_splits_by_all_of_them() -> None:
    """At the prices of one relaxation each module takes its cheapest kinds, whether tables in it share kinds or not."""
    priced = drop_unusable(with_kinds(random_priced(3, num_tables=16, windows=False, fill=0.4), 3, num_modules=8))
    plan = some_plan(priced)
    assert plan is not None
    known = objective_of(priced, plan)
    bound = bound_of_kinds(priced, max_boxes=1, known_seconds=known)
    certificate = certified(priced, plan, max_boxes=1)
    assert certificate["claim"]["bound_seconds"] >= min(bound, known) * (1 - 1e-6)
    assert sum("kind" in node for node in certificate["proof"]["nodes"]) < 200
    assert bound > 1.01 * lower_bound(priced).seconds


def test_kinds_of_a_group_that_is_too_large_start_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All subsets of 20 kinds would be too many to look at."""
    priced = drop_unusable(with_kinds(random_priced(3, num_tables=16, windows=False, fill=0.4), 3, num_modules=8))
    plan = some_plan(priced)
    assert plan is not None
    certificate = certified(priced, plan, max_boxes=1)
    problem = check_certificate.Problem(certificate["problem"])
    bound = problem.bound(certificate["proof"], objective_of(priced, plan))
    monkeypatch.setattr(check_certificate, "MOST_JOINED", 3)
    fewer = check_certificate.Problem(certificate["problem"]).bound(certificate["proof"], objective_of(priced, plan))
    assert 0 < fewer < bound


@pytest.mark.parametrize("forged", ["starts", "twice", "left-out", "kind"])
def test_forged_starts_are_rejected(forged: str) -> None:
    priced = with_kinds(random_priced(1, num_tables=3), 1, scale=20.0)
    best = best_assignment(priced)
    assert best is not None
    certificate = certified(priced, best, max_boxes=60)
    stated, nodes = certificate["problem"], certificate["proof"]["nodes"]
    if forged == "starts":
        stated["starts"][0][0] = -1.0
    if forged == "kind":
        stated["families"][0]["kind"] = len(stated["starts"])
    if forged == "twice":  # the root's kind again on the side that paid it
        [split] = [node for node in nodes[:1] if "kind" in node]
        nodes.append({"kind": split["kind"], "children": [None, split["children"][1]]})
        split["children"][1] = len(nodes) - 1
    if forged == "left-out":
        node = next(node for node in nodes if "kind" in node and None not in node["children"])
        node["children"][0] = None
    with pytest.raises(ValueError, match=r"negative|kind|missing"):
        check_certificate.check(resealed(certificate))


@thorough
@SETTINGS
@given(instances(), st.integers(0, 2**31))
def test_rules_are_split_without_losing_a_plan(priced: SolverProblem, seed: int) -> None:
    """The optimum of a rule is the better one of its sides."""
    priced, rules = with_rules(priced, seed)
    best, at = np.inf, None
    for side in (rules[0].tied, rules[0].not_by_rows):
        if len(np.unique(priced.family_table[~side])) == priced.num_tables:
            some = restrict(priced, ~side)
            found = best_assignment(some)
            if found is not None and objective_of(some, found) < best:
                best, at = objective_of(some, found), (some, found)
    assume(at is not None)
    assert at is not None
    some, found = at
    whole = _in_whole(priced, some, found.piece_shape)
    certificate = certified(priced, type(found)(piece_shape=whole, piece_site=found.piece_site.copy()), rules)
    assert certificate["claim"]["bound_seconds"] <= best * ROUNDING
    assert check_certificate.check(certificate)


def _in_whole(priced: SolverProblem, some: SolverProblem, shape: Any) -> Any:
    """The same shapes as a problem with all families numbers them."""
    family = some.family_source[some.shape_family[shape]]
    return priced.shapes_of_family[0][family] + shape - some.shapes_of_family[0][some.shape_family[shape]]


@pytest.mark.parametrize("objective", list(Objective))
def test_as_much_is_proven_as_the_planner_knows(objective: Objective) -> None:
    """The bound of the same boxes, except for the largest piece where much is hidden under dense compute."""
    for seed, slowdown in itertools.product(range(6), (False, True)):
        priced = random_priced(seed, objective=objective, slowdown=slowdown, num_tables=4)
        plan = some_plan(prune(priced))
        assert plan is not None
        known = objective_of(prune(priced), plan)
        own = lower_bound(prune(priced), max_boxes=20, known_seconds=known).seconds
        claim = certified(prune(priced), plan, max_boxes=20)["claim"]
        assert claim["bound_seconds"] >= min(own, known) * (1 - 2e-9)


def test_splits_raise_what_is_proven() -> None:
    """Few tables per rank: half of a whole table is no plan."""
    raised = 0
    for seed in range(6):
        priced = random_priced(seed, num_tables=3)
        best = best_assignment(priced)
        assert best is not None
        few, many = (certified(priced, best, max_boxes=boxes)["claim"]["bound_seconds"] for boxes in (1, 40))
        raised += many > 1.02 * few
    assert raised >= 3


@thorough
def test_a_box_without_room_is_closed_by_prices_of_bytes() -> None:
    """Where memory alone leaves no plan in a part of the tree, a leaf has no price of time there."""
    leaves = []
    for seed in range(30):
        priced = random_priced(seed, num_tables=3, fill=0.9)
        best = best_assignment(priced)
        if best is not None:
            certificate = certified(priced, best, max_boxes=60)
            assert certificate["claim"]["bound_seconds"] <= objective_of(priced, best)
            leaves += [node["prices"] for node in certificate["proof"]["nodes"] if "prices" in node]
    assert any(max(leaf["memory"]) > 0 and max(leaf["average"]) == 0 for leaf in leaves)


@SETTINGS
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=6, unique=True).map(sorted),
    st.data(),
)
def test_the_hull_is_below_every_cut(widths: list[int], data: st.DataObject) -> None:
    """All multisets of pieces cost at least what is said of their number, and two widths reach it."""
    costs = data.draw(st.lists(st.integers(0, 1000), min_size=len(widths), max_size=len(widths)))
    count = data.draw(st.integers(1, 4))
    cost_of = dict(zip(widths, costs, strict=True))
    by_columns: dict[int, int] = {}
    for pieces in itertools.combinations_with_replacement(widths, count):
        total = sum(cost_of[piece] for piece in pieces)
        by_columns[sum(pieces)] = min(total, by_columns.get(sum(pieces), total))
    for columns, least in by_columns.items():
        (message,) = check_certificate.least_of_cuts(list(cost_of.items()), [count], columns)
        assert message <= least
        if count == 1 and len(widths) <= 2:
            assert message == least


@SETTINGS
@given(st.integers(0, 2**31), st.sampled_from((1.0, 1e3, 1e17)))
def test_families_that_doubles_leave_out_are_not_the_cheapest(seed: int, scale: float) -> None:
    """Of every table the cheapest choice costs what whole numbers say of all its choices."""
    rng = np.random.default_rng(seed)
    priced = random_priced(seed, num_tables=3, columns=16)
    best = best_assignment(priced)
    assume(best is not None)
    assert best is not None
    certificate = certified(priced, best)
    problem = check_certificate.Problem(certificate["problem"])
    problem.bound(certificate["proof"], certificate["claim"]["objective_seconds"])
    for _ in range(20):
        costs = np.floor(scale * rng.integers(3, 9, len(problem.width)) + rng.integers(0, 2, len(problem.width)))
        largest = np.floor(scale * rng.random(len(problem.table)))
        alive = rng.random(len(problem.table)) < 0.8
        alive[np.unique(problem.table, return_index=True)[1]] = True  # a choice of each table at least
        assert problem.cheapest_of_tables(alive, costs, largest) == _cheapest_of_all(problem, alive, costs, largest)


def _cheapest_of_all(problem: check_certificate.Problem, alive: Bools, costs: Floats, largest: Floats) -> list[int]:
    found: list[list[int]] = [[] for _ in problem.columns]
    for choice in np.flatnonzero(alive).tolist():
        family, begin = problem.families[problem.family[choice]], int(problem.end[problem.family[choice]])
        of_widths = map(int, costs[begin : begin + len(family.widths)].tolist())
        points, pieces = list(zip(family.widths, of_widths, strict=True)), [int(problem.pieces[choice])]
        (cost,) = check_certificate.least_of_cuts(points, pieces, problem.columns[family.table])
        found[family.table].append(cost + int(largest[choice]))
    return [*map(min, found)]


def test_what_is_certified_is_as_hard_to_beat_as_brute_force_says() -> None:
    """Of small instances the proof reaches the optimum itself, where averages come out even."""
    ratios = []
    for seed in range(8):
        priced = random_priced(seed, num_tables=2, num_hosts=1, ranks_per_host=2)
        best, optimum = best_assignment(priced), brute_force(priced)
        assert best is not None
        assert optimum is not None
        ratios.append(certified(priced, best, max_boxes=60)["claim"]["bound_seconds"] / optimum)
    assert max(ratios) <= 1
    assert min(ratios) > 0.6
