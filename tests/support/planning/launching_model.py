"""A model whose shards share the launch of their rank: dear by themselves, cheap together."""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.analytic.roofline import RooflineModel
from cost_models.arrays import Bools, Floats, Ints
from cost_models.collectives.collective_bytes import exchanges_of
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import RankSeconds, ShardSeconds, ShardWork
from cost_models.vocabulary import Evidence, Phase

_ROOFLINE = RooflineModel()
SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class _Shared:
    """Roofline, and a part of a launch for every shard."""

    launch_seconds: float
    name: str = "launching"
    version: str = "1"
    rounding: float = 0.0

    @property
    def counted_phases(self) -> Bools:
        return _ROOFLINE.counted_phases

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        predicted = _ROOFLINE.predict(work, hardware)
        seconds = predicted.seconds.copy()
        seconds[:, Phase.FORWARD_COMPUTE] += self.launch_seconds
        return ShardSeconds(seconds=seconds, evidence=predicted.evidence)


@dataclass(frozen=True, slots=True)
class LaunchingModel:
    """One launch for all shards of a rank; ``predict`` charges it to every shard."""

    launch_seconds: float
    most_lookups: float = np.inf
    name: str = "launching"
    version: str = "1"
    rounding: float = 0.0
    coverage: float = 0.9

    @property
    def counted_phases(self) -> Bools:
        return _ROOFLINE.counted_phases

    @property
    def analytic(self) -> RooflineModel:
        return _ROOFLINE

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        return _Shared(self.launch_seconds).predict(work, hardware)

    def predict_ranks(self, work: ShardWork, rank: Ints, hardware: Hardware) -> RankSeconds:
        predicted = _ROOFLINE.predict(work, hardware)
        seconds = np.zeros((work.num_ranks, predicted.seconds.shape[1]))
        np.add.at(seconds, rank, predicted.seconds)
        learned = np.zeros_like(seconds)
        learned[np.unique(rank), Phase.FORWARD_COMPUTE] = self.launch_seconds
        seconds += learned
        return RankSeconds(
            seconds=seconds,
            lower_seconds=(1 - SPREAD) * seconds,
            upper_seconds=(1 + SPREAD) * seconds,
            learned_seconds=learned,
            evidence=np.full(seconds.shape, Evidence.ESTIMATED, dtype=np.int8),
        )

    def assigned(self, work: ShardWork, rank: Ints, hardware: Hardware) -> "_Assigned":
        return _Assigned(self, work, rank, hardware)

    def around(self, work: ShardWork, rank: Ints, hardware: Hardware) -> _Shared:
        return _Shared(self.launch_seconds * len(np.unique(rank)) / len(rank))

    def unknown(self, work: ShardWork, hardware: Hardware) -> tuple[str, ...]:
        return tuple("lookups" if n > self.most_lookups else "" for n in work.lookups)

    def unmeasured_collectives(self, work: ShardWork) -> tuple[tuple[Phase, str], ...]:
        return tuple(dict.fromkeys((one.phase, f"{one.operation} is not priced") for one in exchanges_of(work)))


@dataclass(frozen=True, slots=True)
class _Assigned:
    """Every change is priced again."""

    model: LaunchingModel
    work: ShardWork
    rank: Ints
    hardware: Hardware

    @property
    def seconds(self) -> Floats:
        return self.model.predict_ranks(self.work, self.rank, self.hardware).seconds

    def after(self, shards: Ints, ranks: Ints) -> Floats:
        return np.stack([self.moved(some, there).seconds for some, there in zip(shards, ranks, strict=True)])

    def moved(self, shards: Ints, ranks: Ints) -> "_Assigned":
        rank = self.rank.copy()
        rank[shards] = ranks
        return replace(self, rank=rank)
