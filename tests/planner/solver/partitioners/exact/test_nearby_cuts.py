from dataclasses import replace

import numpy as np

from planner.solver.evaluate import violations
from planner.solver.partitioners.exact.listed_cuts import options_of
from planner.solver.partitioners.exact.nearby_cuts import with_nearby_cuts
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Assignment
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced


def test_every_cut_on_the_list_is_legal_and_more_of_them_are_there() -> None:
    priced = random_priced(0, num_tables=4, fill=0.2, columns=24, max_pieces=4, same_host=True)
    plan = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert plan is not None
    listed = with_nearby_cuts(priced, plan, 20, np.random.default_rng(0))
    assert listed.num_options > priced.num_options
    assert np.all(options_of(listed, plan) >= 0)
    first, last = listed.units_of_option
    own, _ = listed.options_of_table
    whole = [listed.unit_shape[first[option] : last[option]] for option in own]
    for option, table in enumerate(listed.option_table):
        cuts = [*whole[:table], listed.unit_shape[first[option] : last[option]], *whole[table + 1 :]]
        shape = np.concatenate(cuts)
        assert violations(listed, Assignment(piece_shape=shape, piece_site=np.zeros_like(shape))) == []


def test_pinned_tables_get_no_cuts() -> None:
    priced = random_priced(0, num_tables=3, fill=0.2, columns=24, max_pieces=4)
    plan = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert plan is not None
    pinned = replace(priced, pinned_shape=plan.piece_shape, pinned_site=plan.piece_site)
    assert with_nearby_cuts(pinned, plan, 20, np.random.default_rng(0)).num_options == priced.num_options


def test_a_family_of_one_width_has_no_other_cut() -> None:
    """Row-wise tables are whole in every family of their scope."""
    priced = random_priced(1, num_tables=2, fill=0.2)
    world = np.array([priced.shapes_of_family[0][priced.families_of_table[1][t] - 1] for t in range(2)])
    plan = Assignment(piece_shape=world, piece_site=np.zeros(2, dtype=np.int64))
    assert violations(priced, plan) == []
    assert with_nearby_cuts(priced, plan, 5, np.random.default_rng(0)) is priced
