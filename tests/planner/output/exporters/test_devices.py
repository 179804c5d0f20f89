"""Exports for devices that a plan was not made for are refused, whatever its tables are."""

import pytest

from planner.domain.formats.canonical_json import plan_digest
from planner.options.runtimes.export import UnexportablePlan
from tests.support.planning import export_documents as made
from tests.support.planning.long_plans import exported


def plan_for(profile: str | None) -> dict[str, object]:
    plan = made.document(made.table("t", "row_wise", [(rank, 3 * rank, 3, 0, 8) for rank in range(4)]))
    assert plan["plan_digest"] == plan_digest(plan)
    return plan if profile is None else {**plan, "provenance": {"hardware_profile": profile}}


@pytest.mark.parametrize("runtime", ["hugectr", "distributed_embeddings", "torcheasyrec"])
def test_runtimes_of_gpus(runtime: str) -> None:
    for profile in ("dgx-h100-80g", "custom", "a-profile-of-another-release", None):
        assert exported(plan_for(profile), runtime, module_path=None, device="cuda")
    with pytest.raises(UnexportablePlan, match=r"for tpu-v5p, .* family tpu; .* runs on gpu\. .* hardware\.profile"):
        exported(plan_for("tpu-v5p"), runtime, module_path=None, device="cuda")


def test_sparsecores() -> None:
    assert exported(plan_for("tpu-v5p"), "sparsecore", module_path=None, device="cuda")
    with pytest.raises(UnexportablePlan, match="family gpu; sparsecore runs on tpu"):
        exported(plan_for("dgx-h100-80g"), "sparsecore", module_path=None, device="cuda")


@pytest.mark.parametrize(
    ("profile", "device", "placement"),
    [
        ("cpu-xeon-vm", None, "rank:1/cpu"),
        ("cpu-xeon-vm", "cuda", "rank:1/cuda:1"),
        ("dgx-h100-80g", None, "rank:1/cuda:1"),
        ("mi300x-8x-400g", None, "rank:1/cuda:1"),
        ("a-profile-of-another-release", None, "rank:1/cuda:1"),
        (None, None, "rank:1/cuda:1"),
        ("dgx-h100-80g", "cpu", "rank:1/cpu"),
    ],
)
def test_the_device_is_that_of_the_plans_hardware(profile: str | None, device: str | None, placement: str) -> None:
    export = exported(plan_for(profile), "torchrec", module_path="bags", device=device)
    assert export["device"] == placement.partition("/")[2].partition(":")[0]
    assert export["plan"]["bags"]["t"]["shards"][1]["placement"] == placement
