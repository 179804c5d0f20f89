"""How full and how busy each memory tier is, and which tiers and rates a plan waits for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import Phase, Tier
from planner.domain.plan.plan import Evaluation, TierLoad
from planner.output.explain.shadow_prices import OWN_RATES, RELAXATION, ShadowPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUse:
    """What one tier holds on the rank where it is fullest, and what it moves on the rank where it is busiest."""

    tier: Tier
    fullest_rank: int
    used_bytes: float
    capacity_bytes: float  # after reservations
    busiest_rank: int | None  # None for the device's own memory, whose time is that of kernels, and for unread tiers
    busy_seconds: float  # of one step; 0 where there is no busiest rank
    rate: str | None  # that takes most of the busy time: "scm_write_bytes_per_second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a plan waits for: the rate and the bytes of which more would shorten it."""

    rate: str | None  # of which a tenth more saves most; None where no rate saves any
    tiers: tuple[Tier, ...]  # whose bytes have a price in the relaxation


def tier_uses(evaluation: Evaluation, hardware: Hardware) -> tuple[TierUse, ...]:
    """Return every tier in which any rank has bytes or from which any rank reads."""
    ranks, loads = evaluation.ranks, {load.tier: load for load in evaluation.tiers}
    uses = []
    for tier in ranks[0].bytes:
        fullest = max(ranks, key=lambda rank: _fraction(rank.bytes[tier], rank.capacity_bytes[tier]))
        load = loads.get(tier)
        if fullest.bytes[tier] > 0 or load is not None:
            uses.append(
                TierUse(
                    tier=tier,
                    fullest_rank=fullest.rank,
                    used_bytes=fullest.bytes[tier],
                    capacity_bytes=fullest.capacity_bytes[tier],
                    busiest_rank=None if load is None else load.busiest_rank,
                    busy_seconds=0.0 if load is None else load.busy_seconds,
                    rate=None if load is None else busiest_rate(load, hardware),
                )
            )
    return tuple(uses)


def busiest_rate(load: TierLoad, hardware: Hardware) -> str | None:
    """Return the rate of a tier that takes most of its busy time; ``None`` if the hardware states none."""
    amounts = {
        "ddr_bytes_per_second": load.read_bytes + load.written_bytes,
        "scm_bytes_per_second": load.read_bytes,
        "scm_write_bytes_per_second": load.written_bytes,
        "ssd_reads_per_second": load.operations,
        "ssd_bytes_per_second": load.read_bytes,
        "ssd_write_bytes_per_second": load.written_bytes,
    }
    rates = OWN_RATES.get(load.tier, (f"{load.tier.label}_bytes_per_second",))
    seconds = {rate: amounts[rate] / hardware.numbers[rate].value for rate in rates if hardware.has(rate)}
    return max(seconds, key=seconds.__getitem__, default=None)


def binding(prices: Sequence[ShadowPrice], uses: Sequence[TierUse]) -> Binding:
    """Return the rate and the tiers with the highest prices."""
    short = {price.resource for price in prices if price.method == RELAXATION and (price.saved_seconds or 0.0) > 0}
    return Binding(
        rate=_most({price.resource: price.saved_seconds or 0.0 for price in prices if price.method != RELAXATION}),
        tiers=tuple(use.tier for use in uses if f"{use.tier.label}_bytes" in short),
    )


def binding_rate(prices: Sequence[ShadowPrice], phase: Phase) -> str | None:
    """Return the rate of which a tenth more shortens a phase most; ``None`` where no rate does."""
    return _most({price.resource: price.phase_seconds.get(phase, 0.0) for price in prices})


def _most(saved: Mapping[str, float]) -> str | None:
    """Return what saves most, ``None`` if nothing saves any."""
    return max((name for name, seconds in saved.items() if seconds > 0), key=saved.__getitem__, default=None)


def _fraction(used_bytes: float, capacity_bytes: float) -> float:
    return used_bytes / capacity_bytes if capacity_bytes > 0 else 0.0
