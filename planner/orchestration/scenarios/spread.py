"""What is minimised over scenarios: the worst, or a quantile of their weights."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats

_ROUNDING = 1e-9  # of sums of weights, relative


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Weights of scenarios, and the share of the weight that counts."""

    weights: Floats  # (S,) above 0
    quantile: float = 1.0  # 1 is the worst scenario

    @property
    def is_worst(self) -> bool:
        """Whether the worst of all scenarios is minimised."""
        return self.quantile >= 1.0

    def cost(self, steps: Floats) -> float:
        """Return the least step that scenarios with this share of the weight do not exceed; ``steps`` is (S,).

        No step that is shorter makes it longer: of lower bounds on steps it is a lower bound.
        """
        order = np.argsort(steps, kind="stable")
        reached = np.cumsum(self.weights[order]) >= self.quantile * self.weights.sum() * (1 - _ROUNDING)
        found: float = steps[order[int(np.argmax(reached))]].item()
        return found

    def share(self, those: Bools) -> float:
        """Return the share of the weight of some scenarios, (S,)."""
        return float(self.weights[those].sum() / self.weights.sum())

    def reaches(self, those: Bools, share: float) -> bool:
        """Whether some scenarios, (S,), have at least a share of the weight."""
        return self.share(those) >= share * (1 - _ROUNDING)
