"""The dense part of a spec: given once, by seconds, operations or layers, and turned into seconds of a step."""

from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from cost_models.vocabulary import Evidence
from planner.domain.problem.dense import Dense
from planner.errors import Issue
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.support.planning.long_plans import to_document
from tests.support.service.specs import raw, tiny

RATES = {"fp16_flops_per_second": 1e14, "dense_efficiency": 0.5}
LAYERS = {"mlp_widths": [[13, 512, 64], [700, 256, 1]], "cross_layers": {"num_layers": 2, "width": 700, "rank": 32}}
NUM_WEIGHTS = 13 * 512 + 512 * 64 + 700 * 256 + 256 + 2 * 2 * 700 * 32
NUM_BIASES = 512 + 64 + 256 + 1 + 2 * 700


def with_dense(dense: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return tiny(model__dense=dense, hardware__overrides=RATES, **changes)


def dense_of(dense: dict[str, Any], **changes: Any) -> Dense:
    return parse_spec(raw(with_dense(dense, **changes))).problem.dense


def issues(spec: dict[str, Any]) -> list[Issue]:
    with pytest.raises(RejectedDocument) as raised:
        parse_spec(raw(spec))
    return list(raised.value.issues)


def test_operations_become_seconds_of_a_rank() -> None:
    """1024 samples x 1e6 operations at half of 1e14 per second, and 3e6 backward."""
    given = {"forward_flops_per_sample": 1e6, "backward_flops_per_sample": 3e6, "compute_dtype": "fp16"}
    dense = dense_of(given, model__batch_size_per_rank=1024)
    assert dense.forward_seconds == pytest.approx(1024e6 / 5e13)
    assert dense.backward_seconds == pytest.approx(3 * 1024e6 / 5e13)
    assert dense.hardware_numbers == {"fp16_flops_per_second", "dense_efficiency"}
    assert dense.evidence is Evidence.GIVEN  # both are overrides


def test_backward_takes_twice_as_many_operations_where_it_is_not_given() -> None:
    given = {"forward_flops_per_sample": 1e6, "compute_dtype": "fp16"}
    dense = dense_of(given)
    assert dense.backward_seconds == 2 * (dense.forward_seconds or 0)
    values = {item.subject: item.value for item in parse_spec(raw(with_dense(given))).assumptions}
    assert values["model.dense.backward_flops_per_sample"] == "twice those forward"
    assert "model.dense.forward_seconds" not in values


def test_layers_say_operations_and_weights() -> None:
    dense = dense_of({"layers": LAYERS, "compute_dtype": "fp16"}, model__batch_size_per_rank=100)
    assert dense.forward_seconds == pytest.approx(100 * 2 * NUM_WEIGHTS / 5e13)
    assert dense.parameter_bytes == 4 * (NUM_WEIGHTS + NUM_BIASES)
    assert dense.all_reduce_bytes == dense.parameter_bytes
    own = dense_of({"layers": LAYERS, "compute_dtype": "fp16", "parameter_bytes": 5e6, "gradient_dtype": "bf16"})
    assert (own.parameter_bytes, own.all_reduce_bytes) == (5e6, 2.5e6)


@pytest.mark.parametrize("layers", [{}, {"mlp_widths": [[13]]}, {"mlp_widths": [[13, 0]]}])
def test_layers_have_inputs_and_outputs(layers: dict[str, Any]) -> None:
    found = issues(with_dense({"layers": layers, "compute_dtype": "fp16"}))
    assert all(issue.pointer.startswith("/model/dense/layers") for issue in found)


def test_a_missing_rate_is_refused_by_name() -> None:
    given = {"layers": LAYERS, "compute_dtype": "tf32"}
    (issue,) = issues(tiny(model__dense=given, hardware__profile="tpu-v4", hardware__ranks_per_host=2))
    assert issue.code == "missing-hardware-number"
    assert issue.pointer == "/hardware/overrides/tf32_flops_per_second"
    assert "tf32" in issue.message
    assert issue.hint


@pytest.mark.parametrize(
    ("dense", "field", "hint"),
    [
        ({"forward_flops_per_sample": 1e18}, "forward_flops_per_sample", "of one sample"),
        (
            {"forward_flops_per_sample": 1, "backward_flops_per_sample": 1e18},
            "backward_flops_per_sample",
            "of one sample",
        ),
        ({"layers": {"mlp_widths": [[2**24] * 1000]}}, "layers", "lower batch_size_per_rank"),
    ],
)
def test_operations_of_hours_are_no_step(dense: dict[str, object], field: str, hint: str) -> None:
    (issue,) = issues(with_dense(dense | {"compute_dtype": "fp16"}))
    assert issue.pointer == f"/model/dense/{field}"
    assert "at most 3600 s" in issue.message
    assert hint in issue.hint


@pytest.mark.parametrize("share", [0, 0.0009, 1.01])
def test_an_efficiency_is_a_share(share: float) -> None:
    (issue,) = issues(tiny(hardware__overrides={"dense_efficiency": share}))
    assert issue.pointer == "/hardware/overrides/dense_efficiency"
    assert "share in [0.001, 1]" in issue.message


def test_a_plan_states_the_whole_step_and_the_numbers_behind_it() -> None:
    given = {"layers": LAYERS, "compute_dtype": "bf16"}
    request = parse_spec(raw(tiny(model__dense=given)))
    found = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1),
        assumptions=request.assumptions,
    ).plan
    assert found is not None
    document = to_document(found, name="", spec_digest="", hardware_profile="")
    step = document["whole_step"]
    assert step is not None
    assert step["dense_backward_seconds"] == 2 * step["dense_forward_seconds"] > 0
    assert step["samples_per_second"] > 0
    assert {"hardware.bf16_flops_per_second", "hardware.dense_efficiency"} <= document["provenance"]["evidence"].keys()
    assert "hardware.step_overhead_seconds" in document["provenance"]["evidence"]
    assert "hardware.fp32_flops_per_second" not in document["provenance"]["evidence"]
