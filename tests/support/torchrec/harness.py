"""Runs cases with real TorchRec and compares them with the unsharded model."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from tests.support.paths import ROOT
from tests.support.torchrec.model import TableSpec, initial_weights
from tests.support.torchrec.reference import Trained, train_unsharded
from tests.support.torchrec.shakes import Shake

TIMEOUT_SECONDS = 300
#: fp32 training against float64: a few steps of sums of a few dozen terms of order one.
TOLERANCE = 1e-5
#: A table that did not move this far proves nothing.
LEAST_MOVE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model, a plan for it, and the optimizer of its tables."""

    name: str
    tables: Sequence[TableSpec]
    plan: Mapping[str, object]
    optimizer: str
    unchecked: bool = False  # go round the client's checks
    fully_sharded: bool = False  # sharding groups free their weights between lookups and updates
    averages: bool = True  # sharding groups are averaged after each step
    fused_only: bool = False  # the launcher leaves all tables to the optimizer of the fused kernels
    timed: Mapping[str, object] | None = (
        None  # settings of PhaseTimes, and what is odd; see tests.support.torchrec.timings
    )


@dataclass(slots=True, kw_only=True)
class Difference:
    """How far the sharded training ended from the unsharded one."""

    losses: float  # relative
    dense: float
    tables: dict[str, float]
    moves: dict[str, float]  # largest change of a weight of the table over the training
    misplaced: list[str] = field(default_factory=list)  # shards that are not where the plan says
    uncut: dict[str, float] = field(default_factory=dict)  # the same of whole tables that the plan puts nowhere

    @property
    def largest(self) -> float:
        """Of losses, dense weights and table weights."""
        return max(self.losses, self.dense, *self.tables.values())


def run_cases(
    cases: Sequence[Case],
    *,
    world_size: int,
    ranks_per_host: int,
    folder: Path,
    pod_size: int | None = None,
    shakes: Sequence[Shake] = (),
    pipelines: Mapping[str, bool] | None = None,
) -> dict[str, Difference]:
    """Train all cases in one set of processes; returns the difference of each.

    With ``pod_size`` TorchRec is told to take so many ranks of several hosts for one host.

    What the ranks come to in each handshake, and what they timed, is in ``folder/NAME.RANK.json``; see
    :func:`outcomes`.
    """
    job = {
        "world_size": world_size,
        "ranks_per_host": ranks_per_host,
        "pod_size": pod_size,
        "out": str(folder),
        "cases": [asdict(case) for case in cases],
        "shakes": [one.document() for one in shakes],
        "pipelines": pipelines or {},  # whether they are timed, by name
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    # DMPCollection asserts that devices are GPUs; nothing else of it needs one.
    without_asserts = ["-O"] if any("replica_groups" in case.plan for case in cases) else []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [sys.executable, *without_asserts, "-m", "tests.support.torchrec.ranks", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"the ranks failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
    return {case.name: compare(case, range(world_size), world_size, folder) for case in cases}


def outcomes(name: str, world_size: int, folder: Path) -> list[dict[str, object]]:
    """What every rank came to in a handshake, or timed."""
    return [json.loads((folder / f"{name}.{rank}.json").read_text()) for rank in range(world_size)]


def compare(case: Case, ranks: Sequence[int], world_size: int, folder: Path) -> Difference:
    """Compare what some of the job's ranks wrote, those of the plan, with the reference, shard by shard of the plan."""
    whole = {table.name: [(0, table.columns)] for table in case.tables}
    expected = train_unsharded(case.tables, world_size, case.optimizer, whole | column_pieces(case.plan))
    results = [dict(np.load(folder / f"{case.name}.{rank}.npz")) for rank in range(world_size)]
    losses = np.mean([result.pop("losses") for result in results], axis=0)
    dense = [result.pop("dense") for result in results]
    results = [results[rank] for rank in ranks]
    initial = initial_weights(case.tables)
    difference = Difference(
        losses=float(np.abs(losses / expected.losses - 1).max()),
        dense=max(float(np.abs(part - expected.dense).max()) for part in dense),
        tables={},
        moves={name: float(np.abs(expected.tables[name] - initial[name]).max()) for name in initial},
    )
    slots = {table.name: table.slots for table in case.tables}
    for table in case.plan["tables"]:
        if slots[table["name"]]:
            _compare_slots(table, slots[table["name"]], results, expected, difference)
        else:
            _compare_table(table, results, expected, difference)
    for rank, left in enumerate(results):
        for key, part in left.items():
            difference.misplaced.append(f"rank {rank}: {key}")
            table = expected.tables[key.split("/")[0]]
            if part.shape == table.shape:
                difference.uncut[f"rank {rank}: {key}"] = float(np.abs(part - table).max())
    return difference


def column_pieces(plan: Mapping[str, object]) -> dict[str, list[tuple[int, int]]]:
    """(offset, width) of the column pieces of every table."""
    return {
        table["name"]: sorted({(s["column_offset"], s["num_columns"]) for s in table["shards"]})
        for table in plan["tables"]
    }


def _compare_slots(table: dict, num_slots: int, results: list[dict], expected: Trained, difference: Difference) -> None:
    """Compare the row of every id, whatever slot it got; each id has one slot on one rank."""
    whole, name = expected.tables[table["name"]], table["name"]
    seen, held, largest = np.zeros(len(whole), dtype=int), 0, 0.0
    for shard in table["shards"]:
        part = results[shard["rank"]].pop(f"{name}/{shard['row_offset']}/0", None)
        rows = results[shard["rank"]].pop(f"ids/{name}", None)
        if part is None or rows is None or part.shape != (shard["num_rows"], shard["num_columns"]):
            difference.misplaced.append(f"rank {shard['rank']}: {name} is not there, or not of its size")
            continue
        held += len(part)
        some = rows >= 0
        np.add.at(seen, rows[some], 1)
        if some.any():
            largest = max(largest, float(np.abs(part[some] - whole[rows[some]]).max()))
    if held != num_slots or seen.max(initial=0) > 1 or seen.sum() < len(whole) // 2:
        difference.misplaced.append(f"{name}: {held} slots, {seen.sum()} of {len(whole)} ids have one")
    difference.tables[name] = largest


def _compare_table(table: dict, results: list[dict], expected: Trained, difference: Difference) -> None:
    """Take every shard of the plan out of the results and compare it; what is left is misplaced."""
    whole = expected.tables[table["name"]]
    covered = np.zeros(whole.shape, dtype=bool)
    largest = 0.0
    for shard in table["shards"]:
        row, column = shard["row_offset"], shard["column_offset"]
        key = f"{table['name']}/{row}/{column}"
        part = results[shard["rank"]].get(key)
        if part is None or part.shape != (shard["num_rows"], shard["num_columns"]):
            difference.misplaced.append(f"rank {shard['rank']}: {key} is not there, or not of its size")
            continue
        del results[shard["rank"]][key]
        cells = (slice(row, row + part.shape[0]), slice(column, column + part.shape[1]))
        covered[cells] = True
        if part.size == 0:
            continue
        largest = max(largest, float(np.abs(part - whole[cells]).max()))
    if not covered.all():
        difference.misplaced.append(f"{table['name']}: {int((~covered).sum())} weights are on no rank")
    difference.tables[table["name"]] = largest
