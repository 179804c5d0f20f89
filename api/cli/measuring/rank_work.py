"""What one rank does in a collective or a copy that is measured."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

from api.cli.measuring.rank_design import CollectiveLaunch, CopyLaunch
from api.cli.measuring.rows import Row
from api.cli.measuring.stopwatch import Stopwatch, device_kind, median_and_spread, rounded

_WARM_UPS = 2
_LEAST_REPEATS, _MOST_REPEATS = 5, 20
_SECONDS_OF_REPEATS = 0.25
#: Table that a gather reads: larger than the caches of a CPU, or of an accelerator.
_GATHERED_BYTES = {"cpu": 256 * 1024**2, "cuda": 4 * 1024**3}


class RankWork:
    """Buffers and clock of one rank in a process group; the group has been joined."""

    def __init__(self, rank: int, num_ranks: int, device: str) -> None:
        self._rank, self._num_ranks, self._device = rank, num_ranks, device
        self._watch = Stopwatch(device)
        self._table: Any = None

    def run(self, launch: CollectiveLaunch | CopyLaunch) -> Row | None:
        """Run a collective with all other ranks, or copy at the same time as those that take part.

        Returns what this rank measured, as columns of a row; ``None`` where it takes no part.
        """
        if isinstance(launch, CollectiveLaunch):
            work, sent, received = self._collective(launch)
            found = self._repeat(work, launch.start_seconds[self._rank], everyone=True)
            return {**found, "sent_bytes": sent, "received_bytes": received}
        takes_part = self._rank < launch.contending
        found = self._repeat(self._copy(launch) if takes_part else lambda: None, 0.0, everyone=False)
        return found if takes_part else None

    def _repeat(self, work: Callable[[], object], wait_seconds: float, *, everyone: bool) -> Row:
        """Time ``work`` as often as all ranks agree on; they start together, or each after its wait."""
        for _ in range(_WARM_UPS):
            began = time.perf_counter()
            work()
            self._watch.finish()
        once = max(time.perf_counter() - began, 1e-5) + wait_seconds
        repeats = self._agreed(min(max(int(_SECONDS_OF_REPEATS / once), _LEAST_REPEATS), _MOST_REPEATS))
        laps = []
        for lap in range(repeats):
            if everyone or lap == 0:
                distributed.barrier()
            if wait_seconds:
                _wait(wait_seconds)
            laps.append(self._watch.time(work)[1])
            if everyone:
                self._watch.finish()
        self._watch.finish()
        seconds, spread_seconds = median_and_spread([lap() for lap in laps])
        return {"repeats": repeats, "seconds": rounded(seconds), "spread_seconds": rounded(spread_seconds)}

    def _agreed(self, repeats: int) -> int:
        """The fewest repeats that any rank asks for."""
        fewest = torch.tensor([repeats], device=self._device)
        distributed.all_reduce(fewest, op=distributed.ReduceOp.MIN)
        return int(fewest.item())

    def _empty(self, num_bytes: int) -> Any:
        return torch.ones(num_bytes // 4, dtype=torch.float32, device=self._device)

    def _collective(self, launch: CollectiveLaunch) -> tuple[Callable[[], object], int, int]:
        """Return the work, the bytes that this rank sends and those that it receives, its own part included."""
        parts, ranks = [part // 4 for part in launch.part_bytes], self._num_ranks
        mine = [parts[self._rank]] * ranks
        gives, takes = (mine, parts) if launch.direction != "backward" else (parts, mine)
        match launch.operation:
            case "all_gather":
                gives, takes = mine[:1], mine
            case "reduce_scatter":
                gives, takes = mine, mine[:1]
            case "all_reduce":
                gives = takes = mine
        source, target = self._empty(4 * sum(gives)), self._empty(4 * sum(takes))
        # Called otherwise before torch 2.13, which deprecates the old names.
        gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
        scatter = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
        works: dict[str, Callable[[], object]] = {
            "all_to_all": lambda: distributed.all_to_all_single(target, source, takes, gives),
            "all_gather": lambda: gather(target, source),
            "reduce_scatter": lambda: scatter(target, source),
            "all_reduce": lambda: distributed.all_reduce(source),
        }
        return works[launch.operation], 4 * sum(gives), 4 * sum(takes)

    def _copy(self, launch: CopyLaunch) -> Callable[[], object]:
        if launch.operation == "gather":
            rows = self._rows(launch.row_bytes // 4)
            ids = torch.randint(len(rows), (launch.copied_bytes // launch.row_bytes,), device=self._device)
            target = torch.empty(len(ids), rows.shape[1], device=self._device)
            return lambda: torch.index_select(rows, 0, ids, out=target)
        here = self._empty(launch.copied_bytes)
        if launch.operation == "stream":
            other = torch.empty_like(here)
            return lambda: other.copy_(here)
        there = torch.ones(launch.copied_bytes // 4, pin_memory=True)
        if launch.operation == "host_to_device":
            return lambda: here.copy_(there, non_blocking=True)
        return lambda: there.copy_(here, non_blocking=True)

    def _rows(self, columns: int) -> Any:
        """A large table of rows of that width; its memory is kept between launches."""
        if self._table is None:
            self._table = self._empty(_GATHERED_BYTES[device_kind(self._device)])
        return self._table[: len(self._table) // columns * columns].view(-1, columns)


def _wait(seconds: float) -> None:
    """Wait by the clock: sleeping is not this exact."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
