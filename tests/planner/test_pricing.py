"""Dropping options never loses the optimum, and drops what it should."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Scheme
from planner.domain.problem import Problem
from planner.enumerate import enumerate_options
from planner.priced import PricedOptions
from planner.pricing import dominated_options, price, prune, restrict, unusable_options
from tests.planner.builders import ROOFLINE, brute_force, make_cluster, make_problem, make_table, random_priced


@pytest.mark.parametrize("seed", range(6))
def test_pruning_keeps_the_optimum(seed: int) -> None:
    priced = random_priced(seed, num_tables=2, fill=0.5)
    doubled = _with_worse_copies(priced)
    assert brute_force(prune(doubled)) == pytest.approx(brute_force(priced), rel=1e-12)
    assert prune(doubled).num_options <= priced.num_options


def _with_worse_copies(priced: PricedOptions) -> PricedOptions:
    """Each option twice, the second time a little slower."""
    order = np.argsort(np.concatenate([priced.option_table, priced.option_table + 0.5]), kind="stable")
    options = np.concatenate([np.arange(priced.num_options)] * 2)[order]
    worse = order >= priced.num_options
    units = [np.flatnonzero(priced.unit_option == o) for o in options]
    flat = np.concatenate(units)
    slower = np.repeat(worse, [len(u) for u in units])
    return replace(
        priced,
        option_table=priced.option_table[options],
        option_same_host=priced.option_same_host[options],
        option_source=np.arange(len(options)),
        unit_option=np.repeat(np.arange(len(options)), [len(u) for u in units]),
        unit_scope=priced.unit_scope[flat],
        unit_seconds=priced.unit_seconds[flat] * np.where(slower, 1.1, 1.0)[:, None],
        unit_bytes=priced.unit_bytes[flat],
        unit_total_bytes=priced.unit_total_bytes[flat],
    )


def test_equal_options_leave_one() -> None:
    priced = random_priced(0, num_tables=1)
    twice = _with_worse_copies(priced)
    equal = replace(
        twice, unit_seconds=twice.unit_seconds / np.where(np.arange(twice.num_units) >= 5, 1.1, 1.0)[:, None]
    )
    assert int((~dominated_options(equal)).sum()) == priced.num_options


def test_an_option_with_a_piece_no_rank_can_hold_is_unusable() -> None:
    priced = random_priced(0, num_tables=1)
    small = replace(priced, capacity_bytes=np.full((4, 1), float(priced.unit_bytes[0, 0]) - 1))
    assert unusable_options(small)[0]
    one_large = small.capacity_bytes.copy()
    one_large[3] = 1e9
    assert not unusable_options(replace(small, capacity_bytes=one_large))[0]
    forbidden = np.array([[True, True, True, False]])
    only_there = replace(small, capacity_bytes=one_large, table_rank_allowed=forbidden)
    assert unusable_options(only_there)[0]


def kept(problem: Problem) -> set[Scheme]:
    options = enumerate_options(problem)
    priced = prune(price(problem, options, ROOFLINE))
    return {options.options[int(o)].scheme for o in priced.option_source}


def test_schemes_that_are_the_same_on_one_host() -> None:
    """On one host table_row_wise is row_wise and table_column_wise is column_wise."""
    found = kept(make_problem(make_table(dim=256, rows=10**6), cluster=make_cluster(1, 4)))
    assert Scheme.TABLE_ROW_WISE not in found
    assert Scheme.TABLE_COLUMN_WISE not in found
    assert {Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE} <= found


def test_restrict_renumbers() -> None:
    priced = random_priced(0, num_tables=2)
    keep = np.ones(priced.num_options, dtype=np.bool_)
    keep[1] = False
    less = restrict(priced, keep)
    assert less.num_options == priced.num_options - 1
    assert less.num_units == priced.num_units - 2
    assert less.unit_option.tolist() == [0, 1, 2, 3, 4, 4, 5, 6]
    assert less.option_source.tolist() == [0, 2, 3, 4, 5, 6, 7]
