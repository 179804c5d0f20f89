"""The data of the relaxation: what no cut of a table goes below, phase by phase and tier by tier.

The choices of tables are those of :mod:`planner.solver.bounds.choices`.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.bounds.choices import Choices, choices_of
from planner.solver.memo import memoized_on_problem
from planner.solver.problem import Objective, Scope, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What single pieces of the choices take on a rank; WORLD pieces, which lie on every rank, take nothing here."""

    choices: Choices
    shape_seconds: Floats  # (S, Q) on a rank of speed 1; for step_time those of the problem itself, which are large
    least_slowdown: Floats  # (Q,) of a rank
    is_world: Bools  # (S,)
    shape_ranks: Ints  # (S,) ranks that a piece lies on
    choice_ranks: Ints  # (C,) the same of choices
    num_ranks: int

    def seconds(self, phase: int) -> Floats:
        """Return what a piece of each shape takes of a phase at least, (S,)."""
        least: Floats = self.shape_seconds[:, phase] * self.least_slowdown[phase] * ~self.is_world
        return least


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Choices of tables as numbers; Q phases, one for max_rank_time.

    Seconds are those of a rank of average speed: what a cluster does in one second of every
    rank is ``rank_seconds[q]`` seconds of work at relative speed 1.
    """

    choice_table: Ints  # (C,) owner of each choice, contiguous
    num_tables: int
    total: Floats  # (C, Q) seconds over all ranks, over the ranks' speeds
    big: Floats  # (C, Q) of the largest piece that is not on every rank
    world: Floats  # (C, Q) on every rank
    total_bytes: Floats  # (C, M)
    cluster_bytes: Floats  # (M,)
    weight: Floats  # (Q,)
    window: Floats  # (Q,) hidden; negative where every plan pays starts
    #: (C,) fewest pieces of the choice: to say which cut a bound stands on
    family: Ints
    pieces: Ints
    of_pieces: Pieces | None = None  # without them nothing is packed


@memoized_on_problem
def relaxations(priced: SolverProblem) -> list[Relaxation]:
    """Return one relaxation per way in which ranks of unequal speed can be added up (one where they are equal)."""
    return [_relaxation(priced, average) for average in _average_speeds(priced)]


def _average_speeds(priced: SolverProblem) -> list[Floats]:
    """Weigh ranks so that their sum is a bound: what the slowest rank takes of all work at relative speed 1, (P,) each.

    step_time: z[p] >= s[r, p] w[r, p] for every rank gives z[p] >= sum_r w[r, p] / sum_r 1 / s[r, p].
    max_rank_time: z >= sum_p s[r, p] w[r, p]; with weights a[r] >= 0 that add up to 1, z >=
    sum_p (min_r a[r] s[r, p]) sum_r w[r, p]. Equal weights suit equal ranks; weights of 1 / s suit
    loads that follow the ranks' speeds.
    """
    slow = priced.rank_slowdown
    if priced.objective is Objective.STEP_TIME:
        return [1.0 / np.sum(1.0 / slow, axis=0)]
    return [np.min(a[:, None] * slow, axis=0) for a in rank_weights(priced)]


def rank_weights(priced: SolverProblem) -> list[Floats]:
    """Return the weights of ranks of each relaxation of max_rank_time, (R,) each, which add up to 1."""
    slow = priced.rank_slowdown
    ways = [np.ones(priced.num_ranks)]
    if np.any(slow != slow[0]):
        ways.append(1.0 / np.max(slow, axis=1))
    return [way / np.sum(way) for way in ways]


def _relaxation(priced: SolverProblem, average: Floats) -> Relaxation:
    choices = choices_of(priced)
    family = choices.family
    total, total_bytes = (
        np.maximum(choices.in_all(costs), 0.0) for costs in (priced.shape_seconds, priced.shape_total_bytes)
    )
    is_world = (priced.family_scope[family] == Scope.WORLD)[:, None]
    world = np.where(is_world, total, 0.0)
    big = np.where(is_world, 0.0, choices.largest(priced.shape_seconds))
    scope_ranks = np.array([1, priced.ranks_per_host, priced.num_ranks])
    ranks = scope_ranks[priced.family_scope[family]][:, None]
    least = np.min(priced.rank_slowdown, axis=0)  # a piece takes at least so many times its work
    total, big, world = total * ranks * average, big * least, world * least
    of_shape = priced.family_scope[priced.shape_family]
    is_shape_world, seconds, weight = of_shape == Scope.WORLD, priced.shape_seconds, priced.phase_weight
    if priced.objective is Objective.MAX_RANK_TIME:
        seconds = seconds * least * ~is_shape_world[:, None]
        total, big, world, seconds = ((each @ weight)[:, None] for each in (total, big, world, seconds))
        weight, least = np.ones(1), np.ones(1)
    return Relaxation(
        choice_table=priced.family_table[family],
        num_tables=priced.num_tables,
        total=total,
        big=big,
        world=world,
        total_bytes=total_bytes,
        cluster_bytes=np.sum(priced.capacity_bytes, axis=0),
        weight=weight,
        window=priced.window_seconds,
        family=family,
        pieces=choices.pieces,
        of_pieces=Pieces(
            choices=choices,
            shape_seconds=seconds,
            least_slowdown=least,
            is_world=is_shape_world,
            shape_ranks=scope_ranks[of_shape],
            choice_ranks=scope_ranks[priced.family_scope[family]],
            num_ranks=priced.num_ranks,
        ),
    )
