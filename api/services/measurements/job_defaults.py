"""Fields that a job left out about itself: filled in from its device and its plan, else required.

Rows that name the wrong library are fitted together with rows of others, or are rejected together with those of a
benchmark of the same machine; so unknown fields have no default.
"""

import functools
import re
from collections.abc import Mapping

from api.schemas.measurements import JobTimes
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.vocabulary import Phase
from planner.domain.plan.plan import Assumption
from planner.errors import Issue

LIBRARY = "training-job"
#: Of a job whose rows do not need it, and of which nothing is known.
NOT_STATED = "not stated"
#: What collectives run on, by kind of device, and what TorchRec's lookups run on everywhere, as shardplan measure
#: writes them.
_COLLECTIVES = {"cpu": "gloo", "gpu": "nccl"}
_TORCHREC_LOOKUPS = "fbgemm_tbe"
#: As shardplan measure calls a CPU ("Intel Xeon Processor, 1 of 2 cores"), and as makers do.
_CPU = re.compile(r"\b(CPU|Xeon|EPYC|Processor|cores)\b", re.IGNORECASE)
_LOOKUP_PHASES = frozenset({Phase.FORWARD_COMPUTE.label, Phase.BACKWARD_COMPUTE.label})
_EXCHANGE_PHASES = frozenset({Phase.INPUT_COMM.label, Phase.FORWARD_COMM.label, Phase.BACKWARD_COMM.label})


def completed(job: JobTimes, *, profile: str, runtime: str) -> tuple[JobTimes, list[Assumption], list[Issue]]:
    """Return the job with its defaults, their sources, and issues of fields that it must state."""
    taken: dict[str, str] = {}
    assumptions: list[Assumption] = []
    issues: list[Issue] = []
    timed = {phase for rank in job.ranks for phase in rank.seconds}
    if job.library is None:
        taken["library"] = LIBRARY
        assumptions.append(_default("library", LIBRARY, "no library was named"))
    for field, known, phases, choice in (
        ("implementation", _lookups(runtime), _LOOKUP_PHASES, "fbgemm_tbe (TorchRec's), triton_tbe or embedding_bag"),
        ("communication", _collectives(job.device, profile), _EXCHANGE_PHASES, "nccl on GPUs, gloo on CPUs"),
    ):
        if getattr(job, field) is not None:
            continue
        if known is not None:
            taken[field] = known[0]
            assumptions.append(_default(field, *known))
        elif timed & phases:
            issues.append(_needed(field, choice))
        else:
            taken[field] = NOT_STATED
    return job.model_copy(update=taken), assumptions, issues


def _lookups(runtime: str) -> tuple[str, str] | None:
    """Return what lookups run on and why, of a runtime that has one kernel for them."""
    if runtime != "torchrec":
        return None
    return _TORCHREC_LOOKUPS, "the runtime of the plan's spec is torchrec, which runs this on GPUs and CPUs"


def _collectives(device: str, profile: str) -> tuple[str, str] | None:
    """Return what collectives run on and why; what the device says goes before what its plan was made for."""
    for kind, why in (
        (_kind_of_device(device), "{kind} by the name of the device"),
        (load_profile(profile).family, f"the plan's hardware profile {profile} is of {{kind}}s"),
    ):
        if kind in _COLLECTIVES:
            return _COLLECTIVES[kind], why.format(kind=kind.upper())
    return None


def _kind_of_device(device: str) -> str:
    if _CPU.search(device):
        return "cpu"
    return _families().get(device.casefold(), "")


@functools.cache
def _families() -> Mapping[str, str]:
    profiles = map(load_profile, profile_ids())
    return {device.casefold(): hardware.family for hardware in profiles for device in hardware.devices}


def _default(field: str, value: str, why: str) -> Assumption:
    return Assumption(subject=field, value=value, evidence="default", source=why)


def _needed(field: str, choice: str) -> Issue:
    return Issue(
        code="missing-field",
        pointer=f"/{field}",
        message="this field is required here: neither the device nor the plan says what the job ran",
        hint=f"add it, spelled as in the rows of benchmarks that it will be fitted together with: {choice}",
    )
