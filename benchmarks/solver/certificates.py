"""Certificates of plans: how much of a plan's gap an independent checker can prove, and what that takes.

    python benchmarks/solver/certificates.py [--shared DIR] [--tables 20 100 300 1000] [--ranks 8 16 64 128]
        [--fill 0.5 0.9] [--objective step_time max_rank_time] [--time-limit 10] [--seed 0]

Plans public workloads (``DIR/workloads``, converted as ``convert_workloads.py`` does) and Meta-like tables, certifies
each plan, and has ``planner/output/certificate/check.py`` check the certificate against the plan in a process of its
own. Prints a line per plan: its own gap, the gap that the certificate proves, bytes (plain, and as gzip writes them),
seconds to make the certificate and to check it. Exits with 1 where a certificate is rejected.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from api.specs.parse import parse_spec
from benchmarks.convert_workloads import to_spec
from benchmarks.inputs.instances import meta_family
from planner.domain.formats.canonical_json import canonical_bytes
from planner.output.certificate import check as check_certificate
from planner.output.certificate.certify import WORK_SECONDS, certify
from planner.output.exporters.generic import to_document
from planner.pipeline import plan
from planner.solver.partitioners.kernels.warm_up import warm

EMBEDDING_DIM = 128  # of tables whose source gives no width
_LEVEL = 6  # of gzip


def workload_specs(folder: Path, objectives: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the public workloads of a folder as specs; none where the folder is not there."""
    for path in sorted(folder.glob("*.json")):
        workload = json.loads(path.read_text())
        if isinstance(workload, dict) and isinstance(workload.get("tables"), list):
            for objective in objectives:
                yield {**to_spec(workload, embedding_dim=EMBEDDING_DIM), "objective": objective}


def line_of(spec: Mapping[str, Any], *, time_limit_seconds: float) -> tuple[bool, str]:
    """Plan, certify and check a spec; return whether the certificate was accepted, and the line to print."""
    request = parse_spec(json.dumps(spec).encode())
    limits = replace(request.limits, time_limit_seconds=time_limit_seconds)
    found = plan(request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=limits).plan
    name = f"{request.name} {request.problem.objective}"
    if found is None:
        return True, f"{name:62}  no plan"
    document = to_document(
        found, name=request.name, spec_digest=request.spec_digest, hardware_profile=request.hardware_profile
    )
    head = {"name": request.name, "spec_digest": request.spec_digest, "plan_digest": document["plan_digest"]}
    objective = document["objective"]
    assert isinstance(objective, dict)
    began = time.monotonic()
    certificate = certify(
        request.problem, found.placement, request.cost_model, head=head, objective=objective, work_seconds=WORK_SECONDS
    )
    made_seconds = time.monotonic() - began
    content = canonical_bytes(certificate)
    accepted, message, checked_seconds = checked(content, canonical_bytes(document))
    gaps = f"{_percent(found.relative_gap)}{_percent(certificate['claim']['relative_gap'])}"
    sizes = f"{len(content):12,}{len(gzip.compress(content, _LEVEL)):12,}"
    return accepted, f"{name:62}{gaps}{sizes}{made_seconds:8.2f}{checked_seconds:8.2f}  {message.partition(':')[0]}"


def checked(certificate: bytes, document: bytes) -> tuple[bool, str, float]:
    """Run the checker as a reader who doubts a plan would; return whether it accepts, what it says, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("certificate.json", "plan.json")]
        for path, content in zip(files, (certificate, document), strict=True):
            path.write_bytes(content)
        command = [sys.executable, check_certificate.__file__, *map(str, files)]
        began = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return result.returncode == 0, result.stdout.strip(), time.monotonic() - began


def _percent(share: float | None) -> str:
    return f"{'-':>11}" if share is None else f"{share:11.4%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--tables", type=int, nargs="*", default=[20, 100, 300, 1000])
    parser.add_argument("--ranks", type=int, nargs="*", default=[8, 16, 64, 128], help="of each number of tables")
    parser.add_argument("--fill", type=float, nargs="+", default=[0.5, 0.9])
    parser.add_argument("--objective", nargs="+", default=["step_time", "max_rank_time"])
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if len(given.tables) != len(given.ranks):
        parser.error("--tables and --ranks need as many numbers")
    warm()
    specs = list(workload_specs(given.shared / "workloads", given.objective))
    for num_tables, num_ranks in zip(given.tables, given.ranks, strict=True):
        sizes = {"num_tables": num_tables, "num_ranks": num_ranks, "seed": given.seed}
        specs += [meta_family(**sizes, fill=fill, objective=one) for fill in given.fill for one in given.objective]
    print(f"{'plan':62}{'own gap':>11}{'certified':>11}{'bytes':>12}{'gzip':>12}{'make s':>8}{'check s':>8}")
    rejected = 0
    for spec in specs:
        accepted, line = line_of(spec, time_limit_seconds=given.time_limit)
        rejected += not accepted
        print(line, flush=True)
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main())
