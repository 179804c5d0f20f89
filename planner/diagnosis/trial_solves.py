"""Short solves of changed problems, counted: whether each has a plan, and the verified plan.

A diagnosis asks for dozens of plans, none of which needs to be good. Each attempt lists and prices the
options and takes the first construction that fits and that :mod:`planner.verification.verify` accepts. All attempts
together stay within one limit, in a reproducible solve one of counted work.
"""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools
from cost_models.errors import CostModelError
from cost_models.protocol import CostModel
from cost_models.vocabulary import DEVICE_KERNELS
from planner.domain.plan.diagnosis import VerifiedPlan
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem
from planner.options.compatible_families import compatible_family_sets
from planner.options.enumerate import Families
from planner.orchestration.limits.own_time import broken_limits
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.memory.ledger import capacity_bytes
from planner.pricing.price_options import prune, restrict
from planner.solver.partitioners.base import Effort, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import SolverProblem
from planner.verification.evaluate_placement import bytes_by_tier, score
from planner.verification.verify import verify

#: All attempts of one diagnosis: a share of the solve's limit, and of what is counted at most the larger of these.
SHARE = 0.2
MOST_SECONDS = 2.0
MOST_TABLE_SECONDS = 4e-3  # per table: about five attempts
COUNTED = 0.5  # of that, as work
#: Nominal work of one attempt, as measured for 50 to 5,000 tables on two cores at 3 GHz.
_ATTEMPT_SECONDS = 5e-3
_TABLE_SECONDS = 4e-4
_LISTED = 0.4  # of that, where no option fits and nothing is constructed
#: Work of constructions that do not fit, until an attempt gives up.
_CONSTRUCTION_SECONDS = 0.02
_TABLE_CONSTRUCTION_SECONDS = 2e-4


class OutOfWork(Exception):
    """No further attempt fits the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of a short solve."""

    placement: Placement | None
    plan: VerifiedPlan | None  # of the placement
    is_infeasible: bool = False  # proven to have no plan
    shortfalls: tuple[Shortfall, ...] = ()  # what is known to be short, whichever cut is chosen


def attempt_limits(limits: SolveLimits, num_tables: int) -> SolveLimits:
    """Return the limits of all attempts together, on a problem that was given ``limits``.

    A reproducible diagnosis counts work; the clock counts only if work falls far behind the share of the whole time
    limit, so that a busy machine gives the same advice.
    """
    most_seconds = max(MOST_SECONDS, MOST_TABLE_SECONDS * num_tables)
    share_seconds = SHARE * limits.time_limit_seconds
    return replace(
        limits,
        time_limit_seconds=share_seconds if limits.reproducible else min(most_seconds, share_seconds),
        work_limit_seconds=COUNTED * min(most_seconds, SHARE * limits.work_seconds),
    )


class Attempts:
    """Solves changed problems until their common limit."""

    def __init__(self, cost_model: CostModel, limits: SolveLimits) -> None:
        """``limits`` are those of all attempts."""
        self._cost_model, self._limits = cost_model, limits
        self._effort = Effort(limits)
        self._ceiling = 1.0
        self.num_solves = 0
        self.limit: str | None = None  # what ended the attempts

    def allow(self, share: float) -> None:
        """Let further attempts take this share of what is left."""
        spent = min(1.0, self._effort.fraction)
        self._ceiling = spent + share * (1 - spent)

    def solve(self, problem: Problem) -> Attempt:
        """Look for a plan.

        Raises
        ------
        OutOfWork
            What is allowed is spent.
        """
        if self._effort.fraction >= self._ceiling:
            self.limit = self._effort.limit
            raise OutOfWork
        self.num_solves += 1
        cost_seconds = _ATTEMPT_SECONDS + _TABLE_SECONDS * len(problem.tables)
        try:
            listed = list_and_price(problem, self._cost_model)
        except CostModelError:  # the hardware lacks a number that only the changed problem needs
            listed = Infeasibility(shortfalls=(), proven=False)
        if isinstance(listed, Infeasibility):
            self._effort.spend(_LISTED * cost_seconds)
            return Attempt(placement=None, plan=None, is_infeasible=listed.proven, shortfalls=listed.shortfalls)
        self._effort.spend(cost_seconds)
        modes = compatible_family_sets(problem, listed[0])
        for mask in modes.masks:
            placement = self._constructed(problem, *listed, mask)
            if placement is not None:
                return Attempt(placement=placement, plan=self._filled(problem, placement))
        return Attempt(placement=None, plan=None, is_infeasible=bool(modes.unsatisfiable_modules))

    def _constructed(
        self, problem: Problem, families: Families, priced: SolverProblem, mask: Bools
    ) -> Placement | None:
        """Return the first plan of one mode that fits, if the checks accept it."""
        mode = prune(restrict(priced, mask))
        if len(np.unique(mode.family_table)) < mode.num_tables:
            return None
        work_seconds = _CONSTRUCTION_SECONDS + _TABLE_CONSTRUCTION_SECONDS * len(problem.tables)
        time_seconds = self._limits.time_limit_seconds if self._limits.reproducible else work_seconds
        limits = replace(self._limits, time_limit_seconds=time_seconds, work_limit_seconds=work_seconds)
        outcome = Greedy(first_only=True).solve(mode, limits)
        if outcome.assignment is None:
            self._effort.spend(work_seconds)
            return None
        placement = to_placement(problem, families, mode, outcome.assignment)
        if verify(problem, placement):
            return None
        has_rate = problem.serving is not None and problem.serving.requests_per_second is not None
        reads_hosts = any(placed.compute_kernel not in DEVICE_KERNELS for placed in placement.tables)
        is_asked = has_rate or reads_hosts  # else no limit is left that a legal plan could break
        is_broken = is_asked and any(broken_limits(score(problem, placement, self._cost_model)))
        return None if is_broken else placement

    def _filled(self, problem: Problem, placement: Placement) -> VerifiedPlan:
        tier = problem.cluster.device_tier
        used = bytes_by_tier(problem, placement)[:, tier]
        capacity = capacity_bytes(problem)[:, tier]
        fractions = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
        return VerifiedPlan(
            used_bytes=float(used.sum()),
            capacity_bytes=float(capacity.sum()),
            fullest_rank_fraction=float(fractions.max()),
        )
