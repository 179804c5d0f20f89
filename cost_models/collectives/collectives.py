r"""Seconds of collectives: what one shard's bytes add to a message that carries all tables, and the message's start.

One collective of a training step carries the rows of every table, so its place on a law belongs to the *whole* message;
a shard pays for its share:

.. math:: seconds = b \cdot pace(M), \qquad pace(M) = (t(M) - start) / M

with ``b`` the shard's bytes, ``M`` the bytes of the whole message and ``t`` the seconds of the collective. Sizes follow
nccl-tests: the whole buffer of one rank, its own part included, which for reduce-scatter is the input and for
all-gather the output. Shares of one message add up to the time of that message less its start, which is paid once,
however the tables are placed (:meth:`Network.start_seconds`): spread over shares it would be charged by the bytes of
the slowest rank, W times for a rank that holds W times the average.

Inside a domain (a host, a pod, or the hosts of a rack that share NVLink) ``t`` is the profile's law of the operation
(:mod:`cost_models.hardware.laws.domain_law`). Without a law ``intra_host_bytes_per_second`` stands for every collective
and size: (n-1)/n of the bytes over it, of an all-reduce twice.

Over several domains ``t`` is the law over hosts (:mod:`cost_models.hardware.laws.hosts_law`), by the ranks that share a
domain, or without one ``inter_host_bytes_per_second``:

- all-to-all over N hosts: (N-1)/N of the bytes leave the host through the rank's network card;
- the ring collectives cross each host boundary once per network card, so a card carries the G-th part of what a link
  inside the host carries (G ranks per host).

What stays inside moves at the same time, so the slower one counts; their ratio is the same for every shard, hence
shares still add up. Links inside do not bound a collective over hosts that has a law of its own while nothing is known
of them.

A group may be a part of a larger job (:class:`cost_models.collectives.whole_job.WholeJob`), whose other groups run the
same collective at the same time. Each rank has its own network card; what a host lets through in all is divided among
its ranks. A domain has as many ranks of the group as lie in it.

References
----------
nccl-tests, ``doc/PERFORMANCE.md`` (bus bandwidth of each collective).
NVIDIA/nccl-tests issue 130 (all-to-all over hosts: N/(N-1) x network card per rank).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cost_models.arrays import Floats
from cost_models.collectives.collective_bytes import Group
from cost_models.collectives.whole_job import WholeJob
from cost_models.hardware.hardware import Hardware, Limit, Quantity
from cost_models.hardware.laws.hosts_law import ROUNDS, HostsLaw
from cost_models.intervals.factors import link_factors
from cost_models.vocabulary import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CommTime:
    """Seconds of each shard in a collective, and the weakest number behind them."""

    seconds: Floats  # (num_shards,)
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """Seconds per byte of a message that has started, and the weakest number behind them."""

    seconds_per_byte: Floats  # (num_shards,), or (1,) for all of them
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """How the ranks of a group lie: ``inside`` of them share a domain, on ``num_domains`` domains."""

    inside: int
    num_domains: int

    @property
    def num_ranks(self) -> int:
        return self.inside * self.num_domains


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The links among ``num_ranks`` ranks on hosts of ``ranks_per_host``, or on pods of ``pod_size``.

    A pod is one domain, whatever the hardware has: links between pods are a network. Groups are pods, or else hosts.

    Every method of a collective takes the bytes of each shard, shape ``(num_shards,)``, and the bytes of the
    whole message (one number, or one per shard), both as the buffer of one rank. Nothing is
    needed of the hardware, and zero seconds are returned, where a group has one rank or
    nothing is sent. ``job`` are all ranks, where these are a part of them.
    """

    hardware: Hardware
    num_ranks: int
    ranks_per_host: int
    pod_size: int | None = None
    job: WholeJob | None = None

    @property
    def num_hosts(self) -> int:
        """Hosts of the cluster."""
        return self.num_ranks // self.ranks_per_host

    @property
    def ranks_per_group(self) -> int:
        """Ranks of a group."""
        return self.pod_size or self.ranks_per_host

    @property
    def num_groups(self) -> int:
        """Groups of the cluster."""
        return self.num_ranks // self.ranks_per_group

    @property
    def of_job(self) -> "Network":
        """The links among all ranks of the job."""
        job = self.job
        if job is None:
            return self
        return Network(
            hardware=self.hardware, num_ranks=job.num_ranks, ranks_per_host=job.ranks_per_host, pod_size=job.pod_size
        )

    def all_to_all(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-to-all among all ranks."""
        return self.shares("all_to_all", "all", shard_bytes, _size(message_bytes))

    def reduce_scatter(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """Reduce-scatter among all ranks; bytes are the input buffer."""
        return self.shares("reduce_scatter", "all", shard_bytes, _size(message_bytes))

    def all_gather(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-gather among all ranks; bytes are the output buffer."""
        return self.shares("all_gather", "all", shard_bytes, _size(message_bytes))

    def all_reduce(self, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """All-reduce among all ranks."""
        return self.shares("all_reduce", "all", shard_bytes, message_bytes)

    def all_reduce_in_job(self, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """All-reduce among all ranks of the job."""
        return self.shares("all_reduce", "job", shard_bytes, message_bytes)

    def reduce_scatter_inside_group(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """Reduce-scatter among the ranks of one group; bytes are the input buffer."""
        return self.shares("reduce_scatter", "inside", shard_bytes, _size(message_bytes))

    def all_gather_inside_group(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-gather among the ranks of one group; bytes are the output buffer."""
        return self.shares("all_gather", "inside", shard_bytes, _size(message_bytes))

    def all_to_all_across_groups(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-to-all among the ranks of equal position, one in each group."""
        return self.shares("all_to_all", "across", shard_bytes, _size(message_bytes))

    def start_seconds(self, operation: str, group: Group) -> Quantity:
        """Return the start of one collective of a group, whatever it carries; 0 if the group has one rank.

        Without a law it is the profile's ``inter_host_latency_seconds`` or ``intra_host_latency_seconds``, the former
        where the group spans domains; 0, as an estimate, where the profile has neither.
        """
        if group == "job":
            return self.of_job.start_seconds(operation, "all")
        reach = self._reach(group)
        if reach.num_ranks == 1:
            return _seconds(0.0, Evidence.MEASURED, "a group of one rank sends nothing")
        starts = []
        if reach.inside > 1 and (law := self.hardware.domain_laws.get(operation)) is not None:
            known = law.basis.evidence_at(0.0, reach.inside)
            starts.append(_seconds(law.start_seconds(reach.inside), known, law.basis.source))
        elif reach.inside > 1 and (reach.num_domains == 1 or self._hosts_law(operation) is None):
            starts.append(self._latency("intra_host_latency_seconds"))
        if reach.num_domains > 1:
            over = self._hosts_law(operation)
            if over is None:
                starts.append(self._latency("inter_host_latency_seconds"))
            else:
                known = over.evidence_at(0.0, reach.num_domains, reach.num_ranks)
                starts.append(
                    _seconds(over.whole_start_seconds(reach.num_domains, reach.inside), known, over.basis.source)
                )
        longest = max(starts, key=lambda start: start.value)
        at_limit = float(self._limit_factors(operation, group, np.zeros(1))[0])
        return replace(longest, value=longest.value * at_limit, evidence=max(start.evidence for start in starts))

    def whole_seconds(self, operation: str, group: Group, message_bytes: Floats) -> CommTime:
        """Return the seconds of whole collectives of these messages, their start included."""
        message = np.asarray(message_bytes, dtype=np.float64)
        start = self.start_seconds(operation, group)
        moved = self.shares(operation, group, message, message)
        return CommTime(seconds=moved.seconds + start.value, evidence=max(moved.evidence, start.evidence))

    def whole_interval(self, operation: str, group: Group, message_bytes: float) -> tuple[float, float] | None:
        """Return what 90% of measured over predicted seconds of such a collective lie between; ``None``: not known."""
        if group == "job":
            return self.of_job.whole_interval(operation, "all", message_bytes)
        reach = self._reach(group)
        if reach.num_domains > 1:
            over = self._hosts_law(operation)
            return None if over is None else over.intervals.at(message_bytes, over.doublings_beyond(reach.num_domains))
        law = self.hardware.domain_laws.get(operation)
        return None if law is None else law.intervals.at(message_bytes, law.basis.doublings_away(reach.inside))

    def _limit_factors(self, operation: str, group: Group, message_bytes: Floats) -> Floats:
        """Return what multiplies the seconds of messages on hardware that is taken at a limit, 1 on hardware as stated.

        Without a law it is what constant rates were off by (:func:`cost_models.intervals.factors.link_factors`).
        """
        if self.hardware.limit is Limit.NONE:
            return np.ones(1)
        reach: Literal["domain", "hosts"] = "hosts" if self._reach(group).num_domains > 1 else "domain"
        sizes, place = np.unique(message_bytes, return_inverse=True)
        found = []
        for size in sizes.tolist():
            rates = link_factors(reach, size)
            found.append(self.whole_interval(operation, group, size) or (rates.lower, rates.upper))
        side = 0 if self.hardware.limit is Limit.FASTEST else 1
        return np.array([pair[side] for pair in found])[place.reshape(np.shape(message_bytes))]

    def _reach(self, group: Group) -> _Reach:
        """Lay out a group: domains are whole hosts, or one pod each, and the last one counts as full."""
        stride = 1 if self.job is None else self.job.stride
        domain = self.pod_size or max(self.hardware.domain_ranks // stride, self.ranks_per_host)
        in_domain = max(domain // self.ranks_per_group, 1)
        if group == "inside":
            return _Reach(inside=self.ranks_per_group, num_domains=1)
        each = 1 if group == "across" else self.ranks_per_group
        if self.num_groups <= in_domain:
            return _Reach(inside=self.num_groups * each, num_domains=1)
        return _Reach(inside=in_domain * each, num_domains=-(-self.num_groups // in_domain))

    def shares(self, operation: str, group: Group, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """Time the shards of messages that have started."""
        if group == "job":
            return self.of_job.shares(operation, "all", shard_bytes, message_bytes)
        reach = self._reach(group)
        if reach.num_ranks == 1 or not np.any(shard_bytes > 0):
            return CommTime(seconds=np.zeros(shard_bytes.shape), evidence=Evidence.MEASURED)
        paces = [self._inside(operation, reach, message_bytes), self._across(operation, reach, message_bytes)]
        known = [pace for pace in paces if pace is not None]
        slowest = np.max(np.broadcast_arrays(*(pace.seconds_per_byte for pace in known)), axis=0)
        slowest = slowest * self._limit_factors(operation, group, message_bytes)
        return CommTime(seconds=shard_bytes * slowest, evidence=max(pace.evidence for pace in known))

    def _inside(self, operation: str, reach: _Reach, message_bytes: Floats) -> _Pace | None:
        """Return the pace of the links inside a domain; ``None`` where they do not count."""
        if reach.inside == 1:
            return None
        # Of an all-to-all 1/N goes to the ranks of the own domain; a ring passes its links with the whole buffer.
        parts = reach.num_domains if operation == "all_to_all" else 1
        ranks = reach.inside if operation == "all_to_all" else reach.num_ranks
        share = (ranks - 1) / ranks / parts
        message = message_bytes / parts
        law = self.hardware.domain_laws.get(operation)
        if law is not None:
            evidence = law.basis.evidence_at(float(np.max(message)), reach.inside)
            pace = law.pace(message, reach.inside) * share / ((reach.inside - 1) / reach.inside)
            return _Pace(seconds_per_byte=pace, evidence=evidence)
        if reach.num_domains > 1 and not self.hardware.has(_INSIDE) and self._hosts_law(operation) is not None:
            return None
        rate = self.hardware.quantity(_INSIDE, needed_for=f"{_words(operation)} among the ranks of a host or pod")
        return _constant(share * ROUNDS.get(operation, 1.0), rate)

    def _across(self, operation: str, reach: _Reach, message_bytes: Floats) -> _Pace | None:
        """Return the pace between domains; ``None`` if there is one."""
        if reach.num_domains == 1:
            return None
        law = self._hosts_law(operation)
        if law is not None:
            evidence = law.evidence_at(float(np.max(message_bytes)), reach.num_domains, reach.num_ranks)
            pace = law.pace(message_bytes, reach.num_domains, reach.inside)
            return _Pace(seconds_per_byte=pace, evidence=evidence)
        rate = self.hardware.quantity(_ACROSS, needed_for=f"{_words(operation)} over several hosts or pods")
        if operation == "all_to_all":
            return _constant((reach.num_domains - 1) / reach.num_domains, rate)
        return _constant(ROUNDS[operation] * (reach.num_ranks - 1) / reach.num_ranks / reach.inside, rate)

    def _hosts_law(self, operation: str) -> HostsLaw | None:
        """Return the law over hosts of an operation, of a ring without one that of another ring."""
        laws = self.hardware.hosts_laws
        if operation in laws or operation not in ROUNDS:
            found = laws.get(operation)
        else:
            other = next((name for name in ("all_gather", "reduce_scatter", "all_reduce") if name in laws), None)
            found = None if other is None else laws[other].of_other_ring(operation)
        if found is None or self.job is None:
            return found
        return found.of_part_of_hosts(self.job.share_of_host(self.ranks_per_host))

    def _latency(self, name: str) -> Quantity:
        if self.hardware.has(name):
            return self.hardware.quantity(name, needed_for="the start of a collective")
        return _seconds(0.0, Evidence.ESTIMATED, f"{self.hardware.profile} has no {name}")


_INSIDE, _ACROSS = "intra_host_bytes_per_second", "inter_host_bytes_per_second"


def _words(operation: str) -> str:
    return f"{'an' if operation.startswith('all') else 'a'} {operation.replace('_', '-')}"


def _size(message_bytes: float) -> Floats:
    """One message size, broadcastable against the shards."""
    return np.array([message_bytes], dtype=np.float64)


def _seconds(value: float, evidence: Evidence, source: str) -> Quantity:
    return Quantity(value=value, unit="seconds", evidence=evidence, source=source)


def _constant(share: float, rate: Quantity) -> _Pace:
    """Return the pace of links of which one rate is known for all sizes."""
    return _Pace(seconds_per_byte=np.array([share / rate.value]), evidence=rate.evidence)
