"""Rows of packing: no rank holds more than they say, and bounds that stand on them exceed no plan."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.output.certificate.check import part_of_rank
from planner.pricing.price_options import restrict
from planner.solver.bounds import packing
from planner.solver.bounds.boxes import branch
from planner.solver.bounds.chain import lower_bound
from planner.solver.bounds.choices import choices_of
from planner.solver.bounds.packing import sizes, with_rows
from planner.solver.bounds.relaxation import relaxations
from planner.solver.evaluate import objective_of
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import best_assignment, random_priced
from tests.support.planning.certificates import certified

WAYS = [*((parts, 0.0) for parts in range(1, 7)), *((0, least) for least in (1.0, 2.0, 2.4, 3.0, 5.0, 9.0))]


@pytest.mark.parametrize(("parts", "least"), WAYS)
def test_pieces_that_fit_into_a_room_have_sizes_of_one_at_most(parts: int, least: float) -> None:
    """All sets of up to five pieces of 1 to 9 seconds that take 10 at most; sizes of the planner and of the checker."""
    pieces = np.array([1.0, 2.0, 2.5, 3.0, 10 / 3, 4.0, 5.0, 6.0, 7.5, 9.0])
    ours = sizes(pieces, np.array([10.0]), np.array([parts]), np.array([least]))[0]
    checked = part_of_rank(pieces, 10.0, parts, least)
    assert np.all(ours <= checked + 1e-12)
    assert np.any(ours > 0)
    for number in range(1, 6):
        for some in itertools.combinations_with_replacement(range(len(pieces)), number):
            if pieces[list(some)].sum() <= 10.0 + 1e-9:
                assert ours[list(some)].sum() <= 1 + 1e-12
                assert checked[list(some)].sum() <= 1 + 1e-12


def test_a_checker_refuses_rows_that_say_nothing() -> None:
    for room, parts, least in ((0.0, 1, 0.0), (1.0, 0, 0.0), (1.0, -1, 0.0)):
        with pytest.raises(ValueError, match=r"no room|whole number"):
            part_of_rank(np.ones(2), room, parts, least)


def test_a_program_with_rows_has_more_tiers() -> None:
    (model,) = relaxations(equal_tables(5, 4))
    assert with_rows(model, ()) is model
    found = branch(model, max_boxes=10)
    rows = next(node.rows for node in found.nodes if node.rows)
    packed = with_rows(model, rows)
    assert packed.cluster_bytes[-len(rows) :].tolist() == [4.0] * len(rows)
    assert packed.total_bytes.shape == (len(model.family), len(model.cluster_bytes) + len(rows))


def equal_tables(num_tables: int, num_ranks: int) -> SolverProblem:
    """Tables that lie whole on one rank and take a second there."""
    priced = random_priced(0, num_tables=num_tables, num_hosts=1, ranks_per_host=num_ranks, num_phases=1)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    return replace(
        whole,
        shape_seconds=np.ones_like(whole.shape_seconds),
        capacity_bytes=np.full_like(whole.capacity_bytes, whole.shape_bytes.sum()),
    )


@pytest.mark.parametrize(("num_tables", "num_ranks"), [(5, 4), (9, 4), (10, 4), (13, 4), (26, 8)])
def test_equal_tables_are_counted(num_tables: int, num_ranks: int) -> None:
    """Some rank has the mean number of tables, rounded up."""
    priced = equal_tables(num_tables, num_ranks)
    assert lower_bound(priced).seconds == pytest.approx(num_tables / num_ranks)
    assert lower_bound(priced, max_boxes=20).seconds == pytest.approx(-(-num_tables // num_ranks))


@pytest.mark.parametrize("objective", list(Objective))
def test_bounds_and_certificates_that_pack_exceed_no_plan(objective: Objective) -> None:
    """Pieces of few tables are large; trees of problems that leave options out may differ a little."""
    packed = 0
    for seed in range(8):
        priced = random_priced(seed, num_tables=3, fill=0.6, objective=objective)
        best = best_assignment(priced)
        assert best is not None
        optimum = objective_of(priced, best)
        bound = lower_bound(priced, max_boxes=40, known_seconds=optimum).seconds
        assert bound <= optimum * (1 + 1e-9)
        packed += any(node.rows for node in branch(relaxations(priced)[0], max_boxes=40).nodes)
        certificate = certified(priced, best, max_boxes=40)
        assert 0.99 * min(bound, optimum) <= certificate["claim"]["bound_seconds"] <= optimum * (1 + 1e-9)
    assert packed >= 3


def test_a_choice_takes_what_no_cut_of_it_goes_below() -> None:
    """Sizes are steps over widths; all cuts of 16 columns into pieces of 4, 8 and 12 are looked at."""
    priced = random_priced(2, num_tables=2)
    choices, shapes = choices_of(priced), priced.shapes_of_family
    size = sizes(priced.shape_seconds[:, 0], np.array([3.0]), np.array([2]), np.array([0.0]))[0]
    found = choices.in_all(size[:, None])[:, 0]
    for choice, (family, fewest) in enumerate(zip(choices.family.tolist(), choices.pieces.tolist(), strict=True)):
        own = np.arange(shapes[0][family], shapes[1][family])
        columns = priced.table_columns[priced.family_table[family]]
        cuts = [
            cut
            for cut in itertools.combinations_with_replacement(own.tolist(), fewest)
            if priced.shape_columns[list(cut)].sum() == columns
        ]
        assert all(found[choice] <= size[list(cut)].sum() + 1e-12 for cut in cuts)


def test_rooms_are_gone_through_in_parts_of_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    seconds, copies = np.sort(rng.random(50))[::-1], rng.random(50)
    rooms, parts = rng.random(33) + 0.5, rng.integers(0, 4, 33)
    least = np.where(parts > 0, 0.0, rng.random(33) / 4 + 0.01)
    whole = packing.sizes(seconds, rooms, parts, least) @ copies
    looked_at = []
    sizes = packing.sizes

    def counted(*arguments: np.ndarray) -> np.ndarray:
        looked_at.append(len(arguments[1]))
        return sizes(*arguments)

    monkeypatch.setattr(packing, "sizes", counted)
    monkeypatch.setattr(packing, "_MOST_SIZES", 200)
    np.testing.assert_allclose(packing.taken_in_rooms(seconds, copies, rooms, parts, least), whole)
    assert looked_at == [4] * 8 + [1]
