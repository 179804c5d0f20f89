"""TorchRec 1.8.0's own figures: a small extract next to this file, the full dumps where ``../shared`` is.

``torchrec/instances.json`` has every planning instance with all its tables and what
TorchRec's planner reached on it; ``torchrec/shards.json`` has the bytes and seconds that its
estimators give to every shard of a few tables. The extract is made from the full dumps by
``python -m tests.support.golden.torchrec_golden SOURCE_DIR``, and a test says whether it still is.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cost_models.vocabulary import Kernel, Phase, Scheme
from tests.support import paths

FOLDER = Path(__file__).parent / "torchrec"
SHARED = paths.SHARED / "torchrec_golden"
GIBIBYTE = 1024**3
#: Slowest rank, ms, that TorchRec's planner reached with default settings and 15% reservation.
TORCHREC_MILLISECONDS = {
    "dlrm_dcnv2_8": 4.1733,
    "dlrm_dcnv2_16": 8.1164,
    "synth_50_8": 9.8219,
    "synth_50_16": 16.9402,
    "synth_200_16": 51.7490,
}
INFEASIBLE = "fail_infeasible"
#: Tables whose shards are kept: few rows (some ranks get none), many, narrow, wide, hot, fp16.
PRESERVED_TABLES = {
    "dlrm_dcnv2_8": (0, 5, 7, 11, 12, 20),
    "dlrm_dcnv2_16": (0, 5, 7, 11, 12, 20),
    "synth_50_16": (0, 12, 13, 15, 22, 33, 42),
}
PHASE_OF_PART = {
    "input_dist_comms": Phase.INPUT_COMM,
    "fwd_compute": Phase.FORWARD_COMPUTE,
    "fwd_comms": Phase.FORWARD_COMM,
    "bwd_comms": Phase.BACKWARD_COMM,
    "bwd_compute": Phase.BACKWARD_COMPUTE,
    "prefetch_compute": Phase.PREFETCH,
}
PROVENANCE = {
    "source": "TorchRec 1.8.0: EmbeddingEnumerator with its default estimators, EmbeddingShardingPlanner",
    "settings": "default constants and bandwidths, 15% of memory reserved, no pipeline, SGD, kernels fused and dense",
    "objective": "slowest rank's sum over phases; ids on the way to shards are not counted",
}


@dataclass(frozen=True, slots=True)
class GoldenTable:
    """A table as the instances give it: one feature, sum pooling."""

    name: str
    num_embeddings: int
    embedding_dim: int
    pooling_factor: float
    data_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenInstance:
    """A planning instance and the memory that TorchRec leaves for its tables."""

    name: str
    batch_size_per_rank: int
    num_hosts: int
    ranks_per_host: int
    hbm_bytes: int
    hbm_left_bytes: int | None  # of every rank after reservations, where it was dumped
    torchrec_max_rank_milliseconds: float | None  # None: TorchRec finds no plan
    tables: tuple[GoldenTable, ...]

    def table(self, name: str) -> GoldenTable:
        """The table of this name."""
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True, slots=True)
class GoldenShard:
    """A shard that TorchRec enumerates: bytes of HBM, and seconds by Phase."""

    table: str
    scheme: Scheme
    kernel: Kernel
    num_rows: int
    num_columns: int
    hbm_bytes: int
    seconds: tuple[float, ...]


def golden_instance(name: str) -> GoldenInstance:
    """An instance of the extract; all its tables are there."""
    (found,) = (entry for entry in _document("instances")["instances"] if entry["name"] == name)
    return GoldenInstance(**found | {"tables": tuple(GoldenTable(*row) for row in found["tables"])})


def golden_shards(name: str) -> list[GoldenShard]:
    """Shards of the extract."""
    return [
        GoldenShard(table, Scheme.from_label(scheme), Kernel.from_label(kernel), rows, columns, size, tuple(seconds))
        for table, scheme, kernel, rows, columns, size, *seconds in _document("shards")["instances"][name]
    ]


def full_instance(folder: Path, name: str) -> GoldenInstance:
    """An instance of the full dumps."""
    raw = json.loads((folder / f"{name}.instance.json").read_text())
    dumped = folder / f"{name}.options.json.gz"
    left = set(_dump(dumped)["hbm_cap_bytes"]) if dumped.is_file() else {None}
    (hbm_left_bytes,) = left  # equal ranks
    return GoldenInstance(
        name=name,
        batch_size_per_rank=raw["batch_size"],
        num_hosts=raw["world_size"] // raw["local_world_size"],
        ranks_per_host=raw["local_world_size"],
        hbm_bytes=raw["hbm_gb"] * GIBIBYTE,
        hbm_left_bytes=hbm_left_bytes,
        torchrec_max_rank_milliseconds=TORCHREC_MILLISECONDS.get(name),
        tables=tuple(GoldenTable(**table) for table in raw["tables"]),
    )


def full_shards(folder: Path, name: str) -> list[GoldenShard]:
    """Every fused or dense shard of a full dump, which folds a uniform option into one shard."""
    return [
        GoldenShard(
            table["name"],
            Scheme.from_label(option["sharding_type"]),
            Kernel.from_label(option["kernel"]),
            *shard["size"],
            shard["hbm"],
            tuple(shard["perf_parts"][part] / 1e3 for part in PHASE_OF_PART),
        )
        for table in _dump(folder / f"{name}.options.json.gz")["tables"]
        for option in table["options"]
        if option["kernel"] in ("fused", "dense")
        for shard in option["shards"]
    ]


def preserved_shards(folder: Path, name: str) -> list[GoldenShard]:
    """What the extract keeps of a full dump: the shards of a few tables, equal ones once."""
    tables = full_instance(folder, name).tables
    preserved = {tables[index].name for index in PRESERVED_TABLES[name]}
    return [shard for shard in dict.fromkeys(full_shards(folder, name)) if shard.table in preserved]


def extract(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file of the extract, one table or shard per line."""
    instances = []
    for name in (*TORCHREC_MILLISECONDS, INFEASIBLE):
        found = full_instance(folder, name)
        facts = {field: getattr(found, field) for field in GoldenInstance.__slots__ if field != "tables"}
        rows = [[getattr(table, field) for field in GoldenTable.__slots__] for table in found.tables]
        instances.append(f"{json.dumps(facts)[:-1]},\n {_rows('tables', rows)}}}")
    head = f'{{"provenance": {json.dumps(PROVENANCE)},\n'
    yield (
        "instances",
        f'{head}"columns": {json.dumps(GoldenTable.__slots__)},\n"instances": [\n' + ",\n".join(instances) + "\n]}\n",
    )
    shards = []
    for name in PRESERVED_TABLES:
        rows = [
            [s.table, s.scheme.label, s.kernel.label, s.num_rows, s.num_columns, s.hbm_bytes, *s.seconds]
            for s in preserved_shards(folder, name)
        ]
        shards.append(_rows(name, rows))
    columns = [*GoldenShard.__slots__[:-1], *(f"{phase.label}_seconds" for phase in PHASE_OF_PART.values())]
    yield (
        "shards",
        f'{head}"columns": {json.dumps(columns)},\n"instances": {{\n' + ",\n".join(shards) + "\n}}\n",
    )


def _rows(name: str, rows: list[list[Any]]) -> str:
    return f'"{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n]"


def _document(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def _dump(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


if __name__ == "__main__":
    for file, text in extract(Path(sys.argv[1])):
        (FOLDER / f"{file}.json").write_text(text)
