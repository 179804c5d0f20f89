"""TorchRec's planner re-made reaches TorchRec's own results."""

import json
from pathlib import Path

import pytest

from benchmarks.inputs.instances import torchrec_family
from benchmarks.peers import torchrec_greedy, torchrec_live
from benchmarks.peers.torchrec_options import read_dump
from planner.orchestration.baselines.torchrec_search import search
from tests.support.thorough import thorough

#: TorchRec 1.8.0's own slowest rank on the dumps, ms, by the order in which it packs tables.
PUBLISHED = {
    "dlrm_dcnv2_8": (4.1733, 4.173),
    "dlrm_dcnv2_16": (8.1164, 8.143),
    "synth_50_16": (16.9402, 13.936),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_equal_to_torchrecs_stored_results(shared: Path, name: str) -> None:
    tables, ranks = read_dump(shared / "torchrec_golden" / f"{name}.options.json.gz")
    by_bytes, by_seconds = PUBLISHED[name]
    assert search(tables, ranks).max_rank_seconds * 1e3 == pytest.approx(by_bytes, abs=5e-5)
    assert search(tables, ranks, sort_by="seconds").max_rank_seconds * 1e3 == pytest.approx(by_seconds, abs=5e-4)


def test_command_plans_dumps(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert torchrec_greedy.main([str(shared / "torchrec_golden" / "dlrm_dcnv2_8.options.json.gz")]) == 0
    assert "4.1733 ms" in capsys.readouterr().out


@thorough
@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("tables", "ranks", "kernels"), [(3, 8, ["fused"]), (12, 16, None), (25, 8, ["fused", "dense"])]
)
def test_equal_to_torchrec_run_here(tables: int, ranks: int, kernels: list[str] | None) -> None:
    pytest.importorskip("torchrec")
    theirs = torchrec_live.plan(torchrec_family(num_tables=tables, num_ranks=ranks, seed=5), kernels=kernels)
    ours = search(theirs.tables, theirs.cluster, packs_all=True)
    assert ours.max_rank_seconds == pytest.approx(theirs.max_rank_seconds, rel=1e-12)
    assert (ours.num_proposals, ours.num_packed) == (theirs.num_proposals, theirs.num_packed)


@pytest.mark.torchrec
@pytest.mark.filterwarnings("ignore")
def test_command_runs_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchrec")
    spec = torchrec_family(num_tables=4, num_ranks=8, seed=0)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert torchrec_live.main([str(tmp_path / "spec.json"), "--kernels", "fused", "--time-limit", "60"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(spec["name"]))
    _, theirs, _, their_packed, ours, _, our_packed = row.split()
    assert (theirs, their_packed) == (ours, our_packed)
