"""The fetch path under load: what launchers get from a server with a busy solver, next to what uvicorn can do at most.

    python benchmarks/service/fetch_path.py [--seconds 10] [--connections 32] [--herd 4096] [--posts 30]
        [--stored 100000]

Starts ``shardplan serve`` with an empty data folder and the real solver, publishes a plan of about 500 KB, points a
channel at it, and keeps a long solve running (at nice 19) while ``wrk`` (Debian: apt-get install wrk) fetches. The same
loads go to ``bare_responder.py`` under the same uvicorn: it answers with the same bytes and does nothing else.

    304         the channel's plan, which the caller has
    zstd, identity, rank slice
                the channel's plan, compressed; as it is; one rank's part of it
    herd        one fetch each of 4,096 ranks (zstd), begun within one second, a connection each
    POST        a spec of 1,000 tables, each under a name of its own
    list        the first page of 100,000 stored plans

Lines end with the share of the processors' time that the host of a virtual machine gave to others meanwhile.
Exits with 1 where a figure is missed, and with 2 where nothing could be measured.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.inputs.instances import meta_family
from benchmarks.machine.steal_time import watched
from benchmarks.service.service import ROOT, NotServed, Service, answer_of, environment, free_port, report

_HEADERS = {"Content-Type": "application/json"}
#: Wanted: requests a second at least, p99 milliseconds at most.
WANTED: Mapping[str, tuple[float, float]] = {"304": (5000.0, 20.0), "zstd": (4000.0, 30.0), "identity": (1500.0, 50.0)}
HERD_SECONDS, POST_P99_MILLISECONDS, LIST_P99_MILLISECONDS = 3.0, 150.0, 100.0
_REPORT = """done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("RESULT %d %d %f %f %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), failed))
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a load saw."""

    per_second: float
    p50_milliseconds: float
    p99_milliseconds: float
    num_failed: int


def wrk(url: str, headers: Mapping[str, str], *, seconds: int, connections: int) -> Load:
    """Fetch from as many connections as often as the server answers; raises ``NotServed``."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_REPORT)
        script.flush()
        sent = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name, *sent, url]
        reported = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"RESULT (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)", reported)
    if found is None:
        raise NotServed(f"wrk says: {reported}")
    num, microseconds, p50, p99, failed = (float(part) for part in found.groups())
    return Load(
        per_second=num / microseconds * 1e6,
        p50_milliseconds=p50 / 1000,
        p99_milliseconds=p99 / 1000,
        num_failed=int(failed),
    )


@contextlib.contextmanager
def bare_server(body: bytes) -> Iterator[str]:
    """Run the bare responder with a body; yields its address."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        port = free_port()
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "uvicorn",
                "benchmarks.service.bare_responder:app",
                "--port",
                str(port),
                "--no-access-log",
            ],
            env={**environment(), "BARE_BODY": file.name},
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
        )
        try:
            time.sleep(1.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def solved(service: Service, spec: Mapping[str, Any]) -> str:
    """Return the digest of the plan of a spec; raises ``NotServed``."""
    solve = answer_of(service.client.post("/v1/solves", content=json.dumps(spec).encode(), headers=_HEADERS))
    while solve["state"] in ("queued", "running"):
        solve = answer_of(service.client.get(f"/v1/solves/{solve['id']}", params={"wait": 30}))
    result = solve["result"]
    if not isinstance(result, dict) or result["plan_digest"] is None:
        raise NotServed(f"the solve has no plan: {solve}")
    return str(result["plan_digest"])


async def herd(port: int, path: str, num_ranks: int) -> tuple[float, int]:
    """Let every rank fetch once, all within a second; return seconds to the last byte, and how many got no plan."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: zstd\r\nConnection: close\r\n\r\n".encode()

    async def fetch(index: int) -> bool:
        await asyncio.sleep(index / num_ranks)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            answer = await reader.read(-1)
            writer.close()
        except OSError:
            return False
        head, _, body = answer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        return head.startswith(b"HTTP/1.1 200") and length is not None and int(length.group(1)) == len(body)

    began = time.monotonic()
    got = await asyncio.gather(*(fetch(index) for index in range(num_ranks)))
    return time.monotonic() - began, got.count(False)


def percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(milliseconds)
    return ordered[len(ordered) // 2], ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]


def posted(service: Service, spec: Mapping[str, Any], times: int) -> list[float]:
    """Send a spec under many names; return the milliseconds until each was accepted."""
    found = []
    for number in range(times):
        body = json.dumps({**spec, "name": f"post-{number}"}).encode()
        began = time.monotonic()
        solve = answer_of(service.client.post("/v1/solves", content=body, headers=_HEADERS))
        found.append((time.monotonic() - began) * 1000)
        service.client.post(f"/v1/solves/{solve['id']}:cancel")
    return found


def store_plans(database: Path, number: int) -> None:
    """Put copies of the stored plan's row into the database, under digests of their own; lists read no documents."""
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        (name,) = connection.execute("SELECT plan_digest FROM plan_summaries LIMIT 1").fetchone()
        columns = [row[1] for row in connection.execute("PRAGMA table_info(plan_summaries)")]
        preserved = ", ".join(column for column in columns if column not in ("plan_digest", "created_at"))
        digests = [(f"sha256:{index:064x}", float(index), name) for index in range(number)]
        connection.executemany(
            "INSERT INTO plans (tenant, digest, document, created_at) SELECT 'default', ?1, x'00', ?2 WHERE ?3 != ''",
            digests,
        )
        connection.executemany(
            f"INSERT INTO plan_summaries (plan_digest, created_at, {preserved})"
            f" SELECT ?1, ?2, {preserved} FROM plan_summaries WHERE tenant = 'default' AND plan_digest = ?3",
            digests,
        )


def row(name: str, ours: Load, bare: Load) -> str:
    """Return a load as a line of the table, and whether what is wanted of it is reached."""
    verdict = ""
    if name in WANTED:
        least, most = WANTED[name]
        verdict = "reached" if ours.per_second >= least and ours.p99_milliseconds <= most else "MISSED"
        verdict = f"{verdict} (at least {least:,.0f}/s, p99 at most {most:g} ms)"
    return (
        f"{name:<11}{ours.per_second:>9,.0f}{ours.p50_milliseconds:>8.2f}{ours.p99_milliseconds:>8.2f}"
        f"{bare.per_second:>10,.0f}{bare.p50_milliseconds:>8.2f}{bare.p99_milliseconds:>8.2f}"
        f"{ours.per_second / bare.per_second:>7.0%}{ours.num_failed:>7}  {verdict}"
    )


def measure(service: Service, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the report; raises ``NotServed``."""
    spec = meta_family(num_tables=given.tables, num_ranks=given.ranks, fill=0.6, seed=0, time_limit_seconds=5.0)
    digest = solved(service, spec)
    answer_of(service.client.put("/v1/channels/load/prod", json={"plan_digest": digest}))
    path = "/v1/channels/load/prod/plan"
    busy = {**spec, "name": "busy", "solver": {**spec["solver"], "time_limit_seconds": 3600.0}}
    answer_of(service.client.post("/v1/solves", content=json.dumps(busy).encode(), headers=_HEADERS))
    base = str(service.client.base_url).rstrip("/")
    options = {"seconds": given.seconds, "connections": given.connections}
    cases: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("304", path, {"Accept-Encoding": "zstd"}),
        ("zstd", path, {"Accept-Encoding": "zstd"}),
        ("identity", path, {"Accept-Encoding": "identity"}),
        ("rank slice", f"{path}?rank=1", {"Accept-Encoding": "zstd"}),
    )
    yield f"load one minute before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; a solve runs at the same time"
    yield f"{'':<11}{'/s':>9}{'p50 ms':>8}{'p99 ms':>8}{'bare /s':>10}{'p50':>8}{'p99':>8}{'ratio':>7}{'failed':>7}"
    for name, where, headers in cases:
        with service.client.stream("GET", where, headers=headers) as answer:
            body, etag = b"".join(answer.iter_raw()), answer.headers["etag"]
        if name == "304":
            headers = {**headers, "If-None-Match": etag}
        with watched() as stolen:
            ours = wrk(f"{base}{where}", headers, **options)
        with bare_server(body) as address:
            bare = wrk(f"{address}{'/304' if name == '304' else '/'}", {}, **options)
        yield row(name, ours, bare) + f"  {len(body):,} bytes  {stolen}"
    with watched() as stolen:
        seconds, num_failed = asyncio.run(herd(service.client.base_url.port or 80, path, given.herd))
    verdict = "reached" if seconds <= HERD_SECONDS and num_failed == 0 else "MISSED"
    reported = f"herd of {given.herd:,}: {seconds:.2f} s, {num_failed} failed"
    yield f"{reported}  {verdict} (at most {HERD_SECONDS:g} s)  {stolen}"
    thousand = meta_family(num_tables=1000, num_ranks=128, fill=0.8, seed=0)
    with watched() as stolen:
        p50, p99 = percentiles(posted(service, thousand, given.posts))
    verdict = "reached" if p99 <= POST_P99_MILLISECONDS else "MISSED"
    reported = f"POST of 1,000 tables: p50 {p50:.0f} ms, p99 {p99:.0f} ms"
    yield f"{reported}  {verdict} (at most {POST_P99_MILLISECONDS:g} ms)  {stolen}"
    store_plans(service.folder / "shardplan.sqlite", given.stored)
    listed = []
    with watched() as stolen:
        for _ in range(100):
            began = time.monotonic()
            answer_of(service.client.get("/v1/plans"))
            listed.append((time.monotonic() - began) * 1000)
    p50, p99 = percentiles(listed)
    verdict = "reached" if p99 <= LIST_P99_MILLISECONDS else "MISSED"
    reported = f"page of {given.stored:,} plans: p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    yield f"{reported}  {verdict} (at most {LIST_P99_MILLISECONDS:g} ms)  {stolen}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    given = _parser().parse_args(arguments)
    if shutil.which("wrk") is None:
        print("nothing to measure: wrk is not installed (Debian: apt-get install wrk)", file=sys.stderr)
        return 2
    return report(lambda service: measure(service, given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10, help="of each load")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--tables", type=int, default=300, help="of the plan that is fetched")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--herd", type=int, default=4096, help="ranks that fetch within a second")
    parser.add_argument("--posts", type=int, default=30)
    parser.add_argument("--stored", type=int, default=100_000, help="plans in the list")
    return parser


if __name__ == "__main__":
    sys.exit(main())
