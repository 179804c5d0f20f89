"""One proposal onto ranks: TorchRec's ``GreedyPerfPartitioner``, re-implemented from its description.

First every WORLD option. Then the other tables by descending bytes in all (by the first tier,
then the next), or by descending seconds:

- RANK: each shard to the rank with the fewest seconds so far where it fits; among equals the one
  with the lowest number on its host, then the lowest host;
- HOST_ROWS, HOST_COLUMNS: hosts by seconds so far, the first on which every shard fits;
- HOSTS: windows of neighbouring hosts in that order, the first on which every shard fits; all hosts,
  several times over, where a table needs more pieces than there are hosts.

What is once placed stays. A proposal with a table that fits nowhere has no plan.

References
----------
TorchRec 1.8.0, ``planner/partitioners.py`` (``GreedyPerfPartitioner``, default ``SortBy.STORAGE``)
and ``planner/perf_models.py`` (``NoopPerfModel``); described, not copied.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.orchestration.baselines.torchrec_options import Cluster, Option, Placement, added

SortBy = Literal["bytes", "seconds"]
Ranks = NDArray[np.int64]


class PreparedOption:
    """An option with the sums that every proposal asks for."""

    __slots__ = ("bytes", "num_shards", "option", "placement", "seconds", "sum_bytes", "sum_seconds", "total_seconds")

    def __init__(self, option: Option) -> None:
        self.option = option
        self.placement, self.seconds, self.bytes = option.placement, option.seconds, option.bytes
        self.num_shards = len(option.seconds)
        self.total_seconds = option.total_seconds()
        self.sum_seconds = sum(self.total_seconds.tolist())
        self.sum_bytes = tuple(option.bytes.sum(axis=0).tolist())


def max_rank_seconds(chosen: Sequence[PreparedOption], ranks: Sequence[Ranks], num_ranks: int) -> float:
    """Seconds of the slowest rank: TorchRec's rating of a plan."""
    where = np.concatenate(ranks)
    seconds = np.concatenate([option.total_seconds for option in chosen])
    return float(np.bincount(where, weights=seconds, minlength=num_ranks).max())


def pack(chosen: Sequence[PreparedOption], cluster: Cluster, *, sort_by: SortBy = "bytes") -> list[Ranks] | None:
    """Return the ranks of the shards of each table, or ``None`` where a table fits nowhere.

    ``chosen``: one option per table.
    """
    packing = _Packing(cluster, num_phases=chosen[0].seconds.shape[1])
    ranks: list[Ranks | None] = [None] * len(chosen)
    everywhere = [table for table, option in enumerate(chosen) if option.placement is Placement.WORLD]
    if not packing.world([chosen[table] for table in everywhere]):
        return None
    for table in everywhere:
        ranks[table] = packing.everyone
    rest = [table for table, option in enumerate(chosen) if option.placement is not Placement.WORLD]
    if sort_by == "bytes":
        rest.sort(key=lambda table: chosen[table].sum_bytes, reverse=True)
    else:
        rest.sort(key=lambda table: chosen[table].sum_seconds, reverse=True)
    for table in rest:
        ranks[table] = packing.place(chosen[table])
        if ranks[table] is None:
            return None
    return [found for found in ranks if found is not None]


class _Packing:
    """Loads of the ranks while one proposal is packed."""

    def __init__(self, cluster: Cluster, *, num_phases: int) -> None:
        num_ranks, per_host = cluster.num_ranks, cluster.ranks_per_host
        self._per_host, self._num_hosts = per_host, cluster.num_hosts
        self._free = cluster.capacity_bytes.copy()
        self._load = np.zeros((num_ranks, num_phases))
        self._total = np.zeros(num_ranks)
        everyone = np.arange(num_ranks)
        self.everyone = everyone
        #: Ranks by number on their host, then by host: argmin over it settles ties as TorchRec does.
        self._by_seat = np.lexsort((everyone, everyone % per_host))

    def world(self, options: Sequence[PreparedOption]) -> bool:
        """Place one shard of each on every rank, in order; return whether they fit."""
        for option in options:
            if option.num_shards != len(self.everyone):
                return False
            self._free -= option.bytes
            self._load += option.seconds
        self._total = added(self._load)
        return bool((self._free >= 0).all())

    def place(self, option: PreparedOption) -> Ranks | None:
        """Place an option that is not bound to all ranks."""
        if option.placement is Placement.RANK:
            return self._on_any(option, self._by_seat)
        if option.placement is Placement.HOSTS:
            return self._on_hosts(option)
        for host in self._hosts_by_load():
            members = self.everyone[host * self._per_host : (host + 1) * self._per_host]
            if option.placement is Placement.HOST_ROWS:
                found = self._on_each(option, slice(0, len(option.bytes)), members)
            else:
                found = self._undone_if_partial(option, members)
            if found is not None:
                return found
        return None

    def _hosts_by_load(self) -> list[int]:
        # cumsum adds from left to right, as a plain loop over the ranks of a host does
        sums = self._total.reshape(self._num_hosts, self._per_host).cumsum(axis=1)[:, -1]
        hosts: list[int] = np.argsort(sums, kind="stable").tolist()
        return hosts

    def _on_each(self, option: PreparedOption, shards: slice, members: Ranks) -> Ranks | None:
        held, seconds = option.bytes[shards], option.seconds[shards]
        if len(held) != len(members):
            return None
        left = self._free[members] - held
        if (left < 0).any():
            return None
        self._free[members] = left
        self._load[members] += seconds
        self._total[members] = added(self._load[members])
        return members

    def _on_any(self, option: PreparedOption, members: Ranks) -> Ranks | None:
        ranks = np.empty(option.num_shards, dtype=np.int64)
        for shard in range(option.num_shards):
            fits = (option.bytes[shard] <= self._free[members]).all(axis=1)
            if not fits.any():
                return None
            rank = members[np.where(fits, self._total[members], np.inf).argmin()]
            self._free[rank] -= option.bytes[shard]
            self._load[rank] += option.seconds[shard]
            self._total[rank] = sum(self._load[rank].tolist())  # from left to right
            ranks[shard] = rank
        return ranks

    def _undone_if_partial(self, option: PreparedOption, members: Ranks) -> Ranks | None:
        before = (self._free[members], self._load[members], self._total[members])  # copies
        found = self._on_any(option, members)
        if found is None:
            self._free[members], self._load[members], self._total[members] = before
        return found

    def _on_hosts(self, option: PreparedOption) -> Ranks | None:
        num_pieces, remainder = divmod(option.num_shards, self._per_host)
        if remainder:
            return None
        hosts = self._hosts_by_load()
        if num_pieces >= len(hosts):
            windows = [[hosts[piece % len(hosts)] for piece in range(num_pieces)]]
        else:
            windows = [hosts[first : first + num_pieces] for first in range(len(hosts) - num_pieces + 1)]
        for window in windows:
            before = (self._free.copy(), self._load.copy(), self._total.copy())
            found = [
                self._on_each(
                    option,
                    slice(piece * self._per_host, (piece + 1) * self._per_host),
                    self.everyone[host * self._per_host : (host + 1) * self._per_host],
                )
                for piece, host in enumerate(window)
            ]
            if all(ranks is not None for ranks in found):
                return np.concatenate([ranks for ranks in found if ranks is not None])
            self._free, self._load, self._total = before
        return None
