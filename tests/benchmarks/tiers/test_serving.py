"""The rule that plans of serving hosts are compared with, and the comparison on a small model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api.specs.parse import parse_spec
from benchmarks.tiers.serving import WAYS, by_lookups, main, rows, served_spec
from planner.verification.verify import verify
from tests.support.planning.builders import make_table
from tests.support.planning.serving_problems import cards, serving_problem


def test_most_lookups_first_where_fewest_are() -> None:
    """Lookups 9, 7, 6 and 5 on two cards: 9; 7; 6 next to 7; 5 next to 9."""
    tables = [make_table(name, pooling_factor=n) for name, n in (("a", 5.0), ("b", 9.0), ("c", 6.0), ("d", 7.0))]
    problem = serving_problem(*tables, cluster=cards(2))
    found = by_lookups(problem)
    assert found is not None
    assert not verify(problem, found)
    assert [int(table.shards.rank[0]) for table in found.tables] == [0, 0, 1, 1]


def test_a_full_card_is_passed_over() -> None:
    """Two tables of 256,000 bytes and more, and room for little more than one on each card."""
    tables = [make_table("a", pooling_factor=9.0), make_table("b", pooling_factor=0.1), make_table("c", 500)]
    problem = serving_problem(*tables, cluster=cards(2, hbm_bytes=450_000.0))
    found = by_lookups(problem)
    assert found is not None
    assert not verify(problem, found)
    assert by_lookups(replace(problem, cluster=cards(1, hbm_bytes=450_000.0))) is None


def workload() -> dict[str, Any]:
    table = {"num_embeddings": 100_000, "embedding_dim": 64}
    factors = (40.0, 10.0, 10.0, 1.0)
    tables = [{"name": f"t{i}", "pooling_factor": factor, **table} for i, factor in enumerate(factors)]
    return {"name": "small", "batch_size": 60, "weights_precision": "int8", "tables": tables}


def test_more_ways_are_never_worse_and_none_is_worse_than_the_rule() -> None:
    spec = served_spec(workload(), profile="inference-6card-m2", ranks=3, data_type=None, samples=None, limit=2.0)
    found = {row.who: row for row in rows(parse_spec(json.dumps(spec).encode()))}
    assert list(found) == ["rule", *WAYS]
    seconds = [row.evaluation.objective_seconds for row in found.values() if row.evaluation is not None]
    assert len(seconds) == 4
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] < seconds[0]  # one table has most of the lookups: replicas or pieces help


def test_a_folder_without_inference_models_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shared", str(tmp_path)]) == 1
    assert "no inference workload" in capsys.readouterr().err
