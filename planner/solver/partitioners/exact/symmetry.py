"""Ranks and hosts that are alike, and one order of them that every plan can be brought into.

Two ranks of a host are alike where they have the same capacity, speed and allowed tables and no
pinned piece on either alone; two hosts are alike where they are so rank by rank. Exchanging
them changes neither cost nor validity, so that a search may demand that they come in order of
the first table that uses each: every plan has such a twin.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.solver.problem import Assignment, Scope, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Classes of more than one member, each in the order in which its members are to be used."""

    ranks: tuple[Ints, ...]  # of one host each
    hosts: tuple[Ints, ...]
    table_place: Ints  # (T,) place of each table in the order of first use, dearest first


def find_symmetry(priced: SolverProblem) -> Symmetry:
    """Find classes of equal ranks and hosts."""
    marks = np.concatenate(
        [priced.capacity_bytes, priced.rank_slowdown, priced.table_rank_allowed.T.astype(np.float64)], axis=1
    )
    scope = priced.shape_scope[priced.pinned_shape]
    pinned_rank = np.zeros(priced.num_ranks, dtype=np.bool_)
    pinned_rank[priced.pinned_site[scope == Scope.RANK]] = True
    by_host = (priced.num_hosts, priced.ranks_per_host)
    pinned_host: Bools = np.logical_or.reduce(pinned_rank.reshape(by_host), axis=1)
    pinned_host[priced.pinned_site[scope == Scope.HOST]] = True
    kind = np.unique(marks, axis=0, return_inverse=True)[1].reshape(by_host)
    ranks = []
    for host in range(priced.num_hosts):
        members = np.arange(priced.ranks_per_host) + host * priced.ranks_per_host
        ranks.extend(_classes(kind[host], ~pinned_rank[members], members))
    host_kind = np.unique(kind, axis=0, return_inverse=True)[1].reshape(-1)
    hosts = _classes(host_kind, ~pinned_host, np.arange(priced.num_hosts))
    cheapest = np.full(priced.num_tables, np.inf)
    of_option = np.bincount(
        priced.unit_option,
        weights=priced.shape_seconds[priced.unit_shape] @ priced.phase_weight,
        minlength=priced.num_options,
    )
    np.minimum.at(cheapest, priced.option_table, of_option)
    table_place = np.empty(priced.num_tables, dtype=np.int64)
    table_place[np.argsort(-cheapest, kind="stable")] = np.arange(priced.num_tables)
    return Symmetry(ranks=tuple(ranks), hosts=tuple(hosts), table_place=table_place)


def _classes(kind: Ints, free: Bools, members: Ints) -> list[Ints]:
    groups = (members[free & (kind == k)] for k in np.unique(kind))
    return [group for group in groups if len(group) > 1]


def in_order(priced: SolverProblem, symmetry: Symmetry, assignment: Assignment) -> Assignment:
    """Return the twin of a plan whose equal hosts, and equal ranks of each host, are in order of first use."""
    shape, site = assignment.piece_shape, assignment.piece_site.copy()
    scope = priced.shape_scope[shape]
    on_rank, on_host = scope == Scope.RANK, scope == Scope.HOST
    place = symmetry.table_place[priced.shape_table[shape]]
    host = np.where(on_rank, priced.host_of_rank[np.where(on_rank, site, 0)], site)
    local = on_rank | on_host
    new_host = _renamed(symmetry.hosts, host[local], place[local], priced.num_hosts)
    site[on_host] = new_host[site[on_host]]
    within = site[on_rank] % priced.ranks_per_host
    site[on_rank] = new_host[host[on_rank]] * priced.ranks_per_host + within
    new_rank = _renamed(symmetry.ranks, site[on_rank], place[on_rank], priced.num_ranks)
    site[on_rank] = new_rank[site[on_rank]]
    return Assignment(piece_shape=shape.copy(), piece_site=site)


def _renamed(classes: tuple[Ints, ...], site: Ints, place: Ints, count: int) -> Ints:
    """New index of each site, such that members of a class come in order of their first use."""
    first_use = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first_use, site, place)
    new = np.arange(count)
    for members in classes:
        new[members[np.argsort(first_use[members], kind="stable")]] = members
    return new
