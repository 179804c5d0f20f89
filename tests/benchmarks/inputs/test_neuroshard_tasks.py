"""NeuroShard's tasks: its generator re-made, and specs of them."""

import json
from itertools import islice
from pathlib import Path

import pytest

from api.specs.parse import parse_spec
from benchmarks.inputs import instances, neuroshard_tasks
from benchmarks.inputs.neuroshard_tasks import generated, specs, stored
from planner.pricing.memory.ledger import capacity_bytes

GIB = 1024**3


def test_tasks_by_hand(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "4gpu_maxdim8.txt").write_text("1,0,1 8,4,8\n0 4\n")
    used = {"num_embeddings": 1000, "pooling_factor": 2.5, "reuse_rows_hist": [3, *[0] * 16]}
    unused = {"num_embeddings": 100, "pooling_factor": 0.0, "reuse_rows_hist": [0] * 17}
    (tmp_path / "tables.json").write_text(json.dumps({"tables": [used, unused]}))
    assert stored(tmp_path, max_dim=8) == [[(1, 8), (0, 4), (1, 8)], [(0, 4)]]
    first, second = specs(tmp_path, max_dim=8, num_ranks=16, weight_gib_per_rank=8)
    assert (first["name"], second["name"]) == ("neuroshard-4gpu-dim8-r16-m8-i000", "neuroshard-4gpu-dim8-r16-m8-i001")
    assert [t["embedding_dim"] for t in first["model"]["tables"]] == [8, 4, 8]
    assert ["access" in t for t in first["model"]["tables"]] == [False, True, False]
    assert (first["hardware"]["num_hosts"], first["hardware"]["ranks_per_host"]) == (1, 16)
    # ids: 2.5 x 65536 x 8 bytes; outputs: 4 columns x 65536 x 4 bytes; twice a 16th of both;
    # and 20 copies of a 16th of the ids, which the ledger reserves
    assert second["hardware"]["overrides"]["hbm_bytes"] == 8 * GIB + (2 * (20 + 16) + 20 * 20) * 65536 // 16
    problem = parse_spec(json.dumps(second).encode()).problem
    # what NeuroShard takes for a rank's memory, and the room for buffers, are left after reservations
    assert capacity_bytes(problem).max() == 8 * GIB + 2 * (20 + 16) * 65536 // 16
    for spec in (first, second):
        parse_spec(json.dumps(spec).encode())


def test_tasks_of_other_ranks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="made for 4 or 8 ranks, not 16"):
        next(specs(tmp_path, max_dim=8, num_ranks=16, made_for=16))


@pytest.mark.parametrize("max_dim", [4, 64])
def test_the_generator_makes_the_published_tasks(shared: Path, max_dim: int) -> None:
    folder = shared / "meta_dlrm_2021"
    rows = [table["num_embeddings"] for table in json.loads((folder / "tables.json").read_text())["tables"]]
    assert generated(rows, max_dim=max_dim, num_ranks=4) == stored(folder, max_dim=max_dim)


def test_tasks_for_eight_ranks_keep_the_rule(shared: Path) -> None:
    folder = shared / "meta_dlrm_2021"
    rows = [table["num_embeddings"] for table in json.loads((folder / "tables.json").read_text())["tables"]]
    tasks = generated(rows, max_dim=16, num_ranks=8)
    assert len(tasks) == 100
    assert all(20 <= len(task) < 120 for task in tasks)
    assert max(sum(4 * rows[number] * width for number, width in task) for task in tasks) <= 31 * GIB


@pytest.mark.parametrize("max_dim", neuroshard_tasks.MAX_DIMS)
def test_stored_tasks_become_valid_specs(shared: Path, max_dim: int) -> None:
    for spec in islice(specs(shared / "meta_dlrm_2021", max_dim=max_dim, num_ranks=4), 3):
        parse_spec(json.dumps(spec).encode())


def test_command_writes_all_tasks(shared: Path, tmp_path: Path) -> None:
    given = ["--family", "neuroshard", "--source", str(shared / "meta_dlrm_2021"), "--max-dim", "4", "--ranks", "4"]
    assert instances.main(["--out", str(tmp_path), *given]) == 0
    assert len(list(tmp_path.iterdir())) == 100
