"""What became of the ordered goals of a problem under a plan."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TradePoint:
    """What one search of a goal found, and what it proves: no plan within the limits has a smaller weighted sum."""

    weights: Mapping[str, float]  # by goal, per unit of its value; of others 0
    limits: Mapping[str, float]  # by goal, in its unit; that of a goal with a weight is none of this search
    values: Mapping[str, float] | None  # by goal, of the plan with the least sum that was found; None without one
    least_sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalResult:
    """One goal: what it is in the plan, what it was before its turn, and what no plan within the limits goes below."""

    name: str
    unit: str
    value: float  # in the plan
    value_before: float  # in the plan that the goals before it had led to
    value_at_turn: float  # when its turn ended; goals that followed may have worsened it
    lower_bound: float  # of all plans that keep the limits of its turn
    limits: Mapping[str, float]  # largest values of the goals before it, by goal
    points: tuple[TradePoint, ...] = ()  # in the order of the searches
