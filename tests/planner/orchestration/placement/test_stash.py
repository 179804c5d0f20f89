"""The choice of stashed tables: enough for every rank, none too many, and none where whole tables do not fit."""

from itertools import product

import numpy as np
import pytest

from planner.domain.plan.placement import Placement
from planner.domain.problem.dense import Dense
from planner.domain.problem.stash import Stash
from planner.orchestration.placement.stash import NoStash, with_stash
from planner.verification.verify import verify
from tests.planner.verification.test_stash import placed, problem


def stashed_names(placement: Placement) -> str:
    return "".join(one.name for one in placement.tables if one.stash_weights)


def test_as_few_tables_as_needed_are_stashed() -> None:
    # 0.54 GB are needed, of tables of 256 MB
    found = with_stash(problem(), placed(""))
    assert len(stashed_names(found)) == 3
    assert verify(problem(), found) == ()


def test_nothing_is_stashed_where_activations_fit() -> None:
    assert stashed_names(with_stash(problem(hbm_bytes=20e9), placed(""))) == ""


def test_only_tables_that_may_be_stashed_are() -> None:
    allowed = problem(stash=Stash(tables=frozenset("bdf")))
    assert stashed_names(with_stash(allowed, placed(""))) == "bdf"
    with pytest.raises(NoStash):
        with_stash(problem(stash=Stash(tables=frozenset("bd"))), placed(""))


def test_copies_that_take_too_long_are_no_stash() -> None:
    with pytest.raises(NoStash):
        with_stash(problem(stash=Stash(link_share=0.3)), placed(""))


def test_a_choice_is_found_where_any_is() -> None:
    """All tables are equal, so that only their number counts: brute force over all subsets says which is possible."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(60):
        one = problem(
            hbm_bytes=rng.uniform(1.55e9, 3e9),
            stash=Stash(link_share=rng.uniform(0.2, 1)),
            dense=Dense(
                forward_seconds=rng.uniform(0.02, 0.1),
                backward_seconds=rng.uniform(0.02, 0.1),
                activation_bytes=rng.uniform(0.2e9, 1.2e9),
            ),
        )
        subsets = (
            "".join(name for name, held in zip("abcdef", of, strict=True) if held) for of in product((0, 1), repeat=6)
        )
        is_possible = any(verify(one, placed(names)) == () for names in subsets)
        try:
            chosen = with_stash(one, placed(""))
        except NoStash:
            assert not is_possible
        else:
            assert is_possible
            assert verify(one, chosen) == ()
            found += 1
    assert 10 < found < 60
