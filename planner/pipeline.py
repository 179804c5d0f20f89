"""The whole way from a problem to a plan. Read this first.

    problem -> options -> priced arrays -> partitioner -> assignment -> placement
            -> independent score and checks -> plan

Nothing leaves this module that :mod:`planner.verify` rejects, and no plan whose score from
its geometry differs from what the search believed.
"""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.protocol import CostModel
from planner.attempts import Attempts, attempt_limits
from planner.bounds.chain import Bound, lower_bound, quick_bound
from planner.cuts import lists_all_cuts
from planner.diagnosis import diagnose
from planner.domain.movement import Movement, PreviousPlan
from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.plan import Assumption, Plan, PlanResult, Shortfall
from planner.domain.problem import Problem
from planner.enumerate import Families, enumerate_families, narrowest_pieces
from planner.errors import SolverDefect
from planner.evaluate import move_seconds_of, objective_of, step_seconds_of
from planner.infeasible import Dead, memory_shortfalls, missing_options, stuck_modules, unpackable
from planner.memory import ledger_rules
from planner.modes import family_modes
from planner.moving import moved_bytes
from planner.no_collection import no_collection
from planner.partitioners.base import Incumbent, Partitioner, SolveLimits
from planner.partitioners.greedy import Greedy
from planner.partitioners.kept_start import may_move
from planner.partitioners.resume import resume
from planner.previous import (
    Stay,
    begin_with,
    finer_where_cut_finer,
    movement_of,
    stay_of,
    with_homes,
    with_move_price,
)
from planner.priced import Assignment, Outcome, PricedOptions, Reason, Termination
from planner.pricing import price, prune, restrict
from planner.provenance import used_assumptions, versions
from planner.schemes.base import Piece
from planner.schemes.expand import expand
from planner.score import score
from planner.units import format_bytes
from planner.verify import verify

OnResult = Callable[[PlanResult], None]

_AGREEMENT = 1e-9  # relative difference allowed between the search's arithmetic and the score's
_WORTH_TELLING = 1e-3  # relative improvement of an incumbent that is streamed out
#: Relative gap that counts as none: CP-SAT rounds to ticks, bounds are lowered by float rounding.
_RESOLUTION = 1e-6
_CLOCK = "time"
BYTES_MOVED = "max_moved_bytes"  # a limit of the user's, and the resource that it leaves short
_REST = 6.0  # times as long as an incumbent took to verify, until the next one is
# Parts of the time limit that a reproducible solve spends, counted in work.
_FIRST = 0.1  # at most, on the first plan
_BOUNDED = 0.15  # on the bound
_SEARCHED = 0.75  # on the search
_BOX_SECONDS = 1.5e-4  # per table and box, nominal
_MOST_BOXES = 200
_RUNNING = Termination(reason=Reason.FEASIBLE, detail="the search is still running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What stays the same through one solve."""

    problem: Problem
    families: Families
    cost_model: CostModel
    limits: SolveLimits
    assumptions: tuple[Assumption, ...]
    began_seconds: float  # monotonic clock
    stay: Stay | None  # what is known of the plan that runs already


@no_collection()
def plan(
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...] = (),
    previous: PreviousPlan | None = None,
    on_result: OnResult | None = None,
) -> PlanResult:
    """Plan a problem.

    Parameters
    ----------
    problem, cost_model, partitioner, limits
        What to plan, how to price it, who searches, and when to stop.
    assumptions
        What the caller filled in; carried into the plan.
    previous
        A plan that runs already: the answer moves away from it only where that pays, and says what moves.
        The bound and the gap remain those of a free choice.
    on_result
        Called with every verified plan that improves on the one before, as it is found.

    Returns
    -------
    PlanResult
        The best plan with its bound, or the reason why there is none.

    Raises
    ------
    SolverDefect
        If a partitioner returns what the independent checks reject.
    cost_models.errors.CostModelError
        If the hardware lacks a number that the prices need.
    """
    began = time.monotonic()
    if previous is not None:
        problem = finer_where_cut_finer(problem, previous)
    listed = _listed(problem, cost_model)
    if isinstance(listed, Dead):
        return _diagnosed(_no_plan(listed), problem, cost_model, limits)
    families, priced = listed
    stay = None
    if previous is not None:
        stay = stay_of(problem, families, previous, cost_model)
        priced = with_move_price(priced, problem, families, stay)
    run = Run(
        problem=problem,
        families=families,
        cost_model=cost_model,
        limits=limits,
        assumptions=assumptions,
        began_seconds=began,
        stay=stay,
    )
    return _diagnosed(_search(run, priced, partitioner, on_result), problem, cost_model, limits)


def _diagnosed(result: PlanResult, problem: Problem, cost_model: CostModel, limits: SolveLimits) -> PlanResult:
    """Say what is in conflict and what would help, where there is no plan."""
    if result.plan is not None or result.limit == BYTES_MOVED:
        return result
    within = attempt_limits(limits, len(problem.tables))
    attempts = Attempts(cost_model, within, list_options=_listed, place=to_placement)
    is_proven = result.reason == Reason.INFEASIBLE
    return replace(result, diagnosis=diagnose(problem, result.shortfalls, attempts, is_proven=is_proven))


def _listed(problem: Problem, cost_model: CostModel) -> tuple[Families, PricedOptions] | Dead:
    """List and price options; tables that fit nowhere get a second chance with the narrowest cuts."""
    listed = _list_once(problem, cost_model)
    if not isinstance(listed, Dead) or not listed.tables:
        return listed
    tables = tuple(
        narrowest_pieces(table) if index in listed.tables else table for index, table in enumerate(problem.tables)
    )
    finer = _list_once(replace(problem, tables=tables), cost_model)
    return listed if isinstance(finer, Dead) else finer


def _list_once(problem: Problem, cost_model: CostModel) -> tuple[Families, PricedOptions] | Dead:
    families = enumerate_families(problem)
    if families.refusals:
        return missing_options(problem, families)
    priced = price(problem, families, cost_model)
    return memory_shortfalls(problem, priced) or (families, priced)


@dataclass(slots=True, kw_only=True)
class _Mode:
    """One mode while it is searched."""

    priced: PricedOptions
    outcome: Outcome  # the best so far
    bound: Bound


def _search(run: Run, priced: PricedOptions, partitioner: Partitioner, on_result: OnResult | None) -> PlanResult:
    """Find a first plan of every mode, bound them, and search those that may hold a better plan."""
    found = family_modes(run.problem, run.families)
    if found.stuck_modules:
        return _no_plan(stuck_modules(run.problem, found.stuck_modules))
    legal = [prune(restrict(priced, mask)) for mask in found.masks]
    legal = [mode for mode in legal if len(np.unique(mode.family_table)) == mode.num_tables]
    teller = _Teller(run, quick_bound(priced), on_result)
    modes = _hesitant(run, [_first(run, mode, teller) for mode in legal])
    known = min((_value(mode) for mode in modes), default=np.inf)
    boxes = _max_boxes(run)
    for mode in modes:
        mode.bound = lower_bound(mode.priced, max_boxes=boxes // len(modes) + 1, known_seconds=known)
    teller.bound = max(teller.bound, _bound_of_all(run, priced, modes, exhaustive=found.exhaustive))
    open_modes = [mode for mode in modes if mode.bound.seconds * (1 + run.limits.relative_gap) < known]
    for index, mode in enumerate(open_modes):
        left = run.limits.time_limit_seconds - (time.monotonic() - run.began_seconds)
        limits = replace(
            run.limits,
            time_limit_seconds=max(left / (len(open_modes) - index), 1e-3),
            work_limit_seconds=_SEARCHED * _work_seconds(run) / len(open_modes),
        )
        mode.outcome = _better(
            mode,
            partitioner.solve(
                mode.priced,
                limits,
                lower_bound_seconds=max(mode.bound.seconds, teller.bound),
                start=mode.outcome.assignment,
                guide=mode.bound.guide,
                on_incumbent=functools.partial(teller.tell, mode.priced),
            ),
        )
    return _conclude(run, priced, modes, teller.bound, exhaustive=found.exhaustive)


def _first(run: Run, priced: PricedOptions, teller: "_Teller") -> _Mode:
    """Construct a plan of a mode before anything that takes time: from the plan that runs already, where one does."""
    limits = replace(run.limits, work_limit_seconds=_FIRST * _work_seconds(run))
    tell = functools.partial(teller.tell, priced)
    outcome = None
    if run.stay is not None:
        before = begin_with(priced, run.stay)
        priced = with_homes(priced, before)
        outcome = resume(priced, before, limits, on_incumbent=tell)
    if outcome is None or outcome.assignment is None:
        outcome = Greedy(first_only=True).solve(priced, limits, on_incumbent=tell)
    return _Mode(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, guide=None))


def _hesitant(run: Run, modes: list[_Mode]) -> list[_Mode]:
    """Charge whatever moves at all, where the previous plan had to be completed and still moves nothing."""
    if run.stay is None or run.stay.seconds is not None:
        return modes
    moves = [_moved_bytes(mode) for mode in modes]
    least = min((_value(mode) for mode, moved in zip(modes, moves, strict=True) if moved == 0), default=0.0)
    for mode in modes:
        assert mode.priced.move is not None
        move = replace(mode.priced.move, any_seconds=run.stay.previous.min_relative_gain * least)
        mode.priced = replace(mode.priced, move=move)
    return modes


def _moved_bytes(mode: _Mode) -> float:
    return np.inf if mode.outcome.assignment is None else moved_bytes(mode.priced, mode.outcome.assignment)


def _better(mode: _Mode, found: Outcome) -> Outcome:
    """Keep the first plan where a search has none or a worse one."""
    if found.assignment is not None and not may_move(mode.priced, found.assignment):
        found = replace(found, assignment=None, termination=replace(found.termination, reason=Reason.NO_SOLUTION_FOUND))
    if found.assignment is None and mode.outcome.assignment is not None:
        return replace(mode.outcome, termination=replace(mode.outcome.termination, limit=found.termination.limit))
    return found


def _work_seconds(run: Run) -> float:
    """Return what a reproducible solve may spend."""
    return run.limits.work_limit_seconds or run.limits.time_limit_seconds


def _max_boxes(run: Run) -> int:
    """Return how many boxes the bound may look at: by the number of tables, not by the clock, so that plans repeat."""
    boxes = _BOUNDED * _work_seconds(run) / (_BOX_SECONDS * len(run.problem.tables))
    return int(np.clip(boxes, 1, _MOST_BOXES))


def _bound_of_all(run: Run, priced: PricedOptions, modes: list[_Mode], *, exhaustive: bool) -> float:
    """Return a bound on all plans: where modes leave some out, one over all families at once."""
    if exhaustive or not modes:
        return min((mode.bound.seconds for mode in modes), default=0.0)
    return lower_bound(prune(priced), max_boxes=_max_boxes(run)).seconds


def _conclude(run: Run, priced: PricedOptions, modes: list[_Mode], bound: float, *, exhaustive: bool) -> PlanResult:
    """Pick the best outcome over the modes; what a search proved holds only if every mode has it and lists all cuts."""
    solved = [mode for mode in modes if mode.outcome.assignment is not None]
    complete = exhaustive and all(lists_all_cuts(mode.priced) for mode in modes)
    if complete:
        feasible = [mode for mode in modes if mode.outcome.termination.reason is not Reason.INFEASIBLE]
        proven = min((max(mode.bound.seconds, mode.outcome.bound_seconds) for mode in feasible), default=0.0)
        bound = max(bound, proven)
    if not solved:
        outcomes = [mode.outcome for mode in modes]
        if all(found.termination.reason is Reason.INFEASIBLE for found in outcomes):
            return _no_plan(unpackable(run.problem, priced, proven=exhaustive))
        if (over := _over_budget(run, modes, bound)) is not None:
            return over
        detail = "; ".join(sorted({found.termination.detail for found in outcomes} - {""}))
        limit = next((found.termination.limit for found in outcomes if found.termination.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    best = min(solved, key=_value)
    finished = _finish(run, best.priced, best.outcome, bound)
    return PlanResult(
        plan=finished,
        reason=finished.reason,
        limit=finished.limit,
        detail=finished.detail,
        lower_bound_seconds=finished.lower_bound_seconds,
    )


def _over_budget(run: Run, modes: list[_Mode], bound: float) -> PlanResult | None:
    """Say how many bytes a plan moves that was found without the limit, where more move than may."""
    most = None if run.stay is None else run.stay.previous.max_moved_bytes
    least = np.inf
    for mode in modes:
        if run.stay is not None and mode.priced.move is not None:
            free = replace(mode.priced, move=replace(mode.priced.move, max_bytes=np.inf))
            found = resume(free, begin_with(free, run.stay), run.limits).assignment
            least = min(least, np.inf if found is None else moved_bytes(free, found))
    if most is None or not most < least < np.inf:
        return None
    message = f"{format_bytes(least)} move to the plan found that moves least, and at most {format_bytes(most)} may"
    shortfall = Shortfall(
        resource=BYTES_MOVED,
        required_bytes=least,
        available_bytes=most,
        scope="cluster",
        message=message,
        hint=f"raise previous_plan.max_moved_bytes to {math.ceil(least)}, or leave it out",
    )
    return PlanResult(
        plan=None,
        reason=Reason.NO_SOLUTION_FOUND,
        limit=BYTES_MOVED,
        detail=message,
        lower_bound_seconds=bound,
        shortfalls=(shortfall,),
    )


def _finish(run: Run, mode: PricedOptions, outcome: Outcome, bound: float) -> Plan:
    """Name things again, score and verify from the geometry, and refuse what does not agree."""
    if outcome.assignment is None:
        raise SolverDefect("an outcome without an assignment cannot become a plan")
    placement = to_placement(run.problem, run.families, mode, outcome.assignment)
    issues = verify(run.problem, placement, rules=ledger_rules(run.cost_model.ledger))
    if issues:
        raise SolverDefect(f"{outcome.partitioner} returned an illegal plan: {issues[0].message}")
    evaluation = score(run.problem, placement, run.cost_model)
    believed, found = step_seconds_of(mode, outcome.assignment), evaluation.objective_seconds
    if abs(believed - found) > _AGREEMENT * max(believed, found):
        raise SolverDefect(f"the search believed {believed} s, the plan's geometry costs {found} s")
    if bound > found * (1 + _AGREEMENT):
        raise SolverDefect(f"the lower bound {bound} s exceeds a plan of {found} s")
    bound = min(bound, found)
    gap = found / bound - 1 if bound > 0 else (0.0 if found == 0 else None)
    close_enough = gap is not None and gap <= run.limits.relative_gap + _RESOLUTION
    limit, detail = outcome.termination.limit, outcome.termination.detail
    if not close_enough and limit is None:
        limit = "resolution"  # proved in whole ticks, which is coarser than the gap asked for
    if close_enough:
        limit = limit if limit == _CLOCK else None  # a plan that the clock cut may not come out again
        detail = f"within relative_gap {run.limits.relative_gap:g} of the bound over all legal cuts"
    return Plan(
        placement=placement,
        evaluation=evaluation,
        lower_bound_seconds=bound,
        relative_gap=gap,
        reason=Reason.OPTIMAL if close_enough else Reason.FEASIBLE,
        limit=limit,
        detail=detail,
        partitioner=outcome.partitioner,
        solver_seconds=time.monotonic() - run.began_seconds,
        assumptions=used_assumptions(run.assumptions, evaluation.hardware_numbers),
        versions=versions(),
        seed=run.limits.seed,
        movement=_movement(run, mode, outcome.assignment, placement, found),
    )


def _movement(
    run: Run, mode: PricedOptions, assignment: Assignment, placement: Placement, step_seconds: float
) -> Movement | None:
    """Say what moves, counted from the rectangles, and refuse what the search counted otherwise."""
    if run.stay is None:
        return None
    counted = movement_of(run.problem, run.stay, placement, step_seconds, move_seconds_of(mode, assignment))
    believed = moved_bytes(mode, assignment)
    if abs(believed - counted.moved_bytes) > _AGREEMENT * max(believed, counted.moved_bytes):
        raise SolverDefect(f"the search moved {believed} bytes, the plan's geometry {counted.moved_bytes}")
    return counted


def to_placement(problem: Problem, families: Families, priced: PricedOptions, assignment: Assignment) -> Placement:
    """Turn indices back into tables and shards."""
    cluster = problem.cluster
    shape = assignment.piece_shape
    first = np.searchsorted(priced.shape_table[shape], np.arange(priced.num_tables + 1))
    family = priced.family_source[priced.shape_family[shape]].tolist()
    columns, sites = priced.shape_columns[shape].tolist(), assignment.piece_site.tolist()
    placed = []
    for index, table in enumerate(problem.tables):
        chosen = families.families[family[first[index]]]
        shards: list[Shard] = []
        offset = 0
        for at in range(first[index], first[index + 1]):
            piece = Piece(
                scope=chosen.geometry.scope,
                column_offset=offset,
                num_columns=columns[at],
                replicated=chosen.geometry.replicated,
            )
            shards.extend(expand(table, piece, sites[at], cluster, cluster.device_tier))
            offset += columns[at]
        placed.append(
            TablePlacement(
                name=table.name,
                sharding_type=chosen.scheme,
                compute_kernel=chosen.kernel,
                shards=tuple(shards),
                module_path=table.module_path,
                data_type=table.data_type.name,
                pooling=table.pooling,
            )
        )
    return Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=tuple(placed))


class _Teller:
    """Streams verified plans out of a running search."""

    def __init__(self, run: Run, bound: float, on_result: OnResult | None) -> None:
        self._run, self.bound, self._on_result = run, bound, on_result
        self._told = float("inf")
        self._rest_until_seconds = 0.0  # monotonic clock

    def tell(self, mode: PricedOptions, found: Incumbent) -> None:
        """Finish a plan and pass it on, unless it is hardly better or finishing plans takes too much of the search."""
        began = time.monotonic()
        if (
            self._on_result is None
            or found.objective_seconds > self._told * (1 - _WORTH_TELLING)
            or began < self._rest_until_seconds
        ):
            return
        self._told = found.objective_seconds
        outcome = Outcome(assignment=found.assignment, termination=_RUNNING, partitioner=found.partitioner)
        finished = _finish(self._run, mode, outcome, self.bound)
        self._on_result(
            PlanResult(
                plan=finished,
                reason=finished.reason,
                limit=finished.limit,
                detail=finished.detail,
                lower_bound_seconds=finished.lower_bound_seconds,
            )
        )
        now = time.monotonic()
        self._rest_until_seconds = now + _REST * (now - began)


def _value(mode: _Mode) -> float:
    if mode.outcome.assignment is None:
        return float("inf")
    return objective_of(mode.priced, mode.outcome.assignment)


def _no_plan(dead: Dead) -> PlanResult:
    """INFEASIBLE where it is proven; else nothing was found among the cuts that were listed."""
    unproven = "" if dead.proven else "; other column widths than the listed ones were not tried"
    return PlanResult(
        plan=None,
        reason=Reason.INFEASIBLE if dead.proven else Reason.NO_SOLUTION_FOUND,
        limit=None if dead.proven else "listed_cuts",
        detail=dead.shortfalls[0].message + unproven,
        lower_bound_seconds=0.0,
        shortfalls=dead.shortfalls,
    )
