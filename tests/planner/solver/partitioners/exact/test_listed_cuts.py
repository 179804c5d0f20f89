import numpy as np

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.exact.listed_cuts import options_of, with_cuts_of
from tests.support.planning.builders import best_assignment, make_assignment, narrowest_shape, random_priced


def test_the_option_of_a_listed_cut_whatever_the_order_of_its_pieces() -> None:
    """Options of a table: whole, 8 + 8, 8 + 4 + 4, per host, everywhere."""
    priced = random_priced(0, num_tables=2, num_hosts=2)
    four, whole = narrowest_shape(priced, 0, 1), narrowest_shape(priced, 1, 0)
    assignment = make_assignment([(four, 0), (four + 1, 1), (four, 2), (whole, 3)])
    assert options_of(priced, assignment).tolist() == [2, 5]
    assert with_cuts_of(priced, assignment) is priced


def test_a_missing_cut_becomes_the_last_option_of_its_family() -> None:
    """12 + 4 columns are not listed; everything else keeps its place."""
    priced = random_priced(0, num_tables=2)
    four = narrowest_shape(priced, 0, 1)
    assignment = make_assignment([(four + 2, 0), (four, 1), (narrowest_shape(priced, 1, 0), 3)])
    assert options_of(priced, assignment).tolist() == [-1, 5]
    listed = with_cuts_of(priced, assignment)
    assert options_of(listed, assignment).tolist() == [3, 6]
    assert listed.num_options == priced.num_options + 1
    first, last = listed.units_of_option
    assert listed.unit_shape[first[3] : last[3]].tolist() == [four + 2, four]
    old = np.delete(np.arange(listed.num_options), 3)
    np.testing.assert_array_equal(listed.option_family[old], priced.option_family)
    preserved = listed.unit_option != 3
    np.testing.assert_array_equal(listed.unit_shape[preserved], priced.unit_shape)
    np.testing.assert_array_equal(np.searchsorted(old, listed.unit_option[preserved]), priced.unit_option)


def test_shapes_are_untouched_so_that_an_assignment_means_the_same() -> None:
    for seed in range(4):
        priced = random_priced(seed)
        best = best_assignment(priced)
        assert best is not None
        listed = with_cuts_of(priced, best)
        assert violations(listed, best) == []
        assert objective_of(listed, best) == objective_of(priced, best)
        assert np.all(options_of(listed, best) >= 0)
