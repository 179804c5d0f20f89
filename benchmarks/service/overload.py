"""Ten times more solves than the service can run, for minutes: what launchers notice, and how soon it is over.

    python benchmarks/service/overload.py [--seconds 300] [--times 10] [--queue 64]

Starts ``shardplan serve`` with an empty data folder, publishes a plan, and measures how many solves a second it runs.
Then solves are sent at ten times that rate, whatever is answered, while 50 launchers a second fetch the plan. Wanted:

    every solve is accepted (202) or refused with 503 and Retry-After, and nothing else is answered;
    every fetch is answered, 99 of 100 within 20 ms (for comparison: without overload, on the same machine just before);
    the memory of the server stays below twice what it was;
    ten seconds after the end a solve is accepted again; all that were accepted end with a plan.

Exits with 1 where something is missed, and with 2 where nothing could be measured.
"""

import argparse
import asyncio
import collections
import itertools
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.inputs.instances import meta_family
from benchmarks.service.fetch_path import percentiles, solved
from benchmarks.service.service import NotServed, Service, answer_of, report

FETCH_P99_MILLISECONDS, RECOVERY_SECONDS, MOST_GROWTH = 20.0, 10.0, 2.0
_FETCHES_PER_SECOND = 50.0
_CALM_SECONDS = 20
_COUNTED = 10  # solves
_PATIENCE_SECONDS = 30.0
_PATH = "/v1/channels/load/prod/plan"


@dataclass(slots=True)
class Seen:
    """What clients saw."""

    fetch_milliseconds: list[float] = field(default_factory=list)
    num_failed_fetches: int = 0
    answers: collections.Counter[str] = field(default_factory=collections.Counter)
    accepted: list[str] = field(default_factory=list)


async def exchange(port: int, request: bytes) -> tuple[int, bytes, bytes]:
    """Send a request on a connection of its own; return status, head and body. Status 0: no answer."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            answer = await reader.read(-1)
            writer.close()
    except OSError:  # which a timeout is, too
        return 0, b"", b""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1.1 (\d{3})", head)
    return (int(status.group(1)) if status else 0), head.lower(), body


async def at_rate(per_second: float, seconds: float) -> AsyncIterator[int]:
    """Yield at a steady rate, whatever becomes of what was begun."""
    began = time.monotonic()
    for number in itertools.count():
        due = began + number / per_second
        if due > began + seconds:
            return
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        yield number


async def fetch(port: int, seen: Seen) -> None:
    """Fetch the plan once, as a launcher does."""
    request = f"GET {_PATH} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: zstd\r\nConnection: close\r\n\r\n".encode()
    began = time.monotonic()
    status, _, _ = await exchange(port, request)
    seen.fetch_milliseconds.append((time.monotonic() - began) * 1000)
    seen.num_failed_fetches += status != 200


async def submit(port: int, body: bytes, seen: Seen) -> None:
    """Send a solve once, and note how it was answered."""
    head = f"POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    status, answered, document = await exchange(port, head.encode() + b"Connection: close\r\n\r\n" + body)
    kind = str(status)
    if status == 202:
        seen.accepted.append(json.loads(document)["id"])
    elif status == 503 and b"retry-after:" not in answered:
        kind = "503 without Retry-After"
    seen.answers[kind] += 1


async def load(port: int, seconds: float, bodies: Iterator[bytes] | None, per_second: float) -> Seen:
    """Fetch for some seconds; send solves at a rate meanwhile, if there are any."""
    seen = Seen()
    async with asyncio.TaskGroup() as group:

        async def fetches() -> None:
            async for _ in at_rate(_FETCHES_PER_SECOND, seconds):
                group.create_task(fetch(port, seen))

        async def submits() -> None:
            async for _ in at_rate(per_second, seconds):
                if bodies is not None:
                    group.create_task(submit(port, next(bodies), seen))

        group.create_task(fetches())
        group.create_task(submits())
    return seen


def measure(service: Service, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the report; raises ``NotServed``."""
    spec = meta_family(num_tables=40, num_ranks=8, fill=0.6, seed=0, time_limit_seconds=0.2)
    numbers = itertools.count()
    bodies = (json.dumps({**spec, "name": f"load-{number}"}).encode() for number in numbers)
    port = service.client.base_url.port or 80
    digest = solved(service, {**spec, "name": "first"})  # which also waits for the solvers to be loaded
    began = time.monotonic()
    for number in range(_COUNTED):
        solved(service, {**spec, "name": f"counted-{number}"})
    per_second = _COUNTED / (time.monotonic() - began)
    answer_of(service.client.put("/v1/channels/load/prod", json={"plan_digest": digest}))
    before_bytes = most_resident_bytes(service.process_id)
    machine = f"load one minute before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    yield f"runs {per_second:.1f} solves a second; {machine}"
    # A solve at a time next to the fetches: the solvers are as busy as under overload.
    calm = asyncio.run(load(port, _CALM_SECONDS, bodies, per_second))
    reported, _ = fetched("calm", calm)
    yield reported
    rate = given.times * per_second
    ends_at = time.monotonic() + given.seconds  # of what is sent; answers may come later
    seen = asyncio.run(load(port, given.seconds, bodies, rate))
    reported, is_fast = fetched("overload", seen)
    yield f"{reported}  {verdict(is_fast and seen.num_failed_fetches == 0)} (p99 at most {FETCH_P99_MILLISECONDS:g} ms)"
    answers = ", ".join(f"{status}: {number:,}" for status, number in sorted(seen.answers.items()))
    is_clean = set(seen.answers) <= {"202", "503"}
    yield f"{rate:.0f} solves a second sent for {given.seconds} s: {answers}  {verdict(is_clean)}"
    growth = most_resident_bytes(service.process_id) / before_bytes
    yield f"memory of the server: {growth:.2f} of what it was  {verdict(growth < MOST_GROWTH)} (below {MOST_GROWTH:g})"
    accepted = accepted_again(service, bodies)
    seconds = time.monotonic() - ends_at
    is_soon = seconds <= RECOVERY_SECONDS
    yield f"accepts again after {seconds:.1f} s  {verdict(is_soon)} (at most {RECOVERY_SECONDS:g} s)"
    states = ends(service, [*calm.accepted, *seen.accepted, accepted])
    yield f"accepted solves: {dict(states)}  {verdict(set(states) == {'succeeded'})}"


def fetched(name: str, seen: Seen) -> tuple[str, bool]:
    """Return a line about fetches, and whether they were fast enough."""
    p50, p99 = percentiles(seen.fetch_milliseconds)
    line = f"fetches, {name}: {len(seen.fetch_milliseconds):,}, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    return f"{line}, {seen.num_failed_fetches} failed", p99 <= FETCH_P99_MILLISECONDS


def verdict(is_reached: bool) -> str:
    """Return the word for it."""
    return "reached" if is_reached else "MISSED"


def accepted_again(service: Service, bodies: Iterator[bytes]) -> str:
    """Send solves until one is accepted; return its id. Raises ``NotServed`` after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        headers = {"Content-Type": "application/json"}
        answer = service.client.post("/v1/solves", content=next(bodies), headers=headers)
        if answer.status_code == 202:
            return str(answer.json()["id"])
        time.sleep(0.1)
    raise NotServed("no solve was accepted for a minute after the load had ended")


def ends(service: Service, ids: Sequence[str]) -> Mapping[str, int]:
    """Wait until solves have ended; return how many are in which state."""
    states: collections.Counter[str] = collections.Counter()
    for solve_id in ids:
        solve: dict[str, Any] = {"state": "queued"}
        while solve["state"] in ("queued", "running"):
            solve = answer_of(service.client.get(f"/v1/solves/{solve_id}", params={"wait": 30}))
        states[str(solve["state"])] += 1
    return states


def most_resident_bytes(process_id: int) -> int:
    """Return the most memory that a process has had."""
    status = (Path("/proc") / str(process_id) / "status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if found is None:
        raise NotServed("the server is gone")
    return 1024 * int(found.group(1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300, help="of the overload")
    parser.add_argument("--times", type=float, default=10.0, help="as many solves as the service runs")
    parser.add_argument("--queue", type=int, default=64, help="solves that may wait")
    given = parser.parse_args(arguments)
    return report(lambda service: measure(service, given), max_queued_solves=given.queue)


if __name__ == "__main__":
    sys.exit(main())
