"""What writing a plan for a runtime needs, whichever it is, and the error of a plan that cannot be written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from cost_models.protocol import CostModel
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.options.runtimes.geometry import UnheldGeometry

#: Issues of tables, or ranks, that one message lists.
MAX_LISTED = 20

Found = TypeVar("Found")


class UnexportablePlan(ValueError):
    """A plan document that cannot be written for a runtime."""

    code = "unexportable-plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFacts:
    """What is known in addition to a plan document."""

    problem: Problem | None = None  # what the plan was made for
    sparsecores_per_chip: int | None = None
    cost_model: CostModel | None = None  # that priced the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanToExport:
    """A plan whose digest is right, for hardware that the runtime runs on."""

    runtime: str
    placement: Placement
    hardware_profile: str | None  # None for a plan from elsewhere that states none
    device: str  # ``cuda``, ``cpu`` or ``mtia``
    module_path: str | None  # of the embedding module of tables whose plan names none
    facts: ExportFacts
    #: the plan's groups of ranks that are replicas of each other; None of a plan for all ranks of a job
    replica_groups: Mapping[str, object] | None = None


#: What a runtime reads of a plan, as JSON. Raises ``UnexportablePlan`` where the runtime cannot run the plan.
Export = Callable[[PlanToExport], dict[str, object]]


def require_gpus(plan: PlanToExport, why: str) -> None:
    """Raise ``UnexportablePlan`` for another device than ``cuda``."""
    if plan.device != "cuda":
        raise UnexportablePlan(f"{why}; device must be cuda, not {plan.device}.")


def read_tables(
    plan: PlanToExport, read: Callable[[TablePlacement, int], Found], what: str, issues: Iterable[str] = ()
) -> list[tuple[TablePlacement, Found]]:
    """Return the tables of a plan with what is read of each, given the number of ranks.

    Raises
    ------
    UnexportablePlan
        There are ``issues``, or a table for which ``read`` raises ``UnheldGeometry``: with ``what`` that means, a
        sentence for each of them, and the way out.
    """
    found, issues = [], list(issues)
    for placed in plan.placement.tables:
        try:
            found.append((placed, read(placed, plan.placement.world_size)))
        except UnheldGeometry as error:
            issues.append(f'Table "{placed.name}": {error}.')
    if issues:
        more = f" And {len(issues) - MAX_LISTED} more." if len(issues) > MAX_LISTED else ""
        listed = " ".join(issues[:MAX_LISTED])
        way_out = f'Plan for this runtime: set runtime to "{plan.runtime}" in the spec.'
        raise UnexportablePlan(f"{what}. {listed}{more} {way_out}")
    return found
