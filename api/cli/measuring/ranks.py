"""The ranks of this machine, or of the job that ``torchrun`` started, as one group that runs what rank 0 says.

Rank 0 is this process. Alone, it starts the others; under ``torchrun`` they are there already. Commands and answers
travel over a gloo group of their own.
"""

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from api.cli.errors import ServerTrouble
from api.cli.measuring.machine import Machine, started_by_torchrun, variable
from api.cli.measuring.rank_design import CollectiveLaunch, CopyLaunch
from api.cli.measuring.rank_work import RankWork
from api.cli.measuring.rows import Row

_PATIENCE = timedelta(seconds=120)


class RanksLost(ServerTrouble):
    """The ranks that measure collectives and copies could not start, or one of them ended."""


class Ranks:
    """All ranks, by way of the one that this process is."""

    def __init__(self, work: RankWork, control: Any, num_ranks: int) -> None:
        self._work, self._control, self._num_ranks = work, control, num_ranks

    def run(self, launch: CollectiveLaunch | CopyLaunch) -> list[Row | None]:
        """Measure a launch on all ranks, and return what each measured; of rank 0 only."""
        distributed.broadcast_object_list([launch], src=0, group=self._control)
        found: list[Row | None] = [None] * self._num_ranks
        distributed.gather_object(self._work.run(launch), found, dst=0, group=self._control)
        return found

    def follow(self) -> None:
        """Run what rank 0 says until it says no more; of the other ranks."""
        while True:
            launch: list[CollectiveLaunch | CopyLaunch | None] = [None]
            distributed.broadcast_object_list(launch, src=0, group=self._control)
            if launch[0] is None:
                return
            distributed.gather_object(self._work.run(launch[0]), None, dst=0, group=self._control)

    def release(self) -> None:
        distributed.broadcast_object_list([None], src=0, group=self._control)


def is_first_rank() -> bool:
    """Whether this process is the one that measures and writes."""
    return not started_by_torchrun() or os.environ["RANK"] == "0"


@contextlib.contextmanager
def joined_ranks(machine: Machine) -> Iterator[Ranks]:
    """Join the ranks, and leave them in the end; the ranks that were started here end with it.

    Raises
    ------
    RanksLost
        Where they do not come together, or one of them ends.
    """
    if started_by_torchrun():
        with _group(machine, variable("RANK"), None) as ranks:
            yield ranks
        return
    with tempfile.TemporaryDirectory(prefix="shardplan-ranks-") as folder:
        store, context = str(Path(folder) / "store"), get_context("spawn")
        others = [
            context.Process(target=_other_rank, args=(machine, rank, store), daemon=True)
            for rank in range(1, machine.num_ranks)
        ]
        for process in others:
            process.start()
        try:
            with _group(machine, 0, store) as ranks:
                yield ranks
        finally:
            for process in others:
                process.join(timeout=5)
                process.kill()


def _other_rank(machine: Machine, rank: int, store: str) -> None:
    """Body of a process that was started here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for rank 0, which lets this one go
    with contextlib.suppress(RanksLost), _group(machine, rank, store) as ranks:
        ranks.follow()


@contextlib.contextmanager
def _group(machine: Machine, rank: int, store: str | None) -> Iterator[Ranks]:
    if sys.platform == "linux" and store is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one machine: its name need not resolve
    torch.set_num_threads(machine.num_threads)
    num_ranks = machine.num_ranks
    local_rank = variable("LOCAL_RANK") if store is None else rank
    device = machine.device(local_rank)
    try:
        if machine.is_cuda:
            torch.cuda.set_device(device)
        where = {} if store is None else {"store": distributed.FileStore(store, num_ranks)}
        distributed.init_process_group(machine.backend, rank=rank, world_size=num_ranks, timeout=_PATIENCE, **where)
        control = distributed.new_group(backend="gloo", timeout=_PATIENCE)
        ranks = Ranks(RankWork(rank, num_ranks, device), control, num_ranks)
        yield ranks
        if rank == 0:
            ranks.release()
    except RuntimeError as error:  # torch's own errors of communication are among them
        raise RanksLost(f"the ranks stopped: {str(error).splitlines()[0][:200]}") from error
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
