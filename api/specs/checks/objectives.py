"""Rules of ordered objectives: each once, step_time among them, and each with what it needs."""

from collections import Counter

from api.schemas.objectives import OrderedObjectiveSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.protocol import AssignmentModel
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, MOVED_BYTES, STEP_TIME

_TOLERANCES = ("tolerance", "tolerance_seconds", "tolerance_bytes")


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
    for index, one in enumerate(listed):
        _check_one(state, one, f"/objectives/{index}", issues, is_first=index == 0, is_repeated=seen[one.name] > 0)
        seen[one.name] += 1
    if STEP_TIME not in seen:
        issues.report("/objectives", f"{STEP_TIME} is not among them", f'add {{"name": "{STEP_TIME}"}} in its place')


def _check_one(
    state: SpecState,
    one: OrderedObjectiveSpec,
    pointer: str,
    issues: IssueCollector,
    *,
    is_first: bool,
    is_repeated: bool,
) -> None:
    if is_repeated:
        issues.report(f"{pointer}/name", f"{one.name} is listed before", "list each objective once")
    if one.name == CHECKPOINT_UPLOAD and state.spec.checkpoint is None:
        issues.report(f"{pointer}/name", f"{one.name} needs to know how the job is checkpointed", "give checkpoint")
    if one.name == MOVED_BYTES and state.spec.previous_plan is None:
        issues.report(f"{pointer}/name", f"{one.name} needs a plan that runs already", "give previous_plan")
    for name in _TOLERANCES:
        if is_first and getattr(one, name) > 0:
            issues.report(
                f"{pointer}/{name}",
                f"{getattr(one, name):g}, and no objective comes before the first",
                "give the tolerance to the objective that may worsen this one",
            )
