"""A report of another benchmark as it was read: its rows, what was left out, and what a person adds to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from cost_models.measurements.cells import MAX_TEXT_LENGTH, refused
from cost_models.measurements.json_rows import rows_from_json
from cost_models.measurements.schema import Measurements

#: Reasons listed in a refusal; more lines of one log seldom say more.
MAX_REASONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a person states of a report that may leave it out itself; ``None``: not stated."""

    operation: str | None = None  # one of COLLECTIVES
    num_ranks: int | None = None
    ranks_per_host: int | None = None
    device: str | None = None


NOTHING_STATED = Stated()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Checked rows, what each part of them is, and what was left out with the reason."""

    rows: Measurements
    read: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def report_of(rows: Sequence[dict[str, object]], read: Sequence[str], left_out: Sequence[str], *, what: str) -> Report:
    """Return the report of rows that hold what is not empty.

    Raises
    ------
    InvalidMeasurements
        Nothing was read (``what`` says what was looked for), or the rows break a rule.
    """
    if not rows:
        reasons = list(left_out[:MAX_REASONS])
        if len(left_out) > MAX_REASONS:
            reasons.append(f"and {len(left_out) - MAX_REASONS} more")
        raise refused("; ".join(reasons) if reasons else f"there is no {what} in it")
    return Report(rows=rows_from_json(rows), read=tuple(read), left_out=tuple(left_out))


def cell_text(text: str) -> str:
    """Return a text as a cell may have it: printable ASCII that begins with a letter or digit, cut to its length."""
    printable = "".join(letter if " " <= letter <= "~" else "?" for letter in text.strip())
    return printable.lstrip("".join(chr(code) for code in range(32, 127) if not chr(code).isalnum()))[
        :MAX_TEXT_LENGTH
    ].rstrip()
