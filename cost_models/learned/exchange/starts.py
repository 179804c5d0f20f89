"""Starts of collectives as curves of measured ones have them.

The seconds of whole ranks hold one start of every measured collective: those of a plan's first kind of sharding that
uses the collective. Each further kind adds another one. A measured launch holds the launches of its kernels.
"""

from dataclasses import dataclass

from cost_models.collectives.collectives import Network
from cost_models.collectives.starts import NO_START, AnalyticStarts, Collective, Start
from cost_models.hardware.hardware import Hardware
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.learned.ranks.laws import COMPUTE_PHASES
from cost_models.vocabulary import Evidence, Phase

_ANALYTIC = AnalyticStarts()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedStarts:
    """Starts of measured collectives; those of others are the hardware profile's."""

    exchange: LearnedExchange | None
    has_launches: bool  # whether lookups were measured, with the launches of their kernels

    def launches(self, phase: Phase, number: int, hardware: Hardware) -> Start:
        """Return nothing where lookups were measured."""
        if self.has_launches and phase in COMPUTE_PHASES:
            return NO_START
        return _ANALYTIC.launches(phase, number, hardware)

    def start(self, collective: Collective, network: Network) -> Start:
        """Return the start of the curve, if the collective was measured."""
        if self.exchange is None or not self.is_priced_once(collective, network):
            return _ANALYTIC.start(collective, network)
        seconds = self.exchange.start_seconds(_kind(collective, network), network.num_ranks)
        return Start(seconds=seconds, evidence=Evidence.MEASURED)

    def is_priced_once(self, collective: Collective, network: Network) -> bool:
        """Return whether the collective was measured."""
        is_of_all = collective.group == "all" or (collective.group == "inside" and network.num_groups == 1)
        if self.exchange is None or not is_of_all or collective.operation == "all_reduce":
            return False
        return not self.exchange.unmeasured(_kind(collective, network), network.num_ranks)


def _kind(collective: Collective, network: Network) -> CollectiveKind:
    return CollectiveKind(collective.operation, collective.direction, spans_hosts=network.num_hosts > 1)
