"""What a rank's device memory holds in each phase of a training step."""

from collections.abc import Mapping
from dataclasses import dataclass

from cost_models.vocabulary import Code


class MemoryPhase(Code):
    """Phases of a step in which a rank's memory holds different buffers, in the order of every pipeline."""

    FORWARD_COMPUTE = 0
    FORWARD_COMM = 1
    OUTPUT_CONCAT = 2  #: received rows are joined into the pooled rows of a module
    STASH = 3  #: the copies of stashed weights to the host end; only where any are stashed
    DENSE_FORWARD = 4
    DENSE_BACKWARD = 5
    RESTORE = 6  #: the copies of stashed weights back begin; only where any are stashed
    GRADIENT_SPLIT = 7  #: gradients of pooled rows are cut into what each rank receives
    BACKWARD_COMM = 8
    BACKWARD_COMPUTE = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    """Bytes of one rank's device memory over a step.

    The bytes of a phase are ``persistent_bytes`` and the ``buffer_bytes`` of the phase together.
    """

    device_bytes: float  # of the whole memory, nothing reserved
    peak_bytes: float
    peak_phase: MemoryPhase  # the first of those with the most bytes
    #: named lines that stay through the step: tables, input_buffers, dense_parameters, ...
    persistent_bytes: Mapping[str, float]
    #: named lines of each phase: lookup_outputs, received_rows, ...
    buffer_bytes: Mapping[MemoryPhase, Mapping[str, float]]
    phase_bytes: Mapping[MemoryPhase, float]
