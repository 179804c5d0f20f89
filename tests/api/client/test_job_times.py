"""From what ranks saw to the document that is posted."""

import pytest

from api.client import NotTimed
from api.client.job_times import PHASES, RankReport, job_times, median_seconds
from api.schemas.measurements import JobTimes

PLAN_DIGEST = "sha256:" + "0" * 64


def report(**changes: object) -> RankReport:
    given = {
        "seconds": {"forward_compute": 0.5},
        "num_steps": 7,
        "device": "GPU",
        "library": "fbgemm_gpu 1",
        "left_out": (),
    }
    return RankReport(**{**given, **changes})


def test_a_slow_step_does_not_move_the_median() -> None:
    steps = [{"forward_compute": seconds, "forward_comm": 2 * seconds} for seconds in (1.0, 1.2, 60.0)]
    assert median_seconds(steps) == {"forward_compute": 1.2, "forward_comm": 2.4}


def test_a_phase_that_not_every_step_had_is_left_out() -> None:
    assert median_seconds([{"forward_compute": 1.0, "input_comm": 1.0}, {"forward_compute": 3.0}]) == {
        "forward_compute": 2.0
    }


def test_without_steps_there_are_no_phases() -> None:
    assert median_seconds([]) == {}


def test_the_document_is_what_the_service_takes() -> None:
    every = dict.fromkeys(PHASES, 0.25)
    document = job_times(PLAN_DIGEST, [report(seconds=every), report(num_steps=5)], communication="nccl")
    job = JobTimes.model_validate(document)
    assert (job.plan_digest, job.steps, job.device, job.library) == (PLAN_DIGEST, 5, "GPU", "fbgemm_gpu 1")
    assert (job.implementation, job.communication) == ("fbgemm_tbe", "nccl")
    assert [(one.rank, one.seconds) for one in job.ranks] == [(0, every), (1, {"forward_compute": 0.5})]


def test_an_unknown_library_is_left_for_the_service_to_say() -> None:
    assert "library" not in job_times(PLAN_DIGEST, [report(library=None)], communication="gloo")


@pytest.mark.parametrize("missing", [{"num_steps": 0}, {"seconds": {}}])
def test_a_rank_without_times_is_named_with_its_reasons(missing: dict[str, object]) -> None:
    reports = [report(), report(left_out=("no backward",), **missing), report(left_out=("no backward",), **missing)]
    with pytest.raises(NotTimed) as caught:
        job_times(PLAN_DIGEST, reports, communication="nccl")
    assert caught.value.reasons == ("ranks 1, 2: no step was timed", "no backward")


def test_ranks_of_several_devices_are_refused() -> None:
    with pytest.raises(NotTimed, match=r"different device names \(GPU, NPU\)"):
        job_times(PLAN_DIGEST, [report(), report(device="NPU")], communication="nccl")
    with pytest.raises(NotTimed, match=r"different library names \(None, fbgemm_gpu 1\)"):
        job_times(PLAN_DIGEST, [report(), report(library=None)], communication="nccl")
