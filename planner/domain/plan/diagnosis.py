"""Why a problem has no plan, and what would give it one: constraints in conflict, and fixes that were solved."""

from dataclasses import dataclass

#: What a field of the spec becomes; ``None`` leaves the field, or the entry of a list, out.
ChangedValue = str | int | float | tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingConstraint:
    """One of the user's own constraints that cannot be kept together with the others of a conflict."""

    pointer: str  # JSON pointer into the spec
    message: str  # what it asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Constraints that leave no plan together.

    Where they are irreducible, there is a verified plan without any one of them. That is not always the
    smallest set: another one with fewer constraints may be in conflict, too.
    """

    constraints: tuple[ConflictingConstraint, ...]
    is_irreducible: bool  # else the work ran out before: some may play no part
    #: whether it is proven that they leave no plan; else a short search found none
    is_proven: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChange:
    """One field of the spec, by JSON pointer into the spec as it is, and what it becomes."""

    pointer: str
    value: ChangedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPlan:
    """What the memory looks like under the plan that was found, and verified, for a fixed problem."""

    used_bytes: float  # of the device's tier, over all ranks
    capacity_bytes: float  # after reservations, over all ranks
    fullest_rank_fraction: float  # used / capacity of the fullest rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A change of the spec that gives it a plan: the changed problem was solved and its plan verified."""

    kind: str  # "constraint", "reservation", "memory", "ranks", "pods", "data_type", "optimizer" or "combined"
    message: str
    changes: tuple[SpecChange, ...]  # all of them together
    plan: VerifiedPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a bounded number of solves says about a problem without a plan."""

    conflict: Conflict | None
    #: whether the problem without any of the user's constraints has a plan; ``None`` where that was not settled
    has_plan_without_constraints: bool | None
    fixes: tuple[Fix, ...]  # those that change least first
    num_solves: int
    limit: str | None  # what cut the diagnosis short, if anything did
