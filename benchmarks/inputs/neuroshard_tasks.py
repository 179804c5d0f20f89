"""The benchmark tasks of NeuroShard as specs.

A task is a list of tables of Meta's data set of 2021 (856 tables; a table may come twice) with
a width each. The 600 tasks made for 4 ranks (100 for each greatest width) are stored, one line
each: table numbers, then widths. Those for 8 ranks come from the same generator under its rule
for the total size. Either can be put on any number of ranks, so that more ranks can be seen to be
no worse. All ranks share one host, as NeuroShard knows of one fabric only.

References
----------
daochenzha/neuroshard (MIT) at 06aaa2b: ``tools/gen_tasks.py`` (seed 0, 100 tasks, 10 to 59
tables of at most 15 GiB = 4 x 4 - 1 in all), ``neuroshard/utils.py`` (fp32 weights only) and
``eval_simulator.py`` (4 GiB per rank). Batches of 65,536: ``collect_compute_cost_data.py``.
Zha et al., "Pre-train and Search: Efficient Embedding Table Sharding with Pre-trained Neural Cost
Models" (MLSys 2023): 20 to 119 tables on 8 ranks.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cost_models.hardware.profiles_loader import load_profile
from planner.domain.problem.problem import Reservation

MAX_DIMS = (4, 8, 16, 32, 64, 128)
RANKS_MADE_FOR = (4, 8)
TABLE_RANGE = {4: (10, 60), 8: (20, 120)}  # by ranks; upper end not included
NUM_TASKS = 100
GIBIBYTE = 1024**3
WEIGHT_GIB_PER_RANK = 4
BATCH_OF_ALL_RANKS = 65_536
ELEMENT_BYTES, ID_BYTES = 4, 8
PROFILE = "dgx-a100-80g"  # speeds of one host, whatever the number of ranks
#: Buffers are memory too, and NeuroShard counts none: room for this many times a rank's fair share.
BUFFER_ROOM = 2.0

Task = list[tuple[int, int]]  # (number in the data set, width) of each table


def stored(folder: Path, *, max_dim: int) -> list[Task]:
    """Read the tasks for 4 ranks of one greatest width."""
    tasks = []
    for line in (folder / "tasks" / f"4gpu_maxdim{max_dim}.txt").read_text().splitlines():
        numbers, widths = ([int(part) for part in field.split(",")] for field in line.split())
        tasks.append(list(zip(numbers, widths, strict=True)))
    return tasks


def generated(table_rows: list[int], *, max_dim: int, num_ranks: int) -> list[Task]:
    """Draw the tasks for 4 or 8 ranks as NeuroShard's generator does.

    ``table_rows``: rows of the data set's tables, in its order. For 4 ranks the result equals
    the stored files. Tasks are drawn until one is small enough, which takes minutes for
    8 ranks and a greatest width of 128.
    """
    # numpy's legacy stream, which is frozen: the published tasks are its draws from seed 0.
    random = np.random.RandomState(0)
    dims = [max_dim]
    while dims[-1] // 2 % 4 == 0:
        dims.append(dims[-1] // 2)
    rows, most_bytes = np.array(table_rows), (WEIGHT_GIB_PER_RANK * num_ranks - 1) * GIBIBYTE
    tasks: list[Task] = []
    for _ in range(NUM_TASKS):
        num_tables = random.randint(*TABLE_RANGE[num_ranks])
        while True:
            numbers = random.randint(len(rows), size=num_tables)
            widths = random.choice(dims, size=num_tables)
            if ELEMENT_BYTES * int((rows[numbers] * widths).sum()) <= most_bytes:
                break
        tasks.append(list(zip(numbers.tolist(), widths.tolist(), strict=True)))
    return tasks


def to_spec(
    name: str, tables: list[dict[str, Any]], task: Task, *, num_ranks: int, weight_gib_per_rank: int
) -> dict[str, Any]:
    """Make a spec of one task; ``tables`` are the data set's, with rows, pooling factor, histogram."""
    ids = sum(tables[number]["pooling_factor"] for number, _ in task) * BATCH_OF_ALL_RANKS
    outputs = sum(width for _, width in task) * BATCH_OF_ALL_RANKS
    buffers_per_rank = (ids * ID_BYTES + outputs * ELEMENT_BYTES) / num_ranks
    # The ledger takes copies of a local batch's ids off every rank; NeuroShard knows of none.
    reserved_per_rank = Reservation().input_copies * ids * ID_BYTES / num_ranks
    numbers = load_profile(PROFILE).numbers
    return {
        "schema_version": 1,
        "name": name,
        "model": {
            "batch_size_per_rank": BATCH_OF_ALL_RANKS // num_ranks,
            "pipeline": "none",
            "tables": [_table(f"t{position}", tables[number], width) for position, (number, width) in enumerate(task)],
        },
        "hardware": {
            "profile": "custom",
            "num_hosts": 1,
            "ranks_per_host": num_ranks,
            "overrides": {
                "hbm_bytes": weight_gib_per_rank * GIBIBYTE + round(BUFFER_ROOM * buffers_per_rank + reserved_per_rank),
                "hbm_bytes_per_second": numbers["hbm_bytes_per_second"].value,
                "intra_host_bytes_per_second": numbers["intra_host_bytes_per_second"].value,
            },
        },
        "constraints": {"reserved_hbm_fraction": 0.0},
        "objective": "max_rank_time",
        "cost_model": "roofline",
        "solver": {"partitioner": "portfolio", "time_limit_seconds": 1.0, "relative_gap": 0.0},
    }


def specs(
    folder: Path,
    *,
    max_dim: int,
    num_ranks: int,
    made_for: int = 4,
    weight_gib_per_rank: int = WEIGHT_GIB_PER_RANK,
) -> Iterator[dict[str, Any]]:
    """Yield the specs of 100 tasks, made for 4 or 8 ranks and placed on ``num_ranks``.

    ``folder`` holds ``tables.json`` and, for the tasks made for 4 ranks, ``tasks/``.

    Raises
    ------
    ValueError
        ``made_for`` is neither 4 nor 8.
    """
    if made_for not in RANKS_MADE_FOR:
        raise ValueError(f"NeuroShard's tasks are made for 4 or 8 ranks, not {made_for}")
    tables = json.loads((folder / "tables.json").read_text())["tables"]
    if made_for == 4:
        tasks = stored(folder, max_dim=max_dim)
    else:
        rows = [table["num_embeddings"] for table in tables]
        tasks = generated(rows, max_dim=max_dim, num_ranks=made_for)
    family = f"neuroshard-{made_for}gpu-dim{max_dim}-r{num_ranks}-m{weight_gib_per_rank}"
    for index, task in enumerate(tasks):
        yield to_spec(
            f"{family}-i{index:03}", tables, task, num_ranks=num_ranks, weight_gib_per_rank=weight_gib_per_rank
        )


def _table(name: str, table: dict[str, Any], width: int) -> dict[str, Any]:
    entry = {
        "name": name,
        "num_embeddings": table["num_embeddings"],
        "embedding_dim": width,
        "data_type": "fp32",
        "optimizer": "sgd",
        "pooling_factor": table["pooling_factor"],
    }
    if any(table["reuse_rows_hist"]):
        entry["access"] = {"reuse_histogram": [float(count) for count in table["reuse_rows_hist"]]}
    return entry
