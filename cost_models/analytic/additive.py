"""Additive models in place of one that prices ranks as a whole: its name and phases, and prices of shards."""

from dataclasses import dataclass

from cost_models.arrays import Bools
from cost_models.collectives.starts import PricesStarts, StartPrices
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import AssignmentModel, ShardSeconds, ShardWork


@dataclass(frozen=True, kw_only=True)
class Additive:
    """A model that prices ranks as a whole, taken by its own additive prices."""

    model: AssignmentModel

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def version(self) -> str:
        """The model's version."""
        return self.model.version

    @property
    def counted_phases(self) -> Bools:
        """The model's."""
        return self.model.counted_phases

    @property
    def rounding(self) -> float:
        """The model's."""
        return self.model.rounding

    @property
    def starts(self) -> StartPrices | None:
        """The model's; shards' prices hold none."""
        return self.model.starts if isinstance(self.model, PricesStarts) else None

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work`` by itself."""
        return self.model.predict(work, hardware)
