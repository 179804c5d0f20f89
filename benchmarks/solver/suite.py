"""What a suite of measurements is: instances, peers, partitioners, and what is to be reached."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.peers.peers import Peer, PeerFigure
from benchmarks.solver.measured import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One spec to plan."""

    name: str
    spec: dict[str, Any]
    time_limit_seconds: float
    peers: tuple[Peer, ...] = ()
    case: str = ""  # what instances that differ in their ranks alone have in common

    @property
    def num_tables(self) -> int:
        """Tables of the model."""
        return len(self.spec["model"]["tables"])

    @property
    def num_ranks(self) -> int:
        """Ranks of the cluster."""
        hardware = self.spec["hardware"]
        return int(hardware["num_hosts"] * hardware["ranks_per_host"])

    @property
    def tables_per_rank(self) -> float:
        """What distinguishes easy instances from hard ones."""
        return self.num_tables / self.num_ranks


@dataclass(frozen=True, kw_only=True)
class Row:
    """One instance under one partitioner, compared with the best peer."""

    instance: Instance
    peers: tuple[PeerFigure, ...]
    partitioner: str
    measured: Measured

    @cached_property
    def best_peer(self) -> PeerFigure | None:
        """The peer with the best plan; ``None`` where no peer has one."""
        solved = [peer for peer in self.peers if math.isfinite(peer.objective_seconds)]
        return min(solved, key=lambda peer: peer.objective_seconds, default=None)

    @property
    def ratio(self) -> float | None:
        """Our objective over the best peer's: below 1 is better; infinite where only the peer has a plan."""
        if self.best_peer is None:
            return None
        ours = self.measured.objective_seconds
        return math.inf if ours is None else ours / self.best_peer.objective_seconds

    @property
    def is_worse(self) -> bool:
        """Whether the best peer has something better than ours."""
        return self.best_peer is not None and self.ratio is not None and self.ratio > 1 + self.best_peer.tolerance

    @property
    def seconds_to_peer(self) -> float | None:
        """Seconds from the spec to a verified plan no worse than the best peer's; ``None`` without either."""
        return None if self.best_peer is None else self._seconds_to(self.best_peer)

    @property
    def speedup(self) -> float | None:
        """How often our time to a plan no worse goes into the peer's; ``None`` where no peer's seconds are its own.

        Of several such peers the least speedup counts.
        """
        ours = [(peer.seconds, self._seconds_to(peer)) for peer in self.peers if _is_timed(peer)]
        return min((0.0 if own is None else theirs / own for theirs, own in ours), default=None)

    def _seconds_to(self, peer: PeerFigure) -> float | None:
        good = peer.objective_seconds * (1 + peer.tolerance)
        return next((seconds for seconds, value in self.measured.improvements if value <= good), None)


def _is_first_within(measured: Measured, most_seconds: float) -> bool:
    first = measured.first_plan_seconds
    return first is not None and first <= most_seconds


def _is_timed(peer: PeerFigure) -> bool:
    return peer.seconds_are_its_own and math.isfinite(peer.objective_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What each instance is to reach; what is not stated is not asked for."""

    title: str
    objective: str | None = None  # instances of this objective alone
    ranks: int | None = None  # of this many ranks alone
    least_tables_per_rank: float = 0.0
    below_tables_per_rank: float = math.inf
    with_peer: bool = False  # instances alone for which a peer has a plan
    names: frozenset[str] | None = None  # these instances alone
    but: frozenset[str] = frozenset()  # all but these instances
    most_gap: float = math.inf  # relative
    most_seconds: float = math.inf  # also the longest limit of the instances that are meant
    least_limit_seconds: float = 0.0  # instances that are given so long alone
    most_first_seconds: float = math.inf  # until the first verified plan
    least_speedup: float = 0.0  # over peers whose seconds are their own; other instances are not meant
    most_bytes: float = math.inf  # peak of the process
    never_worse: bool = False
    proven: bool = False
    solved: bool = False

    def applies(self, row: Row) -> bool:
        """Whether the instance is meant."""
        instance = row.instance
        return (
            (self.objective is None or instance.spec["objective"] == self.objective)
            and (self.ranks is None or instance.num_ranks == self.ranks)
            and self.least_tables_per_rank <= instance.tables_per_rank < self.below_tables_per_rank
            and (not self.with_peer or row.best_peer is not None)
            and (self.names is None or instance.name in self.names)
            and instance.name not in self.but
            and (not self.least_speedup or row.speedup is not None)
            and self.least_limit_seconds <= instance.time_limit_seconds <= self.most_seconds
        )

    def met(self, row: Row) -> bool:
        """Whether the instance reached it."""
        measured = row.measured
        gap = measured.relative_gap
        return (
            (not (self.solved or self.never_worse) or measured.objective_seconds is not None)
            and (math.isinf(self.most_gap) or (gap is not None and gap <= self.most_gap))
            and measured.seconds <= self.most_seconds
            and (math.isinf(self.most_first_seconds) or _is_first_within(measured, self.most_first_seconds))
            and measured.peak_bytes <= self.most_bytes
            and not (self.never_worse and row.is_worse)
            and (not self.proven or measured.reason == "OPTIMAL")
            and (row.speedup or 0.0) >= self.least_speedup
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where data outside the repository is, and how long a peer may search."""

    shared: Path
    peer_time_limit_seconds: float
    live: bool  # whether TorchRec itself is run too


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named list of instances and what is printed about them."""

    name: str
    title: str
    #: Instances, in an order of which every beginning is a fair sample; says on stderr what data it lacks.
    instances: Callable[[Sources], Iterator[Instance]]
    targets: tuple[Target, ...] = ()
    most_mean_ratio: float | None = None  # of the geometric mean of the ratios to the best peer
    most_mean_seconds: float | None = None  # of the mean
    instances_per_case: int = 1  # what one step of ``--limit`` is
    default_alone: bool = False  # whether only the default partitioner is measured, unless others are named
    shows_stages: bool = False
    notes: Callable[[Sequence[Row]], list[str]] = lambda _: []
