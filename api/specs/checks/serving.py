"""Rules of a spec that serves requests: the objective, the cost model and ``serving`` belong together.

What only training has is refused rather than passed over, so that no field of a spec means nothing.
"""

from api.schemas.spec import SpecDocument
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.analytic.serving import ServingModel
from cost_models.hardware.hardware import Hardware
from planner.domain.problem.problem import REQUEST_LATENCY


def check_serving(state: SpecState, issues: IssueCollector) -> None:
    """Report every contradiction between requests and training."""
    if not issues.is_sound("/objective"):
        return
    if state.spec.objective == REQUEST_LATENCY:
        _check_requests(state, issues)
    else:
        _check_training(state.spec, issues)


def _check_requests(state: SpecState, issues: IssueCollector) -> None:
    spec = state.spec
    if spec.serving is None:
        issues.report(
            "/serving",
            f"the objective {REQUEST_LATENCY} needs the samples of a request",
            "give serving.samples_per_request",
        )
    elif spec.serving.p99_seconds is not None and spec.serving.kv_cache is not None:
        issues.report(
            "/serving/p99_seconds",
            "requests that hit the cache of keys and values and those that miss take different times, and percentiles"
            " are known of requests of one length",
            "leave p99_seconds or kv_cache out",
        )
    elif spec.serving.p99_seconds is not None and spec.serving.requests_per_second is None:
        issues.report(
            "/serving/p99_seconds",
            f"how long requests wait follows from their rate; without one no limit of {spec.serving.p99_seconds:g} s"
            " can be checked",
            "give serving.requests_per_second, or leave p99_seconds out",
        )
    if spec.cost_model != ServingModel.name:
        issues.report(
            "/cost_model",
            f"this cost model prices training steps, and the objective is {REQUEST_LATENCY}",
            f"use the cost model {ServingModel.name}",
        )
    if spec.checkpoint is not None:
        issues.report("/checkpoint", "a host that serves trains nothing to keep", "leave checkpoint out")
    _check_model(state, issues)
    if spec.hardware.num_hosts != 1:
        issues.report(
            "/hardware/num_hosts",
            f"{spec.hardware.num_hosts} hosts, and a request is answered by one",
            "plan for 1 host: every host that serves has the same plan, whose sustained_requests_per_second says how"
            " many hosts a rate takes",
        )
    if state.hardware is not None and not _has_accelerator(spec, state.hardware):
        issues.report(
            "/hardware",
            "no rank has memory of its own, so that nothing is sent to it",
            "give hbm_bytes of cards",
            reads=("/hardware/overrides/hbm_bytes", "/hardware/overrides/hbm_bytes_by_rank"),
        )


def _check_training(spec: SpecDocument, issues: IssueCollector) -> None:
    if spec.serving is not None:
        issues.report(
            "/serving",
            f"the objective {spec.objective} is of a training step",
            f"use the objective {REQUEST_LATENCY}, or leave serving out",
        )
    if spec.cost_model == ServingModel.name:
        issues.report(
            "/cost_model",
            f"the cost model {ServingModel.name} prices requests, and the objective is {spec.objective}",
            f"use the objective {REQUEST_LATENCY}, or another cost model",
        )
    if spec.model.batch_size_per_rank is None:
        issues.report("/model/batch_size_per_rank", "this field is required", "add it", code="missing-field")


def _check_model(state: SpecState, issues: IssueCollector) -> None:
    """Report what only training has."""
    model = state.spec.model
    if model.batch_size_per_rank is not None:
        issues.report(
            "/model/batch_size_per_rank",
            "a request has serving.samples_per_request samples, however many ranks share it",
            "leave it out",
        )
    if model.pipeline != "none":
        issues.report("/model/pipeline", f"{model.pipeline} is a training pipeline", "set it to none")
    for name in type(model.dense).model_fields:
        if name != "parameter_bytes" and getattr(model.dense, name) is not None:
            issues.report(f"/model/dense/{name}", "nothing of a request is hidden under dense compute", "leave it out")
    if model.backward_comm_dtype is not None:
        issues.report("/model/backward_comm_dtype", "a request has no backward pass", "leave it out")
    for pointer, table in state.written_tables():
        if table.optimizer != "none":
            issues.report(f"{pointer}/optimizer", "a table that is served is not trained", "set it to none")


def _has_accelerator(spec: SpecDocument, hardware: Hardware) -> bool:
    if spec.hardware.overrides.hbm_bytes_by_rank is not None:
        return True
    return hardware.has("hbm_bytes") and hardware.numbers["hbm_bytes"].value > 0
