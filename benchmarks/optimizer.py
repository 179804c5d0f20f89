"""Every partitioner and the peers on one table: plans, bounds, gaps, seconds.

    python benchmarks/optimizer.py --suite smoke [--suite torchrec ...] [--limit N] [--partitioner NAME ...]
        [--shared DIR] [--time-limit SECONDS] [--peer-time-limit SECONDS] [--live] [--by-the-clock]
        [--seed N] [--profile] [--json FILE]

One solve at a time, in this process. Exits with 1 where a plan of the default partitioner is worse than a
peer's, or where it finds none and a peer has one.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.peers.peers import has_torchrec
from benchmarks.solver import report
from benchmarks.solver.measured import measure
from benchmarks.solver.suite import Row, Sources, Suite
from benchmarks.solver.suites import SUITES
from planner.solver.partitioners.kernels.warm_up import warm
from planner.solver.partitioners.registry import make_partitioner, partitioner_names
from planner.verification.provenance import versions


def run(suite: Suite, sources: Sources, given: argparse.Namespace) -> Iterator[Row]:
    """Measure the instances of a suite, one solve after the other; print as they come."""
    names = [name for name in partitioner_names() if make_partitioner(name).name == name]
    partitioners = given.partitioner or (names[:1] if suite.default_alone else names)
    most = None if given.limit is None else given.limit * suite.instances_per_case
    for instance in islice(suite.instances(sources), most):
        limited = instance if given.time_limit is None else replace(instance, time_limit_seconds=given.time_limit)
        peers = tuple(peer(limited.spec) for peer in limited.peers)
        _print(report.head(limited, peers))
        for partitioner in partitioners:
            measured = measure(
                limited.spec,
                partitioner=partitioner,
                time_limit_seconds=limited.time_limit_seconds,
                seed=given.seed,
                reproducible=not given.by_the_clock,
            )
            row = Row(instance=limited, peers=peers, partitioner=partitioner, measured=measured)
            _print([report.line(row)])
            if given.profile or suite.shows_stages:
                _print(report.stages(row))
            yield row


def protocol(given: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures depend on besides the code: versions, machine, settings."""
    return {
        "versions": versions(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "seed": given.seed,
        "reproducible": not given.by_the_clock,
        "time_limit_seconds": given.time_limit,
        "peer_time_limit_seconds": given.peer_time_limit,
        "limit": given.limit,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites; print rows and summaries."""
    given = _parser().parse_args(arguments)
    if given.live and not has_torchrec():
        print("--live needs TorchRec, which is not installed here", file=sys.stderr)
        return 2
    sources = Sources(shared=given.shared, peer_time_limit_seconds=given.peer_time_limit, live=given.live)
    default, *_ = partitioner_names()
    facts = protocol(given)
    print(
        f"{facts['cores']} cores, load {facts['load_average'][0]:.1f}, seed {given.seed}, "
        f"{'by the clock' if given.by_the_clock else 'reproducible'}, one solve at a time"
    )
    print("s: from spec to verified plan; first s: to the first one; to peer s: to one no worse than the peer's")
    warm()  # compiling is no part of any solve, nor is importing what solves
    for name in partitioner_names():
        make_partitioner(name)
    rows: dict[str, list[Row]] = {}
    for name in dict.fromkeys(given.suite):
        rows[name] = list(run(SUITES[name], sources, given))
        _print(["", *report.summary(SUITES[name], rows[name], default), ""])
    if given.json is not None:
        suites = {name: report.document(found) for name, found in rows.items()}
        given.json.write_text(json.dumps({"protocol": facts, "suites": suites}, indent=1) + "\n")
    return int(any(row.is_worse for found in rows.values() for row in found if row.partitioner == default))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", nargs="+", action="extend", choices=tuple(SUITES), required=True)
    parser.add_argument(
        "--partitioner", nargs="+", choices=partitioner_names(), help="default: all, or one in big suites"
    )
    parser.add_argument("--limit", type=int, help="instances of each suite; of neuroshard tasks")
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="folder of public data")
    parser.add_argument("--time-limit", type=float, help="seconds per solve, instead of the suite's")
    parser.add_argument("--peer-time-limit", type=float, default=60.0, help="seconds for each search of a peer")
    parser.add_argument("--live", action="store_true", help="also run TorchRec's own planner where it is a peer")
    parser.add_argument("--by-the-clock", action="store_true", help="not reproducible: search until the limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="seconds by stage under each row")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser


def _print(lines: Sequence[str] | Iterator[str]) -> None:
    for text in lines:
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
