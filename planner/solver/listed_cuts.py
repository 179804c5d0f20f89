"""How many ways there are to cut a table, and whether all of them are listed.

A search over listed options that proves something has proven it for all plans only where nothing is unlisted.
"""

import functools

import numpy as np

from planner.solver.problem import SolverProblem

_STEP = 4  # columns between two neighbouring shapes of a family


def lists_all_cuts(priced: SolverProblem) -> bool:
    """Whether every legal cut of every family is a listed option; the order of pieces does not count."""
    first, last = priced.shapes_of_family
    option_first, option_last = priced.options_of_family
    unit_first, unit_last = priced.units_of_option
    for family in np.flatnonzero((priced.family_max_pieces > 1) & ~priced.table_has_fixed_cut[priced.family_table]):
        listed = {
            tuple(sorted(priced.unit_shape[unit_first[option] : unit_last[option]].tolist()))
            for option in range(option_first[family], option_last[family])
        }
        possible = num_cuts(
            int(priced.table_columns[priced.family_table[family]]),
            int(priced.shape_columns[first[family]]),
            int(priced.shape_columns[last[family] - 1]),
            int(priced.family_min_pieces[family]),
            int(priced.family_max_pieces[family]),
        )
        if len(listed) < possible:
            return False
    return True


@functools.lru_cache(maxsize=4096)
def num_cuts(columns: int, narrowest: int, widest: int, min_pieces: int, max_pieces: int) -> int:
    """Return the number of ways to write ``columns`` as a sum of widths, whatever their order.

    Widths are ``narrowest``, ``narrowest`` + 4 and so on up to ``widest``.
    """
    # ways[k, n]: sums of k widths that add up to n columns, counted width by width as change is counted in coins
    ways = np.zeros((max_pieces + 1, columns + 1), dtype=np.float64)
    ways[0, 0] = 1
    for width in range(narrowest, widest + 1, _STEP):
        for pieces in range(1, max_pieces + 1):
            ways[pieces, width:] += ways[pieces - 1, : columns + 1 - width]
    return int(min(ways[min_pieces:, columns].sum(), 2**53))
