r"""Seconds of collectives: what one shard's bytes add to a message that carries all tables.

One collective of a training step carries the rows of every table, so its place on the
bandwidth curve belongs to the *whole* message; a shard pays for its share:

.. math:: seconds = b \, \frac{n-1}{n} \Big/ rate(M)

with ``b`` the shard's bytes, ``M`` the bytes of the whole message and ``n`` the ranks of the
group (all-reduce: 2 (n-1)/n). Sizes follow nccl-tests: the whole buffer of one rank, its own
part included, which for reduce-scatter is the input and for all-gather the output.

``rate(M)`` is the bus bandwidth once the collective has started. Its start latency is left out:
it is paid once per step however the tables are placed, and seconds that add up over shards
have no place for it. Spread over shares it would be charged by the bytes of the slowest rank,
W times for a rank that holds W times the average. Left out with it is that a plan which uses
one more kind of collective pays one more start. Shares of one message add up to the time of
that message less its start.

Inside a host ``rate(M)`` comes from the profile's measured curve. A curve taken with another
number of ranks keeps its bus bandwidth, an assumption that makes the answer ESTIMATED.
Without a curve, ``intra_host_bytes_per_second`` stands for every collective and size; where
that is lacking too, the model refuses.

Across hosts every rank has a network card of its own, running at
``inter_host_bytes_per_second``, beside the links inside the host:

- all-to-all over N hosts: (N-1)/N of the bytes leave the host;
- the ring collectives cross each host boundary once per network card, so a card carries the
  G-th part of what a link inside the host carries (G ranks per host).

Both parts move at the same time, so the slower one counts; their ratio is the same for every
shard, hence shares still add up.

References
----------
nccl-tests, ``doc/PERFORMANCE.md`` (bus bandwidth of each collective).
NVIDIA/nccl-tests issue 130 (all-to-all over hosts: N/(N-1) x network card per rank).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from cost_models.hardware.hardware import Curve, Hardware
from cost_models.vocabulary import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CommTime:
    """Seconds of each shard in a collective, and the weakest number behind them."""

    seconds: Floats  # (num_shards,)
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds per byte of a share of the message, and the weakest number behind them."""

    seconds_per_byte: Floats  # broadcastable against the shards
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The links among ``num_ranks`` ranks on hosts of ``ranks_per_host``.

    Every method takes the bytes of each shard, shape ``(num_shards,)``, and the bytes of the
    whole message (one number, or one per shard), both as the buffer of one rank. Nothing is
    needed of the hardware, and zero seconds are returned, where a group has one rank or
    nothing is sent.
    """

    hardware: Hardware
    num_ranks: int
    ranks_per_host: int

    @property
    def num_hosts(self) -> int:
        """Hosts of the cluster."""
        return self.num_ranks // self.ranks_per_host

    def all_to_all(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-to-all among all ranks."""
        hosts, message = self.num_hosts, _size(message_bytes)
        if not self._sends(self.num_ranks, shard_bytes):
            return _nothing(shard_bytes)
        # Of a rank's buffer, 1/N goes to the ranks of its own host and (N-1)/N leaves it.
        inside = self._inside("alltoall", 1.0, message / hosts, "an all-to-all among the ranks of a host")
        across = self._across((hosts - 1) / hosts, "an all-to-all over several hosts")
        return _slower(shard_bytes, inside, across, inside_share=1 / hosts)

    def reduce_scatter(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """Reduce-scatter among all ranks; bytes are the input buffer."""
        return self._ring("reduce_scatter", 1.0, shard_bytes, _size(message_bytes))

    def all_gather(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-gather among all ranks; bytes are the output buffer."""
        return self._ring("all_gather", 1.0, shard_bytes, _size(message_bytes))

    def all_reduce(self, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """All-reduce among all ranks."""
        return self._ring("all_reduce", 2.0, shard_bytes, message_bytes)

    def reduce_scatter_inside_host(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """Reduce-scatter among the ranks of one host; bytes are the input buffer."""
        return self._inside_only("reduce_scatter", shard_bytes, _size(message_bytes))

    def all_gather_inside_host(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-gather among the ranks of one host; bytes are the output buffer."""
        return self._inside_only("all_gather", shard_bytes, _size(message_bytes))

    def all_to_all_across_hosts(self, shard_bytes: Floats, message_bytes: float) -> CommTime:
        """All-to-all among the ranks of equal position, one on each host."""
        hosts = self.num_hosts
        if not self._sends(hosts, shard_bytes):
            return _nothing(shard_bytes)
        pace = self._across((hosts - 1) / hosts, "an all-to-all over several hosts")
        return _at(shard_bytes, pace)

    def _ring(self, collective: str, rounds: float, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """Time a collective over all ranks in which every link inside a host carries the whole buffer."""
        if not self._sends(self.num_ranks, shard_bytes):
            return _nothing(shard_bytes)
        what = f"a {collective.replace('_', '-')}"
        share = rounds * (self.num_ranks - 1) / self.num_ranks
        inside = self._inside(
            collective, rounds, message_bytes, f"{what} among the ranks of a host", ranks=self.num_ranks
        )
        across = self._across(share / self.ranks_per_host, f"{what} over several hosts")
        return _slower(shard_bytes, inside, across, inside_share=1.0)

    def _inside_only(self, collective: str, shard_bytes: Floats, message_bytes: Floats) -> CommTime:
        """Time a collective among the ranks of one host."""
        if not self._sends(self.ranks_per_host, shard_bytes):
            return _nothing(shard_bytes)
        what = f"a {collective.replace('_', '-')} among the ranks of a host"
        return _at(shard_bytes, self._inside(collective, 1.0, message_bytes, what))

    def _inside(
        self, collective: str, rounds: float, message_bytes: Floats, needed_for: str, *, ranks: int | None = None
    ) -> Pace:
        """Pace of the links inside a host when a rank's buffer there has ``message_bytes``.

        ``ranks`` is the size of the group, by default the ranks of a host; a ring over more
        hosts passes the links of each host with the share of its whole group.
        """
        if self.ranks_per_host == 1:
            return Pace(seconds_per_byte=np.zeros(1), evidence=Evidence.MEASURED)
        group = self.ranks_per_host if ranks is None else ranks
        share = rounds * (group - 1) / group
        curve = self.hardware.intra_host_curves.get(collective)
        if curve is not None:
            evidence = curve.evidence if curve.num_ranks == group else Evidence.ESTIMATED
            return Pace(seconds_per_byte=share / sustained_bytes_per_second(curve, message_bytes), evidence=evidence)
        return self._constant_rate("intra_host", share, needed_for)

    def _across(self, share: float, needed_for: str) -> Pace:
        """Pace of the network cards when ``share`` of a rank's buffer leaves through its card."""
        if self.num_hosts == 1:
            return Pace(seconds_per_byte=np.zeros(1), evidence=Evidence.MEASURED)
        return self._constant_rate("inter_host", share, needed_for)

    def _constant_rate(self, level: str, share: float, needed_for: str) -> Pace:
        """Pace of a link of which one rate is known for all sizes."""
        rate = self.hardware.quantity(f"{level}_bytes_per_second", needed_for=needed_for)
        return Pace(seconds_per_byte=np.array([share / rate.value]), evidence=rate.evidence)

    @staticmethod
    def _sends(group: int, shard_bytes: Floats) -> bool:
        return group > 1 and bool(np.any(shard_bytes > 0))


def sustained_bytes_per_second(curve: Curve, message_bytes: Floats) -> Floats:
    """Read the bus bandwidth of messages that have started off a curve.

    The start is what the smallest measured message took beyond its bytes at the fastest rate
    of the curve, and is taken off every measured time, though no message becomes faster than
    that rate. Between sizes the rest is interpolated linearly in the logarithms of size and
    time; after a running maximum over the measured times it never falls with size. Below the
    smallest size the rate stays the fastest, above the largest that of the largest.
    """
    sizes = np.asarray(curve.message_bytes)
    times = np.maximum.accumulate(sizes / np.asarray(curve.bus_bytes_per_second))
    fastest = float(np.max(sizes / times))
    start = times[0] - sizes[0] / fastest
    rates = sizes / np.maximum(times - start, sizes / fastest)
    within = np.clip(message_bytes, sizes[0], sizes[-1])
    read: Floats = np.exp(np.interp(np.log(within), np.log(sizes), np.log(rates)))
    return read


def _size(message_bytes: float) -> Floats:
    """One message size, broadcastable against the shards."""
    return np.array([message_bytes], dtype=np.float64)


def _nothing(shard_bytes: Floats) -> CommTime:
    return CommTime(seconds=np.zeros(shard_bytes.shape), evidence=Evidence.MEASURED)


def _at(shard_bytes: Floats, pace: Pace) -> CommTime:
    return CommTime(seconds=shard_bytes * pace.seconds_per_byte, evidence=pace.evidence)


def _slower(shard_bytes: Floats, inside: Pace, across: Pace, *, inside_share: float) -> CommTime:
    """Two parts of one message that move at the same time."""
    pace = np.maximum(inside.seconds_per_byte * inside_share, across.seconds_per_byte)
    return CommTime(seconds=shard_bytes * pace, evidence=max(inside.evidence, across.evidence))
