"""Every legal option of every table: scheme, kernel and cut, with the user's constraints applied."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem import Problem
from planner.domain.table import Table
from planner.priced import Scope
from planner.runtimes.base import Runtime
from planner.runtimes.registry import RUNTIMES
from planner.schemes.base import Cut
from planner.schemes.registry import SCHEME_CUTS

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to shard one table."""

    table: int
    scheme: Scheme
    kernel: Kernel
    cut: Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options of a problem, those of a table next to each other."""

    options: tuple[Option, ...]
    #: by table without any option: why each scheme was refused, in words
    refusals: dict[int, tuple[str, ...]] = field(default_factory=dict)


def enumerate_options(problem: Problem) -> Options:
    """List every option that the runtime executes correctly and the user allows.

    Options that are right only in a module cut by rows throughout are included; which of
    them may be used together is decided by :mod:`planner.modes`.
    """
    runtime = RUNTIMES[problem.runtime]
    allowed = table_rank_allowed(problem)
    options: list[Option] = []
    refusals: dict[int, tuple[str, ...]] = {}
    for index, table in enumerate(problem.tables):
        reasons: list[str] = []
        mine = list(_options_of_table(problem, runtime, index, table, allowed[index], reasons))
        if not mine:
            refusals[index] = tuple(reasons)
        options.extend(mine)
    return Options(options=tuple(options), refusals=refusals)


def table_rank_allowed(problem: Problem) -> Bools:
    """Return which ranks may hold shards of which tables, shape (num_tables, num_ranks)."""
    cluster = problem.cluster
    allowed = np.ones((len(problem.tables), cluster.world_size), dtype=np.bool_)
    host_of_rank = np.arange(cluster.world_size) // cluster.ranks_per_host
    for index, table in enumerate(problem.tables):
        if table.constraints.ranks is not None:
            allowed[index] &= np.isin(np.arange(cluster.world_size), sorted(table.constraints.ranks))
        if table.constraints.hosts is not None:
            allowed[index] &= np.isin(host_of_rank, sorted(table.constraints.hosts))
    return allowed


def _options_of_table(
    problem: Problem, runtime: Runtime, index: int, table: Table, allowed: Bools, reasons: list[str]
) -> Iterator[Option]:
    together = any(index in group for group in problem.same_rank)
    apart = any(index in group for group in problem.apart)
    wanted = table.constraints
    for maker in SCHEME_CUTS:
        scheme = maker.scheme
        if wanted.sharding_types is not None and scheme not in wanted.sharding_types:
            reasons.append(f"{scheme.label}: not among the allowed sharding_types")
            continue
        refusal = runtime.refusal(table, scheme)
        if refusal is not None:
            reasons.append(f"{scheme.label}: {refusal}")
            continue
        kernels = [
            kernel
            for kernel in runtime.kernels(table, scheme)
            if wanted.compute_kernels is None or kernel in wanted.compute_kernels
        ]
        if not kernels:
            reasons.append(f"{scheme.label}: none of its kernels is among the allowed compute_kernels")
            continue
        found = False
        for cut in maker.cuts(table, problem.cluster):
            if max(piece.num_columns for piece in cut.pieces) > runtime.max_columns:
                continue
            if _cut_fits(problem, cut, allowed, together=together, apart=apart):
                found = True
                for kernel in kernels:
                    yield Option(table=index, scheme=scheme, kernel=kernel, cut=cut)
        if not found:
            reasons.append(f"{scheme.label}: no cut fits the table's shape, the cluster and the constraints")


def _cut_fits(problem: Problem, cut: Cut, allowed: Bools, *, together: bool, apart: bool) -> bool:
    """Whether a cut can be placed at all under rank, same-rank and apart constraints."""
    scopes = {piece.scope for piece in cut.pieces}
    if together and not (len(cut.pieces) == 1 and scopes == {Scope.RANK}):
        return False  # all shards on one rank: only a whole table can be
    if Scope.WORLD in scopes:
        return bool(np.all(allowed)) and not apart
    by_host = allowed.reshape(problem.cluster.num_hosts, problem.cluster.ranks_per_host)
    if Scope.HOST in scopes:
        return bool(np.any(np.all(by_host, axis=1)))
    return bool(np.any(by_host))
