"""Reads the text that nccl-tests prints, and rccl-tests with it: all-to-all and the ring collectives by message size.

A file may hold several runs. A run begins with ``# nThread``; its comment lines name the ranks, their hosts and
devices, and, in newer versions, the collective (``# Collective test starting: alltoall_perf``). Every other line is a
measurement::

    size count type [redop [root]]  time algbw busbw #wrong  time algbw busbw #wrong

twice four columns, out of place and in place, times in microseconds. ``size`` is the larger buffer of one rank: the
input of a reduce-scatter, the output of an all-gather. "N/A" in place means that it was not run so. Older versions
head the fourth column ``error``, the largest deviation from what was expected; in place they run an all-to-all whose
result is none, with an error of 1, and that is left out. Files are opened by the caller.

References
----------
NVIDIA/nccl-tests, ``src/common.cu`` (the columns), ``doc/PERFORMANCE.md`` (the sizes).
"""

import re
from dataclasses import dataclass, field

import numpy as np

from benchmarks.inputs.lines import InvalidLine
from cost_models.measurements.schema import Measurements, measurements

#: Programs of nccl-tests whose collectives training steps run.
PROGRAMS = {
    "alltoall_perf": "all_to_all",
    "all_to_all_perf": "all_to_all",
    "reduce_scatter_perf": "reduce_scatter",
    "all_gather_perf": "all_gather",
    "all_reduce_perf": "all_reduce",
}
_STARTING = re.compile(r"#\s*Collective test starting:\s*(\S+)")
_RANK = re.compile(r"#\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)")
#: What mpirun puts before every line when it tags them, as in ``[1,0]<stdout>:``.
_TAG = re.compile(r"^\[\d+,\d+\]<\w+>:")
#: What NCCL itself prints between the lines when it is asked to.
_CHATTER = re.compile(r"NCCL (INFO|WARN|version)")
_TIMES = 4  # columns of one way: time, algbw, busbw, #wrong
_MOST_LEADING = 5  # size, count, type, redop, root
_LARGEST = 1e15
#: Deviations of sums of half precision stay below this; wrong results do not.
_LARGEST_ROUNDING = 0.1


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the comments of a run have said so far."""

    number: int
    program: str | None
    ranks: set[int] = field(default_factory=set)
    hosts: dict[str, int] = field(default_factory=dict)
    device: str = ""
    reports_deviation: bool = False  # whether the fourth column is a deviation, not a count of wrong results


def read_nccl_tests(
    text: str, *, name: str, program: str | None = None, num_ranks: int | None = None, library: str = "nccl-tests"
) -> Measurements:
    """Rows of every measured line, one out of place and one in place, that stand for all ranks (rank -1).

    ``program`` is what was run (:data:`PROGRAMS`), for files that do not echo so, and ``num_ranks`` how many ranks ran
    on one host, for files without the list of devices. ``name`` begins the names of the tasks.

    Raises
    ------
    InvalidLine
        A line is neither a comment nor a measurement, or says that results were wrong, or it is not known of which
        collective or how many ranks it is.
    """
    if program is not None and program not in PROGRAMS:
        raise ValueError(f"expected program to be one of {', '.join(PROGRAMS)}")
    rows: list[dict[str, object]] = []
    starting = program
    run = _Run(number=0, program=starting)
    for line, raw in enumerate(text.splitlines(), start=1):
        stripped = _TAG.sub("", raw).strip()
        if found := _STARTING.match(stripped):
            run.program = starting = found[1]
        elif re.match(r"#\s*nThread\b", stripped):
            run = _Run(number=run.number + 1, program=starting)
        elif found := _RANK.match(stripped):
            run.ranks.add(int(found[1]))
            run.hosts[found[2]] = run.hosts.get(found[2], 0) + 1
            run.device = found[3].strip() or run.device
        elif stripped.startswith("#") and "algbw" in stripped:
            run.reports_deviation = "error" in stripped
        elif stripped and not stripped.startswith("#") and not _CHATTER.search(stripped):
            rows += _measured(stripped.split(), line, run, name, num_ranks)
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]} if rows else {}
    constants = {"kind": "collective", "library": library, "implementation": "nccl"}
    columns |= {key: np.full(len(rows), value) for key, value in constants.items()}
    columns["launch"] = np.arange(len(rows))
    return measurements(columns, len(rows))


def _measured(words: list[str], line: int, run: _Run, name: str, num_ranks: int | None) -> list[dict[str, object]]:
    """Rows of one line: one for each way that was run."""
    leading = len(words) - 2 * _TIMES
    if not 3 <= leading <= _MOST_LEADING:
        raise InvalidLine(line, "expected size, count, type, and twice time, algbw, busbw and #wrong")
    if run.program not in PROGRAMS:
        what = "not known which collective this is" if run.program is None else "of no collective of a training step"
        raise InvalidLine(line, f"{what}; expected one of {', '.join(PROGRAMS)}")
    operation = PROGRAMS[run.program]
    ranks, ranks_per_host = _ranks(run, line, num_ranks)
    size = _number(words[0], line, "size")
    ways = words[leading : leading + _TIMES], words[leading + _TIMES :]
    rows: list[dict[str, object]] = []
    for way, (time, _, _, wrong) in zip(("out of place", "in place"), ways, strict=True):
        in_place = way == "in place"
        found = 0.0 if wrong == "N/A" else _number(wrong, line, f"#wrong {way}")
        if found > (_LARGEST_ROUNDING if run.reports_deviation else 0):
            if in_place and run.reports_deviation:
                continue
            raise InvalidLine(line, f"the collective gave wrong results {way}")
        if in_place and time == "N/A":
            continue
        seconds = _number(time, line, f"time {way}") / 1e6
        if seconds <= 0:
            raise InvalidLine(line, f"expected time {way} to be > 0")
        if size > 0:
            rows.append(
                {
                    "task": f"{name}:{run.number}:{words[0]}",
                    "device": run.device or "unknown",
                    "num_ranks": ranks,
                    "ranks_per_host": ranks_per_host,
                    "operation": operation,
                    "sent_bytes": size / ranks if operation == "all_gather" else size,
                    "received_bytes": size / ranks if operation == "reduce_scatter" else size,
                    "seconds": seconds,
                }
            )
    return rows


def _ranks(run: _Run, line: int, num_ranks: int | None) -> tuple[int, int]:
    """How many ranks ran, and how many on each host."""
    if not run.ranks:
        if num_ranks is None or num_ranks < 1:
            raise InvalidLine(line, "no list of devices before this line; say how many ranks ran")
        return num_ranks, num_ranks
    if run.ranks != set(range(len(run.ranks))):
        raise InvalidLine(line, "the list of devices before this line lacks a rank")
    if len(set(run.hosts.values())) != 1 or sum(run.hosts.values()) != len(run.ranks):
        raise InvalidLine(line, "expected equally many ranks on every host")
    return len(run.ranks), next(iter(run.hosts.values()))


def _number(word: str, line: int, what: str) -> float:
    """A number >= 0."""
    try:
        value = float(word)
    except ValueError as error:
        raise InvalidLine(line, f'expected a number as {what}, not "{word[:20]}"') from error
    if not 0 <= value <= _LARGEST:
        raise InvalidLine(line, f"expected {what} between 0 and {_LARGEST:g}")
    return value
