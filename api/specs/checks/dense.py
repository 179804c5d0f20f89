"""Rules of the dense part of a spec: its compute is given once, and operations with the type they are done in."""

from api.schemas.dense import DenseSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState

_BASE = "/model/dense"
_SECONDS = ("forward_seconds", "backward_seconds")
_FLOPS = ("forward_flops_per_sample", "backward_flops_per_sample")
_WAYS = (_SECONDS, _FLOPS, ("layers",))


def check_dense(state: SpecState, issues: IssueCollector) -> None:
    """Report every contradiction in the dense part."""
    if not issues.is_sound(_BASE):
        return
    dense = state.spec.model.dense
    ways = [found for names in _WAYS if (found := _given(dense, names))]
    for names in ways[1:]:
        for name in names:
            message = f"dense compute is given twice: {ways[0][0]} says it, too"
            issues.report(f"{_BASE}/{name}", message, f"give {ways[0][0]} or {name}, and leave the other out")
    if _given(dense, _FLOPS) == [_FLOPS[1]]:
        message = f"{_FLOPS[1]} without {_FLOPS[0]}"
        issues.report(f"{_BASE}/{_FLOPS[1]}", message, f"give {_FLOPS[0]} as well", code="missing-field")
    has_operations = bool(_given(dense, _FLOPS)) or dense.layers is not None
    if has_operations and dense.compute_dtype is None:
        message = "operations take as long as their type lets them, and no type is given"
        issues.report(f"{_BASE}/compute_dtype", message, "give compute_dtype, such as bf16", code="missing-field")
    if dense.compute_dtype is not None and not has_operations:
        message = "the type of dense arithmetic, and neither operations nor layers are given"
        issues.report(f"{_BASE}/compute_dtype", message, f"give {_FLOPS[0]} or layers, or leave compute_dtype out")


def _given(dense: DenseSpec, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(dense, name) is not None]
