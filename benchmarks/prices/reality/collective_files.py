"""Reads public measurements of collectives: every file of the shared formats in a folder, known by its columns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.prices.reality.cells import count, number, time
from benchmarks.prices.reality.row import LeftOutRow
from benchmarks.prices.reality.tables import Line, tables

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
_MOST_RANKS, _MOST_RUNS = 2**20, 2**30


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


def read_folder(folder: Path) -> Iterator[MeasuredCollective]:
    """Yield the collectives of all files of a folder, without what their source calls broken."""
    yield from (row for row in read_rows(folder) if isinstance(row, MeasuredCollective))


def read_rows(folder: Path) -> Iterator[MeasuredCollective | LeftOutRow]:
    """Yield the rows of all files of a folder whose columns are of a format, each of another kind with its reason."""
    for table in tables(folder):
        read = next((read for needed, read in _FORMATS if needed <= table.columns), None)
        for line in table.lines if read is not None else ():
            try:
                yield read(line)
            except ValueError as error:
                yield line.left_out(str(error))


def _operation(name: str) -> str:
    if name not in OPERATIONS:
        raise ValueError(f"no collective that a plan uses: {name}")
    return OPERATIONS[name]


def _ranks(line: Line, column: str) -> int:
    ranks = count(line.fields, column, most=_MOST_RANKS)
    if ranks == 1:
        raise ValueError("a collective of one rank")
    return ranks


def _message_bytes(line: Line) -> float:
    found = number(line.fields, "bytes")
    if found == 0:
        raise ValueError("a message of 0 bytes")
    return found


def _aiconfigurator(line: Line) -> MeasuredCollective:
    row, ranks = line.fields, _ranks(line, "ranks")
    return MeasuredCollective(
        file=line.file,
        line=line.number,
        source="aiconfigurator",
        platform=row["system"],
        operation=_operation(row["op"]),
        num_ranks=ranks,
        ranks_per_host=ranks,
        is_one_domain=True,
        message_bytes=_message_bytes(line),
        seconds=time(row, "seconds"),
        library=f"{row['kernel_source']} {row['nccl_recorded'] or row['nccl_folder']}",
    )


def _xla(line: Line) -> MeasuredCollective:
    row, operation = line.fields, _operation(line.fields["op"])
    ranks = _ranks(line, "group_size")
    return MeasuredCollective(
        file=line.file,
        line=line.number,
        source="xla",
        platform=row["platform"],
        operation=operation,
        num_ranks=ranks,
        ranks_per_host=ranks,
        is_one_domain=True,
        message_bytes=_message_bytes(line),
        seconds=time(row, "time_us") / 1e6,
        library="XLA",
    )


def _h100_cluster(line: Line) -> MeasuredCollective:
    row = line.fields
    if "time_us_median" not in row:
        run = _nccl_tests(line, platform=row["cluster"], microseconds="time_us")
        return replace(run, is_run=True, num_runs=1)
    median = _nccl_tests(line, platform=row["cluster"], microseconds="time_us_median")
    return replace(median, num_runs=count(row, "n_obs", most=_MOST_RUNS) if row["n_obs"] else 1)


def _other(line: Line) -> MeasuredCollective:
    row, found = line.fields, _nccl_tests(line, platform=line.fields["system"], microseconds="time_us")
    if (
        "2.8-2.10" in row["nccl_version"]
        and found.operation == "all_to_all"
        and found.message_bytes < _OLD_ALL_TO_ALL_BYTES
    ):
        raise ValueError("latency of an old library with one process")
    return found


def _nccl_tests(line: Line, *, platform: str, microseconds: str) -> MeasuredCollective:
    row = line.fields
    operation = _operation(row["op"].split(" ")[0])
    nodes, ranks = count(row, "nodes", most=_MOST_RANKS), _ranks(line, "ranks")
    if ranks < nodes:
        raise ValueError("more nodes than ranks")
    message_bytes, measured = _message_bytes(line), time(row, microseconds)
    if microseconds == "time_us" and _contradicts(line, message_bytes, measured):
        raise ValueError("bandwidth and time contradict each other")
    version = row["nccl_version"]
    return MeasuredCollective(
        file=line.file,
        line=line.number,
        source="nccl-tests",
        platform=platform,
        operation=operation,
        num_ranks=ranks,
        ranks_per_host=ranks // nodes,
        is_one_domain=nodes == 1 or "NVLink domain" in row["transport"],
        message_bytes=message_bytes,
        seconds=measured / 1e6,
        library=f"NCCL {version}" if version else "",
        is_in_place=row["inplace"] == "in",
    )


def _contradicts(line: Line, message_bytes: float, microseconds: float) -> bool:
    """Whether bandwidth and time of a single measurement contradict each other."""
    stated = number(line.fields, "algbw_gbps") if line.fields["algbw_gbps"] else 0.0
    return stated >= 1 and abs(message_bytes / microseconds / 1e3 / stated - 1) > CONTRADICTION


_FORMATS: tuple[tuple[frozenset[str], Callable[[Line], MeasuredCollective]], ...] = (
    (
        frozenset({"system", "op", "ranks", "bytes", "seconds", "nccl_recorded", "nccl_folder", "kernel_source"}),
        _aiconfigurator,
    ),
    (frozenset({"platform", "op", "group_size", "bytes", "time_us"}), _xla),
    (frozenset({"cluster", "op", "nodes", "ranks", "bytes", "time_us_median"}), _h100_cluster),
    (frozenset({"cluster", "op", "nodes", "ranks", "bytes", "time_us"}), _h100_cluster),
    (frozenset({"system", "op", "nodes", "ranks", "bytes", "time_us", "transport", "nccl_version"}), _other),
)
