"""Runs solves on a Ray cluster: what the process does that talks to it, and what runs there.

The cluster lends processors and nothing else. What is to be solved is handed over, improvements come back one by one
and are left in the job's file, as by a solver process of this machine: the database stays the record, and a cluster
that is gone has lost nothing. Who talks to it is a process of its own, because Ray ends a process that has lost its
cluster for long; killed, it takes its solve along, which Ray then ends.
"""

import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from types import FrameType
from typing import Any

from api.execution.base import NotNow
from api.execution.processes.child import start_process
from api.execution.processes.solve import SolveAnswer, SolveJob, leave, solve
from api.release import VERSION

_POLL_SECONDS = 0.1
_REACH_SECONDS = 3.0
#: Until a cluster has started a process for a function that does nothing.
_ANSWER_SECONDS = 60.0
_CANCEL_SECONDS = 2.0  # less than what pebble waits before it kills
_CPUS_PER_SOLVE = 1  # searches have one thread

Piece = None | bytes | SolveAnswer  # the begin, an improvement as files have it, the end


class RayWorkerLost(BrokenExecutor):
    """What ran the solve is gone, and says nothing about the solve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayPlace:
    """Where the cluster is, and what a solve asks it for."""

    address: str  # host:port
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJob:
    """One solve, as it is handed to the process that talks to the cluster."""

    job: SolveJob
    place: RayPlace
    limit_seconds: float  # from its begin there


class _Ending:
    """Whether this process is asked to end, and whether it has a solve to end first."""

    is_end_requested = False
    has_solve = False


def start_driver(_memory_bytes: int | None) -> None:
    """Prepare the process. Its address space is not limited: Ray maps all of its object store."""
    start_process(None)
    signal.signal(signal.SIGTERM, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    _Ending.is_end_requested = True
    if not _Ending.has_solve:
        os._exit(0)


def check_cluster(place: RayPlace) -> str:
    """Return what was found of a cluster that can be used. Raises ``NotNow``."""
    ray = _connected(place)
    try:
        there = ray.get(ray.remote(num_cpus=0, max_retries=0)(worker_release).remote(), timeout=_ANSWER_SECONDS)
    except ray.exceptions.GetTimeoutError:
        raise NotNow(f"the Ray cluster at {place.address} starts no process in {_ANSWER_SECONDS:g} s") from None
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1]
        raise NotNow(f"the Ray cluster at {place.address} does not run shardplan: {reason}") from None
    if there != VERSION:
        raise NotNow(f"the Ray cluster at {place.address} has shardplan {there}, and this is {VERSION}")
    cpus = ray.cluster_resources().get("CPU", 0.0)
    return f"Ray {ray.__version__} at {place.address} has {len(ray.nodes())} nodes and {cpus:g} CPUs"


def worker_release() -> str:
    """Return the release of shardplan; what the cluster is asked."""
    return VERSION


def connect(place: RayPlace) -> None:
    """Connect, so that the first solve need not wait for it. Raises ``NotNow``."""
    _connected(place)


def run_on_ray(wanted: RayJob) -> SolveAnswer:
    """Have one spec planned by the cluster, and leave every improvement in the job's file.

    Raises
    ------
    NotNow
        The cluster cannot be used, or had no processor for it until its deadline.
    RayWorkerLost
        What ran the solve is gone.
    TimeoutError
        The limit was over before the solve.
    """
    ray = _connected(wanted.place)
    _Ending.has_solve = True
    try:
        return _followed(ray, wanted)
    finally:
        _Ending.has_solve = False


def _followed(ray: Any, wanted: RayJob) -> SolveAnswer:
    remote = ray.remote(solve_in_pieces).options(
        num_returns="streaming", num_cpus=_CPUS_PER_SOLVE, memory=wanted.place.memory_bytes, max_retries=0
    )
    pieces = remote.remote(wanted.job)
    handed_over, left_seconds = time.monotonic(), wanted.job.seconds_left
    deadline: float | None = None  # it may wait for a processor first
    while True:
        if _Ending.is_end_requested:
            _cancel(ray, pieces)
            os._exit(0)
        if deadline is not None and time.monotonic() > deadline:
            _cancel(ray, pieces)
            raise TimeoutError
        if deadline is None and left_seconds is not None and time.monotonic() > handed_over + left_seconds:
            _cancel(ray, pieces)
            raise NotNow(f"the Ray cluster at {wanted.place.address} had no processor for it in time")
        try:
            if not ray.wait([pieces], timeout=_POLL_SECONDS)[0]:
                continue
            piece: Piece = ray.get(next(pieces))
        except ray.exceptions.OutOfMemoryError:
            return SolveAnswer(is_out_of_memory=True)
        except ray.exceptions.RayTaskError as error:
            # Its class is made when it is raised, and could not be handed to another process.
            raise RuntimeError(str(error)) from None
        except (ray.exceptions.RayError, StopIteration) as error:
            raise RayWorkerLost(str(error).partition("\n")[0] or type(error).__name__) from None
        if isinstance(piece, SolveAnswer):
            return piece
        if piece is None:
            deadline = time.monotonic() + wanted.limit_seconds
            if left_seconds is not None:  # what it waited is taken off
                deadline = min(deadline, handed_over + max(left_seconds, wanted.limit_seconds))
        else:
            leave(wanted.job, piece)


def _cancel(ray: Any, pieces: Any) -> None:
    """Kill the process of a solve there, and wait a moment for word of it: who leaves at once is not heard."""
    ray.cancel(pieces, force=True)
    deadline = time.monotonic() + _CANCEL_SECONDS
    while time.monotonic() < deadline:
        try:
            if ray.wait([pieces], timeout=_POLL_SECONDS)[0]:
                ray.get(next(pieces))
        except (ray.exceptions.RayError, StopIteration):
            return


def solve_in_pieces(job: SolveJob) -> Iterator[Piece]:
    """Plan one spec in a process of the cluster; yield the begin, every improvement, and the end."""
    yield None
    found: queue.SimpleQueue[bytes | SolveAnswer | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            found.put(solve(job, lambda incumbent: found.put(incumbent.to_file())))
        except BaseException as error:
            found.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        piece = found.get()
        if isinstance(piece, BaseException):
            raise piece
        yield piece
        if isinstance(piece, SolveAnswer):
            return


def _connected(place: RayPlace) -> Any:
    try:
        import ray
    except ImportError:
        raise NotNow("SHARDPLAN_RUNNER=ray needs pip install 'shardplan[ray]'") from None
    if ray.is_initialized():
        return ray
    _reach(place.address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(place.address, namespace="shardplan", log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise NotNow(f"cannot use the Ray cluster at {place.address}: {reason}") from None
    # Ray has put a handler of its own in the place of ours.
    signal.signal(signal.SIGTERM, _end)
    return ray


def _reach(address: str) -> None:
    """Raise ``NotNow`` if no server listens: Ray itself would look for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_REACH_SECONDS):
            pass
    except (OSError, ValueError, OverflowError) as error:
        form = "SHARDPLAN_RAY_ADDRESS is written like head.internal:6379"
        raise NotNow(f"cannot reach the Ray cluster at {address}: {error}; {form}") from None
