"""A row of a file, its prediction, and the groups in which errors are averaged."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import Fields

Row = Fields
Numbered = tuple[int, Row]  # line of the file, and what it says
Found = PredictedRow | LeftOutRow

#: 2^20 lookups of ten tables, rounded down for each, are 1,048,570; what benchmarks call a million.
MANY_LOOKUPS = 1_000_000
#: Columns of fp32 that the laws were fitted to.
_WIDTHS = (4, 1024)


def left_out(path: Path, numbered: Iterable[Numbered], reason: str) -> Iterator[LeftOutRow]:
    """Yield rows without a prediction, all for one reason."""
    for line, _ in numbered:
        yield LeftOutRow(file=path.name, line=line, reason=reason)


def predicted(
    path: Path,
    line: int,
    *,
    gpu: str,
    profile: str,
    location: str,
    direction: str,
    columns: float,
    lookups: float,
    subject: str,
    measured_seconds: float,
    predicted_seconds: float,
) -> Found:
    """Put a prediction into its groups; ``direction`` is forward or backward."""
    fine = [location, f"{columns:g} columns", f"priced as {profile}"]
    if lookups >= MANY_LOOKUPS:
        fine += ["a million lookups and more", f"{location}, a million lookups and more"]
    else:
        fine += ["fewer than a million lookups"]
    groups = [f"tbe {direction}"]
    if location != "DEVICE":
        groups.append("tbe host memory")
    return PredictedRow(
        groups=(*groups, *(f"tbe {direction}: {one}" for one in fine)),
        file=path.name,
        line=line,
        platform=f"{gpu}, one GPU",
        subject=subject,
        measured_seconds=measured_seconds,
        predicted_seconds=predicted_seconds,
        is_extrapolated=not _WIDTHS[0] <= columns <= _WIDTHS[1],
    )
