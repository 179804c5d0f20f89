"""Reads what nccl-tests and rccl-tests print, as people keep it: collectives by message size.

A log may hold several runs, tags of launchers, times, and lines of other programs anywhere. A run begins with
``# Collective test starting: alltoall_perf`` or ``# nThread``, or with the head line of another table. Its comment
lines name the ranks, their hosts and devices. A measurement is::

    size count type [redop] [root]  time algbw busbw #wrong [time algbw busbw #wrong]

out of place and, in most logs, in place; times in microseconds. ``size`` is the larger buffer of one rank: the input
of a reduce-scatter, the output of an all-gather. "N/A" in place means that it was not run so. Older versions
head the fourth column ``error``, the largest deviation from what was expected; in place they run an all-to-all whose
result is none, with an error of 1, and that is left out. Files are opened by the caller.

References
----------
NVIDIA/nccl-tests, ``src/common.cu`` (the columns), ``doc/PERFORMANCE.md`` (the sizes); ROCm/rccl-tests.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cost_models.errors import InvalidMeasurements
from cost_models.measurements.cells import refused
from cost_models.measurements.reports.collective_operation import TableLine, operation_named
from cost_models.measurements.reports.collective_run import Run, Way, rows_of_run
from cost_models.measurements.reports.report import NOTHING_STATED, Report, Stated, cell_text, report_of
from cost_models.text.launcher_lines import LogLine, log_lines

_STARTING = re.compile(r"Collective test starting:\s*(\S+)")
_PROGRAM = re.compile(r"(?<![\w-])(\w+)_perf(?:_mpi)?(?![\w.])")
_THREADS = re.compile(r"#\s*nThread\b")
_RANK = re.compile(
    r"#\s*Rank\s+([0-9]{1,9})\s+(?:Group\s+[0-9]+\s+)?Pid\s+[0-9]+\s+on\s+(\S+)\s+device\s+[0-9]+\s+\[[^\]]*\]\s*(.*)"
)
_VERSION = re.compile(r"((?:nccl|rccl)-tests)(?:: Version| version)\s+(\S+)")
_MEASURED = re.compile(r"([0-9]{1,20})\s+([0-9]{1,20})\s+([a-z][a-z0-9_]{2,12})\s+(\S.*)")
_REDOPS = frozenset({"sum", "prod", "max", "min", "avg", "all", "mulsum", "none"})
_COLUMNS_OF_A_WAY = 4  # time, algbw, busbw, #wrong
_NOT_RUN = "N/A"


@dataclass(slots=True)
class _Log:
    """The runs of one process, and the program that a command line before them named."""

    runs: list[Run] = field(default_factory=list)
    is_announced: bool = False  # the last run's program was named, and nothing of it came yet
    has_threads: bool = False
    has_head: bool = False


def read_nccl_tests(text: str, *, name: str, stated: Stated = NOTHING_STATED) -> Report:
    """Return rows of every measured line, one out of place and one in place, that stand for all ranks (rank -1).

    ``name`` is that of the file: it begins the names of the tasks, and names the operation where nothing else does.

    Raises
    ------
    InvalidMeasurements
        There is no measurement of a collective of a training step; or what is stated, what the log or its name says
        of the operation and the ratio busbw / algbw contradict each other, with the numbers.
    """
    logs: dict[str, _Log] = {}
    program: str | None = None
    library = ""
    left_out: list[str] = []
    for line in log_lines(text):
        if found := _VERSION.search(line.text):
            library = cell_text(f"{found[1]} {found[2]}")
        log = logs.setdefault(line.tag, _Log())
        if not line.text.startswith("#") and (ran := _PROGRAM.search(line.text)):
            program = ran[1]
            continue
        left_out.extend(_take(log, line, program))
    rows: list[dict[str, object]] = []
    read: list[str] = []
    runs = [run for log in logs.values() for run in log.runs if run.lines]
    for number, run in enumerate(sorted(runs, key=lambda run: run.first_line), start=1):
        try:
            found_rows, description = rows_of_run(run, number, name=name, library=library, stated=stated)
        except InvalidMeasurements as error:
            raise refused(f"line {run.first_line}: {error}") from None
        where = f"line {run.first_line}: "
        (read if found_rows else left_out).append(where + description)
        rows += found_rows
        left_out.extend(run.left_out)
    for launch, row in enumerate(rows):
        row["launch"] = launch
    return report_of(rows, read, left_out, what="measurement of nccl-tests or rccl-tests")


def _take(log: _Log, line: LogLine, program: str | None) -> Iterator[str]:
    """Take in a line; yields why a measurement is left out."""
    if found := _STARTING.search(line.text):
        _begin(log, operation_named(found[1]) or found[1], "the log")
        log.is_announced = True
    elif _THREADS.search(line.text):
        if not log.is_announced or log.has_threads:
            _begin(log, operation_named(program or ""), "the command line")
        log.is_announced, log.has_threads = True, True
    elif found := _RANK.search(line.text):
        run = _current(log, program)
        run.ranks.append(int(found[1]))
        run.hosts[found[2]] = run.hosts.get(found[2], 0) + 1
        run.device = cell_text(found[3]) or run.device
    elif line.text.startswith("#") and "size" in line.text and "algbw" in line.text:
        if log.has_head:  # a table after a table, of which nothing else is said
            _begin(log, operation_named(program or ""), "the command line")
        run = _current(log, program)
        run.reports_deviation, log.has_head = "error" in line.text, True
    elif found := _MEASURED.match(line.text):
        run = _current(log, program)
        try:
            table_line, ways = _parsed(found, run.reports_deviation)
        except ValueError as error:
            yield f"line {line.number}: {error}"
            return
        run.first_line = run.first_line or line.number
        run.lines.append((line.number, table_line, ways))


def _begin(log: _Log, operation: str | None, source: str) -> None:
    log.runs.append(Run(operation=operation, source=source))
    log.is_announced = log.has_threads = log.has_head = False


def _current(log: _Log, program: str | None) -> Run:
    if not log.runs:
        _begin(log, operation_named(program or ""), "the command line")
    return log.runs[-1]


def _parsed(found: re.Match[str], reports_deviation: bool) -> tuple[TableLine, tuple[Way, ...]]:
    """Return what a measured line says; raises ``ValueError`` with the reason if it is none that can be used."""
    words = found[4].split()
    redop = words.pop(0) if words[0] in _REDOPS else None
    root = (
        int(words.pop(0)) if len(words) % _COLUMNS_OF_A_WAY == 1 and re.fullmatch(r"-?[0-9]{1,6}", words[0]) else None
    )
    if len(words) not in (_COLUMNS_OF_A_WAY, 2 * _COLUMNS_OF_A_WAY):
        raise ValueError("expected size, count, type, and once or twice time, algbw, busbw and #wrong: it was cut")
    ways = []
    for start, is_in_place in zip(range(0, len(words), _COLUMNS_OF_A_WAY), (False, True), strict=False):
        time, *bandwidths, wrong = words[start : start + _COLUMNS_OF_A_WAY]
        how = "in place" if is_in_place else "out of place"
        if time == _NOT_RUN:
            continue
        algorithm, bus = (_number(word, f"bandwidth {how}") for word in bandwidths)
        ways.append(
            Way(
                is_in_place=is_in_place,
                seconds=_number(time, f"time {how}") / 1e6,
                algorithm_bandwidth=algorithm,
                bus_bandwidth=bus,
                wrong=0.0
                if wrong == _NOT_RUN
                else _number(wrong, f"{'error' if reports_deviation else '#wrong'} {how}"),
            )
        )
    table_line = TableLine(
        size=int(found[1]),
        elements=int(found[2]),
        type_name=found[3],
        redop=redop,
        root=root,
        bandwidths=tuple((way.algorithm_bandwidth, way.bus_bandwidth) for way in ways),
    )
    return table_line, tuple(ways)


def _number(word: str, what: str) -> float:
    """A number >= 0 that a column can have."""
    if not re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{0,9})?(?:[eE][+-]?[0-9]{1,3})?", word):
        raise ValueError(f'expected a number as {what}, not "{cell_text(word)[:20]}"')
    return float(word)
