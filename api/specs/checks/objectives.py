"""Rules of ordered objectives: each once, step_time among them, and each with what it needs."""

from collections import Counter

from api.schemas.objectives import OrderedObjectiveSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.protocol import AssignmentModel
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, GOALS, MOVED_BYTES, STEP_TIME

#: Fields of tolerances, and the unit of the objectives that they are of; ``None`` for any.
_TOLERANCES = {"tolerance": None, "tolerance_seconds": "seconds", "tolerance_bytes": "bytes"}


def check_objectives(state: SpecState, issues: IssueCollector) -> None:
    """Report every contradiction among the ordered objectives, and with the rest of the spec."""
    listed = state.spec.objectives
    if listed is None:
        return
    if state.spec.objective != STEP_TIME:
        issues.report(
            "/objectives",
            f"ordered objectives are of a training step, and the objective is {state.spec.objective}",
            f"set objective to {STEP_TIME}, or leave objectives out",
            reads=("/objective",),
        )
    if state.model is not None and isinstance(state.model.model, AssignmentModel):
        issues.report(
            "/objectives",
            f"the cost model {state.spec.cost_model} prices ranks as a whole, and ordered objectives need prices of"
            " shards",
            "use an analytic cost model, or leave objectives out",
            reads=("/cost_model",),
        )
    seen: Counter[str] = Counter()
    for index, (number, one) in enumerate(zip(state.originals.objectives, listed, strict=True)):
        # What an objective was that cannot be read is not known: any unit may come before.
        before = {GOALS[name] for name in seen} if number == index else None
        _check_one(state, one, f"/objectives/{number}", issues, units_before=before, is_repeated=seen[one.name] > 0)
        seen[one.name] += 1
    if STEP_TIME not in seen and state.originals.has_all_objectives:
        issues.report("/objectives", f"{STEP_TIME} is not among them", f'add {{"name": "{STEP_TIME}"}} in its place')


def _check_one(
    state: SpecState,
    one: OrderedObjectiveSpec,
    pointer: str,
    issues: IssueCollector,
    *,
    units_before: set[str] | None,
    is_repeated: bool,
) -> None:
    if is_repeated:
        issues.report(f"{pointer}/name", f"{one.name} is listed before", "list each objective once")
    if one.name == CHECKPOINT_UPLOAD and state.spec.checkpoint is None:
        message = f"{one.name} needs to know how the job is checkpointed"
        issues.report(f"{pointer}/name", message, "give checkpoint", reads=("/checkpoint",))
    if one.name == MOVED_BYTES and state.spec.previous_plan is None:
        message = f"{one.name} needs a plan that runs already"
        issues.report(f"{pointer}/name", message, "give previous_plan", reads=("/previous_plan",))
    if units_before is None:
        return
    for name, unit in _TOLERANCES.items():
        amount = getattr(one, name)
        if amount > 0 and (not units_before or (unit is not None and unit not in units_before)):
            which = f"objective in {unit}" if unit is not None and units_before else "objective"
            issues.report(
                f"{pointer}/{name}",
                f"{amount:g}, and no {which} comes before this one",
                "give the tolerance to an objective that may worsen one before, or leave it out",
            )
