"""Rules of a spec that serves requests: the objective, the cost model and ``serving`` belong together.

What only training has is refused rather than passed over, so that no field of a spec means nothing.
"""

from collections.abc import Iterator

from api.schemas.spec import SpecDocument
from api.specs.checks.issue import issue
from cost_models.analytic.serving import ServingModel
from cost_models.hardware.hardware import Hardware
from planner.domain.problem.problem import REQUEST_LATENCY
from planner.errors import Issue


def check_serving(spec: SpecDocument, hardware: Hardware | None, base: str) -> Iterator[Issue]:
    """Yield every contradiction between requests and training; ``base`` stands before every pointer."""
    if spec.objective != REQUEST_LATENCY:
        yield from _check_training(spec, base)
        return
    if spec.serving is None:
        yield issue(
            f"{base}/serving",
            f"the objective {REQUEST_LATENCY} needs the samples of a request",
            "give serving.samples_per_request",
        )
    if spec.cost_model != ServingModel.name:
        yield issue(
            f"{base}/cost_model",
            f"this cost model prices training steps, and the objective is {REQUEST_LATENCY}",
            f"use the cost model {ServingModel.name}",
        )
    if spec.checkpoint is not None:
        yield issue(f"{base}/checkpoint", "a host that serves trains nothing to keep", "leave checkpoint out")
    yield from _check_model(spec, base)
    if spec.hardware.num_hosts != 1:
        yield issue(
            f"{base}/hardware/num_hosts",
            f"{spec.hardware.num_hosts} hosts, and a request is answered by one",
            "plan for 1 host; every host that serves has the same plan",
        )
    if hardware is not None and not _has_accelerator(spec, hardware):
        yield issue(
            f"{base}/hardware",
            "no rank has memory of its own, so that nothing is sent to it",
            "give hbm_bytes of cards",
        )


def _check_training(spec: SpecDocument, base: str) -> Iterator[Issue]:
    if spec.serving is not None:
        yield issue(
            f"{base}/serving",
            f"the objective {spec.objective} is of a training step",
            f"use the objective {REQUEST_LATENCY}, or leave serving out",
        )
    if spec.cost_model == ServingModel.name:
        yield issue(
            f"{base}/cost_model",
            f"the cost model {ServingModel.name} prices requests, and the objective is {spec.objective}",
            f"use the objective {REQUEST_LATENCY}, or another cost model",
        )
    if spec.model.batch_size_per_rank is None:
        yield issue(f"{base}/model/batch_size_per_rank", "this field is required", "add it", code="missing-field")


def _check_model(spec: SpecDocument, base: str) -> Iterator[Issue]:
    """What a model must not say of training."""
    model, where = spec.model, f"{base}/model"
    if model.batch_size_per_rank is not None:
        yield issue(
            f"{where}/batch_size_per_rank",
            "a request has serving.samples_per_request samples, however many ranks share it",
            "leave it out",
        )
    if model.pipeline != "none":
        yield issue(f"{where}/pipeline", f"{model.pipeline} is a training pipeline", "set it to none")
    for name in ("forward_seconds", "backward_seconds"):
        if getattr(model.dense, name) is not None:
            yield issue(f"{where}/dense/{name}", "nothing of a request is hidden under dense compute", "leave it out")
    if model.backward_comm_dtype is not None:
        yield issue(f"{where}/backward_comm_dtype", "a request has no backward pass", "leave it out")
    for index, table in enumerate(model.tables):
        if table.optimizer != "none":
            yield issue(f"{where}/tables/{index}/optimizer", "a table that is served is not trained", "set it to none")


def _has_accelerator(spec: SpecDocument, hardware: Hardware) -> bool:
    if spec.hardware.overrides.hbm_bytes_by_rank is not None:
        return True
    return hardware.has("hbm_bytes") and hardware.numbers["hbm_bytes"].value > 0
