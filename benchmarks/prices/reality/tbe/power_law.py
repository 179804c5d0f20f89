"""Rows that a benchmark's generator of ids looks up: how many are distinct, and how many a cache misses.

Three generators made the ids of public measurements:

- recsys-examples (:func:`power_law`): whole parts of draws from a density ``x^-alpha`` between 1 and rows + 1;
- FBGEMM's sweeps (:func:`zipf_bags`): Zipf's law, no id twice in a bag. The chance that a bag of L ids has a row of
  probability p is ``1 - exp(-s p)``, with the s for which these chances add up to L;
- uniform (:func:`uniform`).
"""

import functools
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats

_HEAD_ROWS = 100_000
_TAIL_CLASSES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Classes of rows, and the chance that a step touches one of them, each (classes,)."""

    size: Floats
    chance: Floats

    @property
    def distinct(self) -> float:
        """Distinct rows of a step."""
        return float((self.size * self.chance).sum())

    def missed_share(self, cached_rows: float) -> float:
        """Share of the distinct rows of a step that an LRU cache of so many rows does not hold, after many steps."""
        if cached_rows >= self.size.sum():
            return 0.0
        unseen = np.log1p(-np.minimum(self.chance, 1 - 1e-15))
        least, most = -20.0, 40.0  # log of the steps for which the cache keeps a row
        for _ in range(100):
            middle = (least + most) / 2
            if (self.size * -np.expm1(np.exp(middle) * unseen)).sum() < cached_rows:
                least = middle
            else:
                most = middle
        missed = (self.size * self.chance * np.exp(np.exp(least) * unseen)).sum()
        return float(missed) / self.distinct


@functools.lru_cache(maxsize=256)
def power_law(alpha: float, num_rows: int, lookups: float) -> Touched:
    """Rows of whole parts of a continuous power law, of so many independent lookups."""
    edges = _edges(num_rows)
    if abs(alpha - 1) < 1e-9:
        share = np.log(edges) / np.log(edges[-1])
    else:
        share = (1 - edges ** (1 - alpha)) / (1 - edges[-1] ** (1 - alpha))
    size = np.diff(edges)
    return _independent(size, np.diff(share) / size, lookups)


def uniform(num_rows: int, lookups: float) -> Touched:
    """Rows that are all as likely."""
    return _independent(np.array([float(num_rows)]), np.array([1 / num_rows]), lookups)


@functools.lru_cache(maxsize=256)
def zipf_bags(alpha: float, num_rows: int, bags: float, bag_ids: float) -> Touched:
    """Rows of bags that have no id twice, of Zipf's law."""
    edges = _edges(num_rows)
    size = np.diff(edges)
    weight = np.sqrt(edges[1:] * edges[:-1]) ** -alpha
    weight[:_HEAD_ROWS] = edges[:-1][:_HEAD_ROWS] ** -alpha
    probability = weight / (size * weight).sum()
    least, most = 0.0, 60.0
    for _ in range(100):
        middle = (least + most) / 2
        if (size * -np.expm1(-np.exp(middle) * probability)).sum() < min(bag_ids, num_rows):
            least = middle
        else:
            most = middle
    return _independent(size, -np.expm1(-np.exp(least) * probability), bags)


def _edges(num_rows: int) -> Floats:
    """First row numbers of classes, from 1, and the one after the last row."""
    head = np.arange(1.0, min(num_rows, _HEAD_ROWS) + 1)
    if num_rows <= _HEAD_ROWS:
        return np.append(head, num_rows + 1.0)
    tail = np.unique(np.round(np.geomspace(_HEAD_ROWS + 1, num_rows + 1, _TAIL_CLASSES)))
    return np.concatenate([head, tail])


def _independent(size: Floats, probability: Floats, draws: float) -> Touched:
    chance = -np.expm1(draws * np.log1p(-np.minimum(probability, 1 - 1e-15)))
    return Touched(size=size, chance=chance)
