"""Bytes of every phase against what real TorchRec allocates on gloo."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.plan.step_memory import MemoryPhase, StepMemory
from planner.domain.problem.problem import Problem
from planner.verification.evaluate_placement import score
from tests.support.paths import ROOT
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytest.importorskip("torchrec")

ROWS, BATCH = 20, 1024
#: Before the pooled rows are there, and from the moment when their gradients are.
FORWARD = (MemoryPhase.FORWARD_COMPUTE, MemoryPhase.FORWARD_COMM, MemoryPhase.OUTPUT_CONCAT)
BACKWARD = (MemoryPhase.GRADIENT_SPLIT, MemoryPhase.BACKWARD_COMM, MemoryPhase.BACKWARD_COMPUTE)

Tables = list[tuple[str, int, list[int]]]  # sharding type, columns, ranks

ONE_TYPE: dict[str, tuple[Tables, int]] = {
    "table_wise": ([("table_wise", 256, [0]), ("table_wise", 256, [1])], 2),
    "row_wise": ([("row_wise", 256, []), ("row_wise", 512, [])], 2),
    "data_parallel": ([("data_parallel", 256, [])], 2),
    "table_row_wise": ([("table_row_wise", 256, [0]), ("table_row_wise", 256, [1])], 4),
}
SEVERAL: dict[str, tuple[Tables, int]] = {
    "by columns": ([("column_wise", 256, [0, 1]), ("column_wise", 256, [0, 1])], 2),
    "one rank has all": ([("table_wise", 256, [0]), ("table_wise", 512, [0])], 2),
    "by rows, whole and copied": ([("row_wise", 256, []), ("table_wise", 256, [0]), ("data_parallel", 256, [])], 2),
    "by columns and whole": ([("column_wise", 256, [0, 1]), ("table_wise", 256, [0])], 2),
}


def allocated(tables: Tables, num_ranks: int) -> list[dict[str, float]]:
    case = {
        "batch": BATCH,
        "world_size": num_ranks,
        "ranks_per_host": 2,
        "tables": [
            {"name": f"t{number}", "columns": columns, "sharding_type": scheme, "ranks": ranks}
            for number, (scheme, columns, ranks) in enumerate(tables)
        ],
    }
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.torchrec.step_allocations"],
        input=json.dumps(case),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found: list[dict[str, float]] = json.loads(result.stdout)
    return found


def planned(tables: Tables, num_ranks: int) -> list[StepMemory]:
    problem = make_problem(
        *(make_table(f"t{number}", ROWS, columns, pooling_factor=1.0) for number, (_, columns, _) in enumerate(tables)),
        cluster=make_cluster(num_hosts=num_ranks // 2, ranks_per_host=2),
        batch_size_per_rank=BATCH,
    )
    placement = Placement(
        world_size=num_ranks,
        ranks_per_host=2,
        tables=tuple(
            TablePlacement(
                name=f"t{number}",
                sharding_type=Scheme.from_label(scheme),
                compute_kernel=Kernel.DENSE if scheme == "data_parallel" else Kernel.FUSED,
                shards=shards(problem, scheme, columns, ranks),
            )
            for number, (scheme, columns, ranks) in enumerate(tables)
        ),
    )
    found = [rank.step_memory for rank in score(problem, placement, ROOFLINE).ranks]
    return [one for one in found if one is not None]


def shards(problem: Problem, scheme: str, columns: int, ranks: list[int]) -> Shards:
    """The rectangles that TorchRec makes."""
    everywhere = list(range(problem.world_size))
    width = columns // len(ranks) if scheme == "column_wise" else columns
    if scheme in ("data_parallel", "row_wise"):
        ranks = everywhere
    elif scheme == "table_row_wise":
        ranks = [2 * ranks[0], 2 * ranks[0] + 1]
    height = ROWS // len(ranks) if scheme in ("row_wise", "table_row_wise") else ROWS
    first = np.arange(len(ranks), dtype=np.int64)
    return Shards.of_columns(
        rank=np.array(ranks, dtype=np.int64),
        row_offset=first * height if height < ROWS else 0 * first,
        num_rows=np.full(len(ranks), height, dtype=np.int64),
        column_offset=first * width if width < columns else 0 * first,
        num_columns=np.full(len(ranks), width, dtype=np.int64),
        tier=np.full(len(ranks), Tier.HBM, dtype=np.int64),
    )


def most(memory: StepMemory, phases: tuple[MemoryPhase, ...]) -> float:
    ids = memory.persistent_bytes["input_buffers"]
    return ids + max(sum(memory.buffer_bytes[phase].values()) for phase in phases)


def compared(tables: Tables, num_ranks: int) -> list[tuple[float, float]]:
    """Planned over allocated bytes of every rank and part of a step."""
    pairs: list[tuple[float, float]] = []
    for held, memory in zip(allocated(tables, num_ranks), planned(tables, num_ranks), strict=True):
        dense: Any = memory.buffer_bytes[MemoryPhase.DENSE_FORWARD]["pooled_rows"]
        pairs += [
            (most(memory, FORWARD), held["forward"]),
            (dense + memory.persistent_bytes["input_buffers"], held["dense"]),
            (most(memory, BACKWARD), held["backward"]),
        ]
    return pairs


@pytest.mark.parametrize(
    "name",
    ["table_wise", *(pytest.param(name, marks=thorough) for name in ONE_TYPE if name != "table_wise")],
)
def test_phases_of_one_sharding_type_are_what_is_allocated(name: str) -> None:
    """Lengths and offsets of bags are in no line of the ledger."""
    for expected, held in compared(*ONE_TYPE[name]):
        assert 0.93 * held <= expected <= 1.02 * held


@pytest.mark.parametrize("name", [pytest.param(name, marks=thorough) for name in SEVERAL])
def test_phases_of_other_cuts_are_no_less_than_what_is_allocated(name: str) -> None:
    for expected, held in compared(*SEVERAL[name]):
        assert 0.93 * held <= expected <= 1.55 * held
