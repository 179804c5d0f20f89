"""Why there is no plan: which resource is short, by how much, and the way out.

A shortfall says whether it is a proof. Options list only some column cuts of a table, so that
"no listed cut fits" proves nothing where the table could be cut otherwise; "the tables need
more bytes than the cluster has" always does, because no cut takes fewer bytes in all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.vocabulary import Scheme, Tier
from planner.domain.formats.units import format_bytes
from planner.domain.plan.plan import PlanResult, Shortfall
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.enumerate import NO_CUT, Families, SchemeIssue
from planner.options.runtimes.registry import RUNTIMES
from planner.options.schemes.blocks import COLUMN_STEP
from planner.options.schemes.geometry import geometry
from planner.pricing.price_options import roomiest_site
from planner.solver.problem import Reason, SolverProblem

_MOST = 20  # tables that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasibility:
    """Why there is no plan among the listed options, and whether that proves that there is none."""

    shortfalls: tuple[Shortfall, ...]
    proven: bool
    tables: tuple[int, ...] = ()  # tables that finer column cuts might help


def no_plan(infeasibility: Infeasibility) -> PlanResult:
    """Return INFEASIBLE if that is proven; else nothing was found among the cuts that were listed."""
    unproven = "" if infeasibility.proven else "; other column widths than the listed ones were not tried"
    return PlanResult(
        plan=None,
        reason=Reason.INFEASIBLE if infeasibility.proven else Reason.NO_SOLUTION_FOUND,
        limit=None if infeasibility.proven else "listed_cuts",
        detail=infeasibility.shortfalls[0].message + unproven,
        lower_bound_seconds=0.0,
        shortfalls=infeasibility.shortfalls,
    )


def unmet(shortfall: Shortfall, limit: str, lower_bound_seconds: float) -> PlanResult:
    """Return that plans exist, and that none of those found keeps a limit."""
    return PlanResult(
        plan=None,
        reason=Reason.NO_SOLUTION_FOUND,
        limit=limit,
        detail=shortfall.message,
        lower_bound_seconds=lower_bound_seconds,
        shortfalls=(shortfall,),
    )


def missing_options(problem: Problem, families: Families) -> Infeasibility:
    """Return one shortfall per table that has no listed option at all."""
    tables = tuple(families.scheme_issues)
    shortfalls = tuple(
        Shortfall(
            resource="options",
            required_bytes=0.0,
            available_bytes=0.0,
            scope="table",
            table=problem.tables[index].name,
            message=f'table "{problem.tables[index].name}" has no legal option: {_reasons_text(issues)}',
            hint="relax the table's constraints or change its shape as the reasons say",
        )
        for index, issues in list(families.scheme_issues.items())[:_MOST]
    )
    proven = not all(_finer_cuts(problem, t) and _lacks_a_cut(families.scheme_issues[t]) for t in tables)
    return Infeasibility(shortfalls=shortfalls, proven=proven, tables=tables)


def _lacks_a_cut(issues: Sequence[SchemeIssue]) -> bool:
    """Whether a scheme lacks a cut alone: if kernels or the runtime rule schemes out, no other cut helps."""
    return any(why == NO_CUT for _, why in issues)


def _reasons_text(issues: Sequence[SchemeIssue]) -> str:
    """Join reasons, each once with all schemes that it holds for."""
    schemes: dict[str, list[str]] = {}
    for scheme, why in issues:
        schemes.setdefault(why, []).append(scheme.label)
    return "; ".join(f"{', '.join(of)}: {why}" for why, of in schemes.items())


def memory_shortfalls(problem: Problem, priced: SolverProblem) -> Infeasibility | None:
    """Return why the tables cannot fit; ``None`` if they may.

    ``priced`` holds all listed options, before any was dropped for its size.
    """
    return _cluster_too_small(problem, priced) or _tables_too_large(problem, priced)


def _tables_too_large(problem: Problem, priced: SolverProblem) -> Infeasibility | None:
    """Tables of which every listed option has a piece that fits no site."""
    room = roomiest_site(priced)
    by_tier = priced.shape_bytes - room
    excess = np.max(by_tier, axis=1)
    worst = np.full(priced.num_options, -np.inf)
    np.maximum.at(worst, priced.unit_option, excess[priced.unit_shape])
    least = np.full(priced.num_tables, np.inf)
    np.minimum.at(least, priced.option_table, worst)
    hopeless = np.flatnonzero(least > 0)
    if not len(hopeless):
        return None
    shortfalls = []
    for table in hopeless[:_MOST]:
        shapes = np.flatnonzero((priced.shape_table == table) & (excess == least[table]))
        shape = int(shapes[0])  # the piece that misses by least
        tier = Tier(int(np.argmax(by_tier[shape])))
        need, free = float(priced.shape_bytes[shape, tier]), max(0.0, float(room[shape, tier]))
        shortfalls.append(_piece_shortfall(problem.tables[int(table)], tier, need, free))
    tables = tuple(int(table) for table in hopeless)
    return Infeasibility(
        shortfalls=tuple(shortfalls), proven=not all(_finer_cuts(problem, t) for t in tables), tables=tables
    )


def _piece_shortfall(table: Table, tier: Tier, need: float, free: float) -> Shortfall:
    return Shortfall(
        resource=tier.label,
        required_bytes=need,
        available_bytes=free,
        scope="rank",
        table=table.name,
        message=(
            f'table "{table.name}": the best of its cuts still puts {format_bytes(need)} on one rank, where'
            f" {format_bytes(free)} of {tier.label} are left after reservations ({format_bytes(need - free)} short)"
        ),
        hint="allow more sharding_types, lower min_partition, use more ranks, or a smaller data_type",
    )


def _finer_cuts(problem: Problem, index: int) -> bool:
    """Whether the table could be cut by columns in ways that are not listed."""
    table, runtime = problem.tables[index], RUNTIMES[problem.runtime]
    constraints = table.constraints
    narrowest = constraints.min_partition or COLUMN_STEP
    return (
        constraints.pinned is None
        and 2 * narrowest <= table.embedding_dim
        and not any(index in group for group in problem.same_rank)
        and any(
            (constraints.sharding_types is None or scheme in constraints.sharding_types)
            and runtime.scheme_issue_on(problem.cluster, table, scheme) is None
            for scheme in _column_schemes(problem, table)
        )
    )


def _column_schemes(problem: Problem, table: Table) -> Iterator[Scheme]:
    """Yield the schemes that cut this table by columns on this cluster, whatever the widths."""
    cluster = problem.cluster
    for scheme in Scheme:
        facts = scheme.facts
        has_host = cluster.ranks_per_group > 1 or not facts.keeps_host
        if facts.cuts_columns and has_host and geometry(scheme, table, cluster) is not None:
            yield scheme


def _cluster_too_small(problem: Problem, priced: SolverProblem) -> Infeasibility | None:
    """The least bytes of all tables against all ranks together.

    No cut takes fewer bytes in all than the best listed one: pieces repeat input buffers and
    row-wise state, and copies repeat everything.
    """
    cluster = problem.cluster
    tiers = [tier for tier in Tier if priced.shape_bytes[:, tier].any()]
    for some in (*((tier,) for tier in tiers), tuple(tiers)):
        need = least_total_bytes(priced, some)
        have = float(priced.capacity_bytes[:, some].sum())
        if need > have:
            break
    else:
        return None
    last = some[-1]  # tables that leave the device's memory fill this one
    elsewhere = float(priced.capacity_bytes[:, some[:-1]].sum())
    shortfall = Shortfall(
        resource=last.label,
        required_bytes=need - elsewhere,
        available_bytes=have - elsewhere,
        scope="cluster",
        message=(
            f"the tables need at least {format_bytes(need)} of {' and '.join(tier.label for tier in some)} with"
            f" optimizer state and buffers; {cluster.world_size} ranks have {_by_tier(priced, some)} after reservations"
            f" ({format_bytes(need - have)} of {last.label} short)"
        ),
        hint="reserve less, use more ranks or memory, or choose a smaller data_type or an optimizer with less state",
    )
    return Infeasibility(shortfalls=(shortfall,), proven=True)


def least_total_bytes(priced: SolverProblem, tiers: Sequence[Tier]) -> float:
    """Sum over tables of the option with the fewest bytes of some tiers over all its ranks."""
    total = np.zeros(priced.num_options)
    np.add.at(total, priced.unit_option, priced.shape_total_bytes[:, list(tiers)].sum(axis=1)[priced.unit_shape])
    least = np.full(priced.num_tables, np.inf)
    np.minimum.at(least, priced.option_table, total)
    return float(least.sum())


def unsatisfiable_modules(problem: Problem, modules: tuple[str, ...]) -> Infeasibility:
    """Modules with a MEAN table that must be cut by rows and a table that cannot be."""
    shortfalls = tuple(
        Shortfall(
            resource="constraints",
            required_bytes=0.0,
            available_bytes=0.0,
            scope="table",
            message=(
                f'module "{name}" has a MEAN-pooled table that can only be cut by rows and another table that cannot'
                f" be; {problem.runtime} trains such a module wrongly"
            ),
            hint="allow other sharding_types for the MEAN table, pool it by sum, or move it to a module of its own",
        )
        for name in modules
    )
    return Infeasibility(shortfalls=shortfalls, proven=True)


def unpackable(problem: Problem, priced: SolverProblem, *, proven: bool) -> Infeasibility:
    """Every piece fits somewhere and all bytes fit in total, yet the search found that no placement does.

    Proven only where every legal cut is listed and every row block is full: otherwise another
    column width, or the few bytes that a shorter last block saves, might make the difference.
    """
    tiers = [tier for tier in Tier if priced.shape_bytes[:, tier].any()] or [problem.cluster.device_tier]
    exact = bool(np.all(priced.shape_total_bytes == priced.shape_bytes * priced.shape_ranks[:, None]))
    listed = not any(_finer_cuts(problem, index) for index in range(len(problem.tables)))
    need, have = least_total_bytes(priced, tiers), float(priced.capacity_bytes[:, tiers].sum())
    groups = [f"{kind} groups" for kind in ("same_rank", "apart") if getattr(problem, kind)]
    also = f" and {' and '.join(groups)}" if groups else ""
    shortfall = Shortfall(
        resource="constraints",
        required_bytes=need,
        available_bytes=have,
        scope="cluster",
        message=(
            f"all tables need {format_bytes(need)} of the cluster's {_by_tier(priced, tiers)}, but no"
            f" placement of the listed cuts satisfies memory per rank{also} together"
        ),
        hint="relax same_rank, apart, ranks or sharding_types, lower min_partition, or add memory",
    )
    return Infeasibility(shortfalls=(shortfall,), proven=proven and exact and listed)


def _by_tier(priced: SolverProblem, tiers: Sequence[Tier]) -> str:
    """What all ranks together have left of some tiers, in words."""
    return " and ".join(
        f"{format_bytes(float(priced.capacity_bytes[:, tier].sum()))} of {tier.label}" for tier in tiers
    )
