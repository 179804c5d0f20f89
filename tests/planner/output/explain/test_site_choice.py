"""The best sites of one table's pieces, against all of them evaluated one by one."""

from typing import Any

import numpy as np
import pytest

from planner.output.explain import site_choice
from planner.output.explain.site_choice import PlacedCut, Rest, site_combinations
from planner.solver.evaluate import objective_of, rank_loads, touched_ranks
from planner.solver.problem import Assignment, Objective, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.planning.exhaustive import Pieces, listed_cuts, placements

CASES = [
    {"objective": Objective.STEP_TIME, "same_host": True, "slowdown": True, "windows": True},
    {"objective": Objective.STEP_TIME, "fill": 1.4, "equal_capacity": False, "same_host": True},
    {"objective": Objective.MAX_RANK_TIME, "slowdown": True, "same_host": True},
    {"objective": Objective.MAX_RANK_TIME, "fill": 1.6, "ranks_per_host": 3},
]


def others_of(priced: SolverProblem, seed: int) -> list[Pieces]:
    """Tables 1 and up, each in some cut on some sites."""
    rng = np.random.default_rng(seed)
    every = [list(placements(priced, table)) for table in range(1, priced.num_tables)]
    return [pieces[int(rng.integers(len(pieces)))] for pieces in every]


def assignment_of(tables: list[Pieces]) -> Assignment:
    pieces = [piece for one in tables for piece in one]
    return Assignment(piece_shape=np.array([p[0] for p in pieces]), piece_site=np.array([p[1] for p in pieces]))


def rest_of(priced: SolverProblem, others: list[Pieces], allowed: list[bool]) -> Rest:
    loads = rank_loads(priced, assignment_of(others))
    return Rest(priced=priced, seconds=loads.seconds, bytes=loads.bytes, allowed=np.array(allowed))


def brute(priced: SolverProblem, others: list[Pieces], family: int, allowed: list[bool]) -> tuple[float, float] | None:
    """Least excess, then least objective, over the listed cuts of one family of table 0 on all sites."""
    scores = []
    for pieces in placements(priced, 0, listed=True):
        if priced.shape_family[pieces[0][0]] != family:
            continue
        touched = touched_ranks(priced, assignment_of([pieces]))[0]
        hosts = set(priced.host_of_rank[touched].tolist())
        if np.any(touched & ~np.array(allowed)) or (priced.family_same_host[family] and len(hosts) > 1):
            continue
        changed = assignment_of([pieces, *others])
        excess = float(np.max(rank_loads(priced, changed).bytes[touched] - priced.capacity_bytes[touched]))
        scores.append((max(excess, 0.0), objective_of(priced, changed)))
    return min(scores, default=None)


def found(priced: SolverProblem, others: list[Pieces], family: int, allowed: list[bool]) -> PlacedCut | None:
    cuts = [np.array(cut) for cut in listed_cuts(priced, family)]
    return rest_of(priced, others, allowed).best_cut(cuts, same_host=bool(priced.family_same_host[family]))


def families_of_table_0(priced: SolverProblem) -> list[int]:
    return np.flatnonzero(priced.family_table == 0).tolist()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_best_of_all(case: dict[str, Any], seed: int) -> None:
    priced = random_priced(seed, **case)
    others = others_of(priced, seed)
    allowed = [True] * priced.num_ranks if seed % 2 else [rank != 1 for rank in range(priced.num_ranks)]
    for family in families_of_table_0(priced):
        best, expected = found(priced, others, family, allowed), brute(priced, others, family, allowed)
        assert (best is None) == (expected is None)
        if best is not None and expected is not None:
            assert best.score == pytest.approx(expected)
            assert best.is_best
            changed = assignment_of([tuple(zip(best.shapes.tolist(), best.sites.tolist(), strict=True)), *others])
            assert objective_of(priced, changed) == pytest.approx(best.objective_seconds)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(6))
def test_where_not_all_are_tried_it_says_whether_it_may_not_be_the_best(
    case: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_choice, "MAX_COMBINATIONS", 0)
    site_combinations.cache_clear()
    priced = random_priced(seed, **case)
    others, allowed = others_of(priced, seed), [True] * priced.num_ranks
    for family in families_of_table_0(priced):
        best, expected = found(priced, others, family, allowed), brute(priced, others, family, allowed)
        assert best is not None
        assert expected is not None
        assert best.score >= (expected[0] - 1e-9, expected[1] * (1 - 1e-12) if best.excess_bytes == expected[0] else 0)
        if best.is_best:
            assert best.score == pytest.approx(expected)
        changed = assignment_of([tuple(zip(best.shapes.tolist(), best.sites.tolist(), strict=True)), *others])
        assert objective_of(priced, changed) == pytest.approx(best.objective_seconds)
    site_combinations.cache_clear()


def test_equal_pieces_change_places_for_nothing() -> None:
    """Two equal pieces on three sites: 3 + 2 + 1 ways; with a third, unequal one: three times as many."""
    two, three = site_combinations(3, (2,)), site_combinations(3, (2, 1))
    assert two is not None
    assert three is not None
    assert two.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    assert three.shape == (18, 3)
    assert site_combinations(1000, (2,)) is None
