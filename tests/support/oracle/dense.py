"""Dense compute and the whole step: docs/cost-models.md#whole-step."""

from collections import Counter
from typing import Any

from tests.support.oracle.machine import Machine

_GRADIENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


def dense_times(dense: dict[str, Any], machine: Machine, batch: float) -> tuple[float, float]:
    """Return F and B of the page."""
    forward, backward = dense.get("forward_seconds") or 0.0, dense.get("backward_seconds") or 0.0
    if dense.get("compute_dtype"):
        rate = machine.numbers[f"{dense['compute_dtype']}_flops_per_second"] * machine.numbers["dense_efficiency"]
        flops = dense.get("forward_flops_per_sample")
        if flops is None:
            flops = 2 * _weights(dense["layers"])[0]
        back = dense.get("backward_flops_per_sample")
        forward, backward = batch * flops / rate, batch * (2 * flops if back is None else back) / rate
    return float(forward), float(backward)


def parameter_bytes(dense: dict[str, Any]) -> float:
    """Return the bytes of dense weights."""
    if dense.get("parameter_bytes") is not None:
        return float(dense["parameter_bytes"])
    return 4.0 * sum(_weights(dense["layers"])) if dense.get("layers") else 0.0


def _weights(layers: dict[str, Any]) -> tuple[int, int]:
    """Return how many weights and biases the layers have."""
    weights = biases = 0
    for widths in layers.get("mlp_widths") or []:
        for place in range(1, len(widths)):
            weights += widths[place - 1] * widths[place]
            biases += widths[place]
    cross = layers.get("cross_layers")
    if cross:
        for _ in range(cross["num_layers"]):
            weights += cross["width"] ** 2 if cross.get("rank") is None else 2 * cross["width"] * cross["rank"]
            biases += cross["width"]
    return weights, biases


def whole_step(
    dense: dict[str, Any], machine: Machine, batch: float, sparse: float, hidden: Counter[str]
) -> dict[str, float] | None:
    """Return the figures of a whole step; ``None`` where dense compute is not timed."""
    if all(dense.get(name) is None for name in ("forward_seconds", "backward_seconds", "compute_dtype")):
        return None
    forward, backward = dense_times(dense, machine, batch)
    gradient = parameter_bytes(dense) * _GRADIENT_BYTES[dense.get("gradient_dtype") or "fp32"] / 4
    all_reduce = 0.0
    if machine.world > 1 and gradient > 0:
        all_reduce = gradient * machine.pace("all_reduce", "all", gradient)
    under = min(all_reduce, backward, forward + backward - hidden["input_comm"])
    overhead = machine.numbers.get("step_overhead_seconds", 0.0)
    seconds = sparse + forward + backward + (all_reduce - under) + overhead
    return {
        "seconds": seconds,
        "samples_per_second": batch * machine.world / seconds if seconds > 0 else 0.0,
        "sparse_seconds": sparse,
        "hidden_sparse_seconds": sum(hidden.values()),
        "dense_forward_seconds": forward,
        "dense_backward_seconds": backward,
        "dense_all_reduce_seconds": all_reduce,
        "hidden_all_reduce_seconds": under,
        "overhead_seconds": overhead,
        "stash_wait_seconds": 0.0,
    }
