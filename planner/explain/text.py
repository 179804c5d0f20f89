"""Bars, columns and wrapped lists for an 80-column terminal."""

import textwrap
from collections.abc import Sequence

WIDTH = 80
INDENT = "  "
_NO_BREAK = "\N{NO-BREAK SPACE}"


def stacked_bar(parts: Sequence[tuple[str, float]], full: float, width: int) -> str:
    """Draw ``parts`` (one glyph and one amount each) end to end on a scale where ``full`` fills ``width``.

    Ends are rounded, not lengths, so the bar's length is right whatever the number of parts.
    """
    if full <= 0:
        return " " * width
    drawn, end = "", 0.0
    for glyph, amount in parts:
        end += amount
        drawn += glyph * (round(end / full * width) - len(drawn))
    return drawn[:width].ljust(width)


def columns(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Align ``rows`` (the first one is the heading); columns named in ``left`` are flush left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        (
            INDENT
            + "  ".join(
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in rows
    ]


def wrapped(entries: Sequence[str], *, label: str = "") -> list[str]:
    """Join ``entries`` with commas, wrapped under ``label``; a line ends between entries, not within short ones."""
    head = INDENT + (f"{label} " if label else "")
    kept_whole = [entry.replace(" ", _NO_BREAK) if len(entry) <= WIDTH // 2 else entry for entry in entries]
    lines = textwrap.wrap(
        ", ".join(kept_whole), WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def paragraph(words: str, *, indent: str = INDENT) -> list[str]:
    """Wrap a sentence."""
    return textwrap.wrap(words, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def shortened(words: str, width: int) -> str:
    """Cut ``words`` to ``width`` characters, with an ellipsis where something was cut."""
    return words if len(words) <= width else words[: width - 1] + "…"


def number_ranges(numbers: Sequence[int]) -> str:
    """``"0-3, 7"`` for 3, 0, 1, 2, 7: distinct numbers in order, runs of three or more folded."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(str(number) for number in run) for run in runs
    )
