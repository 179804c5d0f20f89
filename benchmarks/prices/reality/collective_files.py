"""Reads public measurements of collectives: every file of the shared formats in a folder, known by its columns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.prices.reality.tables import lines_of, table_files

OPERATIONS = {
    "alltoall": "all_to_all", "all-to-all": "all_to_all", "all_to_all": "all_to_all",
    "reduce_scatter": "reduce_scatter", "reduce-scatter": "reduce_scatter",
    "all_gather": "all_gather", "all-gather": "all_gather",
    "all_reduce": "all_reduce", "all-reduce": "all_reduce",
}  # fmt: skip
#: Bandwidth and time of a row differ by more than their digits: the time is of a broken pair, printed as 1.1e+07.
CONTRADICTION = 0.02
#: Single-process all-to-alls of NCCL 2.8 to 2.10 start in 87 us: no latency of today.
_OLD_ALL_TO_ALL_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """One row of a public file."""

    file: str
    line: int  # the header is line 1
    source: str  # "aiconfigurator", "xla", "nccl-tests"
    platform: str  # as the file names it
    operation: str
    num_ranks: int
    ranks_per_host: int
    is_one_domain: bool
    message_bytes: float
    seconds: float
    library: str  # "NCCL 2.29.2", "XLA"; "" if not known
    is_in_place: bool = False
    is_run: bool = False  # of one pair of nodes, or one node, of a cluster that was measured pair by pair
    num_runs: int | None = None  # that the seconds are the median of; None if the file does not say
    has_median: bool = False  # of a run: a median stands for it (``medians.with_medians``)


Row = Mapping[str, str]
Reader = Callable[[Row, str, int], MeasuredCollective | None]


def read_folder(folder: Path) -> Iterator[MeasuredCollective]:
    """Yield the collectives of all files of a folder, without what their source calls broken."""
    for path in table_files(folder):
        yield from read_file(path)


def read_file(path: Path) -> Iterator[MeasuredCollective]:
    """Yield the collectives of a file; none if its columns are of another format."""
    read: Reader | None = None
    for line in lines_of(path):
        read = read or next((one for needed, one in _FORMATS if needed <= line.fields.keys()), None)
        if read is None:
            return
        found = read(line.fields, path.name, line.number)
        if found is not None and found.seconds > 0 and found.message_bytes > 0 and found.num_ranks > 1:
            yield found


def _aiconfigurator(row: Row, file: str, line: int) -> MeasuredCollective | None:
    operation = OPERATIONS.get(row["op"])
    ranks = int(row["ranks"])
    return operation and MeasuredCollective(
        file=file,
        line=line,
        source="aiconfigurator",
        platform=row["system"],
        operation=operation,
        num_ranks=ranks,
        ranks_per_host=ranks,
        is_one_domain=True,
        message_bytes=float(row["bytes"]),
        seconds=float(row["seconds"]),
        library=f"{row['kernel_source']} {row['nccl_recorded'] or row['nccl_folder']}",
    )


def _xla(row: Row, file: str, line: int) -> MeasuredCollective | None:
    operation = OPERATIONS.get(row["op"])
    if operation is None or not row["group_size"]:
        return None
    ranks = int(float(row["group_size"]))
    return MeasuredCollective(
        file=file,
        line=line,
        source="xla",
        platform=row["platform"],
        operation=operation,
        num_ranks=ranks,
        ranks_per_host=ranks,
        is_one_domain=True,
        message_bytes=float(row["bytes"]),
        seconds=float(row["time_us"]) / 1e6,
        library="XLA",
    )


def _h100_cluster(row: Row, file: str, line: int) -> MeasuredCollective | None:
    if "time_us_median" not in row:
        run = _nccl_tests(row, file, line, platform=row["cluster"], time="time_us")
        return run and replace(run, is_run=True, num_runs=1)
    median = _nccl_tests(row, file, line, platform=row["cluster"], time="time_us_median")
    return median and replace(median, num_runs=int(row.get("n_obs") or 1))


def _other(row: Row, file: str, line: int) -> MeasuredCollective | None:
    if "2.8-2.10" in row["nccl_version"] and row["op"] == "alltoall" and float(row["bytes"]) < _OLD_ALL_TO_ALL_BYTES:
        return None
    return _nccl_tests(row, file, line, platform=row["system"], time="time_us")


def _nccl_tests(row: Row, file: str, line: int, *, platform: str, time: str) -> MeasuredCollective | None:
    operation = OPERATIONS.get(row["op"].split(" ")[0])
    if operation is None or not row[time] or _contradicts(row, operation, time):
        return None
    nodes, ranks = int(float(row["nodes"])), int(float(row["ranks"]))
    version = row["nccl_version"]
    return MeasuredCollective(
        file=file,
        line=line,
        source="nccl-tests",
        platform=platform,
        operation=operation,
        num_ranks=ranks,
        ranks_per_host=max(1, ranks // nodes),
        is_one_domain=nodes == 1 or "NVLink domain" in row.get("transport", ""),
        message_bytes=float(row["bytes"]),
        seconds=float(row[time]) / 1e6,
        library=f"NCCL {version}" if version else "",
        is_in_place=row.get("inplace") == "in",
    )


def _contradicts(row: Row, operation: str, time: str) -> bool:
    """Whether bandwidth and time of a single measurement contradict each other."""
    if time != "time_us" or not row.get("algbw_gbps") or float(row["algbw_gbps"]) < 1:
        return False
    found = float(row["bytes"]) / float(row[time]) / 1e3
    return abs(found / float(row["algbw_gbps"]) - 1) > CONTRADICTION


_FORMATS: tuple[tuple[set[str], Reader], ...] = (
    ({"system", "op", "ranks", "bytes", "seconds", "nccl_recorded", "nccl_folder", "kernel_source"}, _aiconfigurator),
    ({"platform", "op", "group_size", "bytes", "time_us"}, _xla),
    ({"cluster", "op", "nodes", "ranks", "bytes", "time_us_median"}, _h100_cluster),
    ({"cluster", "op", "nodes", "ranks", "bytes", "time_us"}, _h100_cluster),
    ({"system", "op", "nodes", "ranks", "bytes", "time_us", "transport", "nccl_version"}, _other),
)
