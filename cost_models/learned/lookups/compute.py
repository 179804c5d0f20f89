r"""Seconds of fused lookups: what physics says of a rank, corrected by what was measured.

A rank's shards run as one launch. Physics gives it :math:`p = l + \sum_i \theta \phi_i` with non-negative seconds
per unit of each term (:mod:`cost_models.learned.lookups.features`), the network
(:mod:`cost_models.learned.lookups.network`) corrects it. With few measured rows there is no network, and p is the
answer.

Sums over shards carry all that the answer depends on, so a rank is priced in two steps: *parts* of every shard, then
*seconds* of their sums. A search that moves shards keeps the parts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints, freeze
from cost_models.learned.lookups.columns import LookupColumns
from cost_models.learned.lookups.features import FEATURES, FREE_FEATURES, TERMS, feature_matrix, term_seconds
from cost_models.learned.lookups.network import EXPONENTS, MonotoneNetwork

#: What a model may predict: forward and backward seconds, or only both together.
TARGETS = (("forward", "backward"), ("both",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """Non-negative seconds per unit of each term, and per unit and doubling of ranks per host."""

    terms: tuple[str, ...]
    seconds: Floats  # (num_terms, num_targets)
    contention_seconds: Floats  # (num_terms, num_targets)
    launch_seconds: Floats  # (num_targets,)
    launch_contention_seconds: Floats  # (num_targets,)

    def __post_init__(self) -> None:
        """Check names, shapes and signs, and make the arrays read-only."""
        targets = len(self.launch_seconds)
        if not set(self.terms) <= set(TERMS) or not self.terms or len(set(self.terms)) != len(self.terms):
            raise ValueError(f"Expected different terms among {', '.join(TERMS)}, at least one.")
        for value, shape in (
            (self.seconds, (len(self.terms), targets)),
            (self.contention_seconds, (len(self.terms), targets)),
            (self.launch_seconds, (targets,)),
            (self.launch_contention_seconds, (targets,)),
        ):
            if value.shape != shape or np.any(value < 0):
                raise ValueError(f"Expected seconds of physics of shape {shape}, none of them negative.")
        freeze(self)

    def of_shards(self, columns: LookupColumns, contention: float) -> Floats:
        """Return the seconds of each shard without those of the launch, (num_shards, num_targets)."""
        return term_seconds(columns, self.terms, self.seconds + contention * self.contention_seconds)

    def of_launch(self, contention: float) -> Floats:
        """Return the seconds of a launch, (num_targets,)."""
        return self.launch_seconds + contention * self.launch_contention_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCompute:
    """Physics, and a network where enough was measured for one."""

    targets: tuple[str, ...]
    physics: Physics
    features: tuple[str, ...]  # of the network
    feature_mean: Floats  # (num_features,), of ln(1 + count)
    feature_scale: Floats  # (num_features,), > 0
    networks: tuple[MonotoneNetwork, ...]  # their logarithms are averaged; none where too little was measured
    #: seconds per unit of each part at a typical rank: the additive prices, (num_parts, num_targets), >= 0
    typical: Floats

    def __post_init__(self) -> None:
        """Check that the pieces fit, and make the arrays read-only."""
        features = len(self.features)
        if self.targets not in TARGETS:
            raise ValueError(f"Expected targets forward and backward, or both, not {self.targets}.")
        if self.feature_mean.shape != (features,) or self.feature_scale.shape != (features,):
            raise ValueError(f"Expected feature_mean and feature_scale of shape ({features},).")
        if np.any(self.feature_scale <= 0):
            raise ValueError("Expected feature_scale > 0.")
        if not set(self.features) <= set(FEATURES) or len(set(self.features)) != features:
            raise ValueError(f"Expected different features among {', '.join(FEATURES)}.")
        if self.physics.seconds.shape[1] != len(self.targets):
            raise ValueError(f"Expected physics of {len(self.targets)} targets.")
        for network in self.networks:
            if network.num_features != features or network.num_targets != len(self.targets):
                raise ValueError("Expected networks of these features and targets.")
            network.check_signs(np.array([name in FREE_FEATURES for name in self.features], dtype=np.bool_))
        if self.typical.shape != (self.num_parts, len(self.targets)) or np.any(self.typical < 0):
            raise ValueError(f"Expected typical >= 0 of shape {(self.num_parts, len(self.targets))}.")
        freeze(self)

    @property
    def num_parts(self) -> int:
        """Columns of :meth:`parts`: those of each network, then the physics of each target."""
        return sum(network.num_parts for network in self.networks) + len(self.targets)

    def parts(self, columns: LookupColumns, contention: float) -> NDArray[np.float32]:
        """Return what the sums of a rank are made of, (num_shards, num_parts), all >= 0."""
        parts = np.empty((columns.num_shards, self.num_parts), dtype=np.float32)
        parts[:, -len(self.targets) :] = self.physics.of_shards(columns, contention)
        features = self._features(columns)
        for network, place in zip(self.networks, self._places(), strict=True):
            parts[:, place] = network.parts(features, contention)
        return parts

    def shard_seconds(self, columns: LookupColumns, contention: float, prices: Floats | None = None) -> Floats:
        """Return additive seconds, (num_shards, num_targets): parts times their prices, the typical ones if not given.

        Networks without a price are not asked, which is what makes the typical prices cheap.
        """
        prices = self.typical if prices is None else prices
        seconds = self.physics.of_shards(columns, contention) @ prices[-len(self.targets) :]
        features = self._features(columns)
        for network, place in zip(self.networks, self._places(), strict=True):
            if np.any(prices[place] > 0):
                seconds += network.parts(features, contention) @ prices[place].astype(np.float32)
        return seconds

    def rank_seconds(self, sums: Floats, contention: float) -> Floats:
        """Return seconds, (num_ranks, num_targets), of summed parts (num_ranks, num_parts); 0 of ranks without any."""
        physics = sums[:, -len(self.targets) :] + self.physics.of_launch(contention)
        has_work = np.any(sums > 0, axis=1)[:, None]
        if not self.networks:
            return np.where(has_work, physics, 0.0)
        log_physics = np.log(physics + TINY_SECONDS)
        places = zip(self.networks, self._places(), strict=True)
        of_networks = [network.log_seconds(sums[:, place], contention, log_physics) for network, place in places]
        return np.where(has_work, np.exp(np.clip(np.mean(of_networks, axis=0), *EXPONENTS)), 0.0)

    def rank_slopes(self, sums: Floats, contention: float) -> Floats:
        """Return the derivatives of :meth:`rank_seconds` by the sums, (num_ranks, num_parts, num_targets)."""
        num_targets = len(self.targets)
        if not self.networks:
            return np.broadcast_to(np.eye(num_targets), (len(sums), num_targets, num_targets))
        physics = sums[:, -num_targets:] + self.physics.of_launch(contention) + TINY_SECONDS
        slopes = np.zeros((len(sums), self.num_parts, num_targets))
        for network, place in zip(self.networks, self._places(), strict=True):
            by_log = network.slopes(sums[:, place], contention, np.log(physics))
            slopes[:, place] = by_log[:, :-num_targets]
            slopes[:, -num_targets:] += by_log[:, -num_targets:] / physics[:, :, None]
        result: Floats = slopes * self.rank_seconds(sums, contention)[:, None, :] / len(self.networks)
        return result

    def _features(self, columns: LookupColumns) -> NDArray[np.float32]:
        features = feature_matrix(columns, self.features)
        features -= self.feature_mean.astype(np.float32)
        features /= self.feature_scale.astype(np.float32)
        return features

    def _places(self) -> list[slice]:
        """Where the parts of each network lie."""
        ends = np.cumsum([network.num_parts for network in self.networks]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def linear_at(self, sums: Floats, contention: float) -> Floats:
        """Return seconds per unit of each part, (num_parts, num_targets), that fit best near these ranks.

        The derivatives of the ranks are averaged by their seconds, since the slowest ranks decide, and scaled so that
        the ranks' prices add up to the ranks' seconds: a sum of prices has no constant that could hold the difference.
        """
        seconds = self.rank_seconds(sums, contention)
        total = seconds.sum(axis=0)
        if not np.all(total > 0):
            return self.typical
        slope = np.einsum("rit,rt->it", self.rank_slopes(sums, contention), seconds) / total
        priced = np.einsum("ri,it,rt->t", sums, slope, seconds)
        scale = np.einsum("rt,rt->t", seconds, seconds) / np.maximum(priced, TINY_SECONDS)
        result: Floats = slope * scale
        return result


#: Seconds below this are nothing: keeps logarithms finite.
TINY_SECONDS = 1e-12


def sum_by_rank(parts: NDArray[np.float32] | Floats, rank: Ints, num_ranks: int) -> Floats:
    """Return the sums of parts over the shards of each rank, float64 of shape (num_ranks, num_parts)."""
    sums = np.zeros((num_ranks, parts.shape[1]))
    if len(rank):
        order = np.argsort(rank, kind="stable")
        ranks, starts = np.unique(rank[order], return_index=True)
        sums[ranks] = np.add.reduceat(parts[order], starts, axis=0, dtype=np.float64)
    return sums
