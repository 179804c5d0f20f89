"""One run of nccl-tests: of which collective and among how many ranks it is, and its rows."""

from dataclasses import dataclass, field
from pathlib import PurePath

from cost_models.measurements.cells import refused
from cost_models.measurements.reports.collective_operation import (
    OPERATIONS,
    TableLine,
    candidates,
    fits_ratio,
    num_ranks_by_counts,
    num_ranks_by_ratio,
    operation_named,
    ratio_range,
)
from cost_models.measurements.reports.report import Stated, cell_text
from cost_models.measurements.schema import COLLECTIVES

#: Deviations of sums of half precision stay below this; wrong results do not.
_LARGEST_ROUNDING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What was measured out of place, or in place."""

    is_in_place: bool
    seconds: float
    algorithm_bandwidth: float  # bytes of the larger buffer per second, in GB/s
    bus_bandwidth: float  # GB/s
    wrong: float  # wrong results, or the largest deviation


@dataclass(slots=True, kw_only=True)
class Run:
    """What the lines of a run have said."""

    operation: str | None  # what it was called, known or not
    source: str  # who called it so
    ranks: list[int] = field(default_factory=list)
    hosts: dict[str, int] = field(default_factory=dict)
    device: str = ""
    reports_deviation: bool = False  # whether the fourth column is a deviation, not a count of wrong results
    first_line: int = 0  # of its measurements, in the file
    lines: list[tuple[int, TableLine, tuple[Way, ...]]] = field(default_factory=list)  # by number in the file
    left_out: list[str] = field(default_factory=list)


def rows_of_run(
    run: Run, number: int, *, name: str, library: str, stated: Stated
) -> tuple[list[dict[str, object]], str]:
    """Return the rows of a run and what it is; without rows, why there are none.

    Raises
    ------
    InvalidMeasurements
        It is not known of which operation or of how many ranks it is, or what is said of that contradicts the numbers.
    """
    table = [line for _, line, _ in run.lines]
    called, source = _called(run, name, stated)
    ranks, per_host, how = _ranks(run, table, called, stated)
    if per_host is None:
        return [], how
    ratio = ratio_range(table)
    if called is None:
        left = candidates(table, ranks)
        if len(left) != 1:
            raise refused(
                f"not known which collective this is: {_ratio_text(ratio)} of {ranks} ranks and the columns fit"
                f" {', '.join(left) if left else 'none'}: say which, shardplan measurements import --operation"
            )
        called, source = left[0], f"{_ratio_text(ratio)} and the columns"
    elif called in OPERATIONS and not fits_ratio(called, ranks, ratio):
        left = candidates(table, ranks)
        others = f", which fits {' or '.join(left)}" if left else ""
        raise refused(
            f"{source} says {called}, whose busbw / algbw among {ranks} ranks is"
            f" {OPERATIONS[called].factor(ranks):.4g}; the log has {_ratio_text(ratio)}{others}"
        )
    if called not in COLLECTIVES:
        return [], f"{cell_text(called)}, by {source}, is no collective of a training step: {', '.join(COLLECTIVES)}"
    rows = _rows(run, number, called, ranks, per_host, name=name, library=library, stated=stated)
    text = f"{called} of {ranks} ranks, {per_host} per host ({how}), {len(rows)} rows; operation by {source}"
    return rows, text if rows else f"{text}: nothing in it can be used"


def _called(run: Run, name: str, stated: Stated) -> tuple[str | None, str]:
    """Return what the operation is called, and by whom."""
    if stated.operation is not None:
        if run.operation is not None and run.operation != stated.operation:
            raise refused(f"--operation says {stated.operation}, and {run.source} {cell_text(run.operation)}")
        return stated.operation, "--operation"
    if run.operation is not None:
        return run.operation, run.source
    return operation_named(PurePath(name).name), "the name of the file"


def _ranks(run: Run, table: list[TableLine], called: str | None, stated: Stated) -> tuple[int, int | None, str]:
    """Return how many ranks ran, how many on each host, and how that is known; no number per host: why not."""
    listed = len(run.ranks)
    if listed and sorted(run.ranks) != list(range(listed)):
        return 0, None, "the list of devices lacks a rank, or has one twice"
    by_counts, ratio = num_ranks_by_counts(table), ratio_range(table)
    if called is None and ratio is not None and ratio[0] > 1:  # no other operation sends more than the buffer
        called = "all_reduce"
    by_ratio = None if called not in OPERATIONS else num_ranks_by_ratio(called, ratio)
    known = [
        (stated.num_ranks, "--ranks"),
        (listed or None, "the list of devices"),
        (by_counts, "size / count"),
        (by_ratio, "busbw / algbw"),
    ]
    found = [(number, source) for number, source in known if number is not None]
    if not found:
        raise refused(
            "no list of devices, and the numbers do not say how many ranks ran: shardplan measurements import --ranks"
        )
    ranks, source = found[0]
    for number, other in found[1:3]:
        if number != ranks and other != "busbw / algbw":
            raise refused(f"{source} says {ranks} ranks, and {other} {number}")
    per_host = stated.ranks_per_host
    if listed:
        if len(set(run.hosts.values())) != 1:
            counts = ", ".join(f"{host} {number}" for host, number in list(run.hosts.items())[:4])
            return ranks, None, f"hosts have different numbers of ranks: {counts}"
        on_host = next(iter(run.hosts.values()))
        if per_host not in (None, on_host):
            raise refused(f"--ranks-per-host says {per_host}, and the list of devices {on_host}")
        per_host = on_host
    if per_host is None:
        raise refused(
            f"no list of devices says how many of the {ranks} ranks, by {source}, share a host:"
            " shardplan measurements import --ranks-per-host"
        )
    if ranks % per_host:
        raise refused(f"{ranks} ranks, by {source}, are no multiple of {per_host} ranks per host")
    return ranks, per_host, f"by {source}"


def _rows(
    run: Run, number: int, operation: str, ranks: int, per_host: int, *, name: str, library: str, stated: Stated
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    device = stated.device or run.device or "unknown"
    is_rccl = library.startswith("rccl") or any(word in device for word in ("AMD", "Instinct", "Radeon"))
    task = cell_text(PurePath(name).name)[:40] or "log"
    for line_number, line, ways in run.lines:
        if line.size == 0:
            continue
        for way in ways:
            how = "in place" if way.is_in_place else "out of place"
            if way.wrong > (_LARGEST_ROUNDING if run.reports_deviation else 0):
                run.left_out.append(f"line {line_number}: the collective gave wrong results {how} ({way.wrong:g})")
            elif way.seconds <= 0:
                run.left_out.append(f"line {line_number}: took no time {how}")
            else:
                rows.append(
                    {
                        "kind": "collective",
                        "task": f"{task}:{number}:{line.size}",
                        "device": device,
                        "library": library or ("rccl-tests" if is_rccl else "nccl-tests"),
                        "implementation": "rccl" if is_rccl else "nccl",
                        "num_ranks": ranks,
                        "ranks_per_host": per_host,
                        "operation": operation,
                        "sent_bytes": line.size / ranks if operation == "all_gather" else float(line.size),
                        "received_bytes": line.size / ranks if operation == "reduce_scatter" else float(line.size),
                        "seconds": way.seconds,
                    }
                )
    return rows


def _ratio_text(ratio: tuple[float, float] | None) -> str:
    return "no busbw / algbw" if ratio is None else f"busbw / algbw {(ratio[0] + ratio[1]) / 2:.4g}"
