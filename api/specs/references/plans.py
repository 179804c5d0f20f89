"""The plans that a spec refers to: the one that runs, that of a checkpoint, and the one that searches begin at."""

from dataclasses import dataclass

from api.schemas.referenced_plan import CheckpointPlanSpec, WarmStartSpec
from api.schemas.spec import PreviousPlanSpec
from api.specs.references.referenced_plan import PlanReader, ReferencedPlan
from planner.domain.plan.movement import PreviousPlan
from planner.domain.problem.checkpoint_plan import CheckpointPlan
from planner.errors import Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """A previous plan that passed every check."""

    plan: PreviousPlan
    document: dict[str, object]  # normalised
    warnings: tuple[Issue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCheckpoint:
    """The plan of a checkpoint that passed every check."""

    plan: CheckpointPlan
    document: dict[str, object]  # normalised
    warnings: tuple[Issue, ...]


def read_previous_plan(spec: PreviousPlanSpec, reader: PlanReader) -> Previous | None:
    """Read the previous plan of a spec; ``None`` if something is wrong with it."""
    read = reader.read("previous_plan", spec)
    if read is None:
        return None
    previous = PreviousPlan(
        placement=read.placement,
        digest=read.digest,
        remaining_steps=spec.remaining_steps,
        max_moved_bytes=spec.max_moved_bytes,
        min_relative_gain=spec.min_relative_gain,
    )
    return Previous(plan=previous, document=read.document, warnings=read.warnings)


def read_checkpoint_plan(spec: CheckpointPlanSpec, reader: PlanReader) -> OfCheckpoint | None:
    """Read the plan of the checkpoint of a spec; ``None`` if something is wrong with it."""
    read = reader.read("checkpoint_plan", spec)
    if read is None:
        return None
    plan = CheckpointPlan(placement=read.placement, keep=spec.keep)
    return OfCheckpoint(plan=plan, document=read.document, warnings=read.warnings)


def read_warm_start(spec: WarmStartSpec, reader: PlanReader) -> ReferencedPlan | None:
    """Read the plan that searches begin at; ``None`` if something is wrong with it."""
    return reader.read("solver.warm_start", spec)
