"""The text of nccl-tests becomes rows, or is refused by line."""

import pytest

from benchmarks.inputs.lines import InvalidLine
from benchmarks.inputs.nccl_tests import read_nccl_tests

RANKS = "".join(
    f"#  Rank  {rank} Group  0 Pid 100{rank} on  node{rank // 2} device  {rank % 2} [0x0{rank}] NVIDIA H100\n"
    for rank in range(4)
)
HEAD = """# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
"""
COLUMNS = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
OLD_COLUMNS = "#   size    count   type   redop   time   algbw   busbw  error   time   algbw   busbw  error\n"
TAIL = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 41.2155\n#\n"
A2A = "# nccl-tests version 2.17.8\n# Collective test starting: alltoall_perf\n" + HEAD + RANKS + COLUMNS
LINE = "  1048576   65536   float   none   -1   50.00   20.97   15.73      0    60.00   17.48   13.11    N/A\n"
NOT_IN_PLACE = "           8  2  float  none  -1  10.00  0.00  0.00  0  N/A  N/A  N/A  N/A\n"


def test_lines_become_rows_for_all_ranks() -> None:
    rows = read_nccl_tests(A2A + NOT_IN_PLACE + LINE + TAIL, name="run")
    assert rows.num_rows == 3
    assert rows.numbers("seconds") == pytest.approx([1e-5, 5e-5, 6e-5])
    assert rows.numbers("sent_bytes").tolist() == rows.numbers("received_bytes").tolist() == [8, 2**20, 2**20]
    assert set(rows.text("operation")) == {"all_to_all"}
    assert set(rows.text("device")) == {"NVIDIA H100"}
    assert set(rows.counts("num_ranks")) == {4}
    assert set(rows.counts("ranks_per_host")) == {2}
    assert set(rows.counts("rank")) == {-1}
    assert rows.counts("launch").tolist() == [0, 1, 2]
    assert rows.text("task").tolist() == ["run:1:8", "run:1:1048576", "run:1:1048576"]


@pytest.mark.parametrize(
    ("program", "operation", "sent", "received"),
    [
        ("all_gather_perf", "all_gather", 2**18, 2**20),
        ("reduce_scatter_perf", "reduce_scatter", 2**20, 2**18),
        ("all_reduce_perf", "all_reduce", 2**20, 2**20),
    ],
)
def test_sizes_are_those_of_the_larger_buffer(program, operation, sent, received) -> None:
    text = HEAD + RANKS + COLUMNS + LINE
    rows = read_nccl_tests(text, name="run", program=program)
    assert set(rows.text("operation")) == {operation}
    assert rows.numbers("sent_bytes")[0] == sent
    assert rows.numbers("received_bytes")[0] == received


def test_several_runs_of_a_file_are_preserved_apart() -> None:
    again = A2A.replace("alltoall_perf", "all_reduce_perf").replace(RANKS, "".join(RANKS.splitlines(True)[:2]))
    rows = read_nccl_tests(A2A + LINE + TAIL + again + LINE + TAIL, name="run")
    assert rows.text("operation").tolist() == ["all_to_all"] * 2 + ["all_reduce"] * 2
    assert rows.counts("num_ranks").tolist() == [4, 4, 2, 2]
    assert rows.text("task").tolist() == ["run:1:1048576"] * 2 + ["run:2:1048576"] * 2


def test_old_versions_report_deviations_and_run_all_to_all_in_place_without_a_result() -> None:
    text = HEAD + OLD_COLUMNS
    text += "  1048576  262144  float  sum  50.00  20.97  15.73  2e-06  60.00  17.48  13.11  2e-06\n"
    text += "  1048576  262144  float       52.00  20.97  15.73  0e+00  60.00  17.48  13.11  1e+00\n"
    rows = read_nccl_tests(text, name="run", program="alltoall_perf", num_ranks=8)
    assert rows.numbers("seconds") == pytest.approx([5e-5, 6e-5, 5.2e-5])
    assert set(rows.counts("num_ranks")) == set(rows.counts("ranks_per_host")) == {8}


def test_chatter_tags_and_empty_messages_are_passed_over() -> None:
    chatter = "NCCL version 2.21.5+cuda12.4\nnode0:1:2 [0] NCCL INFO Channel 00/24\n\n"
    empty = "           0  0  float  none  -1  10.00  0.00  0.00  0  9.00  0.00  0.00  N/A\n"
    tagged = "".join("[1,0]<stdout>:" + line for line in (A2A + empty + LINE).splitlines(True))
    assert read_nccl_tests(chatter + tagged, name="run").num_rows == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (A2A + "Segmentation fault\n", "expected size, count, type"),
        (A2A + LINE.replace("50.00", "fast"), 'time out of place, not "fast"'),
        (A2A + LINE.replace("50.00", "nan"), "between 0 and"),
        (A2A + LINE.replace("50.00", "0.00"), "> 0"),
        (A2A + LINE.replace("50.00", "N/A"), "time out of place"),
        (A2A + LINE.replace("15.73      0", "15.73      7"), "wrong results out of place"),
        (A2A + LINE.replace("1048576", "-4"), "size between"),
        (HEAD + RANKS + COLUMNS + LINE, "not known which collective"),
        (A2A.replace("alltoall_perf", "broadcast_perf") + LINE, "of no collective of a training step"),
        (A2A.replace(RANKS, "") + LINE, "say how many ranks ran"),
        (A2A.replace("Rank  2", "Rank  7") + LINE, "lacks a rank"),
        (
            A2A.replace("device  1 [0x03]", "device  1 [0x03]").replace("1003 on  node1", "1003 on  node9") + LINE,
            "every host",
        ),
    ],
)
def test_bad_lines_are_refused_by_number(text, reason) -> None:
    with pytest.raises(InvalidLine, match=f"^line {len(text.splitlines())}: .*{reason}"):
        read_nccl_tests(text, name="run")


def test_unknown_programs_are_refused() -> None:
    with pytest.raises(ValueError, match="expected program"):
        read_nccl_tests("", name="run", program="broadcast_perf")
    assert read_nccl_tests("# nothing\n", name="run").num_rows == 0
