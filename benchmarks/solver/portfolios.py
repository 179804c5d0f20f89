"""What a job moves that loses hosts, under a portfolio of plans and under plans made one by one.

python benchmarks/solver/portfolios.py [--source META_DLRM_2021] [--hosts 16 15 14 12] [--time-limit 5] [--json FILE]

The models are MLPerf's DLRM-DCNv2 and, with ``--source``, Meta's public tables of 2021 (128 columns, fp16); their hosts
are DGX H100. Tables lie on the ranks of hosts that are lost from the end.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from api.cli.study.local import StudyFolder, run_study
from api.cli.study.portfolio_text import portfolio_text
from api.services.studies.kinds.registry import parse_study, study_of
from api.specs.references.resolve import Library

_EXAMPLE = Path(__file__).parents[2] / "examples" / "dlrm_dcnv2_2x8.json"
_BATCH_PER_RANK = 512
_COLUMNS = 128
_WIDTH = 79


def models(source: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the specs of the models."""
    yield json.loads(_EXAMPLE.read_text())
    if source is not None:
        tables = [
            {
                "name": one["name"],
                "num_embeddings": one["num_embeddings"],
                "embedding_dim": _COLUMNS,
                "data_type": "fp16",
                "pooling_factor": one["pooling_factor"],
            }
            for one in json.loads((source / "tables.json").read_bytes())["tables"]
        ]
        yield {
            "name": f"meta-{len(tables)}-tables",
            "model": {"batch_size_per_rank": _BATCH_PER_RANK, "tables": tables},
            "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8},
        }


def portfolio(spec: Mapping[str, Any], hosts: list[int], time_limit: float, processes: int) -> dict[str, Any]:
    """Run the study of a model, and return its answer."""
    solver = {**spec.get("solver", {}), "time_limit_seconds": time_limit}
    raw = json.dumps({"kind": "portfolio", "hosts": hosts, "spec": {**spec, "solver": solver}}).encode()
    with tempfile.TemporaryDirectory(prefix="shardplan-") as scratch:
        folder = StudyFolder(Path(scratch))
        library = Library(find_plan=folder.find_plan)
        study = study_of(parse_study(raw), library)
        found = run_study(
            study, folder, library=library, num_processes=processes, form="compact", on_point=lambda *_: None
        )
        return study.answer({key: one.outcome for key, one in found.items()})


def main(arguments: list[str] | None = None) -> int:
    """Plan the portfolios and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--hosts", type=int, nargs="+", default=[16, 15, 14, 12])
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    answers = {}
    for spec in models(options.source):
        answer = portfolio(spec, options.hosts, options.time_limit, options.processes)
        answers[spec["name"]] = answer
        total, without = answer["total_bytes"], answer["independent_bytes"]
        print(f"{spec['name']}: {total / 1e9:,.1f} GB, independent plans {without / 1e9:,.1f} GB")
        print(portfolio_text(answer, width=_WIDTH, currency=""), flush=True)
    if options.json:
        options.json.write_text(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
