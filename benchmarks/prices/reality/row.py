"""A public measurement and what the product predicts for it: what every part of ``benchmarks/reality.py`` yields."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRow:
    """One measured row of a public series, and its prediction. Raises ``ValueError`` if its error is no number."""

    #: from coarse to fine, such as ("collectives one domain", "collectives one domain: h100_sxm alltoall")
    groups: tuple[str, ...]
    file: str  # name of the file that has the row
    line: int  # of this file, the header being line 1
    platform: str  # accelerator and how the ranks are connected
    subject: str  # what was measured, in words that stand alone
    measured_seconds: float
    predicted_seconds: float
    #: where 90% of such measurements should lie; None if the law states no interval
    lower_seconds: float | None = None
    upper_seconds: float | None = None
    is_extrapolated: bool = False  # beyond the sizes or ranks that the law was fitted to

    def __post_init__(self) -> None:
        if not (0 < self.measured_seconds < math.inf and 0 < self.predicted_seconds < math.inf):
            raise ValueError(f"{self.measured_seconds:g} s measured, {self.predicted_seconds:g} s predicted")

    @property
    def relative_error(self) -> float:
        """Signed: above 0 if the prediction is too slow."""
        return self.predicted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A measured row that the product does not predict."""

    file: str
    line: int
    reason: str
