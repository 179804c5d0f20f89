r"""Between which limits a measured time lies, with a stated probability.

Split conformal prediction: the deviations :math:`|\ln y - \ln T| / \sigma` of rows that the fit has not seen have a
quantile q; a new time lies within :math:`T e^{\pm q \sigma}` with the stated probability, whatever the deviations look
like, as long as new rows are drawn as those were. Each number of ranks per host that was measured often enough has
its own quantile, so that the probability holds for each of them and not only on average. The width
:math:`\ln \sigma = a + b \ln T + c \ln n + d w` follows the predicted time T, the number n of shards and the contention
w, since short and crowded launches vary more.

References
----------
Lei et al., "Distribution-free predictive inference for regression", JASA 113 (2018): section 5.2, locally weighted.
Vovk et al., "Algorithmic Learning in a Random World" (2005): quantiles by category (Mondrian predictors).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats

#: Bounds of ln(sigma): no launch is known to better than 0.5 %, and none is worse than a factor of e.
LOG_WIDTH_BOUNDS = (np.log(0.005), 0.0)
#: No calibration finds more; and limits beyond a factor of e^20 say nothing more.
LARGEST_QUANTILE = 1e4
MOST_REACH = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Widths and the quantile of one predicted time."""

    coverage: float  # probability, 0 to 1
    contentions: tuple[float, ...]  # increasing: where a quantile was found
    quantiles: tuple[float, ...]  # one for each; between two of them it is interpolated
    #: of 1, ln T, ln n and w
    log_width: tuple[float, ...]

    def __post_init__(self) -> None:
        """Reject what is no interval."""
        if not 0 < self.coverage < 1:
            raise ValueError(f"Expected 0 < coverage < 1, not {self.coverage}.")
        if not self.quantiles or len(self.quantiles) != len(self.contentions):
            raise ValueError("Expected as many quantiles as contentions, at least one.")
        if not all(0 <= quantile <= LARGEST_QUANTILE for quantile in self.quantiles):
            raise ValueError(f"Expected quantiles from 0 to {LARGEST_QUANTILE:g}.")
        if any(b <= a for a, b in zip(self.contentions, self.contentions[1:], strict=False)):
            raise ValueError("Expected increasing contentions.")
        if len(self.log_width) != len(WIDTH_INPUTS) or not np.all(np.isfinite(self.log_width)):
            raise ValueError(f"Expected {len(WIDTH_INPUTS)} finite numbers in log_width.")

    def reach(self, seconds: Floats, num_shards: Floats, contention: float | Floats) -> Floats:
        """Return q sigma: the logarithm of the upper limit over the prediction, (num_rows,)."""
        inputs = width_inputs(seconds, num_shards, contention)
        quantile = np.interp(contention, self.contentions, self.quantiles)
        reach: Floats = np.minimum(quantile * widths(inputs, np.array(self.log_width)), MOST_REACH)
        return reach


WIDTH_INPUTS = ("one", "log_seconds", "log_shards", "contention")


def width_inputs(seconds: Floats, num_shards: Floats, contention: float | Floats) -> Floats:
    """Return what sigma depends on, shape (num_rows, 4)."""
    log_seconds = np.log(np.maximum(seconds, 1e-9))
    log_shards = np.log(np.maximum(num_shards, 1.0))
    return np.stack(np.broadcast_arrays(1.0, log_seconds, log_shards, contention), axis=1)


def widths(inputs: Floats, log_width: Floats) -> Floats:
    """Return sigma of rows of :func:`width_inputs`."""
    return np.exp(np.clip(inputs @ log_width, *LOG_WIDTH_BOUNDS))
