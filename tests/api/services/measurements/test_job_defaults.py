"""What a job that left fields out is taken to have run."""

import pytest

from api.schemas.measurements import JobTimes
from api.services.measurements.job_defaults import completed
from planner.domain.plan.plan import Assumption

GPU, CPU, OWN = "dgx-h100-80g", "cpu-2s-genoa-200g", "custom"
NOTHING = "sha256:" + "0" * 64


def job(
    device: str = "lab", *, phases: tuple[str, ...] = ("forward_compute", "forward_comm"), **message: str
) -> JobTimes:
    ranks = [{"rank": 0, "seconds": dict.fromkeys(phases, 1e-3)}]
    return JobTimes.model_validate({"plan_digest": NOTHING, "steps": 1, "device": device, "ranks": ranks, **message})


def taken(reported: JobTimes, *, profile: str = GPU, runtime: str = "torchrec") -> dict[str, Assumption]:
    complete, assumptions, missing = completed(reported, profile=profile, runtime=runtime)
    assert missing == []
    assumed = {one.subject: one for one in assumptions}
    for field, one in assumed.items():
        assert getattr(complete, field) == one.value
        assert one.evidence == "default"
    return assumed


@pytest.mark.parametrize(
    ("device", "profile", "communication", "why"),
    [
        ("lab", GPU, "nccl", "dgx-h100-80g is of GPUs"),
        ("lab", CPU, "gloo", "cpu-2s-genoa-200g is of CPUs"),
        ("nvidia h200", OWN, "nccl", "GPU by the name of the device"),
        ("nvidia h200", CPU, "nccl", "GPU by the name of the device"),
        ("Intel Xeon Processor, 1 of 2 cores", GPU, "gloo", "CPU by the name of the device"),
        ("AMD EPYC 9654", OWN, "gloo", "CPU by the name of the device"),
    ],
)
def test_collectives_follow_the_device_then_the_profile(
    device: str, profile: str, communication: str, why: str
) -> None:
    found = taken(job(device), profile=profile)["communication"]
    assert found.value == communication
    assert why in found.source


def test_lookups_of_torchrec_are_fbgemm_s_on_every_device() -> None:
    for profile in (GPU, CPU):
        found = taken(job(), profile=profile)
        assert (found["implementation"].value, found["library"].value) == ("fbgemm_tbe", "training-job")


def test_what_is_stated_is_preserved() -> None:
    message = {"library": "torch 2.13.0", "implementation": "embedding_bag", "communication": "mpi"}
    assert taken(job(**message), profile=OWN, runtime="generic") == {}


def test_what_nothing_reports_must_be_stated_where_rows_need_it() -> None:
    def needed(*phases: str) -> list[str]:
        _, _, missing = completed(job(phases=phases), profile=OWN, runtime="generic")
        for issue in missing:
            assert issue.code == "missing-field"
            assert ("gloo" if issue.pointer == "/communication" else "embedding_bag") in issue.hint
        return [issue.pointer for issue in missing]

    assert needed("forward_compute", "backward_comm") == ["/implementation", "/communication"]
    assert needed("backward_compute") == ["/implementation"]
    assert needed("input_comm") == ["/communication"]
    assert needed("prefetch") == []
