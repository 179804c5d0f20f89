"""The fullest rank of each memory tier: bytes of different tiers are never added up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cost_models.vocabulary import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class FullestRank:
    """The rank of which a tier holds the most bytes of tables."""

    tier: str
    position: int  # in the list of ranks; the first of equal ones
    used_bytes: float


def fullest_ranks(used_bytes: Sequence[Mapping[str, float]]) -> list[FullestRank]:
    """Return the fullest rank of every tier that holds anything; ``used_bytes`` are by tier, one mapping a rank."""
    found = []
    for tier in tiers_in_order({tier for used in used_bytes for tier, held in used.items() if held > 0}):
        position = max(range(len(used_bytes)), key=lambda at: used_bytes[at].get(tier, 0))
        found.append(FullestRank(tier=tier, position=position, used_bytes=used_bytes[position].get(tier, 0)))
    return found


def tiers_in_order(tiers: set[str]) -> list[str]:
    """Order the names of tiers by how near they are to the accelerators."""
    return [*(tier for tier in Tier.labels() if tier in tiers), *sorted(tiers.difference(Tier.labels()))]
