"""The dense part of the model, where the user gives it: seconds of one step, and bytes of its weights."""

import math
from dataclasses import dataclass

from cost_models.vocabulary import Evidence
from planner.domain.expect import expect


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """Dense compute of one rank in one step, and its weights."""

    forward_seconds: float | None = None
    backward_seconds: float | None = None
    parameter_bytes: float = 0.0
    activation_bytes: float | None = None  # that the backward pass needs, all at once when it begins; None: not known
    gradient_bytes: float | None = None  # that the all-reduce of a step carries; None: ``parameter_bytes``
    #: names of the hardware numbers behind the seconds, and the weakest of them, if they were computed from operations
    hardware_numbers: frozenset[str] = frozenset()
    evidence: Evidence = Evidence.GIVEN

    def __post_init__(self) -> None:
        for name in ("forward_seconds", "backward_seconds", "parameter_bytes", "activation_bytes", "gradient_bytes"):
            value = getattr(self, name)
            expect(value is None or 0 <= value < math.inf, f"{name} >= 0")

    @property
    def is_timed(self) -> bool:
        """Whether dense compute has seconds, so that those of a whole step are known."""
        return self.forward_seconds is not None or self.backward_seconds is not None

    @property
    def window_seconds(self) -> float:
        """Dense compute under which a pipeline can hide the next batch's input communication."""
        return (self.forward_seconds or 0.0) + (self.backward_seconds or 0.0)

    @property
    def all_reduce_bytes(self) -> float:
        """Bytes of gradients that all ranks add up in one step."""
        return self.parameter_bytes if self.gradient_bytes is None else self.gradient_bytes
