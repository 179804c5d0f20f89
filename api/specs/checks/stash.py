"""Rules of stashed weights: what they make room for is known, and the runtime can stash."""

from collections import Counter

from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.protocol import AssignmentModel
from planner.domain.problem.problem import REQUEST_LATENCY

_BASE = "/model/stash"
_PIPELINE, _RUNTIME = "train_sparse_dist", "torchrec"
_HINT = "give it, or leave stash out"
_LINK = "host_link_bytes_per_second"


def check_stash(state: SpecState, issues: IssueCollector) -> None:
    """Report everything that stashed weights need and the spec lacks, and tables that do not exist."""
    spec = state.spec
    stash, dense = spec.model.stash, spec.model.dense
    if stash is None or not issues.is_sound(_BASE, "/model/dense"):
        return
    if spec.objective == REQUEST_LATENCY:
        issues.report(_BASE, "a request has no dense part to make room for", "leave stash out", reads=("/objective",))
        return
    if not dense.activation_bytes:
        message = "stashed weights make room for activations, and no activations are given"
        issues.report("/model/dense/activation_bytes", message, _HINT, code="missing-field")
    has_operations = dense.forward_flops_per_sample is not None or dense.layers is not None
    if not has_operations:
        for name in ("forward_seconds", "backward_seconds"):
            if not getattr(dense, name):
                message = "weights are copied while the dense part runs, and its seconds are not given"
                issues.report(f"/model/dense/{name}", message, _HINT, code="missing-field")
    if spec.model.pipeline != _PIPELINE:
        message = f"the pipeline {spec.model.pipeline} stashes nothing; {_PIPELINE} has a variant that does"
        issues.report("/model/pipeline", message, f"set it to {_PIPELINE}, or leave stash out")
    if spec.runtime != _RUNTIME:
        message = f"the runtime {spec.runtime} stashes nothing"
        issues.report("/runtime", message, f"plan for {_RUNTIME}, or leave stash out")
    if state.model is not None and isinstance(state.model.model, AssignmentModel):
        message = (
            f"the cost model {spec.cost_model} prices ranks as a whole, and the search for a stash cannot use that"
        )
        issues.report("/cost_model", message, "use an analytic cost model, or leave stash out")
    if state.hardware is not None:
        has_memory = state.hardware.has("hbm_bytes") and state.hardware.numbers["hbm_bytes"].value > 0
        if not has_memory and spec.hardware.overrides.hbm_bytes_by_rank is None:
            message = f"{spec.hardware.profile} has no memory of accelerators to leave"
            issues.report(_BASE, message, "leave stash out")
        if not state.hardware.has(_LINK):
            message = f"{spec.hardware.profile} says nothing of the link to host memory, which weights are copied over"
            issues.report(f"/hardware/overrides/{_LINK}", message, _HINT, code="missing-hardware-number")
    _check_tables(state, issues)


def _check_tables(state: SpecState, issues: IssueCollector) -> None:
    stash = state.spec.model.stash
    if stash is None or stash.tables is None or not issues.is_sound("/model/tables"):
        return
    known = {table.name for _, table in state.written_tables()}
    seen: Counter[str] = Counter()
    for index, name in enumerate(stash.tables):
        if name not in known:
            issues.report(f"{_BASE}/tables/{index}", f'no table "{name}" in the spec', "name a table of model.tables")
        elif seen[name]:
            issues.report(f"{_BASE}/tables/{index}", f'table "{name}" is listed before', "list each table once")
        seen[name] += 1
