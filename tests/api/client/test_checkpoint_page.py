"""The example of the page of checkpoints runs, with a map that the planner made."""

import json
import re
import sys
from pathlib import Path

import pytest

import api.client
from cost_models.vocabulary import Scheme
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.output.reshard.reshard_map import reshard_map
from tests.support.paths import ROOT
from tests.support.planning.builders import make_table
from tests.support.planning.layouts import laid_out
from tests.support.planning.resharding import plan_of

PAGE = ROOT / "docs" / "checkpoints.md"


def test_the_example_lists_what_a_rank_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = make_table("t", rows=40, dim=16)
    before, after = laid_out(table, Scheme.ROW_WISE, num_ranks=8), laid_out(table, Scheme.ROW_WISE)
    found = reshard_map(plan_of(8, before), plan_of(4, after), {"t": OPTIMIZERS["sgd"]})
    (tmp_path / "map.json").write_text(json.dumps(found.to_document()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "shardplan_client", api.client)
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.splitlines() == ["t 6 30 5 0 16", "t 7 35 5 0 16"]
