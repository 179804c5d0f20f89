"""NeuroShard's cost files become rows, or are refused by line."""

import numpy as np
import pytest

from benchmarks.inputs.lines import InvalidLine
from benchmarks.inputs.neuroshard_measurements import TableFacts, read_exchanges, read_lookups, table_facts

EXCHANGES = "dim_sums,start_ms,fw_ms,bw_ms\n132 68,14 3,33.5 44.5,32.5 31\n4 8,0 0,1 1,2 2\n"
LOOKUPS = "table_ids,dims,cost_ms\n1 0,32 16,32.5\n0,8,4\n"
REUSE = (0.5, 0.25, 0.25, *[0.0] * 14)
TABLES = (
    TableFacts(rows=100, lookups=1000.0, distinct_rows=50.0, reuse=REUSE),
    TableFacts(rows=200, lookups=500.0, distinct_rows=20.0, reuse=REUSE),
)


def test_each_rank_of_each_direction_is_a_row() -> None:
    rows = read_exchanges(EXCHANGES, name="comm_2", first_launch=10)
    assert rows.num_rows == 8
    assert rows.counts("launch").tolist() == [10, 10, 11, 11, 12, 12, 13, 13]
    assert rows.text("task").tolist() == ["comm_2:0"] * 4 + ["comm_2:1"] * 4
    assert rows.text("direction").tolist() == ["forward"] * 2 + ["backward"] * 2 + ["forward"] * 2 + ["backward"] * 2
    assert set(rows.counts("num_ranks")) == set(rows.counts("ranks_per_host")) == {2}
    assert rows.numbers("seconds")[:4] == pytest.approx([0.0335, 0.0445, 0.0325, 0.031])
    own = np.array([132, 68]) * 65536 * 4.0
    assert rows.numbers("sent_bytes")[:4] == pytest.approx([*own, own.mean(), own.mean()])
    assert rows.numbers("received_bytes")[:4] == pytest.approx([own.mean(), own.mean(), *own])
    assert rows.numbers("start_seconds")[:2] == pytest.approx([0.014, 0.003])
    assert np.isnan(rows.numbers("start_seconds")[2:4]).all()


def test_each_table_of_a_launch_is_a_row() -> None:
    rows = read_lookups(LOOKUPS, TABLES, num_ranks=4, name="compute_4")
    assert rows.counts("launch").tolist() == [0, 0, 1]
    assert rows.text("table").tolist() == ["t001", "t000", "t000"]
    assert rows.counts("shard_rows").tolist() == [200, 100, 100]
    assert rows.counts("shard_columns").tolist() == [32, 16, 8]
    assert rows.numbers("lookups").tolist() == [500, 1000, 1000]
    assert rows.numbers("distinct_rows").tolist() == [20, 50, 50]
    assert rows.numbers("seconds") == pytest.approx([0.0325, 0.0325, 0.004])
    assert rows.numbers("reuse_1").tolist() == [0.25] * 3
    assert set(rows.counts("num_ranks")) == {4}


def test_facts_come_from_both_descriptions_of_tables() -> None:
    shares = {f"bin_{i}": share for i, share in enumerate(REUSE)}
    ours = {
        "num_embeddings": 100,
        "pooling_factor": 2.0,
        "lookups_per_batch": 131072,
        "unique_rows_per_batch": 8,
        "reuse_rows_hist": [4, 2, 2, *[0] * 14],
    }
    theirs, own = table_facts([{"row": 100, "pooling_factor": 2.0} | shares, ours])
    assert theirs.rows == own.rows == 100
    assert theirs.lookups == own.lookups == 131072
    assert theirs.reuse == own.reuse == REUSE
    assert np.isnan(theirs.distinct_rows)
    assert own.distinct_rows == 8
    with pytest.raises(ValueError, match="table 1: expected pooling_factor"):
        table_facts([ours, {"row": 1} | shares])
    with pytest.raises(ValueError, match="table 0: expected reuse_rows_hist"):
        table_facts([{"num_embeddings": 1}])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "expected the header"),
        ("dim_sums,fw_ms\n", 1, "expected the header"),
        (EXCHANGES + "1 2,0 0,1 1\n", 4, "expected 4 fields, not 3"),
        (EXCHANGES + "1 2,0 0,1,1 1\n", 4, "expected 2 numbers in fw_ms, not 1"),
        (EXCHANGES + "1 x,0 0,1 1,1 1\n", 4, 'not "x"'),
        (EXCHANGES + "1 nan,0 0,1 1,1 1\n", 4, "between 0 and"),
        (EXCHANGES + "1 2,0 -1,1 1,1 1\n", 4, "between 0 and"),
        (EXCHANGES + "1 2,0 0,1 0,1 1\n", 4, "every time to be > 0"),
        (EXCHANGES + "1,0,1,1\n", 4, "two ranks"),
        (EXCHANGES + ",,,\n", 4, "1 to 4096 numbers"),
    ],
)
def test_bad_lines_of_exchanges_are_refused(text, line, reason) -> None:
    with pytest.raises(InvalidLine, match=reason) as refused:
        read_exchanges(text, name="comm")
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ("2,8,4\n", "table ids below 2"),
        ("0.5,8,4\n", "table ids below 2"),
        ("0,8 8,4\n", "expected 1 numbers in dims, not 2"),
        ("0,0.5,4\n", "whole number"),
        ("0,8,0\n", "cost_ms > 0"),
    ],
)
def test_bad_lines_of_lookups_are_refused(added, reason) -> None:
    with pytest.raises(InvalidLine, match=f"^line 4: .*{reason}"):
        read_lookups(LOOKUPS + added, TABLES, num_ranks=4, name="compute")
