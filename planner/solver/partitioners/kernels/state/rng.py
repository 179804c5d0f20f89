"""The random numbers of a search: the same bits on every machine."""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.state import State


@compiled
def random_bits(state: State) -> int:
    """Return the next 53 random bits (splitmix64, Steele, Lea and Flood, OOPSLA 2014)."""
    state.seed[0] = state.seed[0] + np.uint64(0x9E3779B97F4A7C15)
    z = state.seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@compiled
def random_below(state: State, count: int) -> int:
    """Return a whole number in [0, count)."""
    return random_bits(state) % count


@compiled
def random_unit(state: State) -> float:
    """Return a number in [0, 1)."""
    return random_bits(state) * (1.0 / 9007199254740992.0)
