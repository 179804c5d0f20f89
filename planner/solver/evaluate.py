"""What an assignment costs, and whether it is allowed: arrays in, numbers out.

Partitioners report no objective of their own; this module computes it. The pipeline
compares it with :mod:`planner.verification.evaluate_placement`, which starts again from the geometry of the plan.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.fixed_cuts import has_fixed_cuts
from planner.solver.movement import moved_bytes
from planner.solver.problem import Assignment, Objective, OwnStep, Scope, SolverProblem

_BYTE_ROUNDING = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Seconds and bytes that an assignment puts on every rank."""

    seconds: Floats  # (R, P)
    bytes: Floats  # (R, M)


def rank_loads(priced: SolverProblem, assignment: Assignment) -> Loads:
    """Add up what every rank carries."""
    shape, site = assignment.piece_shape, assignment.piece_site
    scope = priced.shape_scope[shape]
    return Loads(
        seconds=_spread(priced, priced.shape_seconds[shape], site, scope) * priced.rank_slowdown,
        bytes=_spread(priced, priced.shape_bytes[shape], site, scope),
    )


def keeps_own_step(priced: SolverProblem, assignment: Assignment, own_step: OwnStep) -> bool:
    """Whether no rank keeps a tier busy for longer than the step of the assignment takes."""
    slowest = np.max(rank_seconds(priced, assignment), axis=0)
    phases = own_step.phase_weight * np.maximum(slowest - own_step.phase_window_seconds, 0.0)
    return bool(np.all(busy_seconds(priced, assignment) <= float(np.sum(phases)) + own_step.rest_seconds))


def busy_seconds(priced: SolverProblem, assignment: Assignment) -> Floats:
    """Return for how long every rank keeps each slower tier busy in one step, shape (R, K); K is 0 if none is read."""
    if priced.shape_busy_seconds is None:
        return np.zeros((priced.num_ranks, 0))
    return rank_amounts(priced, assignment, priced.shape_busy_seconds)


def rank_amounts(priced: SolverProblem, assignment: Assignment, amounts: Floats) -> Floats:
    """Add up over each rank's pieces what one of each shape adds, (S, columns) to (R, columns)."""
    shape = assignment.piece_shape
    return _spread(priced, amounts[shape], assignment.piece_site, priced.shape_scope[shape])


def _spread(priced: SolverProblem, amounts: Floats, site: Ints, scope: NDArray[np.int8]) -> Floats:
    """Add rows of ``amounts`` to the ranks that their pieces touch, shape (R, columns)."""
    on_rank, on_host, on_world = (scope == kind for kind in (Scope.RANK, Scope.HOST, Scope.WORLD))
    ranks = np.zeros((priced.num_ranks, amounts.shape[1]))
    hosts = np.zeros((priced.num_hosts, amounts.shape[1]))
    np.add.at(ranks, site[on_rank], amounts[on_rank])
    np.add.at(hosts, site[on_host], amounts[on_host])
    total: Floats = ranks + hosts[priced.host_of_rank] + np.sum(amounts[on_world], axis=0)
    return total


def objective_of(priced: SolverProblem, assignment: Assignment) -> float:
    """Return what searches minimise, seconds: one step, and the price of moving there where there is one."""
    return step_seconds_of(priced, assignment) + move_seconds_of(priced, assignment)


def step_seconds_of(priced: SolverProblem, assignment: Assignment) -> float:
    """Return the objective of one step of an assignment, seconds."""
    return objective_seconds(priced, rank_seconds(priced, assignment))


def rank_seconds(priced: SolverProblem, assignment: Assignment) -> Floats:
    """Return what every rank takes: its loads, and the starts of the kinds that the assignment uses, (R, P)."""
    loads = rank_loads(priced, assignment).seconds
    return loads + start_seconds(priced, used_kinds(priced, assignment)) if priced.num_kinds else loads


def start_seconds(priced: SolverProblem, used: Bools) -> Floats:
    """Return the starts of some kinds, (P,)."""
    total: Floats = used @ priced.kind_start_seconds
    return total


def used_kinds(priced: SolverProblem, assignment: Assignment) -> Bools:
    """Return which kinds an assignment uses, (K,)."""
    used = np.zeros(priced.num_kinds, dtype=np.bool_)
    if priced.num_kinds:
        used[priced.family_kind[priced.shape_family[assignment.piece_shape]]] = True
    return used


def move_seconds_of(priced: SolverProblem, assignment: Assignment) -> float:
    """Return the price of moving to an assignment, as seconds of one step; 0 where nothing runs yet."""
    if priced.move is None:
        return 0.0
    moved = moved_bytes(priced, assignment)
    return moved * priced.move.seconds_per_byte + (priced.move.any_seconds if moved > 0 else 0.0)


def objective_seconds(priced: SolverProblem, seconds: Floats) -> float:
    """Return the objective of what ranks take, starts included, shape (R, P)."""
    if priced.objective is Objective.MAX_RANK_TIME:
        return max_rank_time(priced, seconds)
    return step_time(priced, seconds)


def step_time(priced: SolverProblem, seconds: Floats) -> float:
    """Sum over counted phases of the slowest rank, less what dense compute hides."""
    slowest = np.max(seconds, axis=0)
    exposed = np.maximum(slowest - priced.phase_window_seconds, 0.0)
    return float(np.sum(priced.phase_weight * exposed))


def max_rank_time(priced: SolverProblem, seconds: Floats) -> float:
    """Slowest rank's sum over counted phases; hidden time counts in full, as TorchRec has it."""
    return float(np.max(seconds @ priced.phase_weight))


def violations(priced: SolverProblem, assignment: Assignment) -> list[str]:
    """Return every broken rule of an assignment in words; empty means valid."""
    shape, site = assignment.piece_shape, assignment.piece_site
    if np.any(shape < 0) or np.any(shape >= priced.num_shapes):
        return ["a piece has a shape that does not exist"]
    sites = np.array([priced.num_ranks, priced.num_hosts, 1])[priced.shape_scope[shape]]
    if np.any(site < 0) or np.any(site >= sites):
        return ["a piece is placed on a site that does not exist"]
    issues = _cut_issues(priced, shape)
    if issues:
        return issues
    touched = touched_ranks(priced, assignment)
    if np.any(touched & ~priced.table_rank_allowed):
        issues.append("a table is on a rank that it may not use")
    if priced.move is not None:
        too_many = moved_bytes(priced, assignment) - priced.move.max_bytes
        if too_many > _BYTE_ROUNDING:
            issues.append(f"{too_many:.0f} bytes more are moved than may be")
    excess = rank_loads(priced, assignment).bytes - priced.capacity_bytes
    for rank, tier in zip(*np.nonzero(excess > 0), strict=True):
        issues.append(f"rank {rank} exceeds tier {tier} by {excess[rank, tier]:.0f} bytes")
    issues.extend(_host_issues(priced, shape, site))
    for group in priced.same_rank:
        ranks = np.any(touched[group], axis=0)
        if np.count_nonzero(ranks) != 1:
            issues.append("tables that must share one rank do not")
    for group in priced.apart:
        if np.any(np.count_nonzero(touched[group], axis=0) > 1):
            issues.append("tables that must stay apart share a rank")
    if priced.own_step is not None and not keeps_own_step(priced, assignment, priced.own_step):
        issues.append("a tier is busy for longer than a step takes")
    fixed = priced.table_is_pinned[priced.shape_table[shape]]
    if not (np.array_equal(shape[fixed], priced.pinned_shape) and np.array_equal(site[fixed], priced.pinned_site)):
        issues.append("a pinned table is not where it was pinned")
    return issues


def _cut_issues(priced: SolverProblem, shape: Ints) -> list[str]:
    """Return what is wrong with the way tables are cut, wherever the pieces are."""
    table, family = priced.shape_table[shape], priced.shape_family[shape]
    if np.any(np.diff(table) < 0) or not np.array_equal(np.unique(table), np.arange(priced.num_tables)):
        return ["the pieces of a table are missing or not next to each other"]
    of_table = np.zeros(priced.num_tables, dtype=np.int64)
    of_table[table] = family
    if np.any(of_table[table] != family):
        return ["a table mixes pieces of several families"]
    columns = np.bincount(table, weights=priced.shape_columns[shape], minlength=priced.num_tables)
    if not np.array_equal(columns, priced.table_columns):
        return ["the pieces of a table do not add up to its columns"]
    pieces = np.bincount(table, minlength=priced.num_tables)
    if np.any(pieces > priced.family_max_pieces[of_table]) or np.any(pieces < priced.family_min_pieces[of_table]):
        return ["a table has a number of pieces that its family does not allow"]
    if not has_fixed_cuts(priced, shape):
        return ["a table is cut in another way than the fixed one"]
    return []


def _host_issues(priced: SolverProblem, shape: Ints, site: Ints) -> list[str]:
    """Return tables that must keep their pieces on one host and do not."""
    together = priced.family_same_host[priced.shape_family[shape]]
    table = priced.shape_table[shape][together]
    host = priced.host_of_rank[site[together]]
    first = np.full(priced.num_tables, -1, dtype=np.int64)
    first[table[::-1]] = host[::-1]
    return [f"table {t} must keep its pieces on one host" for t in np.unique(table[host != first[table]])]


def touched_ranks(priced: SolverProblem, assignment: Assignment) -> Bools:
    """Return which tables have a piece on which ranks, shape (T, R)."""
    shape, site = assignment.piece_shape, assignment.piece_site
    scope, table = priced.shape_scope[shape], priced.shape_table[shape]
    on_rank, on_host = scope == Scope.RANK, scope == Scope.HOST
    ranks = np.zeros((priced.num_tables, priced.num_ranks), dtype=np.bool_)
    hosts = np.zeros((priced.num_tables, priced.num_hosts), dtype=np.bool_)
    ranks[table[on_rank], site[on_rank]] = True
    hosts[table[on_host], site[on_host]] = True
    ranks |= hosts[:, priced.host_of_rank]
    ranks[table[scope == Scope.WORLD]] = True
    return ranks
