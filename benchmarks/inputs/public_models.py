"""Public models as specs, from data outside the repository: workloads that are described, and outsiders' specs."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.convert_workloads import to_spec

_EXAMPLES = Path(__file__).parents[2] / "examples"
_WIDTH = 128  # of tables whose source gives none, as of the command's default
#: Hosts on which DLRM-DCNv2 is planned, and the example that it is made of.
_DCNV2 = ((1, "dlrm_dcnv2_8"), (2, "dlrm_dcnv2_2x8"), (8, "dlrm_dcnv2_2x8"))


def dcnv2_specs() -> Iterator[dict[str, Any]]:
    """Yield DLRM-DCNv2 on 1, 2 and 8 hosts of eight ranks, with one global batch, named by their shape."""
    for hosts, name in _DCNV2:
        spec = json.loads((_EXAMPLES / f"{name}.json").read_text())
        batch = spec["model"]["batch_size_per_rank"] * spec["hardware"]["num_hosts"] // hosts
        spec["model"]["batch_size_per_rank"] = batch
        spec["hardware"]["num_hosts"] = hosts
        yield _planned(spec, f"dlrm_dcnv2_{hosts}x8")


def workload_specs(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the workloads of a folder that describe tables, as ``convert_workloads.py`` converts them."""
    for path in sorted(folder.glob("*.json")):
        workload = json.loads(path.read_text())
        if isinstance(workload, Mapping) and isinstance(workload.get("tables"), list):
            yield _planned(to_spec(workload, embedding_dim=_WIDTH), path.stem)


def outsiders_specs(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the specs of outsiders' models: files of a folder's folders that hold tables and hardware."""
    for path in sorted((*folder.glob("*/*.json"), *folder.glob("*/*.json.gz"))):
        raw = path.read_bytes()
        spec = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        if isinstance(spec, Mapping) and {"model", "hardware"} <= spec.keys():
            name = path.name.removesuffix(".gz").removesuffix(".json")
            yield _planned(dict(spec), path.parent.name if name == "spec" else f"{path.parent.name}/{name}")


def _planned(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a spec under the name of its file, with what suites read of specs stated."""
    hardware = {"num_hosts": 1, "ranks_per_host": 8, **spec["hardware"]}
    return {**spec, "name": name, "hardware": hardware, "objective": spec.get("objective", "step_time")}
