"""TorchRec's plans and what becomes of them, as the benchmark tells it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from benchmarks.peers.improve_torchrec import improved
from tests.support.thorough import thorough

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore::FutureWarning")]


@thorough
def test_what_is_found_is_no_worse_than_torchrecs_plan_and_no_better_than_the_bound(examples: Path) -> None:
    spec = json.loads((examples / "dlrm_dcnv2_8.json").read_text())
    spec["model"]["tables"] = spec["model"]["tables"][5:15]
    found = improved(spec, time_limit_seconds=1.0, torchrec_limit_seconds=60)
    assert found.num_violations == 0
    assert found.given_seconds is not None
    assert 0 < found.bound_seconds <= found.found_seconds <= found.given_seconds
    less = 1 - found.found_seconds / found.given_seconds
    assert f"{less:.2%}" in found.line()
