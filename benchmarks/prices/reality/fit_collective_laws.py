"""Fits the laws of collectives that ship to public measurements, and writes their documents.

    python benchmarks/prices/reality/fit_collective_laws.py --data ../shared/measured_gpu

writes ``cost_models/hardware/laws/sets/*.json``. The fit is that of ``shardplan fit --laws``
(``cost_models/fitting/collective_laws.py``); what this script adds is which rows of which source belong together.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.prices.reality.collective_files import MeasuredCollective, read_folder
from benchmarks.prices.reality.medians import with_medians
from benchmarks.prices.reality.platforms import DOMAINS, NETWORKS, Platform, laws_of
from cost_models.fitting.collective_laws import fit_domain_law, fit_hosts_law
from cost_models.fitting.collective_rows import CollectiveRows, falling_steps
from cost_models.hardware.laws.document import law_document
from cost_models.hardware.laws.domain_law import OPERATIONS, DomainLaw
from cost_models.hardware.laws.hosts_law import HostsLaw
from cost_models.hardware.laws.law_set import LawSet

SETS = Path(__file__).resolve().parents[3] / "cost_models" / "hardware" / "laws" / "sets"
_SOURCES = {
    "aiconfigurator": "ai-dynamo/aiconfigurator at commit 095f58a, nccl_perf.parquet: nccl-tests on one host",
    "xla": "ROCm/xla at commit 183fa00, default_collective_perf_table.txtpb: collectives of XLA",
    "example": "xxrjun/nccl-tests-cluster at commit 455de4f: nccl-tests on clusters of H100, medians of nodes or pairs",
    "AWS": "awslabs/awsome-distributed-training and KeitaW/p5-nccl-test-2024-07-19: nccl-tests on AWS",
    "Azure": "microsoft/superbenchmark, logs of nccl-tests on Azure NDv4",
    "CoreWeave": "coreweave/nccl-tests README",
    "OCI": "oracle-quickstart/oci-hpc and public documents of OCI: nccl-tests and rccl-tests",
    "GCP": "lessizzmore/create-a3mega-ztan-fork and GKE guide of A3 High: nccl-tests",
    "smc": "MLPerf training results v4.0, NCCL check of a submission",
    "Supermicro": "MLPerf training results v5.0, NCCL check of a submission",
    "16 x": "MLPerf and nccl-tests logs of DGX-2 systems",
    "8 nodes": "NVIDIA/nccl-tests issue 78",
    "8x H20": "deepseek-ai/DeepEP issue 303",
    "Tencent": "an issue of NVIDIA/nccl of June 2025: nccl-tests on virtual machines",
}
#: Networks whose all-to-alls show how starts grow with remote peers.
_SHOW_STARTS = ("tencent-vms", "h100-shared-cards")
#: Racks measure groups beyond a tray under XLA alone.
_RACKS = ("gb200-nvl72", "gb300-nvl72")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the documents of all sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public measurements")
    parser.add_argument("--output", type=Path, default=SETS, help="folder of the documents")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for laws in fitted_sets(list(read_folder(options.data))):
        path = options.output / f"{laws.name}.json"
        path.write_text(_text(law_document(laws)), encoding="utf-8")
        print(f"{path.name}: {len(laws.domain)} laws in a domain, {len(laws.hosts)} over hosts")


def fitted_sets(rows: Sequence[MeasuredCollective]) -> list[LawSet]:
    """Return the laws of every platform that has rows."""
    # Pairs that are broken would weigh as much as others.
    rows = [row for row in with_medians(rows) if not row.has_median]
    found = [_domain_set(platform, rows) for platform in DOMAINS]
    starts = _peer_starts(rows)
    found += [_hosts_set(platform, rows, starts) for platform in NETWORKS]
    return [one for one in found if one.domain or one.hosts]


def _of(platform: Platform, rows: Sequence[MeasuredCollective], *, is_one_domain: bool) -> list[MeasuredCollective]:
    return [
        row
        for row in rows
        if row.is_one_domain == is_one_domain
        and laws_of(row.platform, is_one_domain=is_one_domain) == (platform.laws, True)
    ]


def _domain_set(platform: Platform, rows: Sequence[MeasuredCollective]) -> LawSet:
    here = _of(platform, rows, is_one_domain=True)
    laws: list[DomainLaw] = []
    for operation in OPERATIONS:
        of_operation = [row for row in here if row.operation == operation]
        xla = [row for row in of_operation if row.library == "XLA"]
        own = [row for row in of_operation if row.library != "XLA"]
        libraries = sorted({row.library for row in own if row.source == "aiconfigurator"}, key=_version, reverse=True)
        # Rows of other sources join those of the newest release: they are few, and of large messages.
        for library in libraries or (["NCCL"] if len(own) >= 8 else []):
            joined = [
                row
                for row in own
                if row.library == library or (row.source != "aiconfigurator" and library in (*libraries[:1], "NCCL"))
            ]
            laws.append(_domain_law(joined, xla if platform.laws in _RACKS else [], operation, library))
        if xla:
            laws.append(_domain_law(xla if libraries else of_operation, [], operation, "XLA"))
    return LawSet(name=platform.laws, description=platform.description, domain=tuple(laws))


def _domain_law(
    rows: list[MeasuredCollective], others: list[MeasuredCollective], operation: str, library: str
) -> DomainLaw:
    own, more = _collective_rows(rows), _collective_rows(others) if others else None
    for text in falling_steps(own, operation):
        print(f"  {text}")
    return fit_domain_law(own, operation, library=library, source=_source([*rows, *others]), others=more)


def _peer_starts(rows: Sequence[MeasuredCollective]) -> HostsLaw | None:
    """Return how an all-to-all over hosts starts by its remote peers: the line through the two clusters that show that.

    Virtual machines of 2 GPUs show it for 2 remote peers (messages from 1 MiB on), hosts of 8 GPUs for 8.
    """
    named = {platform.laws: platform for platform in NETWORKS}
    few, many = (_hosts_set(named[name], rows, None).hosts_law("all_to_all") for name in _SHOW_STARTS)
    if few is None or many is None:
        return None
    (low, starts_low), (high, starts_high) = (2, few.whole_start_seconds(2, 2)), (8, many.whole_start_seconds(2, 8))
    hop = max(0.0, (starts_high - starts_low) / (high - low))
    basis = replace(many.basis, source=f"{few.basis.source}; {many.basis.source}")
    return replace(many, hop_seconds=hop, start_seconds=max(0.0, starts_low - low * hop), basis=basis)


def _hosts_set(platform: Platform, rows: Sequence[MeasuredCollective], peer_starts: HostsLaw | None) -> LawSet:
    here = _of(platform, rows, is_one_domain=False)
    laws: list[HostsLaw] = []
    for operation in OPERATIONS:
        found = [row for row in here if row.operation == operation]
        if not found:
            continue
        measured = _collective_rows(found)
        # All-to-alls of gigabytes show no start.
        shows_start = operation != "all_to_all" or measured.message_bytes.min() <= 2**30
        starts = None if shows_start else peer_starts
        library = max((row.library for row in found), key=_version) or "NCCL"
        laws.append(fit_hosts_law(measured, operation, library=library, source=_source(found), starts=starts))
    return LawSet(name=platform.laws, description=platform.description, hosts=tuple(laws))


def _collective_rows(rows: Sequence[MeasuredCollective]) -> CollectiveRows:
    return CollectiveRows(
        message_bytes=np.array([row.message_bytes for row in rows]),
        num_ranks=np.array([float(row.num_ranks) for row in rows]),
        ranks_per_host=np.array([float(_domain_ranks(row)) for row in rows]),
        seconds=np.array([row.seconds for row in rows]),
        library=np.array([row.library for row in rows], dtype=np.str_),
    )


def _domain_ranks(row: MeasuredCollective) -> int:
    """Return the ranks that share a domain: those of a host, or of a rack."""
    return 72 if not row.is_one_domain and "GB200" in row.platform else row.ranks_per_host


def _source(rows: Sequence[MeasuredCollective]) -> str:
    found = {
        text
        for row in rows
        for key, text in _SOURCES.items()
        if row.source == key or (row.source == "nccl-tests" and row.platform.startswith(key))
    }
    return "; ".join(sorted(found))


def _version(library: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", library)[:4])


def _text(document: dict[str, object]) -> str:
    """JSON with one line for each part of a law."""
    text = json.dumps(document, indent=1)
    # Objects and lists without further objects in them take one line.
    for _ in range(2):
        text = re.sub(r"[{\[]\s*\n[^{}\[\]]*[}\]]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
    return text + "\n"


if __name__ == "__main__":
    main()
