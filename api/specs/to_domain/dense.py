"""From the dense part of a spec to seconds of a step and bytes of its weights."""

from dataclasses import replace

from api.schemas.dense import MAX_SECONDS, DenseSpec, LayersSpec
from api.specs.issues import IssueCollector
from cost_models.analytic.dense import BACKWARD_PER_FORWARD, Layers, compute_seconds
from cost_models.hardware.hardware import Hardware
from planner.domain.problem.dense import Dense
from planner.errors import Issue

#: Bytes of a weight, a bias, and of a gradient of each in its type.
_WEIGHT_BYTES = 4
_GRADIENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


def dense_of(spec: DenseSpec, *, samples_per_rank: float, hardware: Hardware, issues: IssueCollector) -> Dense:
    """Return the dense part of a model; reports the numbers that the hardware lacks, each at its override."""
    layers = None if spec.layers is None else _layers(spec.layers)
    parameter_bytes = spec.parameter_bytes
    if parameter_bytes is None:
        parameter_bytes = 0.0 if layers is None else float(_WEIGHT_BYTES * layers.num_parameters)
    gradient_bytes = None
    if spec.gradient_dtype is not None:
        gradient_bytes = parameter_bytes * _GRADIENT_BYTES[spec.gradient_dtype] / _WEIGHT_BYTES
    known = Dense(
        forward_seconds=spec.forward_seconds,
        backward_seconds=spec.backward_seconds,
        parameter_bytes=parameter_bytes,
        activation_bytes=spec.activation_bytes,
        gradient_bytes=gradient_bytes,
    )
    forward_flops = spec.forward_flops_per_sample if layers is None else layers.forward_flops_per_sample
    if forward_flops is None or spec.compute_dtype is None:
        return known
    backward_flops = spec.backward_flops_per_sample
    if backward_flops is None:
        backward_flops = BACKWARD_PER_FORWARD * forward_flops
    flops = forward_flops * samples_per_rank, backward_flops * samples_per_rank
    collecting, missing = hardware.collecting_missing()
    for one in flops:
        compute_seconds(one, spec.compute_dtype, collecting)
    for error in missing.values():
        where = f"/hardware/overrides/{error.name}"
        issues.add(Issue(code=error.code, pointer=where, message=str(error), hint=error.hint))
    if missing:
        return known
    recorded, read = hardware.recorded()
    forward, backward = (compute_seconds(one, spec.compute_dtype, recorded) for one in flops)
    if max(forward, backward) > MAX_SECONDS:
        field, hint = "forward_flops_per_sample", "give operations of one sample, not of a batch"
        if layers is not None:
            field, hint = "layers", "give the layers that a sample goes through; lower batch_size_per_rank"
        elif backward > forward and spec.backward_flops_per_sample is not None:
            field = "backward_flops_per_sample"
        message = (
            f"dense compute takes {max(forward, backward):.3g} s of a step; at most {MAX_SECONDS} s are planned for"
        )
        issues.report(f"/model/dense/{field}", message, hint)
        return known
    return replace(
        known,
        forward_seconds=forward,
        backward_seconds=backward,
        hardware_numbers=frozenset(read),
        evidence=max(hardware.numbers[name].evidence for name in read),
    )


def _layers(spec: LayersSpec) -> Layers:
    cross = spec.cross_layers
    if cross is None:
        return Layers(mlp_widths=spec.mlp_widths)
    return Layers(
        mlp_widths=spec.mlp_widths,
        num_cross_layers=cross.num_layers,
        cross_width=cross.width,
        cross_rank=cross.rank,
    )
