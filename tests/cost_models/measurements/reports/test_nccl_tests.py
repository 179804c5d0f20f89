"""Logs of nccl-tests and rccl-tests, as people keep them, become rows, or are refused with the numbers."""

import re
from pathlib import Path

import pytest

from cost_models.errors import InvalidMeasurements
from cost_models.measurements.files import read_report
from cost_models.measurements.reports.nccl_tests import read_nccl_tests
from cost_models.measurements.reports.report import Stated
from tests.support.paths import SHARED

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
STARTING = "# nccl-tests version 2.17.8 nccl-headers=22902\n# Collective test starting: alltoall_perf\n"
A2A = STARTING + HEAD + RANKS + COLUMNS
LINE = "  1048576   65536   float   none   -1   50.00   20.97   15.73      0    60.00   17.48   13.11    N/A\n"
NOT_IN_PLACE = "           8  2  float  none  -1  10.00  0.00  0.00  0  N/A  N/A  N/A  N/A\n"
#: Of 4 ranks: an all-reduce by its ratio of 1.5, and a reduce-scatter by 0.75 and its sums.
ALL_REDUCE = "  1048576   262144   float   sum   -1   50.00   20.97   31.46      0    60.00   17.48   26.22    0\n"
REDUCE_SCATTER = "  1048576   65536   float   sum   -1   50.00   20.97   15.73      0    60.00   17.48   13.11    0\n"
REDUCE = "  1048576   262144   float   sum   0   50.00   20.97   20.97      0    60.00   17.48   17.48    0\n"
NAMELESS = HEAD + RANKS + COLUMNS


def refusal(text: str, name: str = "run", stated: Stated | None = None) -> str:
    with pytest.raises(InvalidMeasurements) as caught:
        read_nccl_tests(text, name=name, stated=stated or Stated())
    return str(caught.value)


def test_lines_become_rows_for_all_ranks() -> None:
    report = read_nccl_tests(A2A + NOT_IN_PLACE + LINE + TAIL, name="run.log")
    rows = report.rows
    assert rows.num_rows == 3
    assert rows.numbers("seconds") == pytest.approx([1e-5, 5e-5, 6e-5])
    assert rows.numbers("sent_bytes").tolist() == rows.numbers("received_bytes").tolist() == [8, 2**20, 2**20]
    assert set(rows.text("operation")) == {"all_to_all"}
    assert set(rows.text("device")) == {"NVIDIA H100"}
    assert set(rows.text("library")) == {"nccl-tests 2.17.8"}
    assert set(rows.counts("num_ranks")) == {4}
    assert set(rows.counts("ranks_per_host")) == {2}
    assert set(rows.counts("rank")) == {-1}
    assert rows.counts("launch").tolist() == [0, 1, 2]
    assert rows.text("task").tolist() == ["run.log:1:8", "run.log:1:1048576", "run.log:1:1048576"]
    assert report.read == (
        "line 14: all_to_all of 4 ranks, 2 per host (by the list of devices), 3 rows; operation by the log",
    )
    assert report.left_out == ()


@pytest.mark.parametrize(
    ("program", "line", "operation", "sent", "received"),
    [
        ("all_gather_perf", LINE, "all_gather", 2**18, 2**20),
        ("reduce_scatter_perf", REDUCE_SCATTER, "reduce_scatter", 2**20, 2**18),
        ("all_reduce_perf", ALL_REDUCE, "all_reduce", 2**20, 2**20),
    ],
)
def test_sizes_are_those_of_the_larger_buffer(program, line, operation, sent, received) -> None:
    rows = read_nccl_tests(A2A.replace("alltoall_perf", program) + line, name="run").rows
    assert set(rows.text("operation")) == {operation}
    assert rows.numbers("sent_bytes")[0] == sent
    assert rows.numbers("received_bytes")[0] == received


def test_several_runs_of_a_file_are_preserved_apart() -> None:
    again = A2A.replace("alltoall_perf", "all_reduce_perf") + ALL_REDUCE + TAIL
    rows = read_nccl_tests(A2A + LINE + TAIL + again, name="run").rows
    assert rows.text("operation").tolist() == ["all_to_all"] * 2 + ["all_reduce"] * 2
    assert rows.text("task").tolist() == ["run:1:1048576"] * 2 + ["run:2:1048576"] * 2


def test_a_run_of_no_training_step_is_left_out_and_listed() -> None:
    broadcast = A2A.replace("alltoall_perf", "sendrecv_perf") + ALL_REDUCE.replace("31.46", "20.97").replace(
        "26.22", "17.48"
    )
    report = read_nccl_tests(A2A + LINE + TAIL + broadcast, name="run")
    assert set(report.rows.text("operation")) == {"all_to_all"}
    assert len(report.left_out) == 1
    assert "sendrecv" in report.left_out[0]


@pytest.mark.parametrize(
    "prefix",
    [
        "0: ",
        "[1,0]<stdout>:",
        "[1,0]<stdout>: ",
        "[rank0]: ",
        "worker-0  | ",
        "node-17.cluster: ",
        "2026-11-25T10:00:00.123456Z ",
        "[2026-11-25 10:00:00,123] INFO - ",
        "\x1b[36m0: \x1b[0m",
    ],
)
def test_prefixes_of_launchers_are_passed_over(prefix: str) -> None:
    text = "".join(prefix + line for line in (A2A + LINE + TAIL).splitlines(True))
    report = read_nccl_tests("+ srun --label --mpi=pmix bash run.sh\n" + text, name="x")
    assert report.rows.num_rows == 2
    assert set(report.rows.text("device")) == {"NVIDIA H100"}


def test_a_tag_in_the_middle_of_a_line_is_passed_over() -> None:
    line = LINE.replace("-1   50.00", "-1[1,0]<stdout>:   50.00").replace("0    60.00", "0[1,0]<stdout>:  60.00")
    assert read_nccl_tests(A2A + line, name="x").rows.numbers("seconds") == pytest.approx([5e-5, 6e-5])


def test_processes_that_print_at_the_same_time_do_not_mix() -> None:
    one_host = HEAD + "".join(RANKS.splitlines(True)[:2]) + COLUMNS
    first = ["0: " + line for line in (one_host + REDUCE_SCATTER.replace("15.73", "10.49").replace("13.11", "8.74")
                                       .replace("65536", "131072")).splitlines(True)]  # fmt: skip
    second = ["1: " + line for line in (A2A + LINE).splitlines(True)]
    mixed = [line for pair in zip(first, second, strict=False) for line in pair] + second[len(first) :]
    rows = read_nccl_tests("".join(mixed), name="x").rows
    assert rows.text("operation").tolist() == ["reduce_scatter"] * 2 + ["all_to_all"] * 2
    assert rows.counts("num_ranks").tolist() == [2, 2, 4, 4]


def test_rccl_tests_has_lines_of_its_own() -> None:
    text = STARTING.partition("\n")[2] + HEAD.replace("# Using", "rccl-tests: Version develop:33cc4df\n# Using")
    text += RANKS.replace("Group  0 ", "").replace("NVIDIA H100", "AMD Instinct MI300X") + (
        "RCCL version : 2.27.7-develop:29e1567\nHIP version  : 7.0.51831\nROCm version : 7.0.1.0\n"
        "Hostname     : node0\nLibrccl path : /opt/rocm/lib/librccl.so.1\n"
    )
    rows = read_nccl_tests(text + COLUMNS + LINE + TAIL, name="x").rows
    assert set(rows.text("implementation")) == {"rccl"}
    assert set(rows.text("library")) == {"rccl-tests develop:33cc4df"}
    assert set(rows.text("device")) == {"AMD Instinct MI300X"}


def test_preambles_warnings_and_empty_messages_are_passed_over() -> None:
    chatter = "Pulling container image ...\nNCCL version 2.21.5+cuda12.4\nnode0:1:2 [0] NCCL INFO Channel 00/24\n\n"
    chatter += "Warning: 3 ranks have no InfiniBand\n"
    empty = "           0  0  float  none  -1  10.00  0.00  0.00  0  9.00  0.00  0.00  N/A\n"
    report = read_nccl_tests(chatter + A2A + chatter + empty + chatter + LINE + chatter, name="run")
    assert report.rows.num_rows == 2
    assert report.left_out == ()


def test_columns_that_a_log_may_lack() -> None:
    no_redop_no_root = LINE.replace("   none   -1", "")
    one_way = " ".join(LINE.split()[:9]) + "\n"
    text = A2A + no_redop_no_root + one_way
    assert read_nccl_tests(text, name="x").rows.numbers("seconds") == pytest.approx([5e-5, 6e-5, 5e-5])


def test_old_versions_report_deviations_and_run_all_to_all_in_place_without_a_result() -> None:
    text = HEAD + RANKS + OLD_COLUMNS
    text += "  1048576  65536  float       52.00  20.97  15.73  2e-06  60.00  17.48  13.11  1e+00\n"
    report = read_nccl_tests(text, name="old_alltoall.log")
    assert report.rows.numbers("seconds") == pytest.approx([5.2e-5])
    assert report.left_out == ("line 9: the collective gave wrong results in place (1)",)


def test_what_cannot_be_used_is_left_out_by_line() -> None:
    cut = "  2097152   131072   float   none   -1   50.00   20.9\n"
    text = A2A + LINE + cut + LINE.replace("50.00", "fast") + LINE.replace("15.73      0", "15.73      7")
    report = read_nccl_tests(text, name="run")
    assert report.rows.num_rows == 3
    assert [reason.partition(": ")[0] for reason in report.left_out] == ["line 15", "line 16", "line 17"]
    assert "it was cut" in report.left_out[0]
    assert 'time out of place, not "fast"' in report.left_out[1]
    assert "wrong results out of place (7)" in report.left_out[2]


@pytest.mark.parametrize(
    ("line", "name", "stated", "operation"),
    [
        (ALL_REDUCE, "run", Stated(), "all_reduce"),
        (REDUCE_SCATTER, "run", Stated(), "reduce_scatter"),
        (LINE, "h100-all_gather.txt", Stated(), "all_gather"),
        (LINE, "h100-alltoall.txt", Stated(), "all_to_all"),
        (LINE, "run", Stated(operation="all_gather"), "all_gather"),
        (LINE, "h100-alltoall.txt", Stated(operation="all_gather"), "all_gather"),  # a person goes before a name
    ],
)
def test_the_operation_comes_from_the_numbers_the_name_or_a_person(line, name, stated, operation) -> None:
    rows = read_nccl_tests(NAMELESS + line, name=name, stated=stated).rows
    assert set(rows.text("operation")) == {operation}


def test_the_command_line_before_a_run_names_its_operation() -> None:
    command = "+ srun --ntasks-per-node=1 alltoall_perf_mpi -b 2K -e 8K -f 2 -t 8 -d uint\n"
    assert set(read_nccl_tests(command + NAMELESS + LINE, name="run").rows.text("operation")) == {"all_to_all"}


@pytest.mark.parametrize(
    ("text", "name", "stated", "reason"),
    [
        (NAMELESS + LINE, "run", Stated(), r"busbw / algbw 0.75\d* of 4 ranks .* fit all_to_all, all_gather"),
        (A2A + ALL_REDUCE, "run", Stated(), "all_to_all, whose .* 4 ranks is 0.75; the log has .* 1.5, .*all_red"),
        (NAMELESS + REDUCE, "alltoall.log", Stated(), "name of the file says all_to_all.*log has .* 1, which fits red"),
        (NAMELESS + REDUCE, "run", Stated(operation="all_to_all"), "--operation says all_to_all, .* 1, which fits red"),
        (A2A + LINE, "run", Stated(operation="all_gather"), "--operation says all_gather, and the log all_to_all"),
        (NAMELESS + REDUCE, "run", Stated(), "reduce, by .* is no collective of a training step"),
        (A2A + LINE, "run", Stated(num_ranks=8), "--ranks says 8 ranks, and the list of devices 4"),
        (A2A + LINE, "run", Stated(ranks_per_host=4), "--ranks-per-host says 4, and the list of devices 2"),
        (A2A.replace(RANKS, "") + LINE, "run", Stated(), "4 ranks, by size / count, share a host"),
        (A2A.replace("Rank  2", "Rank  7") + LINE, "run", Stated(), "lacks a rank"),
        (A2A.replace("1003 on  node1", "1003 on  node0") + LINE, "run", Stated(), "node0 3, node1 1"),
        ("# nothing\n", "run", Stated(), "no measurement of nccl-tests"),
    ],
)  # fmt: skip
def test_contradictions_are_refused_with_the_numbers(text, name, stated, reason) -> None:

    assert re.search(reason, refusal(text, name, stated))


@pytest.mark.parametrize(("line", "operation"), [(LINE, "all_to_all"), (ALL_REDUCE, None)])
def test_ranks_come_from_the_numbers_where_no_device_is_listed(line, operation) -> None:
    stated = Stated(operation=operation, ranks_per_host=2)
    text = HEAD + COLUMNS + line
    rows = read_nccl_tests(text, name="run", stated=stated).rows
    assert set(rows.counts("num_ranks")) == {4}
    assert set(rows.counts("ranks_per_host")) == {2}


#: By the file, the operations in it, and the rows; None: what is wrong with it.
FILES = {
    "cases/files/nccl_logs/superbench_allgather.log": {"all_gather": 58},
    "cases/files/nccl_logs/superbench_allreduce.log": {"all_reduce": 64},
    "cases/files/nccl_logs/superbench_alltoall.log": {"all_to_all": 58},
    "cases/files/nccl_logs/superbench_reducescatter.log": {"reduce_scatter": 58},
    "cases/files/nccl_logs/superbench_broadcast.log": "broadcast, by the name of the file, is no collective",
    "cases/files/nccl_logs/superbench_reduce.log": "reduce, by the name of the file, is no collective",
    "measured_gpu/nccl_logs/aws_p5_2node_all_reduce_mpirun_tagged.log": {"all_reduce": 44},
    "measured_gpu/nccl_logs/example-cluster00_nccl_N2_G8_cnode2-013_cnode2-015.log": {"all_to_all": 14},
    "measured_gpu/nccl_logs/example-cluster01_nccl_N1_G8_cnode3-002.log": {
        "all_reduce": 14, "all_gather": 14, "reduce_scatter": 14, "all_to_all": 14,
    },
    "measured_gpu/nccl_logs/example-cluster01_nccl_N1_G4_cnode3-005.log": {
        "all_reduce": 14, "all_gather": 14, "reduce_scatter": 14, "all_to_all": 14,
    },
    "measured_gpu/nccl_logs/example-cluster01_nccl_N2_G2_cnode3-007_cnode3-008.log": {"all_to_all": 4},
    "measured_gpu/nccl_logs/example-cluster01_nccl_N2_G8_cnode3-007_cnode3-008.log": {"all_to_all": 4},
    "measured_gpu/nccl_logs/example-cluster01_nccl_smoke_N2_G1_cnode3-002_cnode3-003.log": {"all_reduce": 8},
    "measured_gpu/nccl_logs/superbench_a100_alltoall.log": {"all_to_all": 40},
    "measured_gpu/nccl_logs/supermicro_b200_8gpu_alltoall_uint32.txt": {"all_to_all": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_logs_that_people_posted(name: str) -> None:
    path, expected = SHARED / name, FILES[name]
    if not path.exists():
        pytest.skip(f"{path} is absent: public logs are not part of the repository")
    if isinstance(expected, str):
        with pytest.raises(InvalidMeasurements, match=expected):
            read_report(path)
        return
    rows = read_report(path).rows
    operations = rows.text("operation").tolist()
    assert {operation: operations.count(operation) for operation in operations} == expected


def test_every_posted_log_has_its_expectation() -> None:
    folders = [SHARED / "cases/files/nccl_logs", SHARED / "measured_gpu/nccl_logs"]
    if not all(map(Path.is_dir, folders)):
        pytest.skip(f"{SHARED} is absent: public logs are not part of the repository")
    there = {str(path.relative_to(SHARED)) for folder in folders for path in folder.iterdir()}
    assert there == set(FILES)
